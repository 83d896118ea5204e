#!/bin/bash
# PVM jobs: a private virtual machine each, ranked by Elmer, and gone at the end whatever happens.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --rsd 'tickets = require'
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
wait_for 5 'nothing of it is left' nothing_left "$id"
is 'no pvmd on any node' "$(for k in 1 2; do on $k pgrep -x pvmd; done)" ''
is 'no file of PVM in /tmp' "$(for k in 1 2; do on $k sh -c 'ls /tmp | grep pvm'; done)" ''
id=$(pvm alice -w -o /home/alice/b.out 2 "$examples/barrier" -P 2 -v 3)
is 'barrier works' "$(field "$id" 'j["exit_status"]')" 0
is 'and has computed on both' "$(computed_on "$id")" "['ws1', 'ws2']"
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
id=$(pvm bob -w -o /home/bob/tasks 2 sh -c 'printf "spawn -4 /home/task.sh\n" | pvm >/dev/null; i=0; while [ $i -lt 500 ] && [ "$(grep -c "no newline" tasks)" -lt 4 ]; do sleep 0.1; i=$((i + 1)); done')
as bob 1 cat tasks >"$tmp/tasks"
is 'all lines of all tasks are in the output' "$(grep -cE "^task of $id on ws[12] line [0-9]+\$" "$tmp/tasks")" 800
is 'unfinished last lines too' "$(grep -c 'no newline at the end$' "$tmp/tasks")" 4
is 'from both hosts' "$(grep -o 'on ws[12]' "$tmp/tasks" | sort -u | xargs)" 'on ws1 on ws2'
is 'no line is broken' "$(grep -vcE "^(task of $id on ws[12] line [0-9]+|no newline at the end)\$" "$tmp/tasks")" 0

# ---- two jobs of one user at once ----
a=$(pvm alice -o /home/alice/a.out 2 "$examples/barrier" -P 2 -v 3 -f 60)
b=$(pvm alice -o /home/alice/b.out 2 "$examples/barrier" -P 2 -v 3 -f 60)
for i in $a $b; do wait_for 10 "PVM job $i of one user runs" running "$i"; done
there() { [ -n "$(kind "$1" "$2" pvmd)" ] && [ -n "$(kind "$1" "$2" barrier)" ]; }
for k in 1 2; do
    for i in $a $b; do wait_for 10 "job $i has daemons and tasks of its own on ws$k" there $k "$i"; done
done
ranks() { # NODE ID NAME -> class and priority of the first such process, e.g. "fifo 50"
    rank_of "$1" "$(kind "$1" "$2" "$3" | head -n 1)" | sed 's/|SCHED_RESET_ON_FORK//; s/SCHED_//' | tr '[:upper:]' '[:lower:]'
}
in_order() { # the priorities of the first job's daemon and task, and of the later job's daemon, fall; its task is not in real time
    local first_daemon first_task later_daemon
    first_daemon=$(ranks 2 "$a" pvmd) first_task=$(ranks 2 "$a" barrier) later_daemon=$(ranks 2 "$b" pvmd)
    echo "first job: pvmd $first_daemon, task $first_task; later job: pvmd $later_daemon, task $(ranks 2 "$b" barrier)"
    [[ $first_task =~ ^(fifo|rr)\  ]] && [ "${first_daemon##* }" -gt "${first_task##* }" ] &&
        [ "${later_daemon##* }" -lt "${first_task##* }" ] && [[ $(ranks 2 "$b" barrier) = other* ]]
}
wait_for 15 'daemons rank just above their own tasks, and below the tasks of the job above' in_order
ok 'the two end together' as alice 1 ekill "$a" "$b"
for i in $a $b; do
    wait_for 10 "job $i ends" over "$i"
    wait_for 5 "nothing of job $i is left" nothing_left "$i"
done
for i in 1 2; do as alice 1 esubmit --pvm -w -o /home/alice/both-$i 2 "$examples/barrier" -P 2 -v 3 -f 2 >"$tmp/both$i" 2>/dev/null & pids[i]=$!; done
for i in 1 2; do
    wait "${pids[i]}"
    is "PVM job $i of two at once ends well" $? 0
done

# ---- a daemon dies or stops, on either host; ekill ----
for how in 'KILL 1 dies' 'KILL 2 dies' 'STOP 1 stops' 'STOP 2 stops'; do
    read -r signal k what <<<"$how"
    id=$(pvm alice -o /dev/null 2 "$examples/barrier" -P 2 -v 1 -f 50)
    until_ok 10 eval '[ -n "$(kind $k "$id" barrier)" ]'
    on "$k" kill -"$signal" "$(kind "$k" "$id" pvmd | sort -n | head -n 1)" # the oldest: a task is called pvmd too until its exec
    within 2 "a pvmd that $what on ws$k ends the job within 2 s" over "$id"
    like 'with a reason' "$(field "$id" '(j["reason_code"], j["reason"])')" "pvm-failed.*ws$k"
    within 2 'and nothing is left' nothing_left "$id"
done
id=$(pvm alice -o /dev/null 2 "$examples/barrier" -P 2 -v 1 -f 50)
until_ok 10 eval '[ -n "$(kind 2 "$id" barrier)" ]'
ok 'ekill' as alice 2 ekill "$id"
within 2 'ends it within 2 s' over "$id"
within 2 'on all nodes' nothing_left "$id"

# ---- a program that places its tasks itself ----
id=$(pvm alice -w -o /home/alice/placed.out 2 "$examples/placed")
is 'tasks are placed with elmer_register() and elmer_hosts()' "$(field "$id" 'j["exit_status"]')" 0
like 'each where the job has a processor' "$(as alice 1 cat placed.out)" 'placed: verified tasks=2 hosts_of=the job'
is 'one on each host' "$(as alice 1 cat placed.out | grep -o 'wanted on ws[12]' | sort | xargs)" 'wanted on ws1 wanted on ws2'

# ---- whose daemons these are ----
on 1 sh -c 'mkdir -p /home/alice/bin && cat >/home/alice/bin/pvmd && chmod 755 /home/alice/bin/pvmd && chown -R alice /home/alice/bin' <<'EOF2'
#!/bin/sh
touch /home/alice/own-pvmd
exec /usr/bin/pvmd "$@"
EOF2
on 1 sh -c 'cat >/home/sees.sh; chmod 755 /home/sees.sh' <<'EOF2'
#!/bin/sh
echo "task sees $LD_LIBRARY_PATH"
tr '\0' '\n' </proc/$PPID/environ | sed -n 's/^LD_LIBRARY_PATH/its daemon sees &/p'
EOF2
id=$(pvm alice -w -o /home/alice/sees -v PATH=/home/alice/bin:/usr/bin:/bin -v LD_LIBRARY_PATH=/home/alice/lib 2 sh -c 'printf "spawn -2 /home/sees.sh\n" | pvm >/dev/null; i=0; while [ $i -lt 500 ] && [ "$(grep -c sees sees)" -lt 2 ]; do sleep 0.1; i=$((i + 1)); done')
is 'a job whose PATH begins with a pvmd of its own runs' "$(field "$id" 'j["exit_status"]')" 0
ok 'but that one is not started' on 1 test ! -e /home/alice/own-pvmd
is 'what the loader obeys reaches the tasks on both hosts, and no daemon' "$(as alice 1 cat sees | sort | uniq -c | xargs)" '2 task sees /home/alice/lib'

# ---- a later job cannot disturb by flooding the daemons ----
# It is compared with one that computes, on both hosts too: processors that are both busy are slower, whatever for. And the
# first job's phases are of 0.8 ms: at each of its messages it waits for the end of a later one's system call, in which most
# kernels are not interrupted (doc/06-performance.md).
turnaround() { field "$1" '__import__("datetime").datetime.fromisoformat(j["ended"].replace("Z", "+00:00")).timestamp() - __import__("datetime").datetime.fromisoformat(j["started"].replace("Z", "+00:00")).timestamp()'; }
first_beside() { # FILE PROGRAM ARG..: how long the first job takes beside a later one that runs PROGRAM. Both times it is in real time,
    local file=$1 first later # and what other work the machine has counts for neither
    shift
    : >"$tmp/id"
    as alice 1 esubmit --pvm -w -o /dev/null 2 "$examples/barrier" -P 2 -v 1 -f 4 2>/dev/null >"$tmp/id" & # esubmit waits, the shell does not poll
    first=$!
    until_ok 10 test -s "$tmp/id"
    later=$(pvm bob -o /dev/null 2 "$@")
    wait $first
    turnaround "$(cat "$tmp/id")" >>"$tmp/$file"
    as bob 1 ekill "$later"
    until_ok 5 over "$later"
}
for _ in 1 2 3 4 5 6 7; do
    first_beside computed "$examples/ep" -P 2 -c B
    first_beside flooded "$examples/flood" -s 60
done
cheap() { # the medians of the seven runs each are at most 3 % apart
    python3 -c "
import statistics as s, sys
c, f = (sorted(float(x) for x in open('$tmp/' + n)) for n in ('computed', 'flooded'))
r = s.median(f) / s.median(c)
print('flooded : computed', round(r, 4), 'computed', [round(x, 2) for x in c], 'flooded', [round(x, 2) for x in f])
sys.exit(not (len(c) == len(f) == 7 and r <= 1.03))" >"$tmp/ratio"
}
ok 'a flood of messages costs the first job at most 3 %' cheap
diag "$(cat "$tmp/ratio")"
done_testing
