#!/bin/bash
# Three jobs in strict order, read from the kernel of each workstation; the rise within one look; what equery says of their memory.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 3'
install_programs
outrank_jobs

# ---- three jobs on both workstations ----
a=$(submit alice -o /dev/null --each 2 /home/testjob 600)
b=$(submit bob -o /dev/null --each 2 /home/testjob 600)
c=$(submit alice -o /dev/null --each 2 /home/testjob 600)
is 'three levels' "$(for i in $a $b $c; do field "$i" 'j["level"]'; done | xargs)" '0 1 2'
placed() { # NODE JOB..: each job's rank is as said
    local k=$1 ranks
    ranks="$(rank_in "$k" "$a"), $(rank_in "$k" "$b"), $(rank_in "$k" "$c")"
    [[ $ranks =~ ^$2$ ]] && return
    echo "$ranks"
    return 1
}
for k in 1 2; do
    wait_for 10 "ws$k: two of them in SCHED_FIFO, the last outside" placed $k 'FF [0-9]+, FF [0-9]+, TS -' || diag "$(on 1 equery 2>&1)"
    begin=$(now_ms)
    diag "$(ranks_of $k "$a" "$b" "$c")" "(to ask that took $(($(now_ms) - begin)) ms)"
    top=$(rank_in $k "$a") second=$(rank_in $k "$b")
    ok "ws$k: the first above the second" test "${top#FF }" -gt "${second#FF }"
done
ok 'the first is killed' as alice 1 ekill "$a"
for k in 1 2; do wait_for 10 "ws$k: the second gets the rank of the first, the last stays outside" placed $k ", $top, TS -"; done
ok 'the second is killed' as bob 1 ekill "$b"
for k in 1 2; do wait_for 10 "ws$k: the last is alone, and in real time no more" placed $k ', , TS -'; done
as alice 1 ekill "$c"
wait_for 10 'it ends' over "$c"

# ---- the rise, seen by an observer inside: within one look of 50 ms, times what a program costs more in this machine ----
on 1 sh -c 'cat >/home/observer && chmod 755 /home/observer' <"$build/tests/system/observer"
watched=()
for i in $((c + 1)) $((c + 2)); do watched+=("j$i=/sys/fs/cgroup/$jobs_scope/$i.1/job"); done
on 1 taskset 0xffff /home/observer -i 5000 -t 200 "${watched[@]}" >"$tmp/seen" 2>"$tmp/observer" &
observer_pid=$!
watching() { on 1 pgrep -x observer; }
until_ok 10 watching || diag "$(cat "$tmp/observer")"
for user in alice bob alice; do submit $user -o /dev/null --hosts ws1 1 /home/testjob 600 >"$tmp/last"; done
c=$(cat "$tmp/last") a=$((c - 2)) b=$((c - 1))
wait_for 10 'three on one processor' placed 1 'FF [0-9]+, FF [0-9]+, TS -'
as alice 1 ekill "$a"
wait_for 10 'the second has risen' placed 1 ", $top, TS -"
on 1 pkill -TERM -x observer
wait "$observer_pid"
observer_pid=
delay=$(python3 - "$tmp/seen" "j$a" "j$b" <<'PY'
import sys
gaps, empty, ranks = [], None, []
for line in open(sys.argv[1]):
    f = line.split()
    if line.startswith("# gap"):
        gaps.append((float(f[2]) - float(f[3]), float(f[2])))
    elif line.startswith("#"):
        continue
    elif f[1] == sys.argv[2] and f[3] == "empty":
        empty = float(f[0])
    elif f[1] == sys.argv[3] and f[3] == "fifo" and int(f[4]) < 59: # above, it is on its way to its command
        ranks.append((float(f[0]), int(f[4])))
rise = next((t for t, p in ranks if p > ranks[0][1]), None)
# a time in which the observer could not look stood still for everybody, jobs and daemons included
print("never" if empty is None or rise is None else round(rise - empty - sum(max(0, min(rise, e) - max(empty, b)) for b, e in gaps), 1))
PY
)
times=$(slowness 1)
diag "from the end of the first to the rise of the second: $delay ms; a program costs $times times as much there" "$(tail -n 1 "$tmp/seen")"
ok 'the second has risen within one look' python3 -c "import sys; sys.exit(not float('$delay'.replace('never', 'inf')) <= 50 * $times)"
as alice 1 ekill "$c"
as bob 1 ekill "$b"
for i in $b $c; do wait_for 10 "job $i ends" over "$i"; done

# ---- memory ----
megabytes=150
id=$(submit alice -w -o /dev/null --hosts ws1 1 python3 -c "import time; x = bytearray($megabytes << 20); end = time.process_time() + 0.3
while time.process_time() < end: pass")
peak=$(field "$id" 'j["usage"][0].get("memory_peak_bytes")')
if on 1 grep -qw memory /sys/fs/cgroup/elmer.slice/cgroup.controllers; then
    ok "equery --json: its peak is $megabytes MiB and a little more ($peak)" test "$peak" -ge $((megabytes << 20)) -a "$peak" -le $(((megabytes + 60) << 20))
else
    is 'without the controller equery --json knows no peak' "$peak" null
fi
cpu=$(field "$id" 'j["usage"][0]["cpu_seconds"]')
ok "equery --json: its CPU time is at least what it has counted itself ($cpu s)" python3 -c "import sys; sys.exit(not 0.3 <= $cpu)"
done_testing
