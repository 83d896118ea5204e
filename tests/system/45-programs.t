#!/bin/bash
# rsd, its network half and elmer-tickets are units of their own: each is killed, restarted and stopped alone while jobs run, who
# they are, and who may not join them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 6' --elmer 'host_timeout = 60s' --rsd 'tickets = require'
install_programs
parts='rsd rsd-net rsd-tickets'
# It begins with each rsd, so it is not one of those that are to be the same.
spawn='rsd-spawn.service rsd-spawn.socket'
sockets='rsd-net.socket rsd-net-join.socket rsd-tickets.socket rsd-tickets-join.socket rsd-tickets-grants.socket'
pid_of() { on 2 systemctl show -P MainPID "$1"; }
pids() { for p in $parts; do pid_of "$p"; done | xargs; }
changed() { # BEFORE AFTER: which of the parts
    paste -d ' ' <(tr ' ' '\n' <<<"$parts") <(tr ' ' '\n' <<<"$1") <(tr ' ' '\n' <<<"$2") | awk '$2 != $3 { print $1 }' | xargs
}
# shellcheck disable=SC2086 # words
all_active() { [ "$(on 2 systemctl is-active $parts $sockets $spawn | sort | uniq -c | xargs)" = '10 active' ]; }
fully_up() { all_active && [ "$(on 1 eadmin hosts | awk '$1 == "ws2" { print $2 }')" = up ]; }

# ---- who they are ----------------------------------------------------------------------------------------------------

ok 'the four and their sockets are there' all_active
uids() { on 2 sh -c 'for p in $(cat /sys/fs/cgroup/system.slice/$1.service/cgroup.procs); do stat -c %U /proc/$p; done' - "$1" | sort | uniq -c | xargs; }
is 'the network half is one process of elmer-rsd' "$(uids rsd-net)" '1 elmer-rsd'
is 'elmer-tickets are three of elmer-ticket' "$(uids rsd-tickets)" '3 elmer-ticket'
is 'rsd itself is one of elmer-jobs' "$(uids rsd)" '1 elmer-jobs'
is 'what is root is alone, but for who looks for what leaves a job' "$(uids rsd-spawn)" '1 elmer-sup 1 root'
rank() { on 2 sh -c 'chrt -p $1' - "$1" | sed 's/.*: //' | xargs; }
for p in $parts; do is "$p outranks every job" "$(rank "$(pid_of "$p")")" 'SCHED_FIFO 60'; done
is 'who signs for users does not' "$(rank "$(on 2 pgrep -x elmer-desk)")" 'SCHED_OTHER 0'
exposure() { on 2 systemd-analyze --no-pager security "$1" 2>/dev/null | sed -n 's/.*exposure level for .*: \([0-9.]*\) .*/\1/p'; }
at_most() { awk -v a="$(exposure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; }
ok 'the exposure of rsd is 1.5 at most' at_most rsd.service 1.5
ok 'the exposure of the network half is 1.3 at most' at_most rsd-net.service 1.3
ok 'that of elmer-tickets 0.5' at_most rsd-tickets.service 0.5

# ---- each alone, while jobs run ----------------------------------------------------------------------------------------

plain=$(submit alice -o /dev/null --hosts ws2 1 sleep 3600)
each=$(submit bob -o /dev/null --each --hosts ws1,ws2 2 sleep 3600)
requeue=$(submit alice -o /dev/null --requeue --each --hosts ws1,ws2 2 sleep 3600)
for id in $plain $each $requeue; do wait_for 20 "job $id runs" running "$id"; done
picture() { on 2 sh -c 'cd /sys/fs/cgroup/'"$jobs_scope"' && for j; do for g in $j.1/sup $j.1/job; do echo $g $(cat $g/cgroup.procs); done; done' - "$plain" "$each" "$requeue"; }
before_all=$(picture)
undisturbed() { # WHAT
    is "$1: the jobs have the same processes" "$(picture)" "$before_all"
    local id
    for id in $plain $each $requeue; do is "$1: job $id runs, as begun" "$(field "$id" '[j["state"], j["attempt"]]')" "['running', 1]"; done
    id=$(submit alice -o /dev/null --hosts ws2 1 true)
    wait_for 20 "$1: a new job runs to its end" over "$id"
    is "$1: with its ticket, well" "$(field "$id" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
    id=$(as alice 2 esubmit -o /dev/null --hosts ws2 1 true 2>/dev/null)
    wait_for 20 "$1: and one that is submitted and signed there" over "$id"
    is "$1: well" "$(field "$id" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
}
back() { fully_up && [ "$(pid_of "$1")" != "$2" ]; }
for p in $parts; do
    was=$(pids) one=$(pid_of "$p")
    on 2 systemctl kill --kill-whom=main -s KILL "$p"
    wait_for 20 "$p is killed, and is back" back "$p" "$one"
    is "$p is killed: the other two are the same" "$(changed "$was" "$(pids)")" "$p"
    undisturbed "$p was killed"
    is "$p outranks every job again" "$(rank "$(pid_of "$p")")" 'SCHED_FIFO 60'
done
for p in rsd-net rsd-tickets; do
    was=$(pids)
    ok "systemctl restart $p" on 2 systemctl restart "$p"
    wait_for 20 "$p is restarted" fully_up
    is "$p is restarted: the other two are the same" "$(changed "$was" "$(pids)")" "$p"
    undisturbed "$p was restarted"
done
was=$(pids)
on 2 sh -c 'kill -KILL $(pgrep -x elmer-spawn)'
wait_for 20 'elmer-spawn is killed, and rsd with it is back' back rsd "${was%% *}"
is 'the other two are the same' "$(changed "$was" "$(pids)")" rsd
undisturbed 'elmer-spawn was killed'
was=$(pids)
ok 'systemctl restart rsd-spawn' on 2 systemctl restart rsd-spawn
wait_for 20 'rsd begins again with it' back rsd "${was%% *}"
is 'the other two are the same' "$(changed "$was" "$(pids)")" rsd
undisturbed 'elmer-spawn was restarted'
was=$(pids)
on 2 sh -c 'kill -STOP $(pgrep -x elmer-spawn)'
id=$(submit alice -o /dev/null --hosts ws2 1 true)
wait_for 60 'elmer-spawn is stopped: the job runs when there is another one' over "$id"
wait_for 20 'rsd has begun again with it' back rsd "${was%% *}"
undisturbed 'elmer-spawn was stopped'
was=$(pids)
on 2 sh -c 'kill -KILL $(pgrep -x elmer-desk)'
wait_for 20 'the process that signs is killed, and its unit is back' back rsd-tickets "${was##* }"
undisturbed 'the desk was killed'

# ---- an administrator's word is for all of them ----

was=$(pids)
ok 'systemctl restart rsd' on 2 systemctl restart rsd
restarted() { fully_up && [ "$(changed "$was" "$(pids)")" = "$parts" ]; }
wait_for 20 'all three are restarted' restarted
undisturbed 'all were restarted'
ok 'systemctl stop rsd' on 2 systemctl stop rsd
# shellcheck disable=SC2086
none_active() { [ "$(on 2 systemctl is-active $parts $sockets $spawn | sort | uniq -c | xargs)" = '10 inactive' ]; }
wait_for 10 'nothing of it runs' none_active
is 'but the jobs' "$(picture)" "$before_all"
ok 'systemctl start rsd' on 2 systemctl start rsd
wait_for 20 'all of it runs' fully_up
undisturbed 'all were stopped and started'
# On a host with much to do a stop goes on behind its command, and the start comes into it.
ok 'and that as often as somebody likes' on 2 sh -c 'touch /run/busy; for i in 1 2 3 4; do while [ -e /run/busy ]; do /bin/true; done & done
    good=0; for i in $(seq 40); do timeout 20 systemctl stop rsd && timeout 20 systemctl start rsd && good=$i || break; done
    rm /run/busy; [ $good -eq 40 ]'
wait_for 20 'all of it runs' fully_up
was=$(pids)
ok 'a reload without changes' on 2 systemctl reload rsd
wait_for 20 'begins rsd again' back rsd "${was%% *}"
is 'and no other' "$(changed "$was" "$(pids)")" rsd
was=$(pids)
on 2 sh -c 'printf "[rsd]\nuser_connections = 77\n" >/etc/elmer/rsd.conf.d/80-reload.conf; systemctl reload rsd'
reloaded() { fully_up && [ "$(changed "$was" "$(pids)")" = 'rsd rsd-net' ]; }
wait_for 20 'one of a key of the network half: that begins anew, too' reloaded
undisturbed 'after the reload'

# One that waits for what it lacks has not begun, and its end is nobody's crash.
was=$(pids)
on 2 sh -c 'mv /usr/libexec/elmer/elmer-spawn /usr/libexec/elmer/away; systemctl kill --kill-whom=main -s KILL rsd'
waits() { on 2 systemctl show -P StatusText rsd | grep -q '^rsd cannot begin: '; }
wait_for 20 'rsd is killed, and waits for what it lacks' waits
on 2 sh -c 'mv /usr/libexec/elmer/away /usr/libexec/elmer/elmer-spawn; systemctl restart rsd'
wait_for 20 'it is restarted: all three are' restarted
undisturbed 'after that'

# Where tickets are required nothing begins without who judges them.
tickets='rsd-tickets.service rsd-tickets.socket rsd-tickets-join.socket rsd-tickets-grants.socket'
# shellcheck disable=SC2086 # words
on 2 sh -c 'systemctl mask --runtime --now "$@"; kill -KILL $(pgrep -x elmer-spawn)' - $tickets 2>/dev/null
waits_for_tickets() { on 2 systemctl show -P StatusText rsd | grep -q '^rsd cannot begin: tickets = require, but '; }
wait_for 20 'without elmer-tickets rsd does not begin' waits_for_tickets
other=$(submit alice -o /dev/null --hosts ws1 1 true)
wait_for 20 'a job runs elsewhere' over "$other"
id=$(submit alice -o /dev/null --hosts ws2 1 true)
not_heard() { as alice 1 equery "$id" | grep -q 'not heard now'; }
wait_for 20 'and one waits for this host' not_heard
is 'that has not begun' "$(field "$id" '[j["state"], j["attempt"]]')" "['queued', 0]"
is 'those that run go on' "$(picture)" "$before_all"
# shellcheck disable=SC2086
on 2 sh -c 'systemctl unmask --runtime "$@"; systemctl start "$@"' - $tickets 2>/dev/null
wait_for 20 'with them it does' fully_up
wait_for 20 'the job that waited runs' over "$id"
is 'well' "$(field "$id" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
undisturbed 'elmer-tickets were away'

# A configuration that is wrong ends rsd for good, and the others with it: nobody waits for an answer.
on 2 sh -c 'printf "[rsd]\nmode = fast\n" >/etc/elmer/rsd.conf.d/90-wrong.conf; systemctl restart rsd' 2>/dev/null
# shellcheck disable=SC2086
ended() { [ "$(on 2 systemctl is-active $parts $sockets $spawn | sort | uniq -c | xargs)" = '1 failed 9 inactive' ]; }
wait_for 10 'with a wrong configuration all end' ended
like 'a user is told so at once' "$(as alice 2 timeout 4 equery 2>&1)" 'systemctl start rsd'
on 2 sh -c 'rm /etc/elmer/rsd.conf.d/90-wrong.conf; systemctl start rsd'
wait_for 20 'with the right one all of it runs' fully_up
undisturbed 'after the wrong configuration'

# ---- nothing is lost ----

as alice 2 sh -c 'rm -f waited; (esubmit -w -o /dev/null --hosts ws2 1 sh -c "sleep 5; exit 3"; echo $? >waited) >/dev/null 2>&1 &'
as alice 2 sh -c 'rm -f asked; (for i in $(seq 40); do esubmit -o /dev/null --hosts ws2 1 true; sleep 0.1; done >accepted 2>told; touch asked) >/dev/null 2>&1 &'
for _ in 1 2 3 4; do
    for p in rsd-tickets rsd-net; do on 2 systemctl kill --kill-whom=main -s KILL "$p"; done
    wait_for 20 'both are killed while users submit' fully_up
done
wait_for 60 'the users have their answers' as alice 2 test -e asked
is 'all were accepted' "$(as alice 2 sh -c 'wc -l <accepted; grep -Ev "^job [0-9]* |; waiting for it\$" told' | xargs)" 40
all_over() { local id; for id in $(as alice 2 cat accepted); do over "$id" || return 1; done; }
wait_for 60 'and all have run' all_over
is 'each well' "$(for id in $(as alice 2 cat accepted); do field "$id" 'j["reason_code"]'; done | sort | uniq -c | xargs)" '40 exited'
wait_for 30 'who waits for his job hears of its end' eval '[ "$(as alice 2 cat waited)" = 3 ]'

# One that stands still is ended by systemd; until then rsd begins again and again.
on 2 sh -c 'kill -STOP $(systemctl show -P MainPID rsd-tickets)'
id=$(submit alice -o /dev/null --hosts ws2 1 true)
wait_for 90 'elmer-tickets is stopped: the job runs when it is back' over "$id"
is 'well' "$(field "$id" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
wait_for 20 'and all is as before' fully_up
undisturbed 'elmer-tickets was stopped'

# One that is asked all the time does not stand still. systemd waits for two seconds only here.
on 2 sh -c 'mkdir -p /run/systemd/system/rsd-tickets.service.d
    printf "[Service]\nWatchdogSec=2\n" >/run/systemd/system/rsd-tickets.service.d/50-test.conf; systemctl daemon-reload; systemctl restart rsd-tickets'
wait_for 20 'systemd waits for two seconds only' fully_up
one=$(pid_of rsd-tickets) begun=$SECONDS
id=$(submit alice -o /dev/null --hosts ws2 -a 1-2000 true)
# Below the jobs above some begin in each second, no more (rsd/root/starts.c): all of them would take minutes.
asked() { [ $((SECONDS - begun)) -gt 6 ] && [ "$(field "$id" 'j["tasks_ok"]')" -ge 20 ]; }
wait_for 60 'short jobs run for longer than that, one after the other' asked
is 'none has failed' "$(field "$id" 'j["tasks_failed"]')" 0
ok 'and it goes on' eval '! over "$id"'
as alice 1 ekill "$id" 2>/dev/null
wait_for 20 'until it is ended' over "$id"
is 'elmer-tickets is the same' "$(pid_of rsd-tickets)" "$one"
on 2 sh -c 'rm -r /run/systemd/system/rsd-tickets.service.d; systemctl daemon-reload; systemctl restart rsd-tickets'
wait_for 20 'all is as before' fully_up

# Where other users' processes are hidden in /proc.
on 2 sh -c 'mount -o remount,hidepid=2 /proc; systemctl restart rsd'
wait_for 20 'with hidepid=2 they join, too' fully_up
id=$(submit alice -o /dev/null --hosts ws2 1 true)
wait_for 20 'and a job runs' over "$id"
is 'well' "$(field "$id" '[j["exit_status"], j["reason_code"]]')" "[0, 'exited']"
for p in $parts; do is "$p outranks every job" "$(rank "$(pid_of "$p")")" 'SCHED_FIFO 60'; done
on 2 sh -c 'mount -o remount,hidepid=0 /proc; systemctl restart rsd'
wait_for 20 'all is as before' fully_up

# ---- who may not join --------------------------------------------------------------------------------------------------

peer() { # USER SOCKET TYPE: what becomes of it: Permission denied, closed, or an answer
    on 2 setpriv --reuid="$1" --regid="$(on 2 id -g "$1")" --clear-groups python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
s.settimeout(10)
try:
    s.connect("/run/elmer-rsd/" + sys.argv[1])
    s.send(b"x" * 100)
    print("answered" if s.recv(100) else "closed")
except ConnectionError:
    print("closed")
except OSError as error:
    print(error.strerror)' "$2" "$3" 2>&1
}
was=$(pids)
for user in alice elmer-rsd elmer-ticket elmer-sup; do
    is "$user at net.sock" "$(peer $user net.sock SOCK_STREAM)" 'Permission denied'
    is "$user at judge.sock" "$(peer $user judge.sock SOCK_STREAM)" 'Permission denied'
    is "$user at spawn.sock" "$(peer $user spawn.sock SOCK_SEQPACKET)" 'Permission denied'
    is "$user at grants.sock" "$(peer $user grants.sock SOCK_SEQPACKET)" 'Permission denied'
done
is 'elmer-jobs at grants.sock' "$(peer elmer-jobs grants.sock SOCK_SEQPACKET)" 'Permission denied'
is 'elmer-jobs at net.sock, but no process of rsd.service' "$(peer elmer-jobs net.sock SOCK_STREAM)" closed
is 'root, likewise' "$(peer root net.sock SOCK_STREAM)" closed
ok 'with a line of the log' on 2 sh -c 'journalctl -q -u rsd-net -o cat | grep -q "the network half refuses a peer: process [0-9]* has connected, which is not of rsd.service"'
for user in elmer-rsd elmer-ticket elmer-jobs alice; do
    is "$user cannot put a socket in their place" "$(on 2 setpriv --reuid=$user --regid="$(on 2 id -g $user)" --clear-groups sh -c 'rm -f /run/elmer-rsd/grants.sock; : >/run/elmer-rsd/x' 2>&1 | grep -c 'Permission denied')" 2
done
# elmer-tickets and elmer-spawn hear rsd for as long as that lives: who else connects waits, and is looked at when it has gone.
late=$(peer elmer-jobs judge.sock SOCK_STREAM &
    peer root judge.sock SOCK_STREAM &
    peer elmer-jobs spawn.sock SOCK_SEQPACKET &
    peer root spawn.sock SOCK_SEQPACKET &
    for s in judge spawn; do until_ok 5 eval '[ "$(on 2 ss -Hlx src /run/elmer-rsd/$s.sock | awk "{ print \$3 }")" -ge 2 ]'; done
    on 2 systemctl kill --kill-whom=main -s KILL rsd
    wait)
is 'elmer-jobs and root at judge.sock and spawn.sock' "$(sort <<<"$late" | uniq -c | xargs)" '4 closed'
wait_for 20 'all is as before' fully_up
is 'and nobody but rsd was begun again' "$(changed "$was" "$(pids)")" rsd
undisturbed 'strangers have knocked'

is 'nothing has failed' "$(on 2 systemctl list-units --failed --no-legend)" ''
for id in $plain $each $requeue; do
    ekill_as=alice
    [ "$id" = "$each" ] && ekill_as=bob
    as "$ekill_as" 1 ekill "$id"
    wait_for 20 "job $id ends" over "$id"
    wait_for 20 "nothing is left of it" nothing_left "$id"
done
done_testing
