#!/bin/bash
# The observer that the tests of order rely on: it sees each change in time, also while every CPU spins in real time.
. "$(dirname "$0")/lib.sh"

only_on_nodes 'it looks at groups of the nodes from outside'
lab_up 2 --cpus 2
group=/sys/fs/cgroup/watched
on 1 mkdir $group
watched=$(node_group 1 watched)
watch_shell='echo $$ >'$group'/cgroup.procs; exec'

seen() { awk -v c="$1" -v p="$2" '$2 == "w" && $4 == c && $5 == p { print $1; exit }' "$tmp/seen"; }
between() { python3 -c "import sys; sys.exit(not float('${2:-nan}') >= float('$1') or not float('$2') <= float('$3'))"; }
mono_ms() { on 2 python3 -c 'import time; print(time.monotonic() * 1e3)'; }

# ---- a thread's life ----
observe "$tmp/seen" w="$watched" other="$watched-not-there"
on 1 sh -c "$watch_shell sleep 60" &
in_group() { [ -n "$(on 1 cat $group/cgroup.procs)" ]; }
until_ok 10 in_group || bail_out 'nothing comes into the group'
pid=$(on 1 cat $group/cgroup.procs)
before=$(mono_ms)
on 1 chrt -f -p 30 "$pid"
after=$(mono_ms)
on 1 chrt -R -r -p 20 "$pid"
on 1 chrt -i -p 0 "$pid"
on 1 kill "$pid"
none() { ! in_group; }
wait_for 10 'the group is empty again' none
observed
is 'each class and priority in order' "$(awk '$2 == "w" { printf "%s%s %s", sep, $4, $5; sep = ", " }' "$tmp/seen")" \
    'other 0, fifo 30, rr+reset 20, idle 0, gone 0, empty 0'
ok 'the time of a change is that of the nodes' between "$before" "$(seen fifo 30)" "$after"
is 'nothing of a group that does not exist' "$(awk '!/^#/ && $2 != "w"' "$tmp/seen")" ''
is 'it was in SCHED_DEADLINE' "$(head -n 1 "$tmp/seen")" '# ready deadline'

# ---- many threads, and spinners in FIFO on all CPUs; each is bounded by RLIMIT_RTTIME and by its own count ----
spin='import os, time
end = time.monotonic() + 3
while time.monotonic() < end: pass'
observe "$tmp/seen" w="$watched"
pids=()
for cpu in 0 1; do
    on 1 sh -c "$watch_shell taskset -c $cpu prlimit --rttime=4000000 chrt -f 40 python3 -c '$spin'" &
    pids+=($!)
done
on 1 sh -c "$watch_shell python3 -c 'import threading, time
for _ in range(200): threading.Thread(target=time.sleep, args=(3,)).start()'" &
wait "${pids[@]}" $!
observed
ok 'it saw every thread' test "$(awk '$2 == "w" && $4 == "other" { print $3 }' "$tmp/seen" | sort -u | wc -l)" -ge 201
is 'and both spinners' "$(awk '$2 == "w" && $4 == "fifo" && $5 == 40 { print $3 }' "$tmp/seen" | sort -u | wc -l)" 2
gap=$(sed -n 's/.*longest_gap_ms \([0-9.]*\).*/\1/p' "$tmp/seen")
diag "$(grep -c '^# gap' "$tmp/seen") gaps" "$(tail -n 1 "$tmp/seen")"
ok 'it was not starved as others are, for nearly a second' between 0 "$gap" 300
done_testing
