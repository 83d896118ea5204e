#!/bin/bash
# The network changes: a workstation gets another address, and the queue host, while jobs run there and afterwards.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'it changes the addresses of hosts'
lab_up 3 --elmer 'allocator = v1' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 60s' --elmer 'kill_grace = 200ms' --rsd 'tickets = require'
install_programs
wait_for 30 'all hosts link' hosts_up 3
examples=/usr/libexec/elmer/examples

said() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -qE "$3"; }
value_of() { on "$1" eadmin hosts --json | python3 -c 'import json, sys
print(*[h[sys.argv[2]] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$2" "$3"; } # ASKED HOST KEY
has_address() { [ "$(value_of 1 ws3 address)" = "$1" ]; }
host_is() { [ "$(value_of 1 "$1" state)" = "$2" ]; }

# ---- another address ----
keeper=$(submit alice -o /dev/null --hosts ws3 1 sleep 10000)
wait_for 10 'a job runs on ws3' running "$keeper"
ok 'elmer knows its address' has_address 10.213.77.3
pid=$(on 3 pgrep -u alice -x sleep)
on 3 sh -c 'ip addr del 10.213.77.3/24 dev e0; ip addr add 10.213.77.33/24 dev e0'
wait_for 30 'the host links from its new address, with its certificate' has_address 10.213.77.33
wait_for 10 'it is up' host_is ws3 up
ok 'what its old link says is one line' said 1 elmer "host=ws3 (links again|link ended)"
is 'its job has noticed nothing' "$(state "$keeper"):$(on 3 pgrep -u alice -x sleep)" "running:$pid"
id=$(submit alice -w -o /home/alice/where --hosts ws3 1 hostname)
is 'a job runs there' "$(as alice 3 cat where)" ws3
wait_for 10 'its output can be read from another host' eval '[ "$(as alice 1 etail "$id" 2>/dev/null)" = ws3 ]'
id=$(as alice 3 esubmit -w -o /dev/null --hosts ws1 1 true 2>/dev/null)
is 'a job is submitted there' "$(state "$id"):$(field "$id" 'j["exit_status"]')" done:0

# PVM and erun are told addresses by elmer; the names in /etc/hosts of the others are still those of before.
id=$(submit alice --pvm -w -o /home/alice/ep.out --hosts ws2,ws3 2 "$examples/ep" -P 2 -c S)
is 'a virtual machine has the host at its new address' "$(field "$id" 'j["exit_status"]')" 0
id=$(submit alice -w -o /home/alice/erun.out --hosts ws2,ws3 2 sh -c 'erun --each hostname')
is 'erun finds it' "$(as alice 2 cat erun.out | sort | xargs)" 'ws2 ws3'
for k in 1 2 3; do on $k sed -i 's/10\.213\.77\.3\b/10.213.77.33/' /etc/hosts; done
id=$(submit alice --pvm -w -o /home/alice/ep.out --hosts ws2,ws3 2 "$examples/ep" -P 2 -c S)
is 'and when the names say so, too' "$(field "$id" 'j["exit_status"]')" 0
as alice 1 ekill "$keeper"
wait_for 10 'the job from before is ended there' over "$keeper"

# ---- the queue host gets another one ----
moves_to() { # FROM TO, of node 1
    on 1 sh -c "ip addr del $1/24 dev e0; ip addr add $2/24 dev e0"
    for k in 1 2 3; do on $k sed -i "s/${1//./\\.}\\b/$2/" /etc/hosts; done
}
main_pids() { for k in 1 2 3; do on $k systemctl show -P MainPID elmer rsd | xargs; done | xargs; }
status() { on 1 systemctl show -P StatusText elmer; }
linked() { [ "$(on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["host"] for h in json.load(sys.stdin)["hosts"] if h["state"] == "up"])')" = 'ws1 ws2 ws3' ]; }
first=$(submit alice -o /dev/null --hosts ws1 1 sleep 10000)
second=$(submit alice -o /dev/null --hosts ws2 1 sleep 10000)
for id in "$first" "$second"; do wait_for 10 'a job runs' running "$id"; done
sleepers() { for k in 1 2; do on $k pgrep -u alice -x sleep; done | xargs; }
slept=$(sleepers)

# elmer.conf of the nodes has a number, which nobody but the administrator can know better.
moves_to 10.213.77.1 10.213.77.11
wait_for 30 'elmer says that its number is gone, and what to do' eval 'status | grep -q "does not have the address 10.213.77.1:7110 any more"'
like 'so does its log' "$(on 1 journalctl -q -o cat --no-pager -u elmer)" 'other hosts cannot link: this host does not have the address 10.213.77.1:7110 any more, which is listen = 10.213.77.1:7110: '
on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d; printf "[elmer]\nlisten = ws1:7110\n" >/etc/elmer/elmer.conf.d/60-listen.conf; systemctl restart elmer'
wait_for 60 'with a name all hosts link' linked
is 'the jobs have noticed nothing' "$(state "$first") $(state "$second") $(sleepers)" "running running $slept"

# A name is followed, and nothing is started anew.
pids=$(main_pids)
moves_to 10.213.77.11 10.213.77.12
wait_for 30 'elmer listens where its name leads now' eval 'on 1 ss -tln | grep -q "10.213.77.12:7110"'
for k in 2 3; do wait_for 60 "ws$k finds it by its name, at the new address" eval "on $k ss -tn state established | grep -q '10.213.77.12:7110'"; done
wait_for 60 'all hosts are up' linked
is 'nothing was restarted' "$(main_pids)" "$pids"
is 'the jobs have noticed nothing' "$(state "$first") $(state "$second") $(sleepers)" "running running $slept"
like 'it is one line of the log' "$(on 1 journalctl -q -o cat --no-pager -u elmer | grep -c 'elmer listens on 10.213.77.12:7110 now, which ws1:7110 has become; it was 10.213.77.11:7110\|other hosts can link now: elmer listens on 10.213.77.12:7110')" '^1$'
is 'STATUS says nothing of it' "$(status | grep -c 'CANNOT LINK')" 0
for id in "$first" "$second"; do as alice 1 ekill "$id"; done
for id in "$first" "$second"; do wait_for 10 'a job ends' over "$id"; done
id=$(submit alice -w -o /home/alice/moved.out --hosts ws1,ws2 2 sh -c 'erun --each hostname')
is 'a job over the queue host and another one finds both' "$(as alice 1 cat moved.out | sort | xargs)" 'ws1 ws2'
id=$(submit alice --pvm -w -o /home/alice/ep.out --hosts ws1,ws2 2 "$examples/ep" -P 2 -c S)
is 'so does a virtual machine' "$(field "$id" 'j["exit_status"]')" 0

done_testing
