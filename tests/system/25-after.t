#!/bin/bash
# Jobs wait for other jobs, users wait for jobs, and order and hold their own; elmer is killed in the middle.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 1'
install_programs

reason() { field "$1" 'j["reason_code"]'; }
ahead() { on 1 equery -q | awk -v id="$1" '$1 == id { print $6 }'; }

# ---- a chain, with a branch for each end ----
first=$(submit alice -o /dev/null 2 sh -c 'sleep 600')
wait_for 10 'the first runs' running "$first"
good=$(submit alice -o /dev/null --after "ok:$first" 1 true)
like 'esubmit says what it waits for' "$(cat "$tmp/said")" "waits for $first to end well"
bad=$(submit alice -o /tmp/bad --after "fail:$first,start:$first" 1 sh -c 'echo $ELMER_JOB_ID; exit 3')
next=$(submit bob -o /dev/null --after "any:$bad,fail:$good" 1 true)
kept=$(submit bob -o /dev/null --after "ok:$bad" --if-never keep 1 true)
is 'it waits' "$(state "$bad") $(reason "$bad")" 'queued after'
like 'and equery says for what' "$(on 1 equery "$next")" "waits for $bad to end, $good to fail"
as alice 2 ewait "$good" "$bad" 2>"$tmp/waited" &
waiter=$!
on 1 systemctl kill -s KILL elmer
wait_for 20 'after a kill -9 the first runs on' running "$first"
as alice 1 ekill "$first"
wait_for 20 'the next one runs when it has failed' over "$bad"
is 'once' "$(on 1 cat /tmp/bad 2>/dev/null; on 2 cat /tmp/bad 2>/dev/null)" "$bad"
is 'who waited for the other end is cancelled' "$(state "$good") $(reason "$good")" 'cancelled never'
like 'and is told why' "$(on 1 equery "$good")" "job $first did not end well"
wait_for 20 'the one behind both ends' over "$next"
is 'as it should' "$(field "$next" 'j["exit_status"]')" 0
is 'who can never run stays when told so' "$(state "$kept") $(reason "$kept")" 'queued never'
wait "$waiter"
is 'who waits on another host has the status of the first' $? 125
like 'and the reason' "$(cat "$tmp/waited")" "job $good was cancelled"
as bob 2 ewait --any "$kept" "$bad"
is 'ewait --any: that of the one that has ended' $? 3
as bob 2 ewait -t 1 "$kept"
is 'not for longer than told' $? 124
as bob 1 ecancel "$kept" 2>/dev/null
as alice 1 esubmit --after ok:999999 1 true 2>"$tmp/said"
is 'a job that is not there is a mistake' $? 1
like 'and said' "$(cat "$tmp/said")" 'there is no job 999999'

# ---- the order of one's own ----
first=$(submit alice -o /dev/null 2 sleep 600)
wait_for 10 'a job has all processors' running "$first"
own=() others=()
for k in 1 2 3; do
    own[k]=$(submit alice -o /dev/null 2 true)
    others[k]=$(submit bob -o /dev/null 2 true)
done
ok 'the last is moved to the front' as alice 2 etop "${own[3]}"
ok 'another is held' as alice 2 ehold "${own[1]}"
as alice 2 etop "${others[3]}" 2>/dev/null
is 'not a job of somebody else' $? 5
on 1 systemctl kill -s KILL elmer
wait_for 20 'elmer is back' is_state "${own[1]}" held
order=''
for id in "${own[3]}" "${others[1]}" "${own[1]}" "${others[2]}" "${own[2]}" "${others[3]}"; do
    order+="$(ahead "$id") "
done
is 'the others are where they were' "$order" '0 1 2 3 4 5 '
ok 'it is released' as alice 1 erelease "${own[1]}"
as alice 1 ekill "$first"
ok 'all end' as alice 1 ewait -t 60 "${own[@]}" "${others[@]}"
starts=''
for id in "${own[3]}" "${others[1]}" "${own[1]}" "${others[2]}" "${own[2]}" "${others[3]}"; do
    starts+="$(field "$id" 'j["started"]')"$'\n'
done
is 'and have run in that order' "$starts" "$(sort <<<"${starts%$'\n'}")"$'\n'

# ---- an array is as many as it has tasks ----
first=$(submit alice -o /dev/null 2 sleep 600)
wait_for 10 'a job has all processors again' running "$first"
early=$(submit alice -o /dev/null 2 true)
other=$(submit bob -o /dev/null 2 true)
array=$(submit alice -o /dev/null -a 1-3 2 true)
ok 'an array is moved' as alice 2 etop "$array"
on 1 systemctl kill -s KILL elmer
wait_for 20 'elmer is back again' is_state "$early" queued
is 'one of its tasks is before the job of another user, where one of its own was' \
    "$(for id in "$((array + 1))" "$other" "$array" "$early"; do field "$id" 'j["ahead"]'; done | xargs)" '0 1 2 3'
ok 'the job is moved before it' as alice 2 etop "$early"
is 'and that task is behind' "$(for id in "$early" "$other" "$((array + 1))" "$array"; do field "$id" 'j["ahead"]'; done | xargs)" '0 1 2 3'
ok 'an administrator removes the array' on 1 ecancel "$array"
like 'and is named' "$(on 1 equery "$array")" 'ecancel of root'
as alice 1 ekill "$first"
ok 'the others end' as alice 1 ewait -t 60 "$early" "$other"
done_testing
