#!/bin/bash
# Arrays of jobs: each task once, with its index, so many at a time, whatever becomes of elmer; and by all commands.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 1' --rsd 'tickets = require'
install_programs

lines() { { on 1 cat "$1" 2>/dev/null; on 2 cat "$1" 2>/dev/null; } | sort -n; }
count_lines() { lines "$1" | wc -l; }
has_lines() { [ "$(count_lines "$1")" -ge "$2" ]; }
task() { # ID[INDEX] PYTHON-EXPRESSION
    on 1 equery --json "$1" | python3 -c 'import json,sys
j = json.load(sys.stdin)["jobs"][0]
print('"$2"')'
}
task_runs() { [ "$(task "$1" 'j["state"]')" = running ]; }
hosts_known() { [ "$(on 1 eadmin hosts 2>/dev/null | grep -c ' up ')" = 2 ]; }

# ---- each task once, with its index ----
id=$(submit alice -a 1-40 -o /tmp/out.%A.%a sh -c 'echo "$ELMER_ARRAY_INDEX {} $ELMER_ARRAY_ID" >>/tmp/ran.$ELMER_ARRAY_ID')
like 'an id' "$id" '^[0-9]+$'
ok 'it ends well' as alice 2 ewait -t 60 "$id"
is 'each task has run once, with its index' "$(lines "/tmp/ran.$id")" "$(for ((k = 1; k <= 40; k++)); do echo "$k $k $id"; done)"
is 'the array has counted them' "$(field "$id" 'j["state"], j["tasks_ok"], j["tasks_failed"], j["exit_status"]')" "('done', 40, 0, 0)"
is 'a task is a job' "$(field "$((id + 12))" 'j["array"], j["index"], j["state"]')" "($id, 12, 'done')"
like 'and shown with its index' "$(on 1 equery "${id}[12]")" "$id\\[12\\]"
is 'its output has its name' "$({ on 1 sh -c "ls /tmp/out.$id.*"; on 2 sh -c "ls /tmp/out.$id.*"; } 2>/dev/null | sort -u | wc -l)" 40

# ---- steps, lists, failures ----
id=$(submit alice -a 0-20:5,33 -o /dev/null sh -c 'echo {} >>/tmp/ran.$ELMER_ARRAY_ID; [ {} != 10 ] || exit 7')
as alice 1 ewait -t 60 "$id" 2>"$tmp/said"
is 'ewait has the status of the task that failed' $? 7
is 'only those indices' "$(lines "/tmp/ran.$id" | tr '\n' ' ')" '0 5 10 15 20 33 '
like 'and equery says which' "$(on 1 equery "$id")" "1 of 6 tasks failed, the first of them is $id\\[10\\]"
as alice 1 ewait -t 10 "${id}[10]" "${id}[5]"
is 'a task has its own status' $? 7
as alice 1 ekill "${id}[11]" 2>"$tmp/said"
is 'an index that is none' $? 1

# ---- lines of a file, and those that have failed once more ----
on 1 sh -c "printf 'a 1\nb \"2\"\nc 3\nd 4\n' >/tmp/cases"
id=$(submit alice --array-file /tmp/cases%2 -o /dev/null sh -c 'echo "$ELMER_ARRAY_INDEX $1 $ELMER_ARRAY_LINE" >>/tmp/ran.$ELMER_ARRAY_ID
    case $2 in *2* | 4) [ -e /tmp/mended ] ;; esac' x '{1}' '{2}')
as alice 1 ewait -t 60 "$id" 2>"$tmp/said"
is 'two of four tasks fail' $? 1
is 'each has its own line and columns' "$(lines "/tmp/ran.$id")" '1 a a 1
2 b b "2"
3 c c 3
4 d d 4'
is 'a task is shown with it' "$(task "${id}[2]" 'j["line"]')" 'b "2"'
on 1 rm /tmp/cases
as bob 1 eretry --failed "$id" >"$tmp/said" 2>&1
is 'others do not run it again' $? 5
for node in 1 2; do on "$node" touch /tmp/mended; done
again=$(as alice 2 eretry --failed "$id" 2>"$tmp/said")
like 'a new array' "$again" '^[0-9]+$'
like 'of two tasks' "$(cat "$tmp/said")" "array $again: 2 tasks of array $id again"
ok 'which end well' as alice 1 ewait -t 60 "$again"
is 'with their indices and lines' "$(lines "/tmp/ran.$again")" '2 b b "2"
4 d d 4'
as alice 1 eretry --failed "$again" 2>"$tmp/said"
is 'none of these has failed' $? 3
one=$(as alice 1 eretry "${id}[3]" 2>"$tmp/said")
ok 'one that is named' as alice 1 ewait -t 60 "$one"
is 'runs again, too' "$(lines "/tmp/ran.$one")" '3 c c 3'

# ---- a task on two hosts starts processes there by erun, as any job ----
id=$(submit alice -a 4-5 -o /tmp/erun.%a 2 sh -c 'erun --host ws2 sh -c "echo \$(hostname) \$ELMER_ARRAY_INDEX {}"')
ok 'they end well' as alice 1 ewait -t 60 "$id"
is 'with the index of its task' "$(on 1 cat /tmp/erun.4 /tmp/erun.5 | xargs)" 'ws2 4 4 ws2 5 5'
is 'what a task has written, by its index' "$(as alice 1 etail "${id}[5]")" 'ws2 5 5'
like 'an array writes nothing by itself' "$(as alice 1 etail "$id" 2>&1)" "job $id is an array; .* name one, like $id\\[4\\]"
is 'nor do two tasks at a time' "$(as alice 1 etail "${id}[4-5]" 2>/dev/null; echo $?)" 2

# ---- so many at a time, held, cancelled, killed; elmer is killed between ----
id=$(submit alice -a '1-30%1' -o /dev/null sh -c 'echo {} >>/tmp/ran.$ELMER_ARRAY_ID; exec sleep 600')
wait_for 10 'the first runs' has_lines "/tmp/ran.$id" 1
other=$(submit bob -o /dev/null 1 true)
wait_for 20 'a later job passes an array that is at its limit' over "$other"
is 'one at a time' "$(count_lines "/tmp/ran.$id")" 1
like 'and it is said' "$(on 1 equery "$id")" 'waiting 2-30'
like 'why a task of it waits' "$(on 1 equery --why "${id}[2]")" "one of the array's running tasks has to end"
ok 'tasks are cancelled' as alice 2 ecancel "${id}[3-9,29-30]"
ok 'one is held' as alice 2 ehold "${id}[2]"
as bob 2 ecancel "$id" 2>/dev/null
is 'not by others' $? 5
on 1 systemctl kill -s KILL elmer
wait_for 20 'after a kill -9 the first runs on' task_runs "${id}[1]"
is 'a task that is cancelled stays so' "$(task "${id}[5]" 'j["state"]')" cancelled
is 'one that is held too' "$(task "${id}[2]" 'j["state"]')" held
is 'and the others wait' "$(field "$id" 'j["tasks_waiting"]')" 10-28
ok 'the one that runs is ended' as alice 1 ekill "${id}[1]"
wait_for 20 'the next one is the first that waits' task_runs "${id}[10]"
ok 'the held one is released' as alice 1 erelease "${id}[2]"
ok 'and this one is ended' as alice 1 ekill "${id}[10]"
wait_for 20 'the released one is before the others' task_runs "${id}[2]"
ok 'all are ended at once' as alice 1 ekill "$id"
wait_for 20 'and the array with them' over "$id"
is 'nothing else has run' "$(lines "/tmp/ran.$id" | tr '\n' ' ')" '1 2 10 '
is 'it is counted' "$(field "$id" 'j["tasks_ok"], j["tasks_failed"], j["reason_code"]')" "(0, 3, 'tasks-failed')"

# ---- tasks that have ended before elmer is restarted, of an array that goes on ----
id=$(submit alice -a '1-6%1' -o /dev/null sh -c '[ {} != 3 ] || exec sleep 600; exit $(({} - 1))')
wait_for 20 'the third runs' task_runs "${id}[3]"
ok 'one is cancelled' as alice 1 ecancel "${id}[5]"
on 1 systemctl restart elmer
wait_for 20 'elmer is back' task_runs "${id}[3]"
is 'one that has ended is shown so' "$(task "${id}[2]" 'j["state"], j["exit_status"]')" 'done 1'
as alice 1 ewait -t 20 "${id}[2]"
is 'and ewait has its status' $? 1
ok 'well if it was' as alice 1 ewait -t 20 "${id}[1]"
is 'one that was cancelled too' "$(task "${id}[5]" 'j["state"]')" cancelled
is 'all of them in a list' "$(on 1 equery --json "${id}[1-6]" | python3 -c 'import json,sys
print(*(j["state"] for j in sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["index"])))')" 'done done running queued cancelled queued'
as alice 1 ekill "$id"
wait_for 20 'it is over' over "$id"

# ---- signals: to the tasks that run ----
id=$(submit alice -a '1-4%2' -o /dev/null sh -c 'trap "echo {} >>/tmp/got.$ELMER_ARRAY_ID; exit 0" USR1
    echo {} >>/tmp/ran.$ELMER_ARRAY_ID; while :; do sleep 0.1; done')
two_run() { # INDEX INDEX - and have begun
    has_lines "/tmp/ran.$id" "$2" && task_runs "${id}[$1]" && task_runs "${id}[$2]"
}
wait_for 20 'two run' two_run 1 2
as alice 2 ekill --signal USR1 "${id}[4]" 2>"$tmp/said"
is 'one that waits gets none' $? 3
like 'and that is said' "$(cat "$tmp/said")" "task $id\\[4\\] waits"
as bob 2 ekill --signal USR1 "$id" 2>/dev/null
is 'others send none' $? 5
as alice 2 ekill --signal USR1 "$id" 2>"$tmp/said"
is 'an array takes one' $? 0
is 'for its two tasks' "$(cat "$tmp/said")" "ekill: signal 10 is sent to 2 tasks of array $id"
wait_for 20 'which get it, and the others run' two_run 3 4
is 'these do not' "$(lines "/tmp/got.$id" | tr '\n' ' ')" '1 2 '
ok 'to some, of which one has ended' as alice 1 ekill --signal USR1 "${id}[1,3]"
wait_for 20 'it is sent to the other' has_lines "/tmp/got.$id" 3
ok 'to each of them' as alice 1 ekill --signal USR1 "${id}[*]"
wait_for 20 'it ends the last one' over "$id"
is 'each got one' "$(lines "/tmp/got.$id" | tr '\n' ' ')" '1 2 3 4 '

# ---- others wait for tasks by index, also for such as have not started ----
id=$(submit alice -a '1-3%1' -o /dev/null sh -c 'while [ ! -e /tmp/go.{} ]; do sleep 0.1; done; exit {}')
second=$(submit alice --after "fail:${id}[2]" -o /dev/null 1 true)
third=$(submit alice --after "ok:${id}[3]" -o /dev/null 1 true)
all=$(submit alice --after "any:${id}[*]" -o /dev/null 1 true)
is 'a job waits for a task' "$(field "$second" 'j["state"], j["waits_for"]')" "('queued', ['fail:$((id + 2))'])"
as alice 1 ewait -t 60 "${id}[2]" 2>/dev/null &
waiter=$!
on 1 systemctl kill -s KILL elmer
wait_for 20 'after a kill -9 the first runs on' task_runs "${id}[1]"
ok 'the last is cancelled before it starts' as alice 2 ecancel "${id}[3]"
wait_for 20 'who can never run is cancelled' over "$third"
for node in 1 2; do on "$node" touch /tmp/go.1; done
wait_for 20 'the second runs' task_runs "${id}[2]"
is 'who waits for it still does' "$(state "$second")" queued
for node in 1 2; do on "$node" touch /tmp/go.2; done
wait_for 20 'then it runs' over "$second"
is 'well' "$(field "$second" 'j["reason_code"]')" exited
wait "$waiter"
is 'ewait has waited for a task that had not started' $? 2
wait_for 20 'and who waits for all' over "$all"

# ---- an array of which no task was started ----
blocker=$(submit bob -o /dev/null 2 sleep 600)
wait_for 10 'another job has all processors' running "$blocker"
id=$(submit alice -a 1-100000 -o /dev/null true)
ok 'it is cancelled whole' as alice 1 ecancel "$id"
is 'and over' "$(field "$id" 'j["state"], j["reason_code"]')" "('cancelled', 'cancelled')"
as bob 1 ekill "$blocker" 2>/dev/null

# ---- it is lost and comes back: with --requeue each task runs until it has ended ----
id=$(submit alice --requeue -a 1-4 -o /dev/null sh -c 'echo {} >>/tmp/ran.$ELMER_ARRAY_ID; while [ ! -e /tmp/go ]; do sleep 0.1; done')
wait_for 20 'two of them run' has_lines "/tmp/ran.$id" 2
for ((k = 0; k < 5; k++)); do
    on 1 systemctl kill -s KILL elmer
    on 2 systemctl kill -s KILL rsd
    wait_for 20 'elmer and rsd are back' hosts_known
done
on 1 touch /tmp/go
on 2 touch /tmp/go
ok 'all end' as alice 1 ewait -t 60 "$id"
is 'each once' "$(lines "/tmp/ran.$id" | tr '\n' ' ')" '1 2 3 4 '
done_testing
