#!/bin/bash
# What moves by itself in a year, and in 25: certificates of hosts and of elmer, and the CA, renewed while jobs run; and a clock of the
# queue host that is wrong after a power cut. The clock of elmer, of its signer and of eadmin is that of a file.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'it preloads a clock into the daemons of the queue host'
lab_up 3 --elmer 'allocator = v1' --elmer 'kill_grace = 200ms' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 15s'
install_programs
wait_for 30 'all hosts link' hosts_up 3

offset=/usr/local/lib/clock-offset
gcc -shared -fPIC -O2 -DFILE_NAME="\"$offset\"" -o "$tmp/clock.so" "$here/programs/shift_clock.c" || bail_out 'the clock is not made'
on 1 sh -c 'cat >/usr/local/lib/clock.so' <"$tmp/clock.so"
on 1 sh -c "head -c 8 /dev/zero >$offset; chmod 644 $offset"
set_clock() { # DAYS from now
    days=$1
    python3 -c 'import struct, sys
sys.stdout.buffer.write(struct.pack("<q", int(sys.argv[1]) * 86400))' "$1" | on 1 dd of=$offset conv=notrunc status=none
}
preload='ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=/usr/local/lib/clock.so'
by_clock() { on 1 env ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=/usr/local/lib/clock.so "$@"; }
on 1 sh -c "for u in elmer.service elmer-signer@.service; do mkdir -p /etc/systemd/system/\$u.d
    printf '[Service]\nEnvironment=$preload\n' >/etc/systemd/system/\$u.d/clock.conf; done; systemctl daemon-reload; systemctl restart elmer"
wait_for 30 'elmer lives by the clock of a file' hosts_up 3

said() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -qE "$3"; }
count() { on 1 journalctl -q -o cat --no-pager -u elmer | grep -cE "$1"; }
until_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["valid_until"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
state_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["state"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
host_is() { [ "$(state_of "$1")" = "$2" ]; }
reason_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["reason"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
reason_is() { [[ $(reason_of "$1") =~ $2 ]]; }
day_of() { date -u -d "$1 days" +%Y-%m-%d; } # DAYS from now
good_for() { # DAYS: all certificates that elmer knows, from the day that the clock says
    for h in ws2 ws3; do [[ $(until_of $h) > $(day_of $((days + $1))) ]] || return 1; done
}
own_renewed() { [ "$(count "elmer's own certificate is renewed")" -ge "$1" ]; }

# ---- work that goes on all the time ----
keeper=$(submit alice -o /dev/null --hosts ws2 1 sleep 10000)
wait_for 10 'a long job runs' running "$keeper"
load() { as "$1" 1 sh -c 'n=0; while [ ! -e /tmp/stop ]; do esubmit -w -o /dev/null --each --hosts ws2,ws3 2 true 2>/dev/null || echo failed; n=$((n + 1)); sleep 0.5; done; echo "$n jobs"'; }
load alice >"$tmp/load.alice" &
load bob >"$tmp/load.bob" &
linked=$(count 'host=ws[23] is up')

# ---- years ----
renewals=0
for at in 250 500; do
    set_clock $at
    renewals=$((renewals + 1))
    wait_for 60 "day $at: the certificates of hosts are renewed" good_for 300
    wait_for 60 "day $at: that of elmer is, too" own_renewed $renewals
done
is 'all that on the links that were up' "$(count 'host=ws[23] is up')" "$linked"
on 3 systemctl restart rsd
wait_for 30 'after a year and a half, after the end of its first certificate, a host links again' host_is ws3 up

on 1 sh -c 'printf "[ca]\ncertificate_valid = 3600d\n" >/etc/elmer/ca.conf' # to get on
for at in 750 3200 5650 8100; do
    set_clock $at
    renewals=$((renewals + 1))
    wait_for 60 "day $at: the certificates of hosts are renewed" good_for 3400
    wait_for 60 "day $at: that of elmer is, too" own_renewed $renewals
done

# ---- the CA ----
ca_key() { on 1 cat /var/lib/elmer-ca/ca.crt | openssl x509 -noout -pubkey | sha256sum; }
before=$(ca_key)
like 'after 22 years eadmin init renews the CA' "$(by_clock eadmin init)" 'is renewed, with the same key: hosts need nothing'
is 'with its key' "$(ca_key)" "$before"
like 'once' "$(by_clock eadmin init)" 'There is a CA already'
on 1 systemctl restart elmer
wait_for 30 'all hosts link with elmer, whose CA is the new one, and theirs is the old one' hosts_up 3
set_clock 9200
on 2 systemctl restart rsd
wait_for 30 'also beyond the end of that' host_is ws2 up
like 'a host joins by the new one' "$(by_clock eadmin token --hosts ws3 2>/dev/null | on 3 rsd --join ws1:7110 - 2>&1)" 'ws3 has joined'
on 3 systemctl restart rsd
wait_for 30 'and links' host_is ws3 up
id=$(as alice 2 esubmit -w -o /dev/null --hosts ws3 1 true 2>/dev/null)
is 'tickets of a host with the old one are believed there' "$(state "$id"):$(field "$id" 'j["exit_status"]')" done:0

on 1 touch /tmp/stop
wait
is 'no job has failed meanwhile' "$(cat "$tmp"/load.* | grep -c failed)" 0
like 'and many have run' "$(tail -n 1 "$tmp/load.alice")" '^[0-9]{2,} jobs$'
is 'the long job runs on' "$(state "$keeper")" running

# ---- after a power cut the clock is years behind ----
set_clock -9000
on 1 systemctl restart elmer
wait_for 30 'hosts whose certificates begin later link all the same' up_again
wait_for 20 'with a line' said 1 elmer 'host=ws2 is let in although the certificate of ws2 .* begins at .*, and the queue host.s clock says 20'
wait_for 10 'the long job is there' running "$keeper"

# ---- or ahead ----
set_clock 20000
on 1 systemctl restart elmer
wait_for 30 'hosts whose certificates have ended are refused, and shown so' reason_is ws2 '^refused [0-9]+ s ago: .*ended at 20.*, and the queue host.s clock says 20'
wait_for 20 'rsd says it' said 2 'rsd*' 'ended at 20.*set the queue host.s clock'
lines=$(on 2 journalctl -q -o cat --no-pager -u "rsd*" | grep -c 'ended at 20')
end=$(($(now_ms) + 35000)) # twice host_timeout, and more
timeout_is_over() { [ "$(now_ms)" -ge $end ]; }
until_ok 60 timeout_is_over
is 'its job is not given up, after twice host_timeout' "$(state "$keeper")" running
is 'it is said once, not at each try' "$(on 2 journalctl -q -o cat --no-pager -u "rsd*" | grep -c 'ended at 20')" "$lines"
set_clock 9200
wait_for 30 'when the clock is right all hosts link by themselves' up_again
is 'and the job runs' "$(state "$keeper")" running
as alice 1 ekill "$keeper"
wait_for 10 'until it is ended' over "$keeper"
done_testing
