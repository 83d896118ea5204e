#!/bin/bash
# From nothing to a PVM job on three hosts: the commands are those of the README, word by word. What it installs with apt is here
# already, as after `make install`; tests/package/readme.t is the same with packages.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/readme.sh"

is 'seven commands of root lead to a cluster' "$(readme_commands | grep -c '^[0-9]* root ')" 7
is 'on three hosts' "$(readme_commands | cut -d ' ' -f 1 | sort -u | xargs)" '1 2 3'
is 'and then a user runs a job' "$(readme_commands | tail -n 1 | cut -d ' ' -f 2)" user

lab_up 3 --bare
own='# of the administrator'
if [ "$LAB" = lab ]; then own+=$'\n[elmer]\nallocator = v1'; fi # nodes share their processors with all that this machine does
on 1 sh -c 'mkdir -p /etc/elmer && cat >/etc/elmer/elmer.conf' <<<"$own"

# ---- what goes wrong first ----
on 1 systemd-sysusers
on 1 cp /etc/hosts /etc/hosts.good
on 1 sh -c "printf '127.0.0.1 localhost\n127.0.1.1 ws1\n' >/etc/hosts; grep -v ws1 /etc/hosts.good | grep ws >>/etc/hosts"
refused=$(on 1 eadmin init --hosts ws1,ws2,ws3 --now 2>&1) && refused="passed: $refused"
like 'a name of the loopback is refused' "$refused" '^eadmin: the name ws1 stands for 127.0.1.1 on this host, which no other host reaches'
like 'with the line that is to be written' "$refused" 'in /etc/hosts write "10\.[0-9.]+ ws1" in place of the line with 127.0.1.1, then eadmin init again; or .*--listen 10\.'
is 'and nothing was made' "$(on 1 sh -c 'ls /etc/elmer/elmer.conf.d /var/lib/elmer-ca 2>/dev/null; systemctl is-active elmer')" inactive
on 1 cp /etc/hosts.good /etc/hosts
refused=$(on 1 eadmin init --hosts ws1,ws2,ghost --now 2>&1) && refused="passed: $refused"
like 'so is a host that nobody knows' "$refused" '^eadmin: the name ghost is not known here: .*; write it with its address into /etc/hosts of every host'
is 'and nothing was made, either' "$(on 1 sh -c 'ls /etc/elmer/elmer.conf.d /var/lib/elmer-ca 2>/dev/null')" ''

# ---- the README ----
by_root() { # K COMMAND
    case $2 in
    'apt install'*) on "$1" sh -c 'systemd-sysusers && systemctl daemon-reload' ;;
    *) on "$1" sh -c "$2" ;;
    esac
}
follow_readme by_root
like 'the PVM job has found its three tasks' "$(as alice 1 sh -c 'cat elmer-*.out')" verified || diag "$(cat "$tmp/out")"
id=$(on 1 equery --history --json | python3 -c 'import json, sys; print(max(j["id"] for j in json.load(sys.stdin)["jobs"]))')
is 'it has run on all hosts' "$(field "$id" '(j["exit_status"], sorted(u["host"] for u in j["usage"]))')" "(0, ['ws1', 'ws2', 'ws3'])"

# ---- what has become of the files ----
is "the administrator's file is as it was" "$(on 1 cat /etc/elmer/elmer.conf)" "$own"
is 'what eadmin init says is a fragment' "$(on 1 cat /etc/elmer/elmer.conf.d/50-init.conf)" \
    $'# Written by eadmin init; it counts more than elmer.conf.\n[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2 ws3'
like 'config check says what is good in one line' "$(on 1 eadmin config check)" '^OK: 3 hosts, listen ws1:7110, TLS until [0-9]{4}-[0-9]{2}-[0-9]{2}'
for k in 1 2 3; do
    is "ws$k: the services run at each boot" "$(on $k sh -c 'systemctl is-enabled rsd; systemctl list-units --failed --no-legend')" enabled
done
ok 'eadmin init --now again changes nothing' on 1 eadmin init --hosts ws1,ws2,ws3 --now
wait_for 60 'all are up again' all_up

is 'the fragment neither' "$(on 1 sed -n 3,4p /etc/elmer/elmer.conf.d/50-init.conf)" $'listen = ws1:7110\nhosts = ws1 ws2 ws3'

# ---- the token ----
token=$(on 1 eadmin token --uses 2 2>/dev/null)
like 'a token that names nobody is not good for a host that is there' "$(on 3 rsd --join ws1 "$token" 2>&1)" 'there is a host ws3 in the cluster already'
like 'uses are limited' "$(on 1 eadmin token --uses 1001 2>&1)" "--uses 1001: must be"
done_testing
