#!/bin/bash
# Strict order in the kernel, seen by an observer that cannot be starved.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'the observer looks from outside'
lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 3'
install_programs
outrank_jobs
everywhere() { submit "$1" -o /dev/null --each 2 "${@:2}"; } # a process on each node

next_id() { echo $(($(submit bob -w -o /dev/null 1 true) + 1)); }
watch() { # FIRST-ID NUMBER: on both nodes
    local i k groups=()
    for ((i = $1; i < $1 + $2; i++)); do
        for k in 1 2; do groups+=("j$i.ws$k=$(job_group "$k" "$i")"); done
    done
    observe "$tmp/seen" -t 120 "${groups[@]}"
}

# ---- three jobs, the first ends, the second moves up ----
a=$(next_id)
watch "$a" 3
for user in alice bob alice; do everywhere "$user" /home/testjob 60 >/dev/null; done
b=$((a + 1)) c=$((a + 2))
for i in $a $b $c; do until_ok 10 running "$i"; done
is 'three levels' "$(for i in $a $b $c; do field "$i" 'j["level"]'; done | xargs)" '0 1 2'
ok 'the first is killed' as alice 1 ekill "$a"
wait_for 5 'it ends' over "$a"
at_level() { [ "$(field "$1" 'j["level"]')" = "$2" ]; }
wait_for 5 'the second is at level 0' at_level "$b" 0
wait_for 5 'the third is at level 1' at_level "$c" 1
ended=$(python3 -c 'import time; print(time.monotonic() * 1e3)') # who dies below one that spins may be raised
as alice 1 ekill "$c"
as bob 1 ekill "$b"
for i in $b $c; do wait_for 5 "job $i ends" over "$i"; done
observed
python3 - "$tmp/seen" "$a" "$ended" >"$tmp/verdict" <<'PY'
import sys
first = int(sys.argv[2])
empty, events = {}, {}
for line in open(sys.argv[1]):
    if line.startswith("#"):
        continue
    ms, label, tid, cls, prio = line.split()
    if cls == "empty":
        empty.setdefault(label, float(ms))
    elif cls != "gone" and int(prio) < 59: # above, it is still on its way from the supervisor to the command
        events.setdefault(label, []).append((float(ms), cls, int(prio)))
delays, before, after = [], set(), set()
for ws in ("ws1", "ws2"):
    end = max(empty[f"j{first}.{w}"] for w in ("ws1", "ws2"))
    up = [e for e in events[f"j{first + 1}.{ws}"] if e[1] == "fifo"]
    before.add(up[0][2])
    after.add(up[-1][2])
    delays.append(up[-1][0] - end if len({e[2] for e in up}) > 1 else 1e9)
print("moved", before != after and len(before) == len(after) == 1 and min(after) > max(before))
print("delay", max(delays))
print("top", {e[2] for e in events[f"j{first}.ws1"] if e[1] == "fifo"} == after)
last = [e for ws in ("ws1", "ws2") for e in events[f"j{first + 2}.{ws}"]]
print("last", *sorted({e[1] for e in last if e[0] < float(sys.argv[3])}))
print("raised", *(f"{e[1]} {e[2]} {e[0] - float(sys.argv[3]):+.1f} ms," for e in last if e[1] != "other"))
PY
diag "$(cat "$tmp/verdict")" "$(tail -n 1 "$tmp/seen")"
is 'the second goes from FIFO of one level to FIFO of the level above' "$(sed -n 's/^moved //p' "$tmp/verdict")" True
is 'which is the one that the first had' "$(sed -n 's/^top //p' "$tmp/verdict")" True
is 'the third, the last one, is in no real-time class' "$(sed -n 's/^last //p' "$tmp/verdict")" other
ok 'on all hosts within 50 ms' python3 -c "import sys; sys.exit(not float('$(sed -n 's/^delay //p' "$tmp/verdict")') <= 50)"

# ---- 200 threads that keep forking are in FIFO before the later job's first instruction ----
a=$(next_id)
watch "$a" 1
everywhere alice /home/testjob --threads 200 --churn 30 >/dev/null
wait_for 10 'the job with 200 threads runs' running "$a"
all_threads() { [ "$(wc -l <"$(job_group "$1" "$a")/cgroup.threads")" -ge 200 ]; }
for k in 1 2; do wait_for 10 "with all of its threads on node $k" all_threads $k; done
as bob 1 rm -f stamp
b=$(everywhere bob /home/testjob --stamp /home/bob/stamp 2)
stamped() { [ "$(as bob 1 sh -c 'cat stamp | wc -l')" = 2 ]; }
wait_for 20 'the later job runs' stamped
as alice 1 ekill "$a"
wait_for 5 'the first ends' over "$a"
wait_for 10 'the later one too' over "$b"
observed
stamp=$(as bob 1 sort -n stamp | head -n 1)
python3 - "$tmp/seen" "$stamp" >"$tmp/verdict" <<'PY'
import sys
start = int(sys.argv[2]) / 1e6
now, late, peak = {}, [], 0
for line in open(sys.argv[1]):
    if line.startswith("#"):
        continue
    ms, label, tid, cls, prio = line.split()
    key = (label, tid)
    if float(ms) <= start:
        if cls in ("gone", "empty"):
            now.pop(key, None)
        else:
            now[key] = cls
            peak = max(peak, len(now))
    elif cls.startswith(("other", "batch", "idle")) and float(ms) < start + 1000:
        late.append(line.strip())
out = [k for k, v in now.items() if v.startswith(("other", "batch", "idle"))]
print("threads", peak)
print("outside", len(out) + len(late), out[:3], late[:3])
PY
diag "$(cat "$tmp/verdict")" "$(tail -n 1 "$tmp/seen")"
ok 'the observer saw them all' test "$(sed -n 's/^threads //p' "$tmp/verdict")" -ge 400
is 'each was in FIFO or RR, and stayed there' "$(awk '$1 == "outside" { print $2 }' "$tmp/verdict")" 0

# ---- a job does not starve itself ----
everywhere bob /home/testjob 20 >/dev/null # somebody above nobody: the next is not alone
a=$(everywhere alice /home/testjob --threads 4 --report /home/alice/share 6) || true
as bob 1 ekill $((a - 1))
b=$(everywhere bob /home/testjob 20)
wait_for 30 'the job with more threads than processors ends' over "$a"
as bob 1 ekill "$b"
as alice 1 cat share >"$tmp/share"
diag "cpu seconds of its threads: $(cat "$tmp/share")"
ok 'each thread got at least a tenth' python3 -c "import sys; v = [float(x) for x in open('$tmp/share').read().split()]; sys.exit(not (len(v) == 4 and min(v) >= sum(v) / 10))"

# ---- ekill of a job that ignores TERM and spins, below one that spins ----
first=$(next_id)
watch "$first" 3
everywhere alice /home/testjob 60 >/dev/null
deaf() { [ "$(as bob 1 sh -c 'cat "$1" | wc -l' - "$1")" = 2 ]; } # it ignores TERM from its first stamp on
everywhere bob /home/testjob --ignore-term --stamp /home/bob/deaf2 --threads 3 60 >/dev/null
wait_for 20 'the second ignores TERM on both nodes' deaf deaf2
everywhere bob /home/testjob --ignore-term --stamp /home/bob/deaf3 60 >/dev/null
wait_for 20 'the third too' deaf deaf3
second=$((first + 1)) third=$((first + 2))
for i in $first $second $third; do until_ok 10 running "$i"; done
: >"$tmp/asked"
for i in $third $second; do
    echo "j$i $(now_ms)" >>"$tmp/asked"
    ok "ekill $i" as bob 1 ekill "$i"
    wait_for 10 'it ends below the one that spins' over "$i"
    is 'killed by KILL' "$(field "$i" '(j["reason_code"], j["signal"])')" "('killed', 9)"
    within 2 'nothing of it is left on any node' nothing_left "$i"
done
as alice 1 ekill "$first"
wait_for 5 'the first ends too' over "$first"
wait_for 5 'and leaves nothing' nothing_left "$first"
observed
for i in $third $second; do
    took=$(python3 - "$tmp/seen" "j$i" "$(sed -n "s/^j$i //p" "$tmp/asked")" <<'PY'
import sys
ends = [float(line.split()[0]) for line in open(sys.argv[1]) if line.split()[1].startswith(sys.argv[2] + ".") and " empty " in line]
print(round(max(ends) - float(sys.argv[3])))
PY
    )
    diag "from ekill to the last process on the last node: $took ms"
    ok 'within two seconds' test "$took" -le 2000
done

# ---- mode idle, also where the kernel shares by session ----
for k in 1 2; do on "$k" sh -c 'sed -i "s/^mode *=.*//; \$ a mode = idle" /etc/elmer/rsd.conf && systemctl restart rsd'; done
idle_everywhere() { [ "$(as alice 1 eadmin hosts | grep -cw idle)" = 2 ]; }
wait_for 20 'both hosts order by idle classes' idle_everywhere
first=$(everywhere alice /home/testjob 300)
second=$(everywhere bob /home/testjob 300)
used() { sed -n 's/^usage_usec //p' "$(job_group 1 "$1")/cpu.stat"; }
sessions_share() {
    [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ] && ! on 1 grep -qw cpu "/sys/fs/cgroup/$jobs_scope/cgroup.controllers"
}
rank() { # what the kernel goes by: if sessions share the nice value of its session, else class and nice value of its thread
    local pid
    pid=$(head -n 1 "$(job_group 1 "$1")/cgroup.procs") &&
        if sessions_share; then sed 's/.*nice//' "/proc/$pid/autogroup"; else ps -o cls=,ni= -p "$pid" | xargs; fi
}
ranked() { [ "$(rank "$first")" = "$top" ] && [ "$(rank "$second")" != "$top" ]; }
have_used() { # microseconds, both together
    a=$(($(used "$first") - used_first)) b=$(($(used "$second") - used_second))
    [ $((a + b)) -ge "$1" ]
}
share_of_first() { # of the next second of CPU time that both use: one look
    used_first=$(used "$first") used_second=$(used "$second")
    until_ok 10 have_used 1000000
    share=$((100 * a / (a + b)))
    diag "$share %"
    [ "$share" -ge 90 ]
}
for i in $first $second; do until_ok 10 running "$i"; done
top=$(rank "$first")
wait_for 5 'they have different ranks' ranked
ok 'the first gets nine tenths of the CPU' share_of_first
ok 'it ends' as alice 1 ekill "$first"
wait_for 5 'over' over "$first"
third=$(everywhere alice /home/testjob 300)
until_ok 10 running "$third"
first=$second second=$third
wait_for 5 'the second has moved up' ranked
ok 'nine tenths are its own' share_of_first
as bob 1 ekill "$first"
as alice 1 ekill "$second"
for i in $first $second; do wait_for 5 "job $i ends" over "$i"; done
done_testing
