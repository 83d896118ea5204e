#!/bin/bash
# Two clusters on one network, with the same users, each with a queue host and a workstation: they do not see each other, and a workstation
# that dials the wrong one is told so on both sides, while its jobs run on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'four of them'
lab_up 4 --bare
others() { on "$1" eadmin hosts --json | python3 -c 'import json, sys
print(*[h["host"] + "=" + h["state"] for h in json.load(sys.stdin)["hosts"]])'; } # of the cluster of node K
both() { [ "$(others "$1")" = "$2" ]; }
said() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -cE "$3"; }
has_said() { [ "$(said "$@")" -gt 0 ]; }
state_there() { on 2 equery --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["state"])'; }
is_there() { [ "$(state_there "$1")" = "$2" ]; }

for k in 1 2 3 4; do on $k systemd-sysusers; done
for k in 1 2; do # nodes share their processors with all that this machine does
    on $k sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf'
    ok "ws$k: eadmin init, for root with whatever umask" on $k sh -c "umask 077; eadmin init --hosts ws$k,ws$((k + 2)) --now"
    ok "ws$((k + 2)) joins it" on $((k + 2)) rsd --join ws$k "$(on $k eadmin token --hosts ws$((k + 2)) 2>/dev/null)" --now
done
wait_for 40 'one cluster is up, and knows only its own hosts' both 1 'ws1=up ws3=up'
wait_for 40 'so is the other one' both 2 'ws2=up ws4=up'

# ---- each for itself ----
for k in 1 2; do
    id=$(as alice $k esubmit -w --each -o /home/alice/of-$k.%r 2 hostname 2>"$tmp/said")
    is "ws$k: the first job has the id 1" "$id" 1
    is '... and runs on the hosts of its cluster' "$(as alice $k cat of-$k.0 of-$k.1 | sort | xargs)" "ws$k ws$((k + 2))"
done
like 'a host of the other one is not known' "$(as alice 1 esubmit --hosts ws4 1 true 2>&1)" 'there is no host "ws4" in the cluster'

# ---- a workstation that dials the wrong one ----
id=$(as alice 2 esubmit -o /dev/null --hosts ws4 1 sleep 10000 2>/dev/null)
wait_for 20 'a job runs on ws4' is_there "$id" running
pid=$(on 4 pgrep -u alice -x sleep)
on 4 sh -c 'mkdir -p /etc/elmer/rsd.conf.d; printf "[rsd]\nelmer = ws1:7110\n" >/etc/elmer/rsd.conf.d/90-wrong.conf; systemctl restart rsd'
wait_for 20 'its rsd says who it is that it has found' has_said 4 "rsd*" "elmer=ws1:7110 no link: the certificate there is not signed by the CA in .*: this host has joined another cluster"
wait_for 20 'and in its status' eval 'on 4 systemctl show -P StatusText rsd | grep -q "no link to ws1:7110: .*CA"'
wait_for 20 'so does the elmer there' has_said 1 elmer 'from 10\.213\.77\.4 refused: .*it has joined another cluster'
wait_for 20 'its own elmer misses it' eval '! both 2 "ws2=up ws4=up"'
is 'nobody else has noticed' "$(others 1)" 'ws1=up ws3=up'
is 'its job runs on' "$(on 4 pgrep -u alice -x sleep)" "$pid"
on 4 sh -c 'rm /etc/elmer/rsd.conf.d/90-wrong.conf; systemctl restart rsd'
wait_for 40 'with the right address it links' both 2 'ws2=up ws4=up'
is 'and the job is there' "$(state_there "$id") $(on 4 pgrep -u alice -x sleep)" "running $pid"
is 'each try was a line on neither side, but the first ones' "$(($(said 4 'rsd*' 'no link: ') <= 5 && $(said 1 elmer 'from 10\.213\.77\.4 refused: ') <= 5))" 1
done_testing
