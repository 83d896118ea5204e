#!/bin/bash
# Who belongs to the cluster: the CA, tokens, joining, renewal with the link up, removal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --elmer 'allocator = v1' --elmer 'kill_grace = 200ms' # forms the cluster with eadmin init, eadmin token and rsd --join
install_programs

said() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -qE "$3"; }
state_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["state"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
host_is() { [ "$(state_of "$1")" = "$2" ]; }
until_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["valid_until"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
token() { on 1 eadmin token "$@" 2>/dev/null; }
join_as() { # K TOKEN [ARG..]: what it says
    local k=$1 token=$2
    shift 2
    on "$k" rsd --join ws1:7110 - "$@" <<<"$token" 2>&1
}
wait_for 30 'all hosts link with what they got by joining' hosts_up 3

# --- the CA
fingerprint() { on 1 sha256sum /var/lib/elmer-ca/ca.key /var/lib/elmer/pki/host.key; }
before=$(fingerprint)
like 'eadmin init says what is there' "$(on 1 eadmin init)" 'There is a CA already'
is 'and changes nothing' "$(fingerprint)" "$before"
is "the CA's key is readable by root alone" "$(on 1 sh -c 'stat -c %a:%U /var/lib/elmer-ca /var/lib/elmer-ca/ca.key' | xargs)" '700:root 600:root'
is 'and elmer cannot read it' "$(on 1 setpriv --reuid elmer --regid elmer --clear-groups cat /var/lib/elmer-ca/ca.key 2>/dev/null)" ''
is 'keys of hosts are for their daemon alone' "$(on 2 sh -c 'stat -c %a:%U /var/lib/elmer-rsd/pki /var/lib/elmer-rsd/pki/host.key' | xargs)" '700:elmer-rsd 600:elmer-rsd'
is 'keys of tickets are for their user alone, on all hosts' "$(for k in 1 2; do on $k sh -c 'stat -c %a:%U /var/lib/elmer-ticket /var/lib/elmer-ticket/key'; done | xargs)" '700:elmer-ticket 600:elmer-ticket 700:elmer-ticket 600:elmer-ticket'
is 'and certified by one CA' "$(for k in 1 2 3; do on $k cut -d ' ' -f 3 /var/lib/elmer-ticket/certificate; done | sort -u | wc -l)" 1
is 'who signs has no capability' "$(on 2 sh -c 'grep CapPrm "/proc/$(pgrep -x elmer-desk)/status"' | xargs)" 'CapPrm: 0000000000000000'
like 'a user gets no token' "$(as alice 1 eadmin token 2>&1)" 'only root'
like 'and makes no CA' "$(as alice 1 eadmin init 2>&1)" 'only root'
like 'nor removes a host' "$(as alice 1 eadmin remove ws2 2>&1)" 'only administrators'
like 'users see the hosts, from every host' "$(as bob 2 eadmin hosts)" 'ws3 +up +1 +(rt|idle|none) +10.213.77.3 +20[0-9-]+ [0-9:]+'

# --- the account of elmer makes no host
on 1 sh -c 'cat >/home/mint.py; chmod 644 /home/mint.py' <<'EOF2'
import socket, struct
s = socket.socket(socket.AF_UNIX)
s.connect("/run/elmer-ca/sign.sock")
request = open("/tmp/request").read().replace("\n", "\\n")
text = ('{"type":"sign_join","id":1,"host":"ws2","token":"0123456789abcdef","proof":"%s","request":"%s"}' % ("00" * 32, request)).encode()
s.send(struct.pack(">I", len(text)) + text)
print(s.recv(65536)[4:].decode())
EOF2
openssl req -new -newkey ed25519 -nodes -keyout "$tmp/key" -subj /CN=ws2 2>/dev/null | on 1 sh -c 'cat >/tmp/request; chmod 644 /tmp/request'
like 'elmer gets nothing signed without a token' "$(on 1 setpriv --reuid elmer --regid elmer --clear-groups python3 /home/mint.py 2>&1)" 'not known here'
like 'and users do not reach the signer' "$(as alice 1 python3 /home/mint.py 2>&1 | tail -n 1)" 'Permission'

# --- tokens that are not good
refused() { # NAME WHAT-JOINER-SAYS WHAT-ELMER-LOGS('' nothing) TOKEN [ARG..]
    local name=$1 joiner=$2 elmer=$3 token=$4 out
    shift 4
    out=$(join_as 3 "$token" "$@")
    like "$name: the workstation says why" "$out" "$joiner"
    is "$name: in one line" "$(wc -l <<<"$out")" 1
    [ -z "$elmer" ] || wait_for 5 "$name: so does elmer" said 1 elmer "$elmer"
}
good=$(token --hosts ws3)
refused 'a mistyped token' 'mistyped' '' "${good:0:40}$([ "${good:40:1}" = a ] && echo b || echo a)${good:41}"
refused 'half a token' 'has 50 characters, not 102' '' "${good:0:50}"
refused 'a word' 'is not a token' '' hello
on 2 eadmin init >/dev/null
refused 'a foreign token' 'token' 'from 10.213.77.3' "$(on 2 eadmin token 2>/dev/null)"
refused 'a token for another host' 'is for ws2,ws9, not for ws3' 'host=ws3 join refused.*is for ws2,ws9' "$(token --hosts ws2,ws9)"
short=$(token --valid 1s) end=$((SECONDS + 2))
until_ok 5 eval "[ \$SECONDS -ge $end ]"
refused 'an expired token' 'expired at 20.*clock says 20' 'host=ws3 join refused.*expired' "$short"
refused 'a name that is not configured' 'is for ws3, not for ws77' 'host=ws77 join refused.*is for ws3' "$good" --name ws77
refused "the queue host's name" 'ws1 is the queue host' 'host=ws1 join refused' "$good" --name ws1
is 'none of that has changed the certificate' "$(state_of ws3)" up

on 2 systemd-run -q --collect --unit mute nc -lk 7999 # takes connections, and says nothing
mute_listens() { on 2 ss -Hltn | grep -q :7999; }
until_ok 10 mute_listens
on 3 rsd --join ws2:7999 "$good" --force >/dev/null 2>&1 &
joining=$!
seen_in_ps() { # both of its processes, once it has dialled
    on 3 sh -c 'ss -Htn state established | grep -qF 10.213.77.2:7999 || exit
        for p in $(pgrep -f "[r]sd --join ws2"); do tr "\0" " " <"/proc/$p/cmdline"; echo; done' | sort -u >"$tmp/ps"
    [ -s "$tmp/ps" ]
}
wait_for 10 'a join with the token among its arguments is under way' seen_in_ps
is 'the arguments of a process do not show the token' "$(cat "$tmp/ps")" 'rsd --join ws2:7999 --force - '
on 3 pkill -f '[r]sd --join ws2'
wait "$joining"
on 2 systemctl stop mute

# --- joining again
refused 'the name of a host that is there, with a token for any' 'there is a host ws3 in the cluster already.*eadmin remove ws3' 'host=ws3 join refused.*already' "$(token)"
like 'a host that has joined can join again' "$(join_as 3 "$good")" 'ws3 has joined'
wait_for 5 'what it had is revoked, and its link ends with a line' said 3 'rsd*' 'joined under this name with a new token'
wait_for 20 'with the new certificate it links' host_is ws3 up
refused 'a used token' 'was used by ws3 at 20' 'host=ws3 join refused.*was used by ws3' "$good"
like 'another elmer is not forgotten by mistake' "$(on 3 rsd --join ws9:7110 - <<<"$(token)" 2>&1)" 'says elmer = ws1:7110, not ws9:7110.*--force'

# --- removal, with a job there
id=$(submit alice -o /dev/null --hosts ws2 1 /home/testjob --work-us 1000 --wait-us 20000 400)
wait_for 20 'a job runs on ws2' running "$id"
like 'the host is removed' "$(as carol 1 eadmin remove ws2 2>&1)" 'ws2 is removed'
within 5 'its link is cut, and it knows why' said 2 'rsd*' 'was removed from the cluster by an administrator'
within 5 'it is down at once' host_is ws2 down
wait_for 10 'its job has ended' over "$id"
is 'and its user reads why, and by whom' "$(field "$id" 'j["reason_code"], j["reason"]')" "('host-lost', 'ws2 was removed from the cluster by carol')"
wait_for 10 'also there' on 2 sh -c '! pgrep -f "[t]estjob .*400"'
wait_for 30 'it does not get in again, with a line on both sides' said 2 'rsd*' 'was revoked at 20'
ok 'elmer names it' said 1 elmer 'certificate of ws2 was revoked'
like 'twice is refused' "$(as carol 1 eadmin remove ws2 2>&1)" 'has no certificate'
like 'with a new token it comes back' "$(join_as 2 "$(token --hosts ws2)")" 'has joined'
wait_for 30 'and is up' host_is ws2 up

# --- drained hosts and held jobs
like 'a host is drained' "$(as carol 1 eadmin drain ws3 2>&1)" 'takes no new jobs'
is 'and shown so' "$(state_of ws3)" drained
as carol 1 eadmin resume ws3 2>/dev/null
wait_for 5 'and resumed' host_is ws3 up

# --- renewal
on 1 sh -c 'printf "[ca]\ncertificate_valid = 45s\n" >/etc/elmer/ca.conf; eadmin init --address ws1 >/dev/null; systemctl restart elmer'
join_as 3 "$(token --hosts ws3)" >/dev/null
wait_for 30 'a host with a certificate of 45 s is up' host_is ws3 up
first=$(until_of ws3) linked=$(on 1 journalctl -q -o cat --no-pager -u elmer | grep -c 'host=ws3 is up')
renewed() { [[ $(until_of ws3) > $first ]]; }
on 3 cp -a /var/lib/elmer-rsd/pki /var/lib/elmer-rsd/before
wait_for 60 'its certificate is renewed before it ends' renewed
wait_for 10 'the host has it' said 3 'rsd*' 'certificate is renewed'
is 'the link has stayed' "$(on 1 journalctl -q -o cat --no-pager -u elmer | grep -c 'host=ws3 is up')" "$linked"
on 3 systemctl restart rsd
wait_for 5 'with the new one it links anew' said 1 elmer 'host=ws3 has linked with its new certificate'
on 3 sh -c 'cd /var/lib/elmer-rsd && systemctl stop rsd && mv pki after && mv before pki && systemctl start rsd'
wait_for 5 'from then on the one before is refused, although its time is not over' said 3 'rsd*' 'has shown a newer one'
on 3 sh -c 'cd /var/lib/elmer-rsd && systemctl stop rsd && rm -rf pki && mv after pki && systemctl start rsd'
wait_for 20 'the new one is good' host_is ws3 up
wait_for 60 'that of elmer is renewed, too' said 1 elmer "elmer's own certificate is renewed"
on 3 systemctl restart rsd
wait_for 20 'the new ones are good for a new link' host_is ws3 up
on 1 rm /etc/elmer/ca.conf

# --- elmer's key is stolen: what eadmin init makes then takes it back, whatever the clocks say
seen() { on 2 cat /var/lib/elmer-rsd/pki/elmer.counter; }
counted=$(seen)
on 1 sh -c 'cd /var/lib/elmer && cp -a pki stolen && rm pki/host.* && eadmin init >/dev/null && systemctl restart elmer'
wait_for 30 'with a new key of elmer all hosts link' hosts_up 3
[ "$(seen | cut -d " " -f 2)" -gt "$(cut -d " " -f 2 <<<"$counted")" ]
is 'and note that it is a later one' $? 0
on 1 sh -c 'cd /var/lib/elmer && systemctl stop elmer && mv pki new && cp -a stolen pki && systemctl start elmer'
wait_for 30 'who has the old key is not taken for elmer, with a line' said 2 'rsd*' 'shows a certificate that was replaced'
is 'no host links with it' "$(on 1 eadmin hosts --json | python3 -c 'import json, sys
print(sum(h["state"] == "up" and h["host"] != "ws1" for h in json.load(sys.stdin)["hosts"]))')" 0
like 'and none joins by it' "$(join_as 2 "$(token)")" 'shows a certificate that was replaced'
like 'so with files that come from a backup eadmin init makes new ones' "$(on 1 eadmin init)" 'Elmer has a certificate for'
on 1 systemctl restart elmer
wait_for 30 'and all hosts link again' hosts_up 3
on 1 rm -rf /var/lib/elmer/new /var/lib/elmer/stolen

# --- a clock that is a year off
for shift in 31536000 -31536000; do
    gcc -shared -fPIC -O2 -DSHIFT="$shift" -o "$tmp/shift.so" "$here/programs/shift_clock.c"
    on 3 sh -c 'cat >/usr/local/lib/shift.so.new; mv /usr/local/lib/shift.so.new /usr/local/lib/shift.so' <"$tmp/shift.so"
    on 3 systemctl stop rsd
    like "a host whose clock is ${shift%31536000}a year off joins" \
        "$(on 3 env ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=/usr/local/lib/shift.so rsd --join ws1:7110 - <<<"$(token --hosts ws3)" 2>&1)" 'ws3 has joined'
    on 3 sh -c 'for unit in rsd rsd-net rsd-tickets; do
            mkdir -p /etc/systemd/system/$unit.service.d
            printf "[Service]\nEnvironment=LD_PRELOAD=/usr/local/lib/shift.so\n" >/etc/systemd/system/$unit.service.d/shift.conf
        done
        systemctl daemon-reload; systemctl start rsd'
    wait_for 30 'and works' host_is ws3 up
done
ok 'elmer has noticed' said 1 elmer 'host=ws3 its clock is 5256[0-9][0-9] minutes (ahead|behind)'
done_testing
