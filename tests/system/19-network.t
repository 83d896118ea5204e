#!/bin/bash
# The network changes: a workstation gets another address, while jobs run there and afterwards; and two clusters share one network.
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
keeper=$(submit alice -o /dev/null --hosts ws2 1 sleep 10000)
wait_for 10 'a job runs on ws2' running "$keeper"
on 1 sh -c 'ip addr del 10.213.77.1/24 dev e0; ip addr add 10.213.77.11/24 dev e0'
for k in 1 2 3; do on $k sed -i 's/10\.213\.77\.1\b/10.213.77.11/' /etc/hosts; done
on 1 systemctl restart elmer # it listens on the address that its name had when it was started
wait_for 60 'all hosts link by its name' up_again
is 'the job runs on' "$(state "$keeper")" running
as alice 1 ekill "$keeper"
wait_for 10 'and ends' over "$keeper"

# ---- two clusters ----
on 1 eadmin remove ws3 >/dev/null
on 3 sh -c 'systemctl stop rsd; rm -rf /var/lib/elmer-rsd/pki /etc/elmer/rsd.conf.d/*; printf "[rsd]\n" >/etc/elmer/rsd.conf'
ok 'ws3 becomes the queue host of a cluster of its own' on 3 eadmin init --hosts ws3,ws2 --listen ws3 --name other --now
wait_for 30 'it runs jobs' eval 'as bob 3 esubmit -w -o /dev/null 1 true'
id=$(submit bob -w -o /dev/null 1 true)
is 'so does the first, beside it' "$(state "$id")" 'done'
foreign=$(on 3 eadmin token --hosts ws2 2>/dev/null)
out=$(on 2 rsd --join ws1:7110 - --force <<<"$foreign" 2>&1)
like 'the token of the one is none of the other, in one line' "$out" 'the CA of the queue host there is not the one that the token names'
is 'one line' "$(wc -l <<<"$out")" 1
is 'and nothing has changed' "$(value_of 1 ws2 state)" up
on 2 sh -c 'printf "[rsd]\nelmer = ws3:7110\n" >/etc/elmer/rsd.conf.d/99-wrong.conf; systemctl restart rsd'
wait_for 30 'who dials the other by mistake says so' said 2 rsd 'elmer=ws3:7110 no link: .*not signed by the CA.*this host has joined another cluster'
wait_for 10 'so does the other' said 3 elmer 'connection from 10.213.77.2 refused: '
end=$(($(now_ms) + 15000))
is_over() { [ "$(now_ms)" -ge $end ]; }
until_ok 30 is_over
is 'that is said a few times, however often it tries' "$([ "$(on 3 journalctl -q -o cat --no-pager -u elmer | grep -c 'connection from 10.213.77.2 refused')" -le 5 ] && echo few)" few
on 2 sh -c 'rm /etc/elmer/rsd.conf.d/99-wrong.conf; systemctl restart rsd'
wait_for 30 'and it is back where it belongs' host_is ws2 up
id=$(submit alice -w -o /dev/null --hosts ws2 1 true)
is 'with its jobs' "$(state "$id")" 'done'
done_testing
