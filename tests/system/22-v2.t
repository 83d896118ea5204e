#!/bin/bash
# The default allocator, v2, on three hosts that are linked by TLS: a job comes below another only where that leaves the processor.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

# A small threshold: with much other work beside it a job that spins gets no more than a part of its CPU.
lab_up 3 --elmer 'threshold = 0.12' --rsd 'proc_stat = /run/stat'
see_own_work
install_programs
outrank_jobs
everywhere() { submit "$1" -o /dev/null --each "${@:2}"; }
level() { field "$1" 'j["level"]'; }
hosts_of() { field "$1" '" ".join(sorted(j["hosts"]))'; }
gap_ms() { # FIRST SECOND: from the end of the first to the start of the second
    python3 -c 'import datetime, sys
a, b = (datetime.datetime.fromisoformat(t.replace("Z", "+00:00")) for t in sys.argv[1:])
print(round((b - a).total_seconds() * 1000))' "$(field "$1" 'j["ended"]')" "$(field "$2" 'j["started"]')"
}
like 'the allocator is v2' "$(on 1 journalctl -q -o cat --no-pager -u elmer)" 'ready: .*allocator v2'
is 'the others have certificates' "$(on 1 eadmin hosts | grep -cE '^ws[23] +up .*20[0-9-]+ [0-9:]+')" 2

# ---- jobs that arrive together ----
first=$(everywhere alice 2 /home/testjob 200)
second=$(everywhere bob 2 /home/testjob 200)
third=$(submit carol -o /dev/null 1 true)
wait_for 10 'the first runs' running "$first"
is 'the second is not put upon it' "$(state "$second")" queued
like 'and says why' "$(why_queued "$second")" '^waits for 2 processors: of 3 that it may use, 2 (not measured since the last change there|too busy) \(allocator v2\)$'
wait_for 20 'once it has been measured: too busy' says_why "$second" 'waits for 2 processors: of 3 that it may use, 2 too busy \(allocator v2\)'
is 'nobody overtakes it, although a host is free' "$(state "$third")" queued
as alice 1 ekill "$first"
wait_for 10 'the first ends' over "$first"
wait_for 10 'the second runs' running "$second"
is 'at level 0' "$(level "$second")" 0
gap=$(gap_ms "$first" "$second")
ok "at once, not after the next report ($gap ms)" test "$gap" -le 1000
wait_for 10 'and the third where it is free' over "$third"
is 'alone there' "$(field "$third" 'j["level_seconds"][1:]')" '[0.0, 0.0]'
as bob 1 ekill "$second"
wait_for 10 'the second ends' over "$second"

# ---- below a job that leaves its processors ----
first=$(everywhere alice 3 /home/testjob --work-us 1000 --wait-us 40000 200)
wait_for 10 'a job that mostly waits runs' running "$first"
second=$(everywhere bob 3 /home/testjob 200)
is 'nobody knows that yet' "$(state "$second")" queued
wait_for 30 'a later job runs once it has been measured' running "$second"
is 'below it' "$(level "$first") $(level "$second")" '0 1'
third=$(submit carol -o /dev/null 1 true)
wait_for 20 'below the one that spins there is no third' says_why "$third" 'waits for 1 processor: of 3 that it may use, 3 too busy \(allocator v2\)'
as bob 1 ekill "$second"
wait_for 30 'but when it has gone, and the first has been measured again' over "$third"
is 'it was below that, too' "$(field "$third" 'j["level_seconds"][0]')" 0.0
as alice 1 ekill "$first"
wait_for 10 'the first ends' over "$first"

# ---- the owner of a host computes ----
on 2 systemd-run -q --collect --unit owner sh -c 'while :; do :; done'
for_ws2=$(submit bob -o /dev/null --hosts ws2 1 true)
kept_out() { # a job for that host waits; until the load has been seen it may still be let in
    is_state "$for_ws2" queued || for_ws2=$(submit bob -o /dev/null --hosts ws2 1 true)
    says_why "$for_ws2" 'waits for 1 processor: of 1 that it may use, 1 too busy \(allocator v2\)'
}
wait_for 30 'foreign load keeps a processor out' kept_out
wide=$(submit alice -o /dev/null 2 true)
is 'the queue keeps its order behind it' "$(state "$wide")" queued
as bob 1 ecancel "$for_ws2"
wait_for 10 'the next one runs' over "$wide"
is 'on the others' "$(hosts_of "$wide")" 'ws1 ws3'
on 2 systemctl stop owner
wait_for 30 'with the owner idle the host is taken again' as bob 2 esubmit -w -o /dev/null --hosts ws2 1 true
wait_for 10 'nothing is left' nothing_left "$wide"
done_testing
