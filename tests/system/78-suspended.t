#!/bin/bash
# The queue host as a whole does not run for longer than host_timeout, as a virtual machine that is suspended: it says of no host that
# it is down, no job ends, nobody passes. A machine hears nothing of the time that has passed, the clocks of a node go on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

timeout=6
[ "$LAB" = lab ] || timeout=40 # emulated: a busy machine is not a host that is lost
lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 1' --elmer 'heartbeat = 1s' --elmer "host_timeout = ${timeout}s"
install_programs
down_lines() { on 1 journalctl --no-pager -u elmer -o cat | grep -cE 'host=[^ ]* is down'; }
processes() { on "$1" cat "/sys/fs/cgroup/$jobs_scope/$2.1/job/cgroup.procs" | xargs; }

wait_for 20 'both hosts are up' up_again
first=$(submit alice -o /dev/null --hosts ws1 1 sleep 1000)
second=$(submit alice -o /dev/null --hosts ws2 1 sleep 1000)
for i in $first $second; do wait_for 20 "job $i runs" running "$i"; done
wide=$(submit bob -o /dev/null 2 true)
narrow=$(submit carol -o /dev/null 1 sleep 1000)
before=$(down_lines)
pictured="$(processes 1 "$first") $(processes 2 "$second")"

ok 'the queue host is suspended' "$lab" suspend 1 on
sleep $((timeout + 4)) # the time that it does not run
ok 'and goes on' "$lab" suspend 1 off
wait_for 20 'both hosts are up again' up_again
is 'elmer has said of no host that it is down' "$(down_lines)" "$before"
is 'the same processes run' "$(processes 1 "$first") $(processes 2 "$second")" "$pictured"
is 'in their first attempt' "$(for i in $first $second; do field "$i" '[j["state"], j["attempt"]]'; done | xargs)" '[running, 1] [running, 1]'
is 'nobody has passed' "$(state "$wide") $(state "$narrow")" 'queued queued'

as carol 1 ecancel "$narrow" >/dev/null 2>&1
as alice 1 ekill "$first" "$second"
wait_for 20 'the wide one runs and ends' over "$wide"
is 'as it should' "$(field "$wide" 'j["exit_status"]')" 0
done_testing
