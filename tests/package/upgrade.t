#!/bin/bash
# Two workstations of a plain Debian 12 get Elmer from the repositories of ./package: a job and a cluster of an earlier version, which
# is built out of the history; below jobs of every kind an upgrade to this one, the way back, an upgrade to the next one, which differs
# in nothing but its number, and back to this; removal and purge.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/jobs.sh"
. "$(dirname "$0")/../system/versions.sh"
. "$(dirname "$0")/packages.sh"
examples=/usr/libexec/elmer/examples
[ "$LAB" != lab ] || look_again=0.2 # jobs that wait are there for all of the moves

ok './package' packages one "$top"
ok './package of the next version' packages next "$top" --version "$next"
# The last one of protocol 1.10, and before rsd's parts were units: an rsd that has them as children, with sockets of its own.
previous=$(cat "$(dirname "$0")/previous-commit")
declare -A repository=(["$version"]=one ["$next"]=next)
if in_history "$previous" tests/package/previous-commit; then
    ok './package of an earlier commit' packages_of_commit earlier "$previous" --version "$earlier"
    repository[$earlier]=earlier
    first=$earlier
else
    first=$version
fi

plain_debian 2 "${repository[@]}"
apt() { as_typed "$1" "apt ${*:2}"; } # K ARG..

# ---- installed, as the README says ----
ok 'ws1: apt install elmer' apt 1 install elmer="$first" elmer-rsd="$first" elmer-client="$first" libelmer1="$first"
ok 'ws2: apt install elmer-rsd' apt 2 install elmer-rsd="$first" elmer-client="$first" libelmer1="$first"
is 'nothing was started or enabled' "$(on 1 sh -c 'systemctl is-active elmer rsd elmer-signer.socket; systemctl is-enabled elmer rsd elmer-signer.socket' | sort | uniq -c | xargs)" \
    '3 disabled 3 inactive'
on 1 sh -c 'printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf' # the nodes share this machine's processors with other work
ok 'systemctl enable --now elmer rsd' on 1 systemctl enable --now elmer rsd
parts='rsd-spawn.service rsd-spawn.socket rsd-net.service rsd-tickets.service rsd-net.socket rsd-net-join.socket rsd-tickets.socket rsd-tickets-join.socket rsd-tickets-grants.socket'
# shellcheck disable=SC2086 # words
parts_are() { on "$1" systemctl is-active $parts | sort | uniq -c | xargs; }
parts_of() { [ "$1" = "$earlier" ] && echo '9 inactive' || echo '9 active'; } # VERSION
is 'which brings all of rsd up' "$(parts_are 1)" "$(parts_of "$first")"
ok 'a user runs a job' on 1 su -l alice -c 'esubmit -w 1 true'

on 1 tee /etc/elmer/elmer.conf >/dev/null <<'CONF'
[elmer]
listen = ws1:7110
hosts = ws1 ws2
allocator = v1
levels = 9
CONF
# An emulated machine starts programs ten times slower: up to 37 s have passed there from one rsd to the next.
[ "$LAB" = lab ] || on 1 sh -c 'echo "host_timeout = 300s" >>/etc/elmer/elmer.conf'
ok 'eadmin init' on 1 eadmin init
ok 'systemctl restart elmer' on 1 systemctl restart elmer
ok 'ws2: rsd --join' on 2 rsd --join ws1:7110 "$(on 1 eadmin token --hosts ws2 2>/dev/null)"
ok 'ws2: systemctl enable --now rsd' on 2 systemctl enable --now rsd
install_programs

# ---- up and down, below jobs of every kind ----
outrank_jobs
pvm=$(submit alice --pvm --hosts ws1,ws2 -o /home/alice/pvm.out 2 sh -c \
    "i=0; while [ ! -e end-pvm ] && [ \$i -lt 4000 ]; do sleep $look_again; i=\$((i + 1)); done; exec $examples/barrier -P 2 -v 3")
wait_for 30 'a PVM job runs' running "$pvm"
plain=$(waiting_job plain --notify 'touch /home/alice/told' --hosts ws1,ws2 2)
each=$(waiting_job each --each --hosts ws1,ws2 2)
requeue=$(waiting_job requeue --requeue --each --hosts ws1,ws2 2)
array=$(waiting_job array -a 1-1 --hosts ws1,ws2 2)
task=$((array + 1))
keep=$(submit alice --pty --keep --detach --hosts ws1,ws2 2 sh -c 'read -r line; echo "read $line"; exit 7') # no terminal but the job's
# Processes that the job's own command has started through the couriers, which hold its streams; and a machine without a command.
erun=$(submit alice -o /home/alice/erun.out --hosts ws1,ws2 2 erun --each sh -c \
    "i=0; while [ ! -e end-erun ] && [ \$i -lt 4000 ]; do sleep $look_again; i=\$((i + 1)); done; echo \"rank \$ELMER_RANK says so\"; exit 7")
machine=$(submit alice --hosts ws1,ws2 -P 2)
busy=$(submit bob -o /dev/null --each --hosts ws1,ws2 2 /home/testjob --work-us 2000 --wait-us 8000 3600)
for i in $plain $each $requeue $task $keep $erun $machine $busy; do wait_for 20 "job $i runs" running "$i"; done
later=$(waiting_job later --hosts ws1,ws2 2) # all levels are taken
queued=$later
wait_for 20 'one waits' is_state "$queued" queued

# Processes of the jobs and of their supervisors: which, and at which ranks.
ranked() { # JOB LAST-JOB, of which the last may be on ws1 only
    [[ $(rank_in 1 "$1") == *FF* && $(rank_in 2 "$1") == *FF* && $(rank_in 1 "$2") == "TS -" ]]
}
wait_for 20 'the first one has its rank' ranked "$pvm" "$busy"
# FIFO or RR depends on whether its `sleep` was there when rsd looked.
jobs_of() { ranks_of "$@" | grep -v ' sleep$' | sed 's/ \(FF\|RR\) / real-time /'; }
rank_and_file() { jobs_of "$1" "$plain" "$each" "$requeue" "$task" "$keep" "$erun" "$machine" "$busy" "$later"; }
supervisors() { on "$1" sh -c 'cat /sys/fs/cgroup/'"$jobs_scope"'/*.1/sup/cgroup.procs' | sort -n; }
pvmds() { jobs_of "$1" "$pvm"; }
picture() {
    local k
    for k in 1 2; do rank_and_file $k; pvmds $k; supervisors $k; done
}
daemons() { on "$1" systemctl show -P MainPID elmer rsd | xargs; }
before=$(picture)
is 'all nine jobs have a supervisor on both' "$(supervisors 1 | wc -l) $(supervisors 2 | wc -l)" '9 9'

restarted() { # PIDS PIDS-NOW
    paste -d ' ' <(tr ' ' '\n' <<<"$1") <(tr ' ' '\n' <<<"$2") | awk '{ print $2 && $1 && $1 != $2 ? "yes" : "no" }' | xargs
}
move() { # VERSION: by apt on the first, by dpkg on the second
    local was1 was2
    was1=$(daemons 1) was2=$(daemons 2)
    ok "ws1: apt install ..=$1" apt 1 --allow-downgrades install elmer="$1" elmer-rsd="$1" elmer-client="$1" libelmer1="$1"
    ok "ws2: dpkg -i ..$1.deb" on 2 sh -c 'cd /srv/$1 && DEBIAN_FRONTEND=noninteractive dpkg -i elmer-rsd_*.deb elmer-client_*.deb libelmer1_*.deb' - "${repository[$1]}"
    wait_for 20 'both hosts are up' up_again
    is "the versions are $1" "$(for k in 1 2; do on $k dpkg-query -W -f '${Version}\n' elmer-rsd elmer-client libelmer1; done | sort | uniq -c | xargs)" "6 $1"
    is 'elmer and rsd were restarted' "$(restarted "$was1 $was2" "$(daemons 1) $(daemons 2)")" 'yes yes no yes'
    is 'the jobs have the same processes at the same ranks' "$(picture)" "$before" || diag "$(diff <(echo "$before") <(picture))"
    is 'who waited still waits' "$(state "$queued")" queued
    is 'nothing has failed' "$(for k in 1 2; do on $k systemctl list-units --failed --no-legend; done)" ''
    is 'all of rsd is there' "$(parts_are 1), $(parts_are 2)" "$(parts_of "$1"), $(parts_of "$1")"
    wait_for 20 'the queue is answered' says_why "$queued" '.+'
}
[ "$first" = "$version" ] || move "$version"
# Of the jobs of the first version one ends, and one of this version begins.
ends_well array "$task"
wait_for 20 'the one that waited runs' running "$later"
wait_for 20 'and is the last' ranked "$busy" "$later"
queued=$(waiting_job queued --hosts ws1,ws2 2)
wait_for 20 'another one waits' is_state "$queued" queued
before=$(picture)
[ "$first" = "$version" ] || move "$earlier"
move "$next"
move "$version"

as alice 1 touch end-pvm
wait_for 60 'the PVM job uses its virtual machine, and ends' over "$pvm"
is 'well' "$(field "$pvm" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
like 'with its output' "$(on 1 cat /home/alice/pvm.out)" verified
wait_for 20 'nothing is left of it' nothing_left "$pvm"
wait_for 20 'the one that waits runs' running "$queued"
ends_well plain "$plain"
wait_for 20 'its user is told, as was asked of the first version' on 1 test -e /home/alice/told
ends_well each "$each"
ends_well requeue "$requeue"
ends_well later "$later"
like 'the terminal of the job that keeps it is there' "$(as alice 1 sh -c 'echo a line | timeout 60 eattach "$1"' - "$keep" 2>/dev/null)" 'read a line'
ends_well keep "$keep"
ends_well erun "$erun"
is 'what its processes said came through all versions' "$(on 1 sort /home/alice/erun.out)" $'rank 0 says so\nrank 1 says so'
ok 'the virtual machine without a command is ended' as alice 1 ekill "$machine"
wait_for 20 'and gone' nothing_left "$machine"
ends_well queued "$queued"

# ---- what is stopped stays so ----
on 1 systemctl stop elmer
ok 'ws1: an upgrade' apt 1 install elmer="$next" elmer-rsd="$next" elmer-client="$next" libelmer1="$next"
is 'elmer, which was stopped, is not started' "$(on 1 systemctl is-active elmer rsd | xargs)" 'inactive active'
is 'nor disabled' "$(on 1 systemctl is-enabled elmer rsd | xargs)" 'enabled enabled'
on 1 systemctl start elmer
wait_for 20 'both hosts are up' up_again

# ---- removed ----
ok 'the job that is busy goes on' running "$busy"
ok 'ws2: apt remove elmer-rsd' apt 2 remove elmer-rsd
processes() { on "$1" ps -e -o comm= | grep -E "^(elmer|rsd|testjob)"; }
is 'no process of a job is left there' "$(processes 2; on 2 sh -c 'ls -d /sys/fs/cgroup/'"$jobs_scope"' /run/elmer-rsd' 2>/dev/null)" ''
is 'and none of its units' "$(parts_are 2)" '9 inactive'
is 'nothing has failed' "$(on 2 systemctl list-units --failed --no-legend)" ''
ok 'configuration, certificate and PAM file stay' on 2 sh -c 'test -s /etc/elmer/rsd.conf.d/50-join.conf && test -e /etc/pam.d/elmer && ls /var/lib/elmer-rsd/pki/*'
ok 'ws2: installed again' apt 2 install elmer-rsd
ok 'ws2: and started' on 2 systemctl enable --now rsd
wait_for 20 'it is a host of the cluster as before' up_again

ok 'ws1: apt remove elmer elmer-rsd elmer-client libelmer1' apt 1 remove elmer elmer-rsd elmer-client libelmer1
is 'no process of them is left' "$(processes 1)" ''
ok 'the store stays' on 1 test -s /var/lib/elmer/elmer.db
for k in 1 2; do
    ok "ws$k: purge" apt $k purge elmer elmer-rsd elmer-client libelmer1
    is "ws$k: nothing is left" "$(leftovers $k)" ''
    is "ws$k: nothing has failed" "$(on $k systemctl list-units --failed --no-legend)" ''
done
done_testing
