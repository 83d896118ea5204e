#!/bin/bash
# The network changes: a workstation gets another address, while jobs run there and afterwards.
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

done_testing
