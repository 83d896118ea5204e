#!/bin/bash
# An upgrade of two hosts with TLS between them and a job on both: the daemons of an earlier build that has TLS, and of
# this one. 63-versions.t has one that speaks another minor version.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/versions.sh"
earlier_build "$here/previous-commit-tls"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 6'
install_programs
keep_new
accept_all 1 2

# --- a cluster of the earlier build
on 2 systemctl stop rsd
on 1 sh -c 'systemctl stop rsd elmer; rm -f /var/lib/elmer/elmer.db*'
use previous elmer
use previous rsd
put previous rsd 2
join() { on 2 rsd --join ws1:7110 - <<<"$(on 1 eadmin token --hosts ws2 2>/dev/null)"; }
wait_for 10 'the other host joins that elmer' join
on 2 systemctl restart rsd
ready 'both of the earlier build'
a=$(waiting_job a --each 2)
wait_for 20 'a job of the earlier build runs on both' running "$a"
a_pids=$(pids_of "$a")
like 'on both, indeed' "$a_pids" '^[0-9]+ [0-9]+$'

use new rsd 1 2
ready 'this rsd, the earlier elmer'
same a "$a" "$a_pids"
b=$(waiting_job b --each 2)
wait_for 20 'a job of the newer rsd runs' running "$b"
b_pids=$(pids_of "$b")
is 'the earlier elmer is asked from the other host' "$(as bob 2 equery --json "$b" | grep -c running)" 1

use new elmer
ready 'both of this build'
same a "$a" "$a_pids"
same b "$b" "$b_pids"
c=$(waiting_job c --each 2)
wait_for 20 'a job of this build runs' running "$c"
c_pids=$(pids_of "$c")

use previous rsd 2
ready 'the earlier rsd by TLS, this elmer'
use previous rsd 1
ready 'both rsds of the earlier build, this elmer'
same a "$a" "$a_pids"
same b "$b" "$b_pids"
same c "$c" "$c_pids"
ends_well a "$a"
ends_well b "$b" only_result_left

use new rsd 1 2
ready 'both of this build again'
wait_for 20 'job b: nothing is left of it' nothing_left "$b"
same c "$c" "$c_pids"

# --- the way to tickets, as doc/07 says it
ok 'eadmin init certifies the key of the queue host' on 1 eadmin init
wait_for 10 'the other host joins again' join
on 1 rm /etc/elmer/rsd.conf.d/40-tickets.conf
on 2 rm /etc/elmer/rsd.conf.d/40-tickets.conf
for k in 1 2; do on $k systemctl restart rsd; done
ready 'both with keys, and tickets are required'
same c "$c" "$c_pids"
for k in 1 2; do
    as alice $k esubmit -w -o "signed-$k" --each 2 sh -c 'echo $ELMER_RANK' >/dev/null 2>&1
    is "a job that ws$k has signed runs on both" "$? $(as alice 1 sort "signed-$k" | xargs)" '0 0 1'
done
is 'none was refused' "$(for k in 1 2; do on $k journalctl -q -o cat --no-pager -u 'rsd*' | grep 'refused, ticket'; done)" ''
ends_well c "$c"
is 'no version was refused' "$(no_version_refused)" ''
like 'the hosts are linked by TLS' "$(on 1 eadmin hosts)" 'ws2 +up .*20[0-9-]+ [0-9:]+'
done_testing
