#!/bin/bash
# systemctl reload elmer: all or nothing; what counts at once, what needs a restart; hosts that come and go, by configuration and by
# token; and jobs of each kind run on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --elmer 'allocator = v1'
install_programs
ids=()
for kind in '' --each --pvm; do
    # shellcheck disable=SC2086 # one option or none
    ids+=("$(submit alice -o /dev/null --hosts ws1,ws2 $kind 2 /home/testjob --work-us 1000 --wait-us 20000 600)")
    wait_for 20 "a job${kind:+ with $kind} runs" running "${ids[-1]}"
done
elmer_pid() { on 1 systemctl show -P MainPID elmer; }
reload_log() { on 1 journalctl -u elmer -o cat | sed -n 's/^.*reload: /reload: /p'; }
told() { reload_log | grep -qE "$1"; }
conf() { on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d && cat >/etc/elmer/elmer.conf.d/80-reload.conf' <<<"[elmer]"$'\n'"$1"; }
pid=$(elmer_pid)

conf 'max_nprocs = 1'
ok 'a good file is reloaded' on 1 systemctl reload elmer
wait_for 10 'the log says which key, and what it was' told '^reload: max_nprocs = 1, was [0-9]+$'
like 'it counts at once' "$(as alice 2 esubmit 2 true 2>&1)" 'allows 1 for a job'
like 'the status tells it' "$(on 1 systemctl show -P StatusText elmer)" 'reloaded: 1 changed'

conf 'max_nprocs = many'
if on 1 systemctl reload elmer 2>"$tmp/err"; then wrong=passed; else wrong=refused; fi
is 'a wrong file is refused by systemctl' $wrong refused
like 'with key and line in the journal' "$(on 1 journalctl -u elmer -o cat -n 30)" '80-reload.conf:2: .*max_nprocs'
like 'and nothing has changed' "$(as alice 2 esubmit 2 true 2>&1)" 'allows 1 for a job'

conf $'max_nprocs = 2\nadmin_group = root'
ok 'one key that can and one that cannot' on 1 systemctl reload elmer
wait_for 10 'what needs a restart is said by name' told '^reload: admin_group = root, was elmer-admin: needs a restart'
wait_for 10 'the other counts' told '^reload: max_nprocs = 2, was 1$'
like 'the status tells both' "$(on 1 systemctl show -P StatusText elmer)" 'reloaded: 1 changed, 1 NEED A RESTART'

# ---- levels, limits, times ----
conf $'levels = 1\nhost_timeout = 20s\nuser_running = 7\nhistory_age = 10d'
ok 'levels, times and limits' on 1 systemctl reload elmer
wait_for 10 'levels count at once' told '^reload: levels = 1, was 3$'
wait_for 10 'so do times' told '^reload: host_timeout = 20s, was 30s$'
wait_for 10 'and limits' told '^reload: user_running = 7, was 0$'
waits=$(submit bob -o /dev/null --hosts ws1,ws2 --each 2 sleep 600)
wait_for 20 'a job waits, as each processor has one' says_why "$waits" 'waits|processors'
conf 'levels = 6'
on 1 systemctl reload elmer
wait_for 20 'with more levels it runs' running "$waits"
conf 'levels = 1'
on 1 systemctl reload elmer
ok 'with fewer it goes on' running "$waits"
as bob 1 ekill "$waits"
wait_for 20 'until it ends' over "$waits"
conf $'levels = 3\nheartbeat = 3s\nreport_interval = 1s'
on 1 systemctl reload elmer
all_up() { [ "$(on 1 eadmin hosts | grep -cE '^ws[123] +up ')" = 3 ]; }
wait_for 20 'with another heartbeat all hosts link again' all_up
wait_for 10 'because they were told so' on 1 sh -c 'journalctl -u elmer -o cat | grep -q "reload: heartbeat = 3s, was 5s"'

# ---- who decides ----
decides() { as alice 1 eadmin show 2>/dev/null | grep -qE "^ *allocator +$1"; }
conf $'levels = 3\nheartbeat = 3s\nreport_interval = 1s\nallocator = v2\nthreshold = 0.4'
ok 'allocator and threshold' on 1 systemctl reload elmer
wait_for 10 'are told' told '^reload: allocator = v2, was v1$'
wait_for 10 'both' told '^reload: threshold = 0.4, was 0.75$'
wait_for 10 'the new one decides' decides v2
conf $'levels = 3\nheartbeat = 3s\nreport_interval = 1s'
ok 'without the lines' on 1 systemctl reload elmer
wait_for 10 'that of elmer.conf decides again' decides v1

# ---- what a limit does ----
conf $'levels = 3\nheartbeat = 3s\nreport_interval = 1s\nuser_running = 1'
ok 'one job of a user at a time' on 1 systemctl reload elmer
wait_for 10 'is told' told '^reload: user_running = 1, was 0$'
one=$(submit bob -o /dev/null --hosts ws3 1 sleep 600)
wait_for 20 'one job runs' running "$one"
next=$(submit bob -o /dev/null --hosts ws3 1 sleep 600)
at_limit() { [ "$(field "$1" 'j["reason_code"]')" = at-limit ]; }
wait_for 20 'the next one of the same user waits because of it' at_limit "$next"
conf $'levels = 3\nheartbeat = 3s\nreport_interval = 1s'
ok 'without the line' on 1 systemctl reload elmer
wait_for 20 'it runs' running "$next"
for id in $one $next; do
    as bob 1 ekill "$id"
    wait_for 20 'and ends' over "$id"
done

# ---- hosts ----
there=$(submit alice -o /dev/null --hosts ws3 1 sleep 600)
wait_for 20 'a job runs on ws3' running "$there"
conf $'levels = 3\nhosts = ws1 ws2'
ok 'ws3 is taken out' on 1 systemctl reload elmer
wait_for 10 'it is said' told '^reload: hosts = ws1 ws2, was ws1 ws2 ws3$'
leaves() { on 1 eadmin hosts | grep -qE '^ws3 +leaving .*removed when its jobs have ended'; }
wait_for 20 'it leaves' leaves
ok 'its job runs on' running "$there"
like 'nothing new comes to it' "$(as alice 2 esubmit --hosts ws3 1 true 2>&1)" 'there is no host "ws3" in the cluster'
on 1 systemctl restart elmer
wait_for 30 'also over a restart of elmer' running "$there"
wait_for 40 'it still leaves' leaves
as alice 1 ekill "$there"
wait_for 20 'its job ends' over "$there"
gone() { ! on 1 eadmin hosts | grep -q '^ws3 '; }
wait_for 20 'then it is gone' gone
wait_for 20 'and told why' on 3 sh -c 'journalctl -u "rsd*" -o cat | grep -q "taken out of the configuration\|not in the configuration"'
pid=$(elmer_pid)

conf $'levels = 3\nhosts = ws1 ws2 ws3'
ok 'it is put back' on 1 systemctl reload elmer
wait_for 40 'and is up by itself' all_up
ok 'a job runs there' as alice 2 esubmit -w -o /dev/null --hosts ws3 1 true

# ---- a host that only its token names ----
conf $'levels = 3\nhosts = ws1 ws2'
on 1 systemctl reload elmer
wait_for 20 'ws3 is gone again' gone
like 'a token that does not name it does not let it in' "$(on 3 rsd --join ws1 "$(on 1 eadmin token 2>/dev/null)" 2>&1)" 'or it is not in the configuration, and this token names none: make a token for it'
token=$(on 1 eadmin token --hosts ws3 2>"$tmp/said")
like 'what is said with one that names it' "$(cat "$tmp/said")" '^ws3 becomes a host of the cluster when it joins\.'
is '... says nothing of an edit or a restart' "$(grep -cE 'restart|elmer\.conf' "$tmp/said")" 0
like 'eadmin log says who has made it, and for whom' "$(on 1 eadmin log)" 'root.*token-made.* 1 use until 20.*Z, for ws3'
ok 'with that one it joins' on 3 rsd --join ws1 "$token" --now
wait_for 40 'and is a host, without an edit or a restart' all_up
ok 'a job runs there' as alice 2 esubmit -w -o /dev/null --hosts ws3 1 true
is 'elmer was not restarted' "$(elmer_pid)" "$pid"
ok 'another reload' on 1 systemctl reload elmer
ok 'leaves it there' all_up
on 1 systemctl restart elmer
wait_for 40 'and so does a restart' all_up
pid=$(elmer_pid)
like 'eadmin remove takes it out' "$(on 1 eadmin remove ws3)" 'It is no host of the cluster any more'
wait_for 20 'for good' gone
on 1 systemctl restart elmer
ok 'also over a restart' gone
pid=$(elmer_pid)

is 'elmer is the same process' "$(elmer_pid)" "$pid"
for id in "${ids[@]}"; do
    ok "job $id runs on" running "$id"
    is "... it was not begun again" "$(field "$id" 'j["attempt"]')" 1
    as alice 1 ekill "$id"
    wait_for 20 '... and ends' over "$id"
done
done_testing
