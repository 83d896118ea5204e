#!/bin/bash
# Bad input on every socket: the daemons go on, and say it in one line.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs
keeper=$(submit alice -o /dev/null 1 /home/testjob --work-us 1000 --wait-us 20000 400)

on 1 sh -c 'cat >/home/hostile.py; chmod 644 /home/hostile.py' <<'EOF2'
import os, select, socket, struct, sys, time
where, what = sys.argv[1:]
def connect():
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(where)
    else:
        host, port = where.split(":")
        s = socket.create_connection((host, int(port)))
    s.settimeout(10)
    return s
def frame(text):
    return struct.pack(">I", len(text)) + text
hello = frame(b'{"type":"hello","id":0,"program":"hostile","major":1,"minor":0,"capabilities":[]}')
inputs = {
    "garbage": os.urandom(4096),
    "text": b"GET / HTTP/1.0\r\n\r\n",
    "oversize": struct.pack(">I", 0xffffffff) + b"x" * 100000,
    "just-too-large": struct.pack(">I", (1 << 20) + 1) + b"x" * 100000,
    "empty-frame": struct.pack(">I", 0),
    "not-json": frame(b"hello"),
    "deep": frame(b"[" * 100000),
    "unknown": hello + frame(b'{"type":"no-such-message","id":1}'),
    "unknown-key": hello + frame(b'{"type":"query","id":1,"running":true,"queued":true,"jobs":[],"more":1}'),
    "missing-key": hello + frame(b'{"type":"query","id":1}'),
    "wrong-type": hello + frame(b'{"type":"kill","id":1,"job":"1"}'),
    "not-mine": hello + frame(b'{"type":"order","id":0,"generation":999999,"entries":[]}'),
    "not-utf8": hello + frame(b'{"type":"error","id":0,"code":"\xff\xfe","text":""}'),
    "nul": hello + frame(b'{"type":"error","id":0,"code":"a\\u0000b","text":""}'),
    "other-version": frame(b'{"type":"hello","id":0,"program":"hostile","major":99,"minor":0,"capabilities":[]}'),
}
def closed(s):
    "True when the daemon ends the connection by itself"
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    except socket.timeout:
        return False
    return True
if what == "half-open":
    idle = [connect() for _ in range(20)]
    idle[0].send(b"\0\0")
    print(all(closed(s) for s in idle))
elif what == "silent":      # requests without end whose answers nobody reads, until standard input ends
    query = frame(b'{"type":"query","id":1,"running":true,"queued":true,"jobs":[]}') * 100
    s, rest, asked = connect(), hello + query, 0
    s.setblocking(False)
    while not select.select([0], [s], [])[0]:
        try:
            rest = rest[s.send(rest):] or query
        except BlockingIOError:
            pass
        except OSError:         # cut off: again
            s, rest = connect(), hello + query
            s.setblocking(False)
        asked += 1
        if asked == 10:
            print("begun", flush=True)
    print("over", flush=True)
else:
    s = connect()
    try:
        s.sendall(inputs[what])
    except ConnectionError:
        pass
    print(closed(s))
EOF2

serving() { timeout $((10 * leniency)) "$lab" login "$1" alice equery -r | grep -q running; }
pids() { for u in elmer rsd; do on 1 systemctl show -P MainPID $u; done | xargs; }
before=$(pids) before2=$(on 2 systemctl show -P MainPID rsd)
lines() { on 1 journalctl -q -o cat --no-pager -u elmer -u "rsd*" | wc -l; }
more_lines() { [ "$(lines)" -gt "$1" ]; }
attack() { # NAME NODE USER ADDRESS
    local name=$1 what n lines
    for what in garbage text oversize just-too-large empty-frame not-json deep unknown unknown-key missing-key wrong-type not-mine not-utf8 nul other-version; do
        lines=$(lines)
        is "$name: $what is cut off" "$(as "$3" "$2" python3 /home/hostile.py "$4" "$what" 2>&1 | tail -n 1)" True
        [ "$2" -ne 1 ] || until_ok 10 more_lines "$lines" || true # journald writes it a moment later
        n=$(($(lines) - lines))
        [ "$2" -ne 1 ] || ok "$name: $what is logged in one line, or a few for many connections" test $n -ge 1 -a $n -le 30
    done
}
lines_like() { on 1 journalctl -q -o cat --no-pager -u elmer -u "rsd*" | grep -cE "$1"; }
half_open() { # of all sockets at once, as each waits 10 s for a hello; lines that peers cause are limited, by socket: 30 in 10 s
    local i n name node user address regex earlier=() pids=()
    for i in "${!sockets[@]}"; do
        IFS='|' read -r name node user address regex <<<"${sockets[i]}"
        earlier[i]=$(lines_like "$regex")
        as "$user" "$node" python3 /home/hostile.py "$address" half-open >"$tmp/half-open$i" 2>&1 &
        pids[i]=$!
    done
    wait "${pids[@]}"
    for i in "${!sockets[@]}"; do
        IFS='|' read -r name node user address regex <<<"${sockets[i]}"
        is "$name: half-open is cut off" "$(tail -n 1 "$tmp/half-open$i")" True
        n=$(($(lines_like "$regex") - earlier[i]))
        [ "$node" -ne 1 ] || ok "$name: half-open is logged in one line, or a few for many connections ($n)" test $n -ge 1 -a $n -le 30
    done
}
served_beside() { # NAME NODE USER ADDRESS: others are asked for while it goes on, not after it
    local said=$tmp/silent feed
    : >"$said"
    mkfifo "$tmp/feed"
    as "$3" "$2" python3 /home/hostile.py "$4" silent <"$tmp/feed" >"$said" 2>&1 &
    exec {feed}>"$tmp/feed"
    wait_for 20 "$1: requests whose answers nobody reads come without end" grep -q begun "$said"
    for k in 1 2; do
        ok "$1: others are served meanwhile on ws$k" serving $k
    done
    is "$1: and they have come all the time" "$(tail -n 1 "$said")" begun
    exec {feed}>&-
    wait $!
    rm "$tmp/feed"
}
sockets=( # NAME|NODE|USER|ADDRESS|REGEX of what is logged on node 1 of a link that says nothing
    "elmer's socket for users|1|bob|/run/elmer/elmer.sock|link of a client ended: no hello"
    "rsd's socket for users|1|bob|/run/elmer-rsd/rsd.sock|connection of a local program ended: no hello"
    "rsd's socket on another host|2|bob|/run/elmer-rsd/rsd.sock|"
    "elmer's socket for the local rsd|1|root|/run/elmer/elmer-host.sock|a host's link( from the unix socket)? ended: no hello|no host_hello in time .from the unix socket"
    "elmer's port for hosts|2|bob|ws1:7110|"
)
each_socket() { # CMD: with the four words of each
    local socket name node user address regex
    for socket in "${sockets[@]}"; do
        IFS='|' read -r name node user address regex <<<"$socket"
        "$1" "$name" "$node" "$user" "$address"
    done
}
each_socket attack
is 'users are cut off from the socket for the local rsd' "$(as bob 1 python3 /home/hostile.py /run/elmer/elmer-host.sock other-version 2>&1 | tail -n 1)" True
half_open
each_socket served_beside
is 'no daemon was restarted' "$(pids) $(on 2 systemctl show -P MainPID rsd)" "$before $before2"
is 'a job that ran meanwhile runs on' "$(state "$keeper")" running
id=$(submit carol -o /dev/null 2 true)
wait_for 20 'and others are started everywhere' over "$id"
ok 'it can be killed' as alice 2 ekill "$keeper"
wait_for 5 'and ends' over "$keeper"
done_testing
