#!/bin/bash
# Limits of time and of CPU time, the signal before them, and --dry-run, on booted workstations.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'report_interval = 1s'
install_programs
reason() { field "$1" 'j["reason_code"]'; }
ran_ms() { field "$1" '__import__("datetime").datetime.fromisoformat(j["ended"][:-1]).timestamp()*1000 - __import__("datetime").datetime.fromisoformat(j["started"][:-1]).timestamp()*1000'; }

# ---- the wall clock ----
as alice 1 esubmit -w -o /dev/null -t 2s sleep 100 >"$tmp/id" 2>"$tmp/said"
is 'a job that is ended by its limit has no status of its own' $? 125
id=$(cat "$tmp/id")
is 'the reason' "$(reason "$id")" time-limit
like 'names the figure' "$(cat "$tmp/said")" 'it has run for its time limit of 2s'
ok 'it has run for so long' python3 -c 'import sys; sys.exit(not 1950 <= float(sys.argv[1]) < 10000)' "$(ran_ms "$id")"
wait_for 5 'nothing of it is left' nothing_left "$id"

# ---- restarts of elmer: the stored start counts ----
id=$(submit alice -o /dev/null -t 8s sleep 100)
wait_for 10 'it runs' running "$id"
on 1 systemctl kill -s KILL elmer
on 1 systemctl reset-failed elmer
on 1 systemctl restart elmer
wait_for 20 'it ends after the restart' over "$id"
is 'for the same reason' "$(reason "$id")" time-limit
ok 'not later than the limit, the grace and a moment' python3 -c 'import sys; sys.exit(not 7950 <= float(sys.argv[1]) < 14000)' "$(ran_ms "$id")"

# ---- the signal before, and once more after it ----
id=$(submit alice -o /home/alice/signals --requeue=limit -t 4s --signal USR1@2 sh -c \
    'trap "echo usr1" USR1; echo attempt ${ELMER_TMPDIR##*.}; [ "${ELMER_TMPDIR##*.}" = 2 ] && exit 0; while :; do sleep 0.1; done')
wait_for 30 'it ends' over "$id"
is 'by itself in the second attempt' "$(reason "$id") $(field "$id" 'j["attempt"]')" 'exited 2'
is 'one signal came in the first' "$(as alice 1 grep -v defined signals | xargs)" 'attempt 1 usr1 attempt 2'

# ---- CPU time ----
id=$(submit alice -o /dev/null --each --cpu-time 2s 2 sh -c 'while :; do :; done')
wait_for 40 'a job that computes ends' over "$id"
is 'by its CPU time' "$(reason "$id")" cpu-limit
id=$(submit alice -o /dev/null --cpu-time 1s sleep 5)
wait_for 20 'one that sleeps' over "$id"
is 'is not ended' "$(reason "$id")" exited

# ---- what would happen ----
like '--dry-run' "$(as alice 1 esubmit --dry-run --hosts ws2 true)" '^would start now: ws2 \(1 processor\) at level 0$'
is 'submits nothing' "$(as alice 1 equery --me --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"])')" '[]'
is 'filters of the history' "$(as alice 1 equery --history --me --name 'slee*' --host ws1,ws2 --json |
    python3 -c 'import json,sys; print(len(json.load(sys.stdin)["jobs"]))')" 3

done_testing
