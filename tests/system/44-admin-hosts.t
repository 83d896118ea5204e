#!/bin/bash
# Administrators on a host of admin_hosts: what they decide there counts because elmer-tickets of that host has signed it for them. Who
# holds the network half there can read what they may, and decide nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --elmer 'allocator = v1' --elmer 'admin_hosts = ws2' --rsd 'tickets = require'
install_programs
wait_for 30 'all hosts link' hosts_up 3
drained() { [ "$(on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["host"] for h in json.load(sys.stdin)["hosts"] if h["state"] == "drained"])')" = "$1" ]; }
status_of() { # USER NODE CMD..: exit status and what it says
    local rc=0 out
    out=$(as "$1" "$2" "${@:3}" 2>&1) || rc=$?
    echo "$rc $out"
}

# ---- an administrator at work ----
id=$(submit alice -o /dev/null --hosts ws3 1 sleep 1000)
wait_for 10 'a job of alice runs' running "$id"
ok 'carol drains a host, from ws2' as carol 2 eadmin drain ws3 --reason disk
ok 'it is drained' drained ws3
ok 'and resumes it' as carol 2 eadmin resume ws3
ok "she ends alice's job" as carol 2 ekill "$id"
wait_for 10 'it ends' over "$id"
is 'alice reads by whom' "$(field "$id" 'j["reason"]')" 'ended by ekill of carol'
like 'the log of decisions has who and from where' "$(on 1 eadmin log)" 'carol@ws2|carol.*ws2'
ok 'she reads it there' as carol 2 eadmin log
ok 'she sets the allocator' as carol 2 eadmin set allocator v2
ok 'and sets it back' as carol 2 eadmin set allocator default
like 'her own host goes down as well, but for what is left to root' "$(status_of carol 2 eadmin shutdown ws2)" \
    '^0 .*host ws2 has no jobs.*eadmin resume ws2.*as root on ws2: systemctl poweroff$'
ok 'and is used again' as carol 2 eadmin resume ws2
like 'from ws3, which admin_hosts does not name, she may not' "$(status_of carol 3 eadmin drain ws1)" '^5 .*add ws3 to "admin_hosts = ...'
like 'nor bob from ws2' "$(status_of bob 2 eadmin drain ws1)" '^5 .*only administrators \(group elmer-admin\) may drain hosts$'
like 'nor root of ws2' "$(status_of root 2 eadmin drain ws1)" '^5 .*only administrators \(group elmer-admin\) may drain hosts$'
on 2 mv /var/lib/elmer-ticket/certificate /var/lib/elmer-ticket/away
on 2 systemctl restart rsd
wait_for 30 'ws2 links, without a certificate for its tickets' hosts_up 3
like 'then nobody decides from there, and it is said what to do' "$(status_of carol 2 eadmin drain ws1)" "^5 .*the key of this host's tickets is not certified: let it join again"
on 2 mv /var/lib/elmer-ticket/away /var/lib/elmer-ticket/certificate
on 2 systemctl restart rsd
wait_for 30 'all as before' hosts_up 3

# ---- a network half that was taken ----
on 2 sh -c 'cat >/home/hostile-admin && chmod 755 /home/hostile-admin' <"$here/programs/hostile_admin.py"
said() { on 2 sed -n "s/^hostile: $1: //p" /home/said; } # CASE
on 2 systemctl service-watchdogs no # or systemd would end the real one
on 2 sh -c 'kill -STOP $(pgrep -x elmer-rsd-net); (/home/hostile-admin ws1:7110 ws2 >/home/said 2>&1 </dev/null &)'
wait_for 60 'it has asked for everything' on 2 grep -qx 'hostile: all: finished' /home/said
for case in 'something else:other-request' 'one digit changed:forged' 'signed by another user:other-user' \
    'with another challenge:used-challenge' 'cut short:garbled' 'again:used-challenge' 'and again:used-challenge'; do
    like "refused, ${case%%:*}" "$(said "${case%%:*}")" "^error the decision is refused: ${case##*:}: "
    like '... with a line of the log' "$(on 1 journalctl -u elmer -o cat)" "host=ws2 user=carol decision refused: ${case##*:}"
done
like 'refused, unsigned' "$(said unsigned)" '^error only administrators .*has to be signed there'
like 'who is no administrator gets no challenge' "$(said 'no administrator')" '^error there is nothing to sign'
like 'what she has signed is done' "$(said 'as she has signed it')" '^done host ws1 takes no new jobs'
ok 'and nothing else' drained ws1
is 'no host was removed' "$(on 1 eadmin hosts | grep -cE '^ws[123] ')" 3
on 2 sh -c 'kill -CONT $(pgrep -x elmer-rsd-net)'
on 2 systemctl service-watchdogs yes
on 1 eadmin resume ws1 >/dev/null
wait_for 60 'the real one is back' hosts_up 3
done_testing
