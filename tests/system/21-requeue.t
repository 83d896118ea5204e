#!/bin/bash
# Hosts that are lost: what becomes of their jobs, with and without --requeue. Each process of a job writes down when it lives, by
# the clock that all nodes share: two attempts of a job never do at the same time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lease=10 wait=$((lease * 1100 + 1000)) # the next attempt begins a lease, a tenth and a second after the last contact
# Four seconds suspect, from the second missed heartbeat to host_timeout: a node beside other work is asked once a second.
lab_up 3 --elmer 'allocator = v1' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 6s' --elmer "lease = ${lease}s" --rsd 'tickets = require'
on 1 sh -c 'cat >/home/alive && chmod 755 /home/alive' <<'END'
#!/bin/bash
# alive FILE: one line a tick: attempt, host, when; "end" when it is told to end
me="${ELMER_TMPDIR##*.} $(hostname)"
say() { read -r s _ </proc/uptime; echo "$me $((10#${s%.*} * 1000 + 10#${s#*.} * 10)) $*" >>"$1"; }
trap 'say "$1" end; exit 1' TERM
while :; do
    say "$1"
    sleep 0.05 & wait $!
done
END
install_programs
mark=/home/alice/marks
reason() { field "$1" 'j["reason_code"]'; }
queued_for_lease() { [ "$(reason "$1")" = lease ] && is_state "$1" queued; }
attempt_runs() { [ "$(field "$1" 'j["attempt"]')" = "$2" ] && running "$1"; } # ID ATTEMPT
host_of() { field "$1" 'j["hosts"][0]'; }
times() { on 1 awk -v a="$2" '$1 == a { print $3 }' "$mark.$1"; } # ID ATTEMPT
first_of() { times "$@" | head -n 1; }
last_of() { times "$@" | tail -n 1; }
marks() { [ -n "$(times "$@")" ]; }
begin() { # HOSTS ARG..: ID of a job that has begun to write
    local hosts=$1 id
    shift
    id=$(submit alice -o /dev/null --hosts "$hosts" "$@" 1 sh -c "exec /home/alive $mark.\$ELMER_JOB_ID") || return
    until_ok 10 marks "$id" 1
    echo "$id"
}
apart() { # NAME ID: attempts 1 and 2 never lived at the same time
    local end first
    end=$(last_of "$2" 1) first=$(first_of "$2" 2)
    ok "$1" test "$first" -gt "$end"
    diag "job $2: attempt 1 was last seen at $end ms, attempt 2 began $((first - end)) ms later"
}

# ---- a power cut ----
plain=$(begin ws3)
on 1 eadmin drain ws2 2>/dev/null
again=$(begin ws2,ws3 --requeue)
on 1 eadmin resume ws2 2>/dev/null
is 'it runs on the host that will be lost' "$(host_of "$again")" ws3
"$lab" crash 3
wait_for 10 'a job with --requeue whose host has lost power waits for its lease' queued_for_lease "$again"
like 'and equery says for which host' "$(as alice 1 equery -q)" "$again .*attempt 1 may still run on ws3, until its lease is over"
wait_for 20 'then it runs on another host' attempt_runs "$again" 2
is 'which is the other one' "$(host_of "$again")" ws2
until_ok 5 marks "$again" 2
apart 'and not before the first attempt had ended' "$again"
wait_for 10 'one without --requeue is done' over "$plain"
is 'and says why' "$(reason "$plain")" host-lost
ok 'it can be killed' as alice 1 ekill "$again"
wait_for 10 'and does not go again' over "$again"
is 'it was killed' "$(reason "$again")" killed

# ---- a cable is pulled ----
"$lab" start 3 >/dev/null
wait_for 30 'the crashed host is back' hosts_up 3
plain=$(begin ws2)
on 1 eadmin drain ws3 2>/dev/null
again=$(begin ws2,ws3 --requeue)
on 1 eadmin resume ws3 2>/dev/null
is 'it runs on the host that will be cut off' "$(host_of "$again")" ws2
"$lab" link 2 down
cut=$(now_ms)
within "$lease" 'administrators see that the host is suspect' eval 'on 1 eadmin hosts | grep -q "^ws2  *suspect "'
wait_for 10 'its next attempt waits' queued_for_lease "$again"
on 1 systemctl kill -s KILL elmer
restarted=$(now_ms)
wait_for 10 'also over a restart of elmer' queued_for_lease "$again"
wait_for $((lease + 2)) 'the job behind the cut cable ends by itself' \
    on 2 sh -c "! ls -d /sys/fs/cgroup/$jobs_scope/$again.1 2>/dev/null"
ended=$(last_of "$again" 1)
ok 'within the lease' test $((ended - cut)) -le $((lease * 1000))
ok 'and not at once' test $((ended - cut)) -ge $((lease * 1000 / 2 - 1500))
ok 'one without --requeue runs on there' on 2 ls -d "/sys/fs/cgroup/$jobs_scope/$plain.1"
wait_for 20 'then it runs on another host' attempt_runs "$again" 2
is 'which is the other one' "$(host_of "$again")" ws3
until_ok 5 marks "$again" 2
apart 'and not before the first attempt had ended' "$again"
ok 'and waited for the whole lease after the restart' test $(($(first_of "$again" 2) - restarted)) -ge $((wait - 500))
"$lab" link 2 up
wait_for 30 'the cable is mended' hosts_up 3
wait_for 10 'nothing of the job is left on the host that was cut off' on 2 sh -c "! ls -d /sys/fs/cgroup/$jobs_scope/[0-9]* 2>/dev/null"
is 'the one that was given up stays so' "$(reason "$plain")" host-lost
ok 'the second attempt runs on' attempt_runs "$again" 2

# ---- rsd is dead, and elmer too ----
on 3 systemctl stop rsd
dead=$(now_ms)
wait_for $((lease + 2)) 'without rsd the supervisor ends the job' \
    on 3 sh -c "! grep -q 'populated 1' /sys/fs/cgroup/$jobs_scope/$again.2/job/cgroup.events 2>/dev/null"
ok 'within the lease' test $(($(last_of "$again" 2) - dead)) -le $((lease * 1000))
on 3 systemctl start rsd
wait_for 20 'it goes again' attempt_runs "$again" 3
ok 'it can be killed' as alice 1 ekill "$again"
wait_for 10 'and is over' over "$again"
wait_for 10 'nothing is left anywhere' nothing_left "$again"
done_testing
