#!/bin/bash
# The store and the jobs of an earlier elmer, taken over by this one: one of each kind that runs, one that waits, one that
# has ended, and a host that was drained. The rsds are this build's; 63-versions.t and 65-versions-tls.t mix them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/versions.sh"
examples=/usr/libexec/elmer/examples
earlier_build "$here/previous-commit-store"

lab_up 3 --elmer 'allocator = v1' --elmer 'levels = 2'
install_programs
keep_new
accept_all 1 2 3
on 1 systemctl restart rsd
schema() { # of a copy: the nodes have no module for it
    local file
    for file in elmer.db elmer.db-wal; do on 1 cat "/var/lib/elmer/$file" >"$tmp/$file"; done
    python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("PRAGMA user_version").fetchone()[0])' "$tmp/elmer.db"
}
hosts_again() { [ "$(on 1 eadmin hosts | grep -cE '^ws[12] +up ')" = 2 ]; }

for k in 2 3; do on "$k" systemctl stop rsd; done
on 1 sh -c 'systemctl stop elmer; rm -f /var/lib/elmer/elmer.db*' # and with it whom it has given certificates
use previous elmer
join() { on "$1" rsd --join ws1:7110 - <<<"$(on 1 eadmin token --hosts "ws$1" 2>/dev/null)"; }
for k in 2 3; do
    wait_for 20 "ws$k joins that elmer" join "$k"
    on "$k" systemctl restart rsd
done
ready 'the earlier elmer, these rsds'
on 1 eadmin drain ws3 >/dev/null
done_before=$(submit alice -w -o /dev/null 1 sh -c 'exit 3')
pvm=$(submit alice --pvm --hosts ws1,ws2 -o /home/alice/taken.out 2 sh -c \
    "i=0; while [ ! -e end-pvm ] && [ \$i -lt 4000 ]; do sleep 0.05; i=\$((i + 1)); done; exec $examples/barrier -P 2 -v 3")
wait_for 30 'a PVM job of the earlier elmer runs' running "$pvm"
pvm_pids=$(pids_of "$pvm")
a=$(waiting_job a --requeue --each --hosts ws1,ws2 2)
wait_for 20 'one to be requeued, on both hosts' running "$a"
a_pids=$(pids_of "$a")
b=$(waiting_job b --hosts ws1,ws2 2) # two levels are taken
wait_for 20 'one waits' is_state "$b" queued
like 'the earlier elmer has an earlier store' "$(schema)" '^5$'

use new elmer
wait_for 30 'both hosts are there again' hosts_again
like 'its store is of this build' "$(schema)" '^([6-9]|[1-9][0-9]+)$'
same pvm "$pvm" "$pvm_pids"
same a "$a" "$a_pids"
is 'the one that waits still does' "$(state "$b")" queued
is 'the one that had ended is known' "$(field "$done_before" '[j["state"], j["exit_status"], j["user"]]')" "['done', 3, 'alice']"
like 'a drained host is drained' "$(on 1 eadmin hosts)" 'ws3 +drained'
is 'levels are as they were' "$(field "$pvm" 'j["level"]') $(field "$a" 'j["level"]')" '0 1'

as alice 1 touch end-pvm
wait_for 60 'the PVM job uses its virtual machine, and ends' over "$pvm"
is 'well' "$(field "$pvm" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
like 'with its output' "$(on 1 cat /home/alice/taken.out)" verified
wait_for 20 'nothing is left of it' nothing_left "$pvm"
wait_for 20 'the one that waited runs' running "$b"
is 'the one below has moved up' "$(field "$a" 'j["level"]')" 0
ends_well a "$a"
ends_well b "$b"
done_testing
