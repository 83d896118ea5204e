#!/bin/bash
# eadmin doctor: a cluster that is well, and then one thing after the other that is not. What it says of each is in
# tests/unit/client/test_doctor; here is that it sees them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 3s'
install_programs
found() { grep -E "^$1 +$2 +$3 " "$tmp/out" | sed 's/  */ /g'; } # LEVEL HOST CHECK
doctor() { "$@" >"$tmp/out" 2>"$tmp/err"; }

# ---- all is well ----
ok 'it ends well' doctor on 1 eadmin doctor --user alice
is 'nothing is bad' "$(grep -c ^bad "$tmp/out")" 0
for check in name link certificate real-time job user home own-name clock scratch pvm version; do
    ok "ws2: $check is good" test -n "$(found good ws2 $check)"
done
like 'nobody needs a certificate on the queue host itself' "$(found good ws1 certificate)" '^$'
ok 'the store has room' test -n "$(found good - store)"
ok 'a job of PVM has run over both' test -n "$(found good - pvm-job)"
ok 'a user may ask, too' doctor as alice 2 eadmin doctor
is 'and sees the same' "$(grep -cE '^good +ws[12] +job ' "$tmp/out")" 2
on 1 eadmin doctor --user alice --json ws2 >"$tmp/json"
ok 'its JSON is as its schema says' "$top/tests/schema" "$top/schemas" <"$tmp/json"
is 'of the host that was named, and of all' "$(python3 -c 'import json, sys; print(*sorted({f["host"] for f in json.load(sys.stdin)["findings"]}))' <"$tmp/json")" ' ws2'
nothing_is_left() { ! on 1 sh -c 'equery -r --name doctor | grep -q doctor' && ! on 1 sh -c 'ls /tmp/elmer-doctor.*' && ! on 2 sh -c 'ls /tmp/elmer-doctor.*'; }
wait_for 10 'nothing is left of it' nothing_is_left

# ---- root runs no jobs ----
doctor on 1 eadmin doctor
is 'root without a user: it says so' "$(found warning - job)" 'warning - job no job was tried, because root runs none: eadmin doctor --user NAME'
doctor on 1 eadmin doctor --no-jobs
is 'jobs are not tried where that is not wanted' "$(grep -cE '^[a-z]+ +[^ ]+ +job ' "$tmp/out")" 0

# ---- a thing after the other ----
broken() { # NAME LEVEL HOST CHECK REGEX
    doctor as alice 1 eadmin doctor
    is "$1: the exit status" $? "$([ "$2" = bad ] && echo 1 || echo 0)"
    like "$1" "$(found "$2" "$3" "$4")" "$5"
}
on 2 sh -c 'cp /etc/hosts /run/hosts; echo "127.0.1.1 ws2" >/run/new; cat /run/hosts >>/run/new; cat /run/new >/etc/hosts'
broken 'the own name is a loopback' bad ws2 own-name '127\.0\.1\.1'
on 2 sh -c 'cat /run/hosts >/etc/hosts'
on 1 sh -c 'cp /etc/hosts /run/hosts; sed "/ws2/d" /run/hosts >/etc/hosts'
broken 'a name that is not known' bad ws2 name 'is not known here'
on 1 sh -c 'cat /run/hosts >/etc/hosts'
on 2 chmod -x /usr/bin/pvmd
broken 'no PVM there' warning ws2 pvm 'apt install pvm'
on 2 chmod +x /usr/bin/pvmd
on 2 sed -i 's/^alice:x:2001:/alice:x:3001:/' /etc/passwd
broken 'another number of the user' bad ws2 job 'alice'
on 2 sed -i 's/^alice:x:3001:/alice:x:2001:/' /etc/passwd
on 2 mv /usr/libexec/elmer/elmer-doctor /usr/libexec/elmer/away
broken 'another version there' bad ws2 job 'no /usr/libexec/elmer/elmer-doctor'
on 2 mv /usr/libexec/elmer/away /usr/libexec/elmer/elmer-doctor
on 1 eadmin drain ws2 --reason 'a new disk' >/dev/null
broken 'a drained host' warning ws2 link 'drained.*a new disk.*eadmin resume ws2'
on 1 eadmin resume ws2 >/dev/null
on 2 systemctl stop rsd
wait_for 20 'rsd is away' eval 'on 1 eadmin hosts | grep -qE "^ws2 +down"'
broken 'no rsd there' bad ws2 link 'down: .*systemctl status rsd'
on 2 systemctl start rsd
wait_for 20 'it is back' hosts_up 2
doctor as alice 1 eadmin doctor ws7
is 'a host that is none: the exit status' $? 1
like 'and the line' "$(found bad ws7 link)" 'no host of this cluster'
on 1 systemctl stop elmer
doctor as alice 1 env ELMER_SOCKET=/run/elmer/elmer.sock eadmin doctor
is 'no elmer: the exit status' $? 1
like 'and the line' "$(found bad - elmer)" 'not reachable'
on 1 systemctl start elmer
wait_for 20 'all is well again' eval 'as alice 1 eadmin doctor >/dev/null'
done_testing
