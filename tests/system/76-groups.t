#!/bin/bash
# The groups of jobs: made rightly with the controllers that there are, and made right again whatever they have come to.
# On machines all of it with ELMER_TEST_FULL=1 only: else what nodes, which may have no controller, do not show.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --elmer 'allocator = v1' --elmer 'levels = 4'
install_programs
all=1
[ "$LAB" = lab ] || all=${ELMER_TEST_FULL:-}
scope=$(on 1 awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/$jobs_scope # where controllers are in v1 it is beside them
at() { on 1 sh -c 'cd "$1" && eval "$2"' - "$scope" "$1"; } # COMMANDS, in the scope's directory

# ---- as they are made ----
on_offer=$(at 'tr " " "\n" <cgroup.controllers | grep -xE "cpu|cpuset|memory" | sort | xargs')
diag "on offer here: ${on_offer:-no controller}"
handed_down() { at 'tr " " "\n" <cgroup.subtree_control | sort | xargs'; }
kinds() { at 'find . -name cgroup.type -exec cat {} + | sort -u | xargs'; }
settled() { # the scope as it should be
    [ "$(handed_down)" = "$on_offer" ] && [ "$(kinds)" = domain ] && [ "$(at 'cat cgroup.procs')" = '' ] && [ "$(at 'wc -l <keeper/cgroup.procs')" = 1 ]
}
how_it_is() { diag "handed down: $(handed_down); kinds: $(kinds); in itself: $(at 'xargs <cgroup.procs'); keeper: $(at 'xargs <keeper/cgroup.procs')"; }
ok 'all controllers on offer are handed down, nothing is in the scope itself, no group is threaded' settled || how_it_is
is 'none is asked for that is not used' "$(on 1 systemctl show -P DelegateControllers elmer-jobs.scope)" 'cpu cpuset memory'
like 'at a shutdown rsd stops first' "$(on 1 systemctl show -P Before elmer-jobs.scope)" 'rsd.service'

lacking=$(for c in memory cpuset cpu; do [[ " $on_offer " = *" $c "* ]] || echo "no controller $c:"; done)
said() { grep -o 'no controller [a-z]*:'; }
is 'what is missing is in eadmin hosts' "$(as alice 1 eadmin hosts | said)" "$lacking"
is 'and in the status of rsd' "$(on 1 systemctl show -P StatusText rsd | said)" "$lacking"
is 'and in its log' "$(on 1 journalctl -u rsd -o cat --no-pager -b | said | sort -u)" "$(sort <<<"$lacking")"

# ---- figures ----
usage() { field "$1" 'j["usage"][0]["'"$2"'"]'; }
used() { # SCRIPT: submitted by alice, ended; its id
    submit alice --hosts ws1 -w -o /dev/null 1 sh -c "$1"
}
small=$(used true)
large=$(used 'head -c 300M /dev/zero | tail -c 300M >/dev/null')
busy=$(used 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done')
ok "CPU time is known ($(usage "$busy" cpu_seconds) s)" test "$(field "$busy" 'j["usage"][0]["cpu_seconds"] > 0')" = True
if [[ " $on_offer " = *' memory '* ]]; then
    is "a job's memory is its own, not its supervisor's ($(usage "$small" memory_peak_bytes) bytes for true)" \
        "$(field "$small" '0 < j["usage"][0]["memory_peak_bytes"] < 8 << 20')" True
    is "300 MiB are counted ($(usage "$large" memory_peak_bytes) bytes)" \
        "$(field "$large" '300 << 20 <= j["usage"][0]["memory_peak_bytes"] < 350 << 20')" True
else
    is 'without the controller memory there is no figure' "$(usage "$large" memory_peak_bytes)" null
fi

# ---- what an rsd that dies leaves half made, below a job that runs ----
job=$(submit alice --hosts ws1 -o /dev/null 1 /home/testjob --work-us 1000 --wait-us 20000 600)
wait_for 10 'a job runs' running "$job"
processes() { at "xargs <$job.1/job/cgroup.procs"; }
before=$(processes)
is 'no limit of what it was born of holds for it, where controllers are in cgroup v1' \
    "$(on 1 sed -nE '/^[0-9]+:([^:]*,)?(memory|devices|pids)(,[^:]*)?:.*rsd-spawn/p' "/proc/${before%% *}/cgroup")" ''
unchanged() { [ "$(processes)" = "$before" ] && running "$job"; }
serves() { # another job runs to its end
    local id
    id=$(submit bob --hosts ws1 -w -o /dev/null 1 true) && [ "$(field "$id" '(j["reason_code"], j["exit_status"])')" = "('exited', 0)" ]
}
mended() { # NAME COMMANDS: rsd stopped, these done in the scope, rsd started
    on 1 systemctl stop rsd
    at "$2" >/dev/null || diag "not done: $2"
    ok "$1: rsd starts" on 1 systemctl start rsd
    wait_for 20 "$1: the scope is as it should be" settled || how_it_is
    ok "$1: the job lives" unchanged || diag "$before" "$(processes)" "$(state "$job")"
    ok "$1: jobs run" serves || diag "$(cat "$tmp/said")"
}
take_back='for c in $(cat SCOPE/cgroup.subtree_control); do echo -$c >SCOPE/cgroup.subtree_control; done;'
all_back="${take_back//SCOPE/$job.1} ${take_back//SCOPE/.}"
mended 'half of the controllers' "$all_back"' echo +memory >cgroup.subtree_control 2>/dev/null'
mended 'the keeper in the scope itself' "$all_back"' cat keeper/cgroup.procs >cgroup.procs'
if [ -n "$all" ]; then
    mended 'the keeper there, and no leaf' "$all_back"' cat keeper/cgroup.procs >cgroup.procs; rmdir keeper'
    mended 'the keeper gone' 'kill -9 $(cat keeper/cgroup.procs)'
    mended 'a trial that was interrupted' 'mkdir probe'
    mended 'a job that was being made' 'mkdir 999999.1 999999.1/sup'
    is 'of which nothing is left' "$(at 'ls -d 999999.1 2>/dev/null')" ''
    on 1 sh -c 'kill -9 $(cat "$1"/keeper/cgroup.procs)' - "$scope"
    ok 'the keeper killed below a running rsd: jobs run' serves
    wait_for 10 'with a new one' settled || how_it_is
    ok 'and the job lives' unchanged
fi

# ---- what jobs weigh ----
if [[ " $on_offer " = *' cpu '* ]]; then
    weighs() { [ "$(at "cat $1/cpu.weight")" = "$2" ]; } # a job's group, or .. for all jobs together
    wait_for 5 'a job that shares with nobody weighs 100' weighs "$job.1" 100
    wait_for 5 'and so do all jobs together' weighs .. 100
    below=$(submit bob --hosts ws1 -o /dev/null 1 /home/testjob --work-us 1000 --wait-us 20000 600)
    wait_for 10 'another job runs below it' running "$below"
    wait_for 5 'which weighs 1' weighs "$below.1" 1
    wait_for 5 'and so do all together, since each shares' weighs .. 1
    at 'echo 100 >../cpu.weight' # as systemd, when it reloads units
    wait_for 5 'that is said again' weighs .. 1
    on 1 systemctl stop rsd
    ok 'when rsd has stopped they weigh 100' weighs .. 100
    on 1 systemctl start rsd
    wait_for 20 'and when it is back, 1' weighs .. 1
    as bob 1 ekill "$below"
    wait_for 10 'the job below ends' over "$below"
    wait_for 5 'beside nobody they weigh 100 again' weighs .. 100
    ok 'all that time the first has gone on' unchanged
else
    skip 'jobs that share weigh 1' 'no controller cpu here'
fi
as alice 1 ekill "$job"
wait_for 10 'it ends' over "$job"

# ---- the scope of an rsd that asked for controllers too early ----
if [[ " $on_offer " = *' cpuset '* ]]; then
    on 1 systemctl stop rsd
    at "${take_back//SCOPE/.}"' cat keeper/cgroup.procs >cgroup.procs; echo +cpuset >cgroup.subtree_control'
    is 'a scope of the old kind' "$(at 'cat cgroup.type keeper/cgroup.type | xargs')" 'domain threaded domain invalid'
    on 1 systemctl start rsd
    wait_for 20 'is healed' settled || how_it_is
    ok 'and jobs run there' serves
else
    skip 'a scope of the old kind is healed' 'no controller cpuset here'
fi

if [ -z "$all" ]; then
    done_testing
    exit
fi

# ---- the scope stopped by hand, and something in it that ignores SIGTERM ----
stopped=$(submit alice --hosts ws1 -o /dev/null 1 sh -c 'trap "" TERM; while :; do sleep 1; done')
wait_for 10 'a job runs that ignores SIGTERM' running "$stopped"
wait_for 10 'it ignores it' at "grep -l '^SigIgn:.*[4-7c-f]...\$' \$(sed 's|.*|/proc/&/status|' $stopped.1/job/cgroup.procs)"
on 1 sh -c 'mkdir "$1/stray"; (trap "" TERM; exec sleep 600 >/dev/null 2>&1 </dev/null) & echo $! >"$1/stray/cgroup.procs"' - "$scope"
# rsd stands still meanwhile: where it removes the job's group while systemd goes over the groups, systemd takes that for a failure (seen
# in a machine: "Failed to kill control group: No such device"), and kills all that is left at once.
on 1 systemctl kill -s STOP --kill-whom=main rsd
on 1 systemctl stop --no-block elmer-jobs.scope
stopping() { [ "$(on 1 systemctl show -P ActiveState elmer-jobs.scope)" = deactivating ]; }
wait_for 10 'its scope is being stopped' stopping
on 1 systemctl kill -s CONT --kill-whom=main rsd
wait_for 20 'the job is ended' over "$stopped"
is 'as one that was lost' "$(field "$stopped" 'j["reason_code"]')" lost
wait_for 10 'nothing of it is left' nothing_left "$stopped"
late=$(submit bob --hosts ws1 -o /dev/null 1 true)
held_off() { on 1 journalctl -u rsd -o cat --no-pager -b | grep "job $late is not opened now"; }
wait_for 20 'nothing is started there' held_off
is 'a new job waits' "$(state "$late")" starting
ok 'no group was made for it' at "! ls -d $late.*"
ok 'the rest is killed' at 'kill -9 $(cat stray/cgroup.procs)'
wait_for 20 'the job runs when the scope has gone' over "$late"
is 'well, in its first attempt' "$(field "$late" '(j["reason_code"], j["exit_status"], j["attempt"])')" "('exited', 0, 1)"
wait_for 10 'in a new scope' settled || how_it_is
done_testing
