#!/bin/bash
# Memory that jobs ask for (esubmit -m): who gets which host, who waits and why, who is refused; and, where the
# controller memory is, who is ended.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 4' --rsd 'tickets = require' --rsd 'memory = 800M'
install_programs
refused() { as alice 1 esubmit "$@" true 2>&1; }
reason() { field "$1" 'j["reason_code"]'; }
asked() { # HOST -> what jobs there have asked for, in MiB, and what there is
    as alice 1 equery --hosts --json | python3 -c 'import json,sys
print(*("%d %d" % (h["memory_asked_bytes"] >> 20, h["memory_for_jobs_bytes"] >> 20) for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]))' "$1"
}
is_queued() { [ "$(field "$1" 'j["state"]')" = queued ]; }

# ---- refused at once ----
like 'more than any host has' "$(refused -m 2G)" '2 GiB of memory are asked for each processor, and no host of the cluster can hold that: ws[12] has most of it for jobs, 800 MiB: ask for less'
like 'more than those have that it may use' "$(refused -m 900M --hosts ws1)" '900 MiB of memory are asked for each processor, and no host of --hosts can hold that: ws1 has'
like 'no size' "$(refused -m 4)" 'want memory for each processor like 500M or 4G'

# ---- first come, first served ----
a=$(submit alice -m 600M --hosts ws2 -o /dev/null sleep 600)
wait_for 10 'a job that asks for memory runs' running "$a"
is 'its host has promised that' "$(asked ws2)" '600 800'
is 'equery has it in JSON' "$(field "$a" 'j["memory_bytes"] >> 20')" 600
like 'and on its page' "$(as alice 1 equery "$a")" 'limits +memory 600 MiB for each processor'
b=$(submit bob -m 300M --hosts ws2 -o /dev/null sleep 600)
wait_for 5 'one that does not fit waits' is_queued "$b"
like 'and is told why' "$(as bob 1 equery --why "$b")" 'ws2 has 200 MiB left of 800 MiB: 300 MiB asked for each processor'
c=$(submit bob --hosts ws2 -o /dev/null sleep 600)
wait_for 5 'nobody passes it' is_queued "$c"
on 1 systemctl kill -s KILL elmer
on 1 systemctl reset-failed elmer
on 1 systemctl restart elmer
wait_for 20 'after a restart of elmer the first still runs' running "$a"
wait_for 10 'what was asked for is known again' eval '[ "$(asked ws2)" = "600 800" ]'
wait_for 5 'and who waits waits' is_queued "$b"
ok 'the first is ended' as alice 1 ekill "$a"
wait_for 15 'the next one starts' running "$b"
wait_for 15 'and the one behind it' running "$c"
ok 'all are ended' as bob 1 ekill "$b" "$c"
for i in "$a" "$b" "$c"; do wait_for 15 "job $i ends" over "$i"; done
is 'nothing is promised any more' "$(asked ws2)" '0 800'

# ---- arrays, each processor, a processor of each host, a virtual machine ----
id=$(submit alice -m 400M -a 1-6 --hosts ws1 -o /dev/null sleep 1)
wait_for 60 'an array of more than fit at a time ends' over "$id"
is 'well' "$(field "$id" '(j["tasks_ok"], j["tasks_failed"])')" '(6, 0)'
most=$(as alice 1 equery --history --me --json | python3 -c 'import json,sys,datetime
at = lambda t: datetime.datetime.fromisoformat(t[:-1])
jobs = [j for j in json.load(sys.stdin)["jobs"] if j["array"]]
print(max(sum(at(k["started"]) <= at(j["started"]) < at(k["ended"]) for k in jobs) for j in jobs))')
ok "never more than two of its tasks at a time ($most)" test "$most" -le 2
id=$(submit alice -w --each --per-host 1 -o /home/alice/each.%r 2 hostname)
is 'a processor of each host' "$(as alice 1 cat each.0) $(as alice 2 cat each.1)" 'ws1 ws2'
id=$(submit alice -w --pvm -m 300M -o /home/alice/vm.out 2 /usr/libexec/elmer/examples/barrier -P 2 -v 3)
is 'a virtual machine has memory as well' "$(field "$id" 'j["exit_status"]')" 0

# ---- a script, what would happen ----
printf '#!/bin/sh\n#ELMER -m 700M --hosts ws1\necho done\n' | on 1 tee /home/script.sh >/dev/null
id=$(submit alice -w -o /home/alice/script.out /home/script.sh)
is 'a line of a script asks for it' "$(field "$id" '(j["memory_bytes"] >> 20, j["exit_status"])')" '(700, 0)'

# ---- where the controller is ----
memory=$(on 1 sh -c 'tr " " "\n" <"$1/cgroup.controllers" | grep -cx memory' - "/sys/fs/cgroup/$jobs_scope")
eat='import time
keep = []
for i in range(100):
    keep.append(bytearray(b"x") * (10 << 20))
time.sleep(600)'
rehearsed=$(as alice 1 esubmit --dry-run -m 100M --hosts ws1 true)
if [ "$memory" = 0 ]; then
    like '--dry-run says that nothing holds it to that' "$rehearsed" 'ws1: without the controller memory nothing holds the job to its memory there'
    id=$(submit alice -w -m 100M --hosts ws1 -o /dev/null python3 -c 'keep = bytearray(300 << 20)')
    is 'more than was asked for ends nobody' "$(field "$id" '(j["reason_code"], j["exit_status"])')" "('exited', 0)"
else
    is '--dry-run has nothing to say' "$(grep -c controller <<<"$rehearsed")" 0
    id=$(submit alice -m 200M --hosts ws1 -o /dev/null python3 -c "$eat")
    wait_for 60 'who needs more than was asked for ends' over "$id"
    is 'by its limit' "$(reason "$id")" memory-limit
    like 'with the figures' "$(field "$id" 'j["reason"]')" 'ws1: its processes there used (200|19[0-9].*) MiB, and 200 MiB was asked for \(1 processor, 200 MiB each\)'
    is 'the signal is known' "$(field "$id" 'j["signal"]')" 9
    wait_for 10 'nothing of it is left' nothing_left "$id"
    id=$(submit alice -m 200M --hosts ws1,ws2 --per-host 1 --each -o /dev/null 2 sh -c '[ "$ELMER_RANK" = 1 ] || exec sleep 600; exec python3 -c "$0"' "$eat")
    wait_for 60 'one that does so on one of two hosts ends on both' over "$id"
    is 'for that reason' "$(reason "$id")" memory-limit
    like 'which names the host' "$(field "$id" 'j["reason"]')" '^ws2: '
    id=$(submit alice -m 200M --hosts ws1 -o /home/alice/limit.out sh -c 'cat /sys/fs/cgroup"$(sed -n s/^0:://p /proc/self/cgroup)"/memory.max /sys/fs/cgroup"$(sed -n s/^0:://p /proc/self/cgroup)"/memory.swap.max')
    wait_for 10 'one that fits' over "$id"
    is 'has its limit, and no swap space' "$(as alice 1 xargs <<<"$(as alice 1 cat limit.out)")" '209715200 0'
    id=$(submit alice -m 200M --hosts ws1 -o /dev/null sh -c 'sleep 8; exec python3 -c "$0"' "$eat")
    wait_for 10 'a job runs' running "$id"
    on 1 systemctl restart rsd
    wait_for 60 'a restart of rsd changes nothing' over "$id"
    is 'of its end' "$(reason "$id")" memory-limit
fi

done_testing
