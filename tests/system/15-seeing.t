#!/bin/bash
# What a user sees of a job from another host than it runs on: its page, why it waits, the hosts, and JSON as the schemas say.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --cpus 2 --elmer 'allocator = v1' --elmer 'levels = 1'
install_programs

# JSON on standard input is as its schema says.
valid() { "$top/tests/schema" "$top/schemas"; }
page() { as alice 2 equery "$1"; }
page_has() { page "$1" | grep -qE -- "$2"; } # ID REGEX

# ---- the page ----
id=$(submit alice --hosts ws1,ws2 --each -o 'out %r' -e /tmp/err -t 10m 4 /home/testjob --work-us 5000 --wait-us 15000 300)
wait_for 10 'a job on two hosts runs' running "$id"
page "$id" >"$tmp/page"
like 'the first line says how it is' "$(head -n1 "$tmp/page")" "^Job $id testjob, alice's: running at level 0\$"
for line in 'command     /home/testjob --work-us 5000 --wait-us 15000 300' 'directory   /home/alice' 'processors  4: ws1 \([0-9]+ [0-9]+\), ws2 \([0-9]+ [0-9]+\)' \
    'output      ws1:/home/alice/out 0' '            ws2:/home/alice/out 3' 'errors      ws1:/tmp/err' 'limits      time 10m' \
    'started     20..-..-.. ..:..:.., after 0:00:0.' 'levels      L0 [0-9.]+s'; do
    ok "the page has '$(xargs <<<"$line")'" grep -qE "^  $line\$" "$tmp/page"
done
wait_for 20 'and the CPU time of each host while it runs' page_has "$id" '^  CPU time    ws[12] [1-9]' # a report says it
is 'another user sees no command and no file' "$(as bob 2 equery "$id" | grep -cE 'command|output|directory')" 0

# ---- why another one waits ----
next=$(submit alice --hosts ws2 2 sleep 1)
last=$(submit bob 4 sleep 1)
as alice 2 equery --why "$next" >"$tmp/why"
like 'the first says what it waits for' "$(cat "$tmp/why")" "^Job $next is queued: waits for 2 processors: of 2 that it may use, 2 full"
like 'a host that it may not use' "$(cat "$tmp/why")" 'ws1 +0/2 +not-allowed +the job may not use it'
like 'a host without room' "$(cat "$tmp/why")" 'ws2 +0/2 +full +2 of 2 processors full: jobs on the only level'
like 'and what would help' "$(cat "$tmp/why")" '  ws2: a job there has to end'
like 'one behind it is told about the first' "$(as bob 2 equery --why "$last")" "The first of those ahead that waits for processors is job $next: waits for 2 proc"
like 'one that runs does not wait' "$(as bob 1 equery --why "$id")" "^Job $id does not wait: it is running at level 0\\.\$"
as carol 1 eadmin drain ws2 2>/dev/null
like 'a drained host is named in the sentence' "$(as bob 2 equery --why "$last")" "waits for ws2 \\(drained by carol\\): 4 processors asked, 2 usable"
like 'so is who has drained it' "$(as bob 2 equery --why "$last")" 'ws2 +0/2 +drained +drained by carol: it takes no new jobs'
like 'with the command that ends that' "$(as bob 2 equery --why "$last")" 'ws2: .*eadmin resume ws2'
as alice 1 equery --why 999999 >"$tmp/why" 2>&1
is 'a job that is not there' "$? $(cat "$tmp/why")" '3 equery: there is no job 999999'

# ---- the hosts ----
hosts_know() { as bob 2 equery --hosts | grep -E '^ws1 +up +2 +[0-9]+ % +[0-9]+ % +[0-9.]+ of [0-9.]+ GiB ' | grep -q " $id alice\\*2 "; }
wait_for 10 'how busy each is, its memory, and who is where' hosts_know
like 'and why one takes nothing' "$(as bob 1 equery --hosts --host ws2)" 'ws2 +drained .*drained by carol'

# ---- for programs ----
field_is() { field "$1" "$2" | grep -qx "$3"; }
ok 'output of each rank, with its host' field_is "$id" '[(o["host"], o["path"], o["errors"]) for o in j["output"]][2]' "('ws2', '/home/alice/out 2', '/tmp/err')"
is 'ahead' "$(field "$last" 'j["ahead"]')" 1
as alice 1 ekill "$id"
as carol 1 eadmin resume ws2 2>/dev/null
for job in "$id" "$next" "$last"; do
    wait_for 20 "job $job ends" over "$job"
done
for user in alice bob; do
    is "all jobs, as $user sees them" "$(as "$user" 2 equery --json "$id" "$next" "$last" | valid)" ''
done
is 'the history' "$(as bob 2 equery --history --json | valid)" ''
is 'the hosts' "$(as bob 2 equery --hosts --json | valid)" ''
is 'the hosts as administrators see them' "$(as carol 1 eadmin hosts --json | valid)" ''
id=$(submit alice --hosts ws1 2 sleep 60)
next=$(submit bob 4 sleep 1)
wait_for 10 'one runs again' running "$id"
is 'why a job waits, and that one runs' "$(as bob 2 equery --why --json "$next" "$id" | valid)" ''
ok 'the schemas are installed' on 2 test -f /usr/share/elmer/schemas/elmer.jobs-1.json

# ---- ending many, signals ----
as alice 1 ekill "$id" 2>/dev/null
wait_for 20 'it ends' over "$id"
like 'who ended it is named' "$(field "$id" 'j["reason"]')" '^ended by ekill of alice$'
wait_for 20 'the next one ends' over "$next"
traps=$(submit alice -o /tmp/traps --hosts ws2 --each 2 sh -c 'trap "echo usr1; exit 7" USR1; echo ready; while :; do sleep 0.1; done')
wait_for 10 'its ranks wait for a signal' on 2 sh -c '[ "$(grep -c ready /tmp/traps)" = 2 ]'
as bob 2 ekill --signal USR1 "$traps" 2>"$tmp/err"
is 'another user may not send one' "$? $(grep -c 'belongs to alice' "$tmp/err")" '5 1'
ok 'its owner may' as alice 2 ekill --signal USR1 "$traps"
wait_for 10 'and they get it' over "$traps"
is 'each once' "$(field "$traps" 'j["exit_status"]') $(on 2 grep -c usr1 /tmp/traps)" '7 2'
many=
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    many="$many $(submit alice -J "many$i" 1 sleep 300)"
done
keep=$(submit alice -J keep 1 sleep 300)
waiting() { field "$keep" 'j["ahead"]'; }
on 1 runuser -u alice -- script -qec 'ecancel --name "many*"' /dev/null <<<n >"$tmp/asked" 2>&1
like 'a terminal is asked' "$(tr -d '\r' <"$tmp/asked")" 'cancel [0-9]+ jobs\? \[y/N\]'
is 'and nothing is done without a yes' "$(waiting)" "$(($(wc -w <<<"$many") - 4))"
as alice 2 ecancel --name 'many*' 2>/dev/null
is 'a script is not' "$(waiting)" 0
as carol 1 ekill -u alice 2>/dev/null
all_over() { for job in $many; do over "$job" || return 1; done; }
wait_for 20 'an administrator ends all that run' all_over
like 'and is named' "$(field "$(xargs -n1 <<<"$many" | head -n1)" 'j["reason"]')" '^ended by ekill of carol$'
as alice 1 ekill --me 2>/dev/null
wait_for 20 'and one all of his own' over "$keep"

# ---- what it writes ----
tail_of() { as alice "$1" etail -n 2 "$2" 2>&1; } # NODE ID
writer='for line; do echo "$line"; done; while [ ! -e /tmp/stop ]; do sleep 0.05; done; echo last'
id=$(submit alice --hosts ws2 -o /tmp/written 1 sh -c "umask 077; $writer" sh one two three)
wait_for 10 'it has written' on 2 grep -q three /tmp/written
is 'the last lines, from the host that runs it' "$(tail_of 2 "$id")" $'two\nthree'
is 'and from another one' "$(tail_of 1 "$id")" $'two\nthree'
is 'not for another user' "$(as bob 1 etail "$id" 2>&1 >/dev/null | grep -c 'belongs to alice')" 1
is 'nor for an administrator' "$(as carol 1 etail "$id" 2>&1 >/dev/null | grep -c 'belongs to alice')" 1
on 2 runuser -u alice -- ln -sf /etc/shadow /tmp/written
is 'a link is followed with his own rights only' "$(tail_of 1 "$id" | grep -c 'Permission denied')" 1
on 2 sh -c 'rm -f /tmp/written && touch /tmp/stop'
wait_for 20 'it ends' over "$id"
on 2 rm -f /tmp/stop
id=$(submit alice --hosts ws2 -o /tmp/written2 1 sh -c "$writer" sh begin)
wait_for 10 'the next one has written' on 2 grep -q begin /tmp/written2
as alice 1 etail -f -n all "$id" >"$tmp/followed" 2>"$tmp/err" &
follower=$!
wait_for 10 'who follows sees the beginning' grep -q begin "$tmp/followed"
full=$(submit bob --hosts ws2 1 sleep 300)
next=$(submit bob 4 sleep 1) # waits until after all of this: nothing behind it has a turn
on 2 touch /tmp/stop
wait_for 20 'it ends, too' over "$id"
wait "$follower" # here: a subshell does not wait for it
is 'etail ends with it' $? 0
is 'and has seen what was written last' "$(cat "$tmp/followed" "$tmp/err" | xargs)" 'begin last'
is 'afterwards it is read from there, too' "$(tail_of 1 "$id")" $'begin\nlast'
as carol 1 eadmin drain ws2 2>/dev/null
is 'also when the host is drained' "$(tail_of 1 "$id")" $'begin\nlast'
as carol 1 eadmin resume ws2 2>/dev/null
is 'though another job waits all the time' "$(field "$next" 'j["state"]')" queued
is 'what read it is in no list' "$(as alice 1 equery --history --name 'output-of-*' | grep -c output-of)" 0
none_left() { ! on 2 pgrep -u alice -fx '/bin/sleep 60' >/dev/null; }
wait_for 10 'and has ended' none_left
as bob 1 ecancel "$next"
as bob 1 ekill "$full"
wait_for 20 'the host is free again' over "$full"

id=$(submit alice --hosts ws1,ws2 --each -o '/tmp/rank.%r' 4 sh -c 'echo "rank $ELMER_RANK"; exec sleep 300')
ranks_are() { [ "$(for r in 0 1 2 3; do as alice 1 etail -r "$r" "$id" 2>&1; done | xargs)" = 'rank 0 rank 1 rank 2 rank 3' ]; }
wait_for 10 'each rank has its own' ranks_are
is 'a rank that is none' "$(as alice 1 etail -r 4 "$id" 2>&1)" "etail: job $id has no rank 4; its last is 3"
on 2 rm /tmp/rank.3
like 'a file that is gone' "$(as alice 1 etail -r 3 "$id" 2>&1)" 'ws2: its output cannot be read by alice: No such file'
as alice 1 ekill "$id"
wait_for 20 'they end' over "$id"
id=$(submit alice --hosts ws2 -o /tmp/big 1 sh -c 'head -c 1000000 /dev/urandom; exec sleep 300')
big_is() { [ "$(on 2 stat -c %s /tmp/big)" = 1000000 ]; }
wait_for 10 'a million of any bytes is written' big_is
is 'and each is seen' "$(as alice 1 etail -n all "$id" | cksum)" "$(on 2 cat /tmp/big | cksum)"
ended=$(submit alice --hosts ws2 -o /tmp/much 1 head -c 1000000 /dev/urandom)
wait_for 20 'one that has written as much ends' over "$ended"
begin_of() { as alice 1 sh -c "etail -n all $1 | head -c 1000 | cksum"; }
is 'who reads no more than the beginning has it' "$(begin_of "$ended")" "$(on 2 head -c 1000 /tmp/much | cksum)"
wait_for 3 'and leaves no job that would have read the rest' none_left # it would have run for a minute

# ---- on a terminal ----
printf q | as alice 1 env TERM=xterm script -qec 'equery -W --format id,state' /dev/null >"$tmp/watched"
is '-W shows it in the other screen, in its colour' "$(grep -cF -- "$id"$'  \e[32mrunning\e[0m' "$tmp/watched")" 1
like 'and leaves the terminal as it was' "$(cat -v "$tmp/watched")" '\^\[\[\?7h\^\[\[\?25h\^\[\[\?1049l'
is 'nothing of that in a pipe' "$(as alice 1 equery --format id,state "$id" | cat -v | xargs)" "JOB STATE $id running"
as alice 1 ekill "$id"
wait_for 20 'this one ends, too' over "$id"

# ---- elmer_register() in a program that is started by hand ----
for k in 1 2; do
    on "$k" sh -c 'cat >/home/registered && chmod 755 /home/registered' <"$build/tests/system/registered"
done
on 1 rm -f /tmp/by-hand
as alice 1 esubmit -w --hosts ws1,ws2 -o /tmp/by-hand 4 env -u ELMER_HOSTS -u ELMER_JOB_ID /home/registered 2>/dev/null
is 'it finds the job that it is in' "$(on 1 cat /tmp/by-hand)" '4 - ws1 ws1 ws2 ws2'
is 'and says so outside of one' "$(as alice 1 /home/registered)" '0 ENOENT'

done_testing
