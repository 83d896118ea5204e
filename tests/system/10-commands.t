#!/bin/bash
# The commands as a user meets them: plain jobs from submission to result, and every way in which one cannot be run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs
as alice 1 mkdir -p work

# ---- from submission to result ----
id=$(submit alice -D /home/alice/work 1 sh -c 'echo out; echo err >&2; exit 3')
like 'stdout is the bare id' "$id" '^[0-9]+$'
like 'stderr says where it runs' "$(cat "$tmp/said")" "^job $id allocated ws[12] at level 0\$"
wait_for 10 'it ends' over "$id"
is 'with its exit status' "$(field "$id" '(j["state"], j["exit_status"], j["signal"])')" "('done', 3, None)"
is 'its output is in the directory under the documented name' "$(as alice 1 sort "work/elmer-$id.out" | xargs)" 'err out'
is 'a final state is queried by id' "$(as bob 2 equery "$id" | grep -c .)" 2
is 'and not shown among the living' "$(as bob 2 equery --json | python3 -c 'import json,sys; print([j["id"] for j in json.load(sys.stdin)["jobs"]])')" '[]'
wait_for 5 'nothing of it is left' nothing_left "$id"
for case in 'exit 0:0' 'exit 7:7' 'kill -9 $$:137' 'kill -TERM $$:143'; do
    as alice 1 esubmit -w -o /dev/null 1 sh -c "${case%:*}" >/dev/null 2>&1
    is "-w gives the status of '${case%:*}'" $? "${case##*:}"
done
is '-w from a host without elmer' "$(as alice 2 esubmit -w -o /home/alice/w2 1 hostname >/dev/null 2>&1; echo $?)" 0

# ---- what the command finds ----
as alice 1 sh -c 'cd work && LC_TIME=C SECRET=s MINE=m esubmit -w -J "my job" -v MINE -v YOURS="a b" -v EMPTY= -o env-%j-%u-%x-%r-%% 1 env' >"$tmp/id" 2>/dev/null
id=$(cat "$tmp/id")
as alice 1 cat "work/env-$id-alice-my job-0-%" >"$tmp/env" 2>&1
for line in "ELMER_JOB_ID=$id" 'ELMER_JOB_NAME=my job' ELMER_NPROCS=1 ELMER_RANK=0 ELMER_SUBMIT_HOST=ws1 ELMER_SUBMIT_DIR=/home/alice/work \
    HOME=/home/alice USER=alice MINE=m 'YOURS=a b' EMPTY=; do
    is "environment: $line" "$(grep -cxF "$line" "$tmp/env")" 1
done
like 'ELMER_HOSTS' "$(grep '^ELMER_HOSTS=' "$tmp/env")" '^ELMER_HOSTS=ws[12]$'
is 'nothing of the caller beyond the safe set' "$(grep -c SECRET "$tmp/env")" 0
as alice 1 sh -c 'umask 027; esubmit -w -D work -o facts 1 sh -c "pwd; umask; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; cat \$ELMER_HOSTFILE; stat -c %a:%U \$ELMER_TMPDIR; id -un; id -Gn"' >/dev/null 2>&1
like 'directory, umask, stdin, descriptors, hostfile, tmpdir, identity' "$(as alice 1 cat work/facts | xargs)" \
    '^/home/alice/work 0?027 /dev/null 4 ws[12] 700:alice alice alice$'
as alice 1 esubmit -w -D /home/alice/work -o o -e e 1 sh -c 'echo out; echo err >&2' >/dev/null 2>&1
is '-o and -e' "$(as alice 1 sh -c 'cat work/o work/e' | xargs)" 'out err'
is 'the sum of usage is kept' "$(id=$(submit alice -w -o /dev/null 1 /home/testjob 1); field "$id" 'j["usage"][0]["cpu_seconds"] > 0.5 and len(j["usage"]) == 1')" True

# ---- what cannot be run ends with a reason ----
refused_reason() { # NAME REGEX ARG..
    local name=$1 regex=$2 id
    shift 2
    id=$(submit alice "$@")
    until_ok 10 over "$id"
    like "$name" "$(field "$id" '(j["reason_code"], j["reason"])')" "start-failed.*$regex"
    like "$name: equery shows it to people" "$(as alice 1 equery "$id")" "$regex"
}
refused_reason 'a command that does not exist' 'no-such-program' -D /home/alice 1 no-such-program
refused_reason 'a command that may not be executed' '/etc/passwd' -D /home/alice 1 /etc/passwd
refused_reason 'a directory that is not there' '/home/alice/nowhere' -D /home/alice/nowhere 1 true
refused_reason "somebody else's directory" '/root' -D /root 1 true
refused_reason 'an output file that may not be written' '/etc/output' -o /etc/output 1 true
as alice 1 esubmit -w -D /home/alice 1 no-such-program >/dev/null 2>"$tmp/w"
is '-w exits with 125 for that' $? 125
like 'and says why' "$(cat "$tmp/w")" no-such-program

# ---- refusals ----
exit_of() { # NAME STATUS REGEX CMD..
    local name=$1 status=$2 regex=$3 rc=0
    shift 3
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
    is "$name: exit status" $rc "$status"
    like "$name: message" "$(cat "$tmp/err")" "$regex"
    is "$name: nothing on stdout" "$(cat "$tmp/out")" ''
}
exit_of 'more processors than exist' 1 '3.*2' as alice 1 esubmit 3 true
exit_of 'more than --hosts leaves' 1 'only 1' as alice 1 esubmit --hosts ws2 2 true
exit_of 'an unknown host' 1 'ws9' as alice 1 esubmit --hosts ws9 1 true
exit_of 'root runs nothing' 5 'root' on 1 esubmit 1 true
exit_of 'no processors' 2 "'0'" as alice 1 esubmit 0 true
exit_of 'a number that is none' 2 '1x' as alice 1 esubmit 1x true
exit_of 'no command' 2 'COMMAND' as alice 1 esubmit 1
exit_of 'an unknown option' 2 'no-such' as alice 1 esubmit --no-such 1 true
exit_of 'an unknown pattern' 2 '%q' as alice 1 esubmit -o 'x%q' 1 true
exit_of 'equery of an unknown job' 3 '999999' as alice 1 equery 999999
exit_of 'ekill of an unknown job' 3 '999999' as alice 1 ekill 999999
exit_of 'ekill of something else' 2 'abc' as alice 1 ekill abc
exit_of 'ecancel of an unknown job' 3 '999999' as alice 1 ecancel 999999

# ---- queue, cancel, kill ----
ids=()
for _ in 1 2 3; do ids+=("$(submit alice -o /dev/null 2 /home/testjob 300)"); done
first=${ids[0]} third=${ids[2]}
queued=$(submit bob -o /dev/null -J waiting 2 true)
like 'a full cluster queues' "$(cat "$tmp/said")" "^job $queued queued: 0 ahead"
behind=$(submit bob -o /dev/null 1 true)
like 'and counts who is ahead' "$(cat "$tmp/said")" "^job $behind queued: 1 ahead"
is 'levels are in order of arrival' "$(for i in "${ids[@]}"; do field "$i" 'j["level"]'; done | xargs)" '0 1 2'
as alice 2 equery >"$tmp/list"
is 'equery shows all of them' "$(grep -cE 'running|queued' "$tmp/list")" 5
is '-r only what runs' "$(as alice 2 equery -r | grep -c running)" 3
is '-q only what waits' "$(as alice 2 equery -q | grep -c queued)" 2
is 'words are whole' "$(grep -c waiting "$tmp/list")" 1
exit_of "ekill of another's job" 5 "$first" as bob 1 ekill "$first"
exit_of "ecancel of another's job" 5 "$queued" as alice 1 ecancel "$queued"
exit_of 'ekill of a job that waits' 3 'ecancel' as bob 1 ekill "$queued"
exit_of 'ecancel of a job that runs' 3 'ekill' as alice 1 ecancel "$first"
ok 'ecancel' as bob 2 ecancel "$queued"
is 'a cancelled job is cancelled' "$(state "$queued")" cancelled
ok 'an administrator may end it' as carol 2 ekill "$third"
wait_for 5 'a killed job ends' over "$third"
is 'and says so' "$(field "$third" '(j["reason_code"], j["signal"])')" "('killed', 15)"
wait_for 10 'the queue moves on' over "$behind"
as alice 1 ekill "$first" "${ids[1]}"
is 'ekill of two' $? 0
for i in "${ids[@]}"; do
    wait_for 5 "job $i ends" over "$i"
    wait_for 5 "nothing of job $i is left" nothing_left "$i"
done

# ---- the form for programs ----
as alice 1 equery --json "$first" >"$tmp/json"
is 'the fields of --json' "$(python3 -c 'import json,sys
d = json.load(sys.stdin)
print(d["schema"], *d["jobs"][0])' <"$tmp/json")" 'elmer.jobs/1 id attempt name user uid state level nprocs hosts processors command dir submitted started ended exit_status signal reason_code reason usage level_seconds'
is 'times are RFC 3339 in UTC' "$(python3 -c 'import json,sys,re
j = json.load(sys.stdin)["jobs"][0]
print(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", j[k]) for k in ("submitted", "started", "ended")))' <"$tmp/json")" True
on 1 systemctl stop elmer
exit_of 'without elmer' 4 'elmer' as alice 2 equery
on 1 systemctl start elmer
wait_for 20 'and again with it' as alice 2 equery
done_testing
