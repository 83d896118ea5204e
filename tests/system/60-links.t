#!/bin/bash
# The links between hosts: who is not let in, and that nobody suffers from them. The hostile side stands on the cable.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes "it changes the nodes' files and network from outside"
lab_up 3 --elmer 'allocator = v1'
install_programs
elmer=10.213.77.1:7110
hub=$(head -n 1 "$(dirname "$(dirname "$("$lab" path group 1)")")/hub/cgroup.procs")
ws2_pki=$("$lab" path root 2)/var/lib/elmer-rsd/pki
pids() { on 1 systemctl show -P MainPID elmer; on 2 systemctl show -P MainPID rsd; }
hostile() { timeout 120 nsenter -t "$hub" -n python3 "$here/programs/hostile_links.py" "$elmer" "$@" 2>&1; }
log_of() { on "$1" journalctl -q -o cat --no-pager -u "$2"; }
new_lines() { log_of 1 elmer | tail -n "+$((seen + 1))" | grep -v '^job='; } # the job that runs meanwhile has lines of its own
between() { [ "$1" -le "$2" ] && [ "$2" -le "$3" ]; }
logged() { new_lines | grep -qE -- "$1"; }
refused() { # NAME WORDS-TO-HIM WORDS-IN-THE-LOG WHAT..
    local name=$1 him=$2 us=$3 n
    shift 3
    seen=$(log_of 1 elmer | wc -l)
    like "$name: is told" "$(hostile "$@")" "^($him)\$"
    wait_for 5 "$name: the log says it" logged "$us"
    n=$(new_lines | wc -l)
    is "$name: in one line" "$n" 1 || diag "$(new_lines)"
}
make_foreign() { # a CA of the same name, and a certificate for ws2 from it
    local ca=$tmp/foreign
    mkdir -p "$ca"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 100 -keyout "$ca/ca.key" -out "$ca/ca.crt" \
        -subj "$(openssl x509 -in "$ws2_pki/ca.crt" -noout -subject -nameopt RFC2253 | sed 's/^subject=/\//')" 2>/dev/null
    openssl req -x509 -newkey ed25519 -nodes -days 100 -subj /CN=ws2 -CA "$ca/ca.crt" -CAkey "$ca/ca.key" \
        -addext subjectAltName=DNS:ws2 -addext extendedKeyUsage=clientAuth -keyout "$ca/host.key" -out "$ca/host.crt" 2>/dev/null
}

wait_for 20 'all hosts are linked' hosts_up 3
like 'eadmin lists them' "$(on 1 eadmin hosts 2>&1)" 'ws2.*ws3'
before=$(pids)
keeper=$(submit alice -o /dev/null 1 /home/testjob --work-us 1000 --wait-us 20000 400)

refused 'TLS 1.2' '.*version.*' 'TLS 1.3 is needed' old-version
refused 'garbage' 'an alert|closed' 'does not speak TLS|TLS is broken' garbage
refused 'HTTP' 'an alert|closed' 'does not speak TLS' http
refused 'Elmer without TLS' '.*speaks without TLS.*' 'from 10.213.77.254 refused: the other side speaks without TLS' plain
refused 'no certificate, and not to join' 'host_hello: not a message that you may send.*' 'host_hello: not a message' stranger
make_foreign
refused "a certificate of another CA" ".*not signed by this cluster's CA.*" "not signed by this cluster's CA" certificate "$tmp/foreign"
refused "a host with another's name" '.*its certificate is that of "ws2".*' 'host "ws3": its certificate is that of "ws2"' name "$ws2_pki" ws3
seen=$(log_of 1 elmer | wc -l)
is 'the bytes of a recorded session get nothing' "$(hostile replay "$ws2_pki")" 'nothing was served'
wait_for 5 'the log says it' logged 'from 10.213.77.254 refused: TLS is broken'
is 'in one line, beside that of the session itself' "$(new_lines | wc -l)" 2
refused 'a session that is cut' 'closed' 'cut off' truncated "$ws2_pki"
refused 'a handshake byte by byte' 'ended' 'handshake was not done within' slow
seen=$(log_of 1 elmer | wc -l)
is 'of one host nine links at once are one too many' "$(hostile links "$ws2_pki" 9)" \
    '1 of 9: this host has too many links already: is more than one rsd running on it?'
wait_for 5 'the log says it' logged 'host=ws2 link refused: it has too many already'
begin=$(now_ms)
like 'of many joins at once most are told to come again' "$(hostile joins 30)" '^30 of 30: .*(not known here|certificate).* \| too many hosts join at once: try again in some seconds$'
begun=$(new_lines | grep 'join refused' | grep -vc 'too many hosts join at once')
most=$((8 + 5 * (($(now_ms) - begin) / 1000 + 1)))
ok "eight are looked at, five in a second ($begun of 30, and at most $most)" test "$begun" -ge 5 -a "$begun" -le $most
like 'eight at once only wait for the next second' "$(hostile joins 8)" '^8 of 8: [^|]*(not known here|certificate)[^|]*$'
is 'no daemon was restarted' "$(pids)" "$before"
ok 'the hosts stayed linked' hosts_up 3

# ---- the side of the hosts ----
on 2 sh -c "echo 'name = ws3' >>/etc/elmer/rsd.conf && systemctl restart rsd"
said_by_ws2() { log_of 2 'rsd*' | grep -q 'its certificate is that of "ws2"'; }
wait_for 15 "a host with another's name says so itself" said_by_ws2
on 2 sh -c "sed -i '/^name = /d' /etc/elmer/rsd.conf && mv /var/lib/elmer-rsd/pki /var/lib/elmer-rsd/away && systemctl restart rsd"
no_certificate() { log_of 2 'rsd*' | grep -q 'rsd --join ws1:7110 TOKEN'; }
wait_for 15 'a host without a certificate says how to get one' no_certificate
on 2 sh -c "mv /var/lib/elmer-rsd/away /var/lib/elmer-rsd/pki"
wait_for 15 'and links as soon as it has one' hosts_up 3

# ---- ten thousand who say nothing ----
nsenter -t "$hub" -n ip route add local 10.214.0.0/16 dev lo
on 1 ip route add 10.214.0.0/16 via 10.213.77.254
mkfifo "$tmp/hold"
ulimit -n "$(ulimit -Hn)"
hostile idle 10000 10.214 <"$tmp/hold" >"$tmp/idle" &
crowd=$!
exec 7>"$tmp/hold"
wait_for 60 'ten thousand idle connections' grep -q 'connected 10000' "$tmp/idle"
# Milliseconds of the slowest of 50, by a client that does not wait behind this machine's other work.
slowest() { # CMD..
    LAB_FIFO=50 on 1 bash -c 'worst=0
        for i in $(seq 50); do
            begin=${EPOCHREALTIME/./}
            "$@" >/dev/null || exit 1
            took=$((${EPOCHREALTIME/./} - begin))
            [ $took -le $worst ] || worst=$took
        done
        echo $((worst / 1000))' - "$@"
}
start_ms=$(slowest /bin/true) # what it takes to start a program
ms=$(($(slowest equery -r) - start_ms))
ok 'elmer answers others within 100 ms meanwhile' test "$ms" -le 100
diag "the slowest of 50 queries took $ms ms, beside $start_ms of 50 programs that do nothing"
ok 'it has descriptors to spare' on 1 sh -c 'test "$(ls /proc/$(systemctl show -P MainPID elmer)/fd | wc -l)" -lt 1500'
on 2 systemctl restart rsd
wait_for 10 'a host gets in meanwhile' hosts_up 3
ok 'and runs a job' as bob 2 esubmit -w -o /dev/null --hosts ws2 1 true
seen=0
ok 'the log says it, and is short' between 1 "$(new_lines | grep -c 'too many connections')" 200
exec 7>&-
wait $crowd
like 'few of them were kept' "$(tail -n 1 "$tmp/idle")" '^open [0-9]{1,3}$|^open 10[0-9]{2}$'
is 'no daemon was restarted' "$(pids | head -n 1)" "$(echo "$before" | head -n 1)"
is 'a job that ran meanwhile runs on' "$(state "$keeper")" running
ok 'it can be killed' as alice 2 ekill "$keeper"
done_testing
