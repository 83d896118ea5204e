#!/bin/bash
# PVM jobs: a private virtual machine each, ranked by Elmer, and gone at the end whatever happens.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs
outrank_jobs
examples=/usr/libexec/elmer/examples
pvm() { submit "$1" --pvm "${@:2}"; }
kind() { # NODE ID NAME -> pids in the job's group with that name, as the node numbers them
    on "$1" sh -c 'for p in $(cat /sys/fs/cgroup/'"$jobs_scope"'/$1.1/job/cgroup.procs); do [ "$(cat /proc/$p/comm)" != "$2" ] || echo $p; done' - "$2" "$3"
}
rank_of() { on "$1" sh -c 'chrt -p "$1"' - "$2" | sed 's/.*: //' | xargs; }

# ---- one job ----
id=$(pvm alice -w -o /home/alice/ep.out 2 "$examples/ep" -P 2 -c S)
is 'ep of class S verifies' "$(field "$id" 'j["exit_status"]')" 0
like 'and says so in the output file' "$(as alice 1 cat ep.out)" 'verified|VERIFIED'
is 'it ran on both nodes' "$(field "$id" 'sorted(u["host"] for u in j["usage"] if u["cpu_seconds"] > 0.1)')" "['ws1', 'ws2']"
ok 'nothing of it is left' until_ok 5 nothing_left "$id"
is 'no pvmd on any node' "$(for k in 1 2; do on $k pgrep -x pvmd; done)" ''
is 'no file of PVM in /tmp' "$(for k in 1 2; do on $k sh -c 'ls /tmp | grep pvm'; done)" ''
id=$(pvm alice -w -o /home/alice/b.out 2 "$examples/barrier" -P 2 -v 3)
is 'barrier works' "$(field "$id" 'j["exit_status"]')" 0
id=$(pvm alice -w -o /home/alice/one.out --hosts ws2 1 "$examples/ep" -P 1 -c S)
is 'a virtual machine of one host, not the first' "$(field "$id" 'j["exit_status"]')" 0
id=$(pvm alice -w -o /home/alice/e.out 2 sh -c 'exit 5')
is 'the status of the command is that of the job' "$(field "$id" 'j["exit_status"]')" 5

# ---- what a task finds, and its output ----
on 1 sh -c 'cat >/home/task.sh; chmod 755 /home/task.sh' <<'EOF2'
#!/bin/sh
i=0
while [ $i -lt 200 ]; do echo "task of $ELMER_JOB_ID on $(hostname) line $i"; i=$((i + 1)); done
printf 'no newline at the end'
EOF2
id=$(pvm bob -w -o /home/bob/tasks 2 sh -c 'printf "spawn -4 /home/task.sh\n" | pvm >/dev/null; i=0; while [ $i -lt 50 ] && [ "$(grep -c "no newline" tasks)" -lt 4 ]; do sleep 0.1; i=$((i + 1)); done')
as bob 1 cat tasks >"$tmp/tasks"
is 'all lines of all tasks are in the output' "$(grep -cE "^task of $id on ws[12] line [0-9]+\$" "$tmp/tasks")" 800
is 'unfinished last lines too' "$(grep -c 'no newline at the end$' "$tmp/tasks")" 4
is 'from both hosts' "$(grep -o 'on ws[12]' "$tmp/tasks" | sort -u | xargs)" 'on ws1 on ws2'
is 'no line is broken' "$(grep -vcE "^(task of $id on ws[12] line [0-9]+|no newline at the end)\$" "$tmp/tasks")" 0

# ---- two jobs of one user at once ----
a=$(pvm alice -o /home/alice/a.out 2 "$examples/barrier" -P 2 -v 3 -f 10)
b=$(pvm alice -o /home/alice/b.out 2 "$examples/barrier" -P 2 -v 3 -f 10)
for i in $a $b; do wait_for 10 "PVM job $i of one user runs" running "$i"; done
both_there() { for k in 1 2; do [ -n "$(kind $k "$a" pvmd)" ] && [ -n "$(kind $k "$b" pvmd)" ] && [ -n "$(kind $k "$a" barrier)" ] && [ -n "$(kind $k "$b" barrier)" ] || return 1; done; }
wait_for 10 'each with its own daemons and tasks on both nodes' both_there
pvmd=$(kind 2 "$a" pvmd) task=$(kind 2 "$a" barrier | head -n 1)
like 'the first job ranks in FIFO' "$(rank_of 2 "$task")" 'SCHED_(FIFO|RR)'
ok 'its daemon just above its tasks' test "$(rank_of 2 "$pvmd" | grep -o '[0-9]*$')" -gt "$(rank_of 2 "$task" | grep -o '[0-9]*$')"
ok "the later job's daemon below them" test "$(rank_of 2 "$(kind 2 "$b" pvmd)" | grep -o '[0-9]*$')" -lt "$(rank_of 2 "$task" | grep -o '[0-9]*$')"
like 'the later job is in SCHED_OTHER' "$(rank_of 2 "$(kind 2 "$b" barrier | head -n 1)")" SCHED_OTHER
for i in $a $b; do wait_for 60 "job $i ends well" over "$i"; is "job $i" "$(field "$i" 'j["exit_status"]')" 0; done

# ---- a daemon dies, on either host; ekill ----
for k in 1 2; do
    id=$(pvm alice -o /dev/null 2 "$examples/barrier" -P 2 -v 1 -f 50)
    until_ok 10 eval '[ -n "$(kind $k "$id" barrier)" ]'
    on $k kill -KILL "$(kind $k "$id" pvmd | head -n 1)"
    wait_for 2 "a pvmd that dies on ws$k ends the job within 2 s" over "$id"
    like 'with a reason' "$(field "$id" '(j["reason_code"], j["reason"])')" "pvm-failed.*ws$k"
    ok 'and nothing is left' until_ok 2 nothing_left "$id"
done
id=$(pvm alice -o /dev/null 2 "$examples/barrier" -P 2 -v 1 -f 50)
until_ok 10 eval '[ -n "$(kind 2 "$id" barrier)" ]'
ok 'ekill' as alice 2 ekill "$id"
wait_for 2 'ends it within 2 s' over "$id"
ok 'on all nodes' until_ok 2 nothing_left "$id"

# ---- a later job cannot disturb by flooding the daemons ----
turnaround() { field "$1" '__import__("datetime").datetime.fromisoformat(j["ended"].replace("Z", "+00:00")).timestamp() - __import__("datetime").datetime.fromisoformat(j["started"].replace("Z", "+00:00")).timestamp()'; }
: >"$tmp/alone"
: >"$tmp/flooded"
for _ in 1 2 3 4 5; do
    id=$(pvm alice -w -o /dev/null 2 "$examples/barrier" -P 2 -v 3 -f 2)
    turnaround "$id" >>"$tmp/alone"
    id=$(pvm alice -o /dev/null 2 "$examples/barrier" -P 2 -v 3 -f 2)
    flood=$(pvm bob -o /dev/null 2 "$examples/flood" -s 20)
    until_ok 60 over "$id"
    turnaround "$id" >>"$tmp/flooded"
    as bob 1 ekill "$flood"
    until_ok 5 over "$flood"
done
ratio=$(python3 -c "
import statistics as s
a, f = ([float(x) for x in open('$tmp/' + n)] for n in ('alone', 'flooded'))
print(round(s.median(f) / s.median(a), 4), 'alone', sorted(a), 'flooded', sorted(f))")
diag "$ratio"
ok 'the first job pays at most 3 % for a flood of messages' python3 -c "import sys; sys.exit(not ${ratio%% *} <= 1.03)"
done_testing
