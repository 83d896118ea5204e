#!/bin/bash
# Power cuts and orderly shutdowns with jobs that run and jobs that wait.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

silent=() # on nodes; a machine that is emulated may well say nothing for 8 s
[ "$LAB" != lab ] || silent=(--elmer 'heartbeat = 2s' --elmer 'host_timeout = 8s')
lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 2' "${silent[@]}"
wait_for 20 'all hosts are up' hosts_up 2
reason() { field "$1" 'j["reason_code"]'; }
# A job that runs until it is run again. What it has written is on the disk before it goes on.
for k in 1 2; do
    on $k sh -c 'cat >/home/twice && chmod 755 /home/twice' <<'JOB'
#!/bin/sh
echo run >>"$1"
[ "$(wc -l <"$1")" -lt 2 ] || exit 0
sync
echo >"$1.synced"
exec sleep 3000
JOB
done
began() { as bob "$1" test -e "$2.synced"; } # seen before that, its line could go with the power

# ---- a workstation loses its power ----
a=$(submit alice -o /dev/null --hosts ws2 1 sleep 3000)
again=$(submit bob --requeue -o /dev/null --hosts ws2 1 /home/twice /home/bob/cut2)
for i in $a $again; do wait_for 10 "job $i runs on ws2" running "$i"; done
wait_for 10 'the one to run again has begun' began 2 cut2
"$lab" crash 2
wait_for 60 'the job there ends' over "$a"
is 'because the host is lost' "$(reason "$a")" host-lost
ok 'ws2 boots again' "$lab" start 2
wait_for 60 'both hosts are up' up_again
wait_for 60 'the job with --requeue runs again, to its end' over "$again"
is 'well, in its second attempt' "$(field "$again" '(j["exit_status"], j["attempt"])')" '(0, 2)'
is 'nothing of the first attempt is left' "$(left_of "$again")" ''

# ---- the queue host loses its power ----
a=$(submit alice -o /dev/null --hosts ws1 1 sleep 3000)
again=$(submit bob --requeue -o /dev/null --hosts ws1 1 /home/twice /home/bob/cut1)
queued=$(submit alice -o /dev/null --hosts ws1 1 true)
for i in $a $again; do wait_for 10 "job $i runs on ws1" running "$i"; done
wait_for 10 'the one to run again has begun' began 1 cut1
is 'a third one waits' "$(state "$queued")" queued
"$lab" crash 1
ok 'ws1 boots again' "$lab" start 1
wait_for 60 'both hosts are up' up_again
for i in $a $again $queued; do wait_for 60 "job $i ends" over "$i"; done
is 'the first is lost: elmer was away itself, and finds its host without it' "$(reason "$a")" lost
is 'the one with --requeue has run again' "$(field "$again" '(j["exit_status"], j["attempt"])')" '(0, 2)'
is 'the one that waited has run' "$(field "$queued" '(j["exit_status"], j["attempt"])')" '(0, 1)'

# ---- an orderly shutdown ----
a=$(submit alice -o /dev/null --hosts ws1 1 sleep 3000)
again=$(submit bob --requeue -o /dev/null --hosts ws1 1 /home/twice /home/bob/order)
queued=$(submit alice -o /dev/null --hosts ws1 1 true)
for i in $a $again; do wait_for 10 "job $i runs on ws1" running "$i"; done
wait_for 10 'the one to run again has begun' began 1 order
is 'a third one waits' "$(state "$queued")" queued
begin=$(now_ms)
is 'ws1 is shut down in order' "$("$lab" stop 1 2>&1)" ''
took=$(($(now_ms) - begin))
ok 'ws1 boots again' "$lab" start 1
if [ "$LAB" = lab ]; then # its journal is not kept
    ok "nobody waited for 90 s ($took ms)" test $took -lt 60000
else
    is "nobody waited for 90 s ($took ms): systemd has killed nothing" "$(on 1 journalctl -b -1 --no-pager -o cat | grep -E 'timed out|SIGKILL')" ''
fi
wait_for 60 'both hosts are up' up_again
for i in $a $again $queued; do wait_for 60 "job $i ends" over "$i"; done
diag "the job that ran: $(reason "$a")"
is 'the one with --requeue has run again' "$(field "$again" '(j["exit_status"], j["attempt"])')" '(0, 2)'
is 'the one that waited has run' "$(field "$queued" '(j["exit_status"], j["attempt"])')" '(0, 1)'
done_testing
