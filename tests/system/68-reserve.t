#!/bin/bash
# rt_reserve: a node may not set what the kernel keeps, says so and goes on; a host of its own (LAB=vm) sets it, and puts it back however
# rsd ended.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --elmer 'allocator = v1' --rsd 'rt_reserve = 5% of 100ms'
# Where there are fair servers that is not even read: rsd/root/reserve.c.
kernel() { if [ -z "${fair:-}" ]; then on 1 cat /proc/sys/kernel/sched_rt_runtime_us /proc/sys/kernel/sched_rt_period_us | xargs; else echo left alone; fi; }
servers() { # of each CPU, where the kernel has fair servers (6.12), in nanoseconds
    on 1 sh -c 'cd /sys/kernel/debug/sched/fair_server 2>/dev/null || exit 0; for c in cpu*; do echo "$(cat "$c/runtime") $(cat "$c/period")"; done | sort -u' | xargs
}
noted() { on 1 sh -c 'ls /run/elmer-rsd/sup/reserve 2>/dev/null | wc -l'; }
kernel_is() { [ "$(kernel)" = "$1" ]; }
hosts() { on 1 eadmin hosts; }
goes_on() { [[ $(hosts) =~ ws1\ +up\ +[0-9]+\ +rt ]]; }
configure() { # LINE: what is said of rt_reserve from the next start on
    on 1 sh -c 'sed -i "/^rt_reserve/d" /etc/elmer/rsd.conf && echo "$1" >>/etc/elmer/rsd.conf' - "$1"
}
crash() { on 1 sh -c 'kill -9 $(systemctl show -p MainPID --value rsd)'; }

wait_for 20 'the host is up, in real time' goes_on
if [ "$LAB" = lab ]; then
    before=$(cat /proc/sys/kernel/sched_rt_runtime_us)
    like 'eadmin hosts says what is refused, and why' "$(hosts)" 'rt_reserve is not in force: /proc/sys/kernel/sched_rt_runtime_us: Read-only file system.*\(ws1\)'
    is 'rsd says so once' "$(on 1 journalctl -q --no-pager -o cat -u rsd | grep -c 'rt_reserve is not in force')" 1
    like 'and in its status' "$(on 1 systemctl show -p StatusText --value rsd)" 'rt_reserve is not in force'
    install_programs
    ok 'jobs run' as alice 1 esubmit -w -o /dev/null 1 true
    is 'there is nothing to put back' "$(noted)" 0
    is 'the kernel is as it was' "$(cat /proc/sys/kernel/sched_rt_runtime_us)" "$before"
else
    fair=$(servers)
    throttle() { if [ -z "$fair" ]; then echo "$1"; else echo left alone; fi; }
    first=$(throttle '950000 1000000') # Debian's
    is 'it is set' "$(kernel)" "$(throttle '95000 100000')"
    is "and what each fair server gives${fair:+: $fair}" "$fair" "${fair:+5000000 100000000}"
    crash
    wait_for 20 'rsd comes back after a crash' goes_on
    is 'it is set again' "$(kernel) $(servers)" "$(throttle '95000 100000') ${fair:+5000000 100000000}"
    configure 'rt_reserve = 2%'
    crash
    set_is() { kernel_is "$(throttle "$1")" && [ "$(servers)" = "${fair:+$2}" ]; }
    wait_for 20 'another value after a crash' set_is '980000 1000000' '20000000 1000000000'
    wait_for 20 'the host is up' goes_on
    configure ''
    crash
    wait_for 20 'taken out of rsd.conf: what was there first is put back' set_is "$first" '50000000 1000000000'
    wait_for 20 'the host is up again' goes_on
    is 'and forgotten' "$(noted)" 0
    configure 'rt_reserve = 10%'
    on 1 systemctl restart rsd
    is 'a restart sets it' "$(kernel) $(servers)" "$(throttle '900000 1000000') ${fair:+100000000 1000000000}"
    on 1 systemctl stop rsd
    is 'a stop puts it back' "$(kernel) $(noted)" "$first 0"
    is 'that of the fair servers too' "$(servers)" "${fair:+50000000 1000000000}"
    on 1 systemctl start rsd
    if [ -z "$fair" ]; then
        at=/proc/sys/kernel/sched_rt_runtime_us was=950000 own=970000
    else
        at=/sys/kernel/debug/sched/fair_server/cpu0/runtime was=50000000 own=70000000
    fi
    on 1 sh -c 'echo "$1" >"$2"' - $own $at
    on 1 systemctl stop rsd
    is 'what an administrator has set meanwhile stays' "$(on 1 cat $at) $(noted)" "$own 0"
    on 1 sh -c 'echo "$1" >"$2"' - $was $at
    on 1 systemctl start rsd
    wait_for 20 'the host is up at last' goes_on
    is 'nothing is lacking' "$(hosts | grep -c rt_reserve)" 0
fi

configure 'rt_reserve = 25%'
on 1 systemctl restart rsd 2>/dev/null
like 'a share that is too large is refused, with file, line and what to do' "$(on 1 journalctl -q --no-pager -o cat -u rsd -n 20)" \
    '/etc/elmer/rsd.conf:[0-9]+: rt_reserve = 25%: a share of 1% to 20% is needed'
configure ''
on 1 systemctl reset-failed rsd 2>/dev/null
ok 'without it rsd starts again' on 1 systemctl restart rsd
wait_for 20 'and is up' goes_on
done_testing
