#!/bin/bash
# Who may do and see what, what one user may take, and what callers send to be somebody else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

# What is said by hand has no ticket; 42-tickets.t has those who would need one.
lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 1' --elmer 'user_queued = 20' \
    --rsd 'tickets = accept' \
    --elmer 'admin_hosts = ws2' --elmer 'user_requests = 500' --elmer 'user_requests_burst = 3000'
install_programs

on 1 sh -c 'cat >/home/call.py; chmod 644 /home/call.py' <<'EOF2'
import socket, struct, sys, time # of a minimal Python
def connect(where):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(where)
    return s
def frame(message):
    return struct.pack(">I", len(message)) + message
hello = frame(b'{"type":"hello","id":0,"program":"call","major":1,"minor":0,"capabilities":[]}')
back = chr(92)
def field(message, key):
    "A text of it, without its backslashes"
    at = message.find('"' + key + '":"')
    if at < 0:
        return ""
    begin = end = at + len(key) + 4
    while message[end] != '"':
        end += 2 if message[end] == back else 1
    return message[begin:end].replace(back, "")
def receive(s):
    "The next message; None: the connection has ended"
    def exactly(n):
        data = b""
        while len(data) < n:
            more = s.recv(n - len(data))
            if not more:
                return None
            data += more
        return data
    try:
        head = exactly(4)
        return exactly(struct.unpack(">I", head)[0]).decode() if head else None
    except ConnectionError:
        return None
def answer(s, message):
    s.sendall(frame(message))
    while True:
        got = receive(s)
        if got is None or field(got, "type") != "hello":
            return got
def say(got):
    print("ended" if got is None else field(got, "type") + " " + field(got, "code") + " " + field(got, "text"))
where, what, *rest = sys.argv[1:]
if what == "send":                                 # one request, as JSON
    s = connect(where)
    s.sendall(hello)
    say(answer(s, rest[0].encode()))
elif what == "idle":                               # N connections that do nothing; half of them do not even say hello
    made, refused = [], 0
    for i in range(int(rest[0])):
        try:
            s = connect(where)
            if i % 2:
                s.sendall(hello)
            made.append(s)
        except OSError:
            refused += 1
    print("ready", len(made), refused, flush=True)
    sys.stdin.read()
elif what == "ask":                                # the slowest of N answers, in ms, each over a connection of its own
    slowest = 0
    for i in range(int(rest[0])):
        begin = time.monotonic()
        s = connect(where)
        s.sendall(hello)
        got = answer(s, b'{"type":"kill","id":1,"job":999999999}')
        assert got and field(got, "code") == "no-such-job", got
        slowest = max(slowest, time.monotonic() - begin)
        s.close()
        time.sleep(0.02)
    print(int(slowest * 1000))
elif what == "slow":                               # a frame that comes byte by byte
    s = connect(where)
    s.sendall(hello + struct.pack(">I", 1 << 20))
    for i in range(100):
        s.sendall(b" ")
        time.sleep(0.02)
    print("sent")
elif what == "flood":                              # requests without end: how many were answered before it was cut off
    s, done, refused = connect(where), 0, 0
    s.sendall(hello)
    try:
        for i in range(1, int(rest[0])):
            got = answer(s, b'{"type":"kill","id":%d,"job":999999999}' % i)
            if got is None:
                break
            refused += field(got, "code") == "refused"
            done += 1
    except OSError:
        pass
    print(done, refused)
EOF2
call() { # USER NODE SOCKET WHAT..
    local user=$1 k=$2
    shift 2
    as "$user" "$k" python3 /home/call.py "$@" 2>&1 | tail -n 1
}
own=/run/elmer/elmer.sock rsd=/run/elmer-rsd/rsd.sock

# What others see.
secret=$(submit alice -J 'hush' -v TOKEN=s3cret -o secret.out 1 sh -c 'sleep 500; : s3cret')
wait_for 10 'a job runs' running "$secret"
for who in bob root@2; do
    user=${who%@2}
    as "$user" 2 equery --json "$secret" >"$tmp/seen" 2>&1
    is "$who sees who, where and how large" "$(python3 -c 'import json,sys
j = json.load(open(sys.argv[1]))["jobs"][0]
print(j["user"], j["state"], j["level"], j["nprocs"], len(j["hosts"]), j["name"], j["command"], j["dir"])' "$tmp/seen" 2>&1)" \
        'alice running 0 1 1 None None None'
    ok "$who sees nothing of what it is" sh -c '! grep -q -e s3cret -e hush -e /home/alice "$1"' - "$tmp/seen"
    like "$who gets a dash in the table" "$(as "$user" 2 equery -r 2>&1)" "$secret +- +alice +running"
done
for who in alice carol; do
    like "$who sees the command, on any host" "$(as "$who" 2 equery --json "$secret" 2>&1)" '"name":"hush".*"command":\["sh"'
done
like 'root of the queue host sees it too' "$(on 1 equery --json "$secret")" '"name":"hush"'
as alice 2 equery --json "$secret" >"$tmp/seen"
is 'nobody is shown the environment' "$(grep -c '"name":"hush"' "$tmp/seen") $(grep -c TOKEN "$tmp/seen")" '1 0'

# Who may do what. Exit status 5, and who may.
denied() { # NAME USER NODE CMD..
    local name=$1 out rc=0
    out=$(as "$2" "$3" "${@:4}" 2>&1) || rc=$?
    like "$name" "$rc $out" "^5 .*(belongs to alice: only its owner, and administrators \(group elmer-admin\)|only administrators)"
}
denied 'another user may not kill' bob 1 ekill "$secret"
denied 'nor from another host' bob 2 ekill "$secret"
denied 'nor root of another host' root 2 ekill "$secret"
denied 'another user may not cancel' bob 2 ecancel "$secret"
for verb in hold release; do
    like "another user may not $verb" "$(call bob 2 $rsd send '{"type":"'$verb'","id":1,"job":'"$secret"'}')" \
        '^error not-permitted job [0-9]+ belongs to alice'
done
like 'a user may not drain' "$(call alice 2 $rsd send '{"type":"drain","id":1,"host":"ws2","drained":true}')" '^error not-permitted only administrators'
for drained in true false; do
    like "the word of the queue host's rsd makes nobody an administrator: $drained" "$(call carol 1 $rsd send '{"type":"drain","id":1,"host":"ws2","drained":'$drained'}')" '^error not-permitted only administrators .*ELMER_SOCKET=/run/elmer/elmer.sock'
    like "nor that of a host of admin_hosts alone: $drained" "$(call carol 2 $rsd send '{"type":"drain","id":1,"host":"ws2","drained":'$drained'}')" '^error not-permitted only administrators .*only the rsd of ws2 says so: it has to be signed there'
done
like 'where jobs run that nobody has signed nothing is signed for an administrator either' "$(as carol 2 eadmin drain ws2 2>&1; echo $?)" 'write tickets = require in its rsd.conf.*5$'
tickets_of_ws2() { # WORD
    on 2 sed -i "s/^tickets = .*/tickets = $1/" /etc/elmer/rsd.conf
    on 2 systemctl restart rsd
    wait_for 20 "ws2 is linked, tickets = $1" ws2_is_up
}
ws2_is_up() { on 1 eadmin hosts --json | python3 -c 'import json, sys
sys.exit(["up"] != [h["state"] for h in json.load(sys.stdin)["hosts"] if h["host"] == "ws2"])'; }
tickets_of_ws2 require
for verb in drain resume; do
    ok "what an administrator has signed there counts: $verb" as carol 2 eadmin $verb ws2
done
like 'a running job cannot be held, and that is said' "$(call carol 1 $own send '{"type":"hold","id":1,"job":'"$secret"'}')" '^error wrong-state job [0-9]+ is running: it cannot be held'
ok 'an administrator may kill it' as carol 2 ekill "$secret"
wait_for 10 'and it ends' over "$secret"
tickets_of_ws2 accept

# To be somebody else.
submission='"token":"T","nprocs":1,"each":false,"pvm":false,"name":"x","command":["sh","-c","echo $ELMER_SUBMIT_HOST"],"dir":"/home/bob","output":"from","errors":"","environment":[],"hosts":[],"umask":18,"submit_host":"ws9"'
like 'a uid in a request is refused' "$(call bob 1 $own send '{"type":"submit","id":1,"uid":0,'"$submission"'}')" 'unknown key "uid"'
like 'a relay by a user is refused' "$(call bob 1 $own send '{"type":"relay","id":0,"client":1,"uid":0,"user":"root","frame":"{}"}')" '^(error bad-message|ended)'
like 'also by way of rsd' "$(call bob 1 $rsd send '{"type":"relay","id":0,"client":1,"uid":0,"user":"root","frame":"{}"}')" '^(error bad-message|ended)'
like 'without them it is taken' "$(call bob 1 $own send '{"type":"submit","id":1,'"$submission"'}')" '^submitted '
from() { [ -n "$(as bob 1 cat from 2>/dev/null)" ]; }
wait_for 10 'and runs' from
is 'the name of the host is not believed' "$(as bob 1 cat from)" ws1
like "rsd's socket at elmer is not for users" "$(as bob 1 python3 /home/call.py /run/elmer/elmer-host.sock send '{"type":"ping","id":1}' 2>&1 | tail -n 1)" 'Permission denied$|^error '
like 'sockets of supervisors are not for users' "$(as bob 1 ls /run/elmer-rsd/sup 2>&1)" '/run/elmer-rsd/sup.: Permission denied$'
like 'root runs no jobs' "$(on 1 esubmit 1 true 2>&1; echo $?)" 'root runs no jobs.*5$'

# Names, variables, commands and directories that are none.
refused_with() { # NAME PATTERN ARG..
    local out rc=0
    out=$(as bob 1 esubmit "${@:3}" 2>&1) || rc=$?
    like "$1" "$rc $out" "^2 .*$2"
}
refused_with 'a newline in a name' "the job's name has a control character" -o /dev/null -J $'x\nelmer: job=1 user=root' 1 true
refused_with 'bytes that are not UTF-8 in a name' "the job's name is not valid UTF-8" -o /dev/null -J $'x\xff' 1 true
refused_with 'bytes that are not UTF-8 in a variable' 'environment variable X is not valid UTF-8' -o /dev/null -v $'X=\xff\xfe' 1 true
refused_with 'bytes that are not UTF-8 in a command' 'argument number 1 is not valid UTF-8' -o /dev/null 1 $'\xff'
as bob 1 esubmit -w -o /dev/null -D $'/tmp/x\nelmer: job=1 user=root' 1 true >/dev/null 2>&1 # may exist, and does not here
is 'no line of the log was made up' "$(on 1 journalctl -q -o cat --no-pager -u elmer -u "rsd*" | grep -c '^elmer: job=1 user=root')" 0
preload=$(submit bob -o /dev/null -v LD_PRELOAD=/home/nowhere.so 1 sleep 100)
wait_for 10 'a job with LD_PRELOAD runs' running "$preload"
is 'the variable is only in the job' "$(for k in 1 2; do on $k sh -c 'for f in $(grep -lz ^LD_PRELOAD /proc/[0-9]*/environ 2>/dev/null); do cat "${f%environ}comm"; done'; done)" sleep
as bob 1 ekill "$preload" >/dev/null 2>&1

# Names and user ids that do not belong together.
on 2 sed -i 's/^bob:x:2002:/bob:x:5555:/' /etc/passwd
mixed=$(submit bob -o /dev/null --hosts ws2 1 true)
wait_for 10 'where name and uid do not belong together nothing is started' over "$mixed"
like 'and the job says why' "$(field "$mixed" '(j["reason_code"], j["reason"])')" 'start-failed.*user bob has uid 5555 on this host but uid 2002'
like 'from there he submits nothing' "$(on 2 setpriv --reuid 5555 --regid 2002 --clear-groups esubmit -D / -o /dev/null 1 true 2>&1; echo "=$?")" 'user bob has uid 5555 on ws2, and another one on the queue host.*=[15]$'
on 2 sed -i 's/^bob:x:5555:/bob:x:2002:/' /etc/passwd
ok 'with the right uid he does' as bob 2 esubmit -w -o /dev/null --hosts ws2 1 true

# Administrators of a host, and PAM's word: judged where the job would run, before anything is started.
judged() { # NODE REASON: a job of bob for ws2, submitted on that node, is refused
    local id
    id=$(as bob "$1" esubmit -o /dev/null --hosts ws2 1 touch /home/bob/was-here 2>/dev/null)
    wait_for 10 "a job for ws2 from ws$1 ends" over "$id"
    like "... and says: $2" "$(field "$id" '(j["reason_code"], j["attempt"], j["reason"])')" "^\('start-failed', 1, .ws2: $2"
    ok '... and nothing has run' on 2 test ! -e /home/bob/was-here
}
expired='the account of bob may not be used here: Your account has expired; please contact your system administrator \(PAM, service elmer\)'
on 2 gpasswd -a bob sudo >/dev/null
on 2 systemctl restart rsd # that he was in no such group is kept for a minute
wait_for 20 'bob is an administrator of ws2' hosts_up 2
judged 1 'jobs of group sudo from other hosts are refused \(deny_groups in rsd.conf\)'
ok 'submitted on ws2 it runs' as bob 2 esubmit -w -o /dev/null --hosts ws2 1 true
on 2 sed -i '/^\[rsd\]/a deny_groups = none' /etc/elmer/rsd.conf
on 2 usermod -e 1 bob
on 2 systemctl restart rsd
wait_for 20 'deny_groups = none in rsd.conf, and an account that has expired' hosts_up 2
judged 1 "$expired"
on 2 usermod -e '' bob
judged 2 "$expired" # which is kept for a minute
on 2 systemctl restart rsd
wait_for 20 'forgotten with the restart of rsd' hosts_up 2
ok 'then the job from the other host runs, too' as bob 1 esubmit -w -o /dev/null --hosts ws2 1 true
on 2 sed -i '/^deny_groups = none/d' /etc/elmer/rsd.conf
on 2 gpasswd -d bob sudo >/dev/null

# Jobs of root: only if elmer and the host allow them.
on 1 sed -i '/^\[elmer\]/a minimum_uid = 0' /etc/elmer/elmer.conf
on 1 systemctl restart elmer
wait_for 20 'minimum_uid = 0 in elmer.conf' hosts_up 2
rooted=$(on 1 esubmit -o /dev/null --hosts ws2 1 true 2>/dev/null)
wait_for 10 'root of the queue host may submit, and the host refuses' over "$rooted"
like 'naming its own minimum_uid' "$(field "$rooted" '(j["reason_code"], j["reason"])')" 'start-failed.*minimum_uid is 1000'
on 2 sed -i '/^\[rsd\]/a minimum_uid = 0' /etc/elmer/rsd.conf
on 2 systemctl restart rsd
wait_for 20 'minimum_uid = 0 in rsd.conf, too' hosts_up 2
is 'then it runs, as root' "$(on 1 esubmit -w -D /root -o /root/who --hosts ws2 1 id -un >/dev/null 2>&1; echo $?; on 2 cat /root/who)" "0
root"
rooted=$(on 1 esubmit -o /dev/null --hosts ws1 1 true 2>/dev/null)
wait_for 10 'the other host still refuses' over "$rooted"
is 'and nothing has run' "$(field "$rooted" 'j["reason_code"]')" start-failed
on 1 sed -i '/^minimum_uid = 0/d' /etc/elmer/elmer.conf
on 2 sed -i '/^minimum_uid = 0/d' /etc/elmer/rsd.conf
on 1 systemctl restart elmer
on 2 systemctl restart rsd
wait_for 20 'all as before' hosts_up 2

# A user who fills the queue.
blocker=$(submit carol -o /dev/null 2 sleep 300)
wait_for 10 'both hosts are taken' running "$blocker"
as bob 1 sh -c 'for i in $(seq 45); do esubmit -o /dev/null 1 true || break; done' >"$tmp/filled" 2>&1
like 'the queue takes no more than it may of one user' "$(tail -n 1 "$tmp/filled")" 'user bob has 20 jobs in the queue, and may have 20 \(user_queued in elmer.conf\)'
ok 'others are taken' as alice 2 esubmit -o /dev/null 1 true
as carol 1 sh -c 'for i in $(seq 25); do esubmit -o /dev/null 1 true 2>&1 >>ids || exit; done' >"$tmp/filled" 2>&1
is 'of an administrator it takes more' "$? $(as carol 1 grep -cE '^[0-9]+$' ids)" '0 25' || diag "$(tail -n 1 "$tmp/filled")"
is 'and has them all' "$(as carol 1 equery -q | grep -c ' carol .* queued')" 25
ok 'the blocker can be ended' as carol 1 ekill "$blocker"

# Ten thousand connections that do nothing, by one user.
idle() { # SOCKET NODE
    local socket=$1 fifo=$tmp/idle.in slowest
    rm -f "$fifo"
    mkfifo "$fifo"
    as alice 1 sh -c 'ulimit -n "$(ulimit -Hn)"; exec python3 /home/call.py "$1" idle 10000' - "$socket" <"$fifo" >"$tmp/idle.out" 2>&1 &
    exec 7>"$fifo"
    wait_for 60 "$socket: the connections are made, or refused" grep -q ready "$tmp/idle.out"
    diag "$(cat "$tmp/idle.out")"
    slowest=$(LAB_FIFO=50 call bob 1 "$socket" ask 50) # does not wait behind this machine's other work
    diag "slowest of 50 answers: $slowest ms"
    ok "$socket: others are answered within 100 ms" test "$slowest" -lt 100
    ok "$socket: and their jobs run" hosts_up 1
    exec 7>&-
    wait
}
idle $own
idle $rsd
like 'the refusal names the limit' "$(on 1 journalctl -q -o cat --no-pager -u elmer)" 'a user may have 1024 \(user_connections in elmer.conf\)'
like "rsd's too" "$(on 1 journalctl -q -o cat --no-pager -u "rsd*")" 'a user may have 1024 \(user_connections in rsd.conf\)'

# Slow ones, and more requests than anybody needs.
is 'a frame that comes byte by byte harms nobody' "$(call bob 1 $own slow)" sent
for socket in $own $rsd; do
    flood=$(call alice 1 "$socket" flood 60000)
    diag "$socket: answered, refused: $flood"
    ok "$socket: a flood of requests leaves others their answers" hosts_up 1
    ok "$socket: and is refused" test "${flood#* }" -gt 100
done
done_testing
