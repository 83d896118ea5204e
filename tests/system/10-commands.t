#!/bin/bash
# The commands as a user meets them: plain jobs from submission to result, and every way in which one cannot be run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
as alice 1 mkdir -p work

# ---- from submission to result ----
id=$(submit alice -D /home/alice/work 1 sh -c 'echo out; echo err >&2; exit 3')
like 'stdout is the bare id' "$id" '^[0-9]+$'
like 'stderr says where it runs' "$(cat "$tmp/said")" "^job $id allocated ws[12] at level 0\$"
wait_for 10 'it ends' over "$id"
is 'with its exit status' "$(field "$id" '(j["state"], j["exit_status"], j["signal"])')" "('done', 3, None)"
is 'its output is in the directory under the documented name' "$(as alice 1 sort "work/elmer-$id.out" | xargs)" 'err out'
like 'a final state is queried by id' "$(as bob 2 equery "$id")" "^Job $id, alice's: done, exit 3"
is 'and not shown among the living' "$(as bob 2 equery --json | python3 -c 'import json,sys; print([j["id"] for j in json.load(sys.stdin)["jobs"]])')" '[]'
wait_for 5 'nothing of it is left' nothing_left "$id"
for case in 'exit 0:0' 'exit 7:7' 'kill -9 $$:137' 'kill -TERM $$:143'; do
    as alice 1 esubmit -w -o /dev/null 1 sh -c "${case%:*}" >/dev/null 2>&1
    is "-w gives the status of '${case%:*}'" $? "${case##*:}"
done
is '-w from a host without elmer' "$(as alice 2 esubmit -w -o /home/alice/w2 1 hostname >/dev/null 2>&1; echo $?)" 0

# ---- without a ticket: a program that asks nobody for one ----
as alice 2 ln -s /run/elmer-rsd/rsd.sock bare.sock
id=$(as alice 2 env ELMER_SOCKET=/home/alice/bare.sock esubmit -o /dev/null 1 touch /home/alice/ran 2>/dev/null)
wait_for 10 'a job without ticket ends' over "$id"
like 'the reason names the check' "$(field "$id" 'j["reason"]')" 'has no ticket.*\(ticket missing\)'
is 'nothing of it has run' "$(as alice 1 ls ran 2>/dev/null; as alice 2 ls ran 2>/dev/null)" ''

# ---- scripts ----
as alice 1 sh -c 'cd work && printf "%s\n" "#!/bin/sh" "#ELMER -o scripted --hosts ws2" "echo \$1 \$ELMER_NPROCS" >s.sh &&
    esubmit -w -- 1 ./s.sh x' >/dev/null 2>&1
is 'a script with #ELMER lines' "$(as alice 1 cat work/scripted)" 'x 1'
as alice 1 sh -c 'cd work && printf "%s\n" "echo in \"\$@\"" "echo \${0##*/}" | esubmit -w -o input - a b' >/dev/null 2>&1
is 'standard input as a script' "$(as alice 1 cat work/input | xargs)" 'in a b script'

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
is 'the sum of usage is kept' "$(id=$(submit alice -w -o /dev/null 1 /home/testjob 1); field "$id" 'j["usage"][0]["cpu_seconds"] > 0.1 and len(j["usage"]) == 1')" True

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
for _ in 1 2 3; do ids+=("$(submit alice -o /dev/null 2 /home/testjob --work-us 1000 --wait-us 20000 600)"); done
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
is 'words are whole' "$(as bob 1 equery | grep -c waiting)" 1 # his own job: others do not see its name
exit_of "ekill of another's job" 5 "$first" as bob 1 ekill "$first"
exit_of "ecancel of another's job" 5 "$queued" as alice 1 ecancel "$queued"
exit_of 'ekill of a job that waits' 3 'ecancel' as bob 1 ekill "$queued"
exit_of 'ecancel of a job that runs' 3 'ekill' as alice 1 ecancel "$first"
ok 'ecancel' as bob 2 ecancel "$queued"
is 'a cancelled job is cancelled' "$(state "$queued")" cancelled
exit_of 'an administrator may not end it from another host' 5 'do it on ws1, or add ws2 to "admin_hosts' as carol 2 ekill "$third"
ok 'an administrator may end it' as carol 1 ekill "$third"
wait_for 5 'a killed job ends' over "$third"
is 'and says so' "$(field "$third" '(j["reason_code"], j["signal"])')" "('killed', 15)"
wait_for 10 'the queue moves on' over "$behind"
as alice 1 ekill "$first" "${ids[1]}"
is 'ekill of two' $? 0
for i in "${ids[@]}"; do
    wait_for 5 "job $i ends" over "$i"
    wait_for 5 "nothing of job $i is left" nothing_left "$i"
done

# ---- eadmin: the command lines ----
exit_of 'eadmin alone' 2 'what is to be done is missing' as carol 1 eadmin
exit_of 'no verb of eadmin' 2 "'dance' is no verb" as carol 1 eadmin dance
exit_of 'an option of eadmin before the verb' 2 'json' as carol 1 eadmin --json hosts
for verb in remove drain resume; do
    exit_of "eadmin $verb of nothing" 2 'the name of a host is missing' as carol 1 eadmin "$verb"
    exit_of "eadmin $verb of several, of which one is no name" 2 "'a_b/c' is not the name of a host" as carol 1 eadmin "$verb" ws2 a_b/c
    exit_of "eadmin $verb of what is no name" 2 "'a_b/c' is not the name of a host" as carol 1 eadmin "$verb" a_b/c
    exit_of "eadmin $verb by a user" 5 'only administrators' as alice 2 eadmin "$verb" ws2
    exit_of "eadmin $verb by root of another host" 5 'only administrators' on 2 eadmin "$verb" ws2
    exit_of "eadmin $verb by an administrator elsewhere" 5 'do it on ws1, or add ws2 to "admin_hosts' as carol 2 eadmin "$verb" ws2
    exit_of "eadmin $verb of a host that is not ours" 1 'ws9' as carol 1 eadmin "$verb" ws9
done
for verb in hold release; do
    exit_of "eadmin $verb of nothing" 2 'the id of a job is missing' as alice 1 eadmin "$verb"
    exit_of "eadmin $verb of what is no id" 2 'abc' as alice 1 eadmin "$verb" 1 abc
    exit_of "eadmin $verb of an unknown job" 3 '999999' as alice 1 eadmin "$verb" 999999
done
exit_of 'eadmin hosts of one' 2 "unexpected argument 'ws1'" as alice 1 eadmin hosts ws1
exit_of 'an unknown option of eadmin hosts' 2 'wide' as alice 1 eadmin hosts --wide
exit_of 'eadmin token with a word' 2 "'ws2'" on 1 eadmin token ws2
exit_of 'a token for ever' 2 'for ever' on 1 eadmin token --valid 'for ever'
exit_of 'a token for what is no name' 2 'a/b' on 1 eadmin token --hosts a/b
exit_of 'eadmin token by a user' 5 'only root on the queue host' as carol 1 eadmin token
exit_of 'eadmin init with a word' 2 "'here'" on 1 eadmin init here
exit_of 'eadmin init of another name' 2 'neither a host name nor a numeric address' on 1 eadmin init --address a/b
exit_of 'eadmin init by a user' 5 'only root on the queue host' as carol 1 eadmin init
exit_of 'a configuration that is not there' 1 'nowhere.conf' on 1 eadmin token -c /nowhere.conf
is 'eadmin --version' "$(as alice 1 eadmin --version | grep -c '^eadmin ')" 1
is 'eadmin hosts --json' "$(as alice 2 eadmin hosts --json | python3 -c 'import json,sys
d = json.load(sys.stdin)
print(d["schema"], *(h["host"] + "=" + h["state"] for h in d["hosts"]))')" 'elmer.hosts/1 ws1=up ws2=up'

# ---- eadmin: hosts that are drained, jobs that are held ----
host_state() { as bob 1 eadmin hosts | awk -v host="$1" '$1 == host { print $2 }'; }
ok 'an administrator drains a host' as carol 1 eadmin drain ws2
is 'it is shown' "$(host_state ws2)" drained
waiting=$(submit bob -o /dev/null --hosts ws2 1 true)
is 'and takes no job' "$(state "$waiting")" queued
exit_of "eadmin hold of another's job" 5 "$waiting" as alice 1 eadmin hold "$waiting"
exit_of "eadmin hold of another's job, by root of another host" 5 "$waiting" on 2 eadmin hold "$waiting"
ok 'the owner holds it, from another host' as bob 2 eadmin hold "$waiting"
is 'it is held' "$(state "$waiting")" held
ok 'the host is resumed' as carol 1 eadmin resume ws2
is 'it is up' "$(host_state ws2)" up
is 'a held job does not start' "$(state "$waiting")" held
exit_of "eadmin release of another's job" 5 "$waiting" as alice 2 eadmin release "$waiting"
as bob 1 eadmin release 999999 "$waiting" >"$tmp/out" 2>"$tmp/err"
is 'one of two is unknown: exit status' $? 3
like 'one of two is unknown: message' "$(cat "$tmp/err")" '999999'
is 'the other is named where results are' "$(cat "$tmp/out")" "job $waiting is released"
wait_for 10 'the other is released, and runs to its end' over "$waiting"
exit_of 'a job that has ended is not held' 3 'cannot be held|is done' as bob 1 eadmin hold "$waiting"
as carol 1 eadmin drain ws1 2>/dev/null
both=("$(submit alice -o /dev/null --hosts ws1 1 true)" "$(submit bob -o /dev/null --hosts ws1 1 true)")
ok 'an administrator holds the jobs of several' as carol 1 eadmin hold "${both[@]}"
is 'they are held' "$(for i in "${both[@]}"; do state "$i"; done | xargs)" 'held held'
ok 'root of the queue host releases them' on 1 eadmin release "${both[@]}"
is 'they wait for the host' "$(for i in "${both[@]}"; do state "$i"; done | xargs)" 'queued queued'
as carol 1 eadmin resume ws1 2>/dev/null
for i in "${both[@]}"; do
    wait_for 10 "job $i runs to its end" over "$i"
done

# ---- eadmin: another allocator while elmer runs ----
allocator() { as bob "$1" eadmin show | awk '$1 == "allocator" { print $2, $3 }'; }
exit_of 'eadmin set of nothing' 2 'needs a setting and its value' as carol 1 eadmin set
exit_of 'eadmin set without a value' 2 'needs a setting and its value' as carol 1 eadmin set allocator
exit_of 'eadmin set of two' 2 "one setting at a time: 'v2'" as carol 1 eadmin set allocator v1 v2
exit_of 'eadmin set by a user' 5 'only administrators' as alice 1 eadmin set allocator pack
exit_of 'eadmin set by root of another host' 5 'only administrators' on 2 eadmin set allocator pack
exit_of 'an allocator that there is not' 1 'known are: v1 v2 spread pack' as carol 1 eadmin set allocator v3
exit_of 'a setting that there is not' 1 'allocator policy' as carol 1 eadmin set levels 4
is 'what is configured is in force' "$(allocator 2)" 'v1 elmer.conf'
exit_of 'eadmin set by an administrator elsewhere' 5 'admin_hosts' as carol 2 eadmin set allocator pack
ok 'an administrator sets another allocator' as carol 1 eadmin set allocator pack
is 'it is in force, and shown' "$(allocator 1)" 'pack eadmin'
like 'and logged with who did it' "$(on 1 journalctl -q -o cat --no-pager -u elmer)" 'set by=carol to="allocator pack, it was [a-z0-9]+" from=ws1'
on 1 systemctl restart elmer
wait_for 20 'elmer is there again' as alice 1 equery
is 'it is still in force' "$(allocator 2)" 'pack eadmin'
ok 'default is what is configured' on 1 eadmin set allocator default
is 'which is in force again' "$(allocator 2)" 'v1 elmer.conf'
is 'eadmin show --json' "$(as alice 2 eadmin show --json | python3 -c 'import json,sys
d = json.load(sys.stdin)
print(d["schema"], *(s["setting"] + "=" + s["value"] for s in d["settings"]))')" 'elmer.settings/1 allocator=v1 policy=fcfs'

# ---- the form for programs ----
as alice 1 equery --json "$first" >"$tmp/json"
is 'the fields of --json' "$(python3 -c 'import json,sys
d = json.load(sys.stdin)
print(d["schema"], *d["jobs"][0])' <"$tmp/json")" 'elmer.jobs/1 id attempt name user uid state level nprocs hosts processors command dir comment output mesh_rows time_limit_ms cpu_limit_ms warning_signal warning_ms after waits_for tasks array index tasks_waiting ntasks tasks_ok tasks_failed submitted started ended exit_status signal reason_code reason ahead usage level_seconds polls notice mail_at notify begin_notice end_notice line terminal memory_bytes per_host'
is 'times are RFC 3339 in UTC' "$(python3 -c 'import json,sys,re
j = json.load(sys.stdin)["jobs"][0]
print(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", j[k]) for k in ("submitted", "started", "ended")))' <"$tmp/json")" True
on 1 systemctl stop elmer
verbs=('hosts' 'show' 'set allocator v1' 'drain ws2' 'resume ws2' 'remove ws2' 'hold 1' 'release 1') pids=()
for verb in '' "${verbs[@]}"; do # each tries for 5 s: all of them at the same time
    # shellcheck disable=SC2086 # words
    if [ -n "$verb" ]; then as carol 2 eadmin $verb; else as alice 2 equery; fi >"$tmp/out $verb" 2>"$tmp/err $verb" </dev/null &
    pids+=($!)
done
ended() { # N VERB: what it has said, and its status
    cat "$tmp/out $2" && cat "$tmp/err $2" >&2 && wait "${pids[$1]}"
}
wait "${pids[@]}"
exit_of 'without elmer' 4 'elmer' ended 0 ''
for i in "${!verbs[@]}"; do
    exit_of "eadmin ${verbs[i]} without elmer" 4 'elmer' ended $((i + 1)) "${verbs[i]}"
done
on 1 systemctl start elmer
wait_for 20 'and again with it' as alice 2 equery
done_testing
