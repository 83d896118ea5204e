#!/bin/bash
# Lists of jobs, of which one costs elmer as much as thousands of other requests: who asks for them without end takes a bounded
# part of a CPU from the jobs there, and ends no daemon.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --cpus 2 --elmer 'allocator = v1' --elmer 'levels = 1' --rsd 'tickets = accept'
install_programs
on 1 sh -c 'cat >/home/lists.py; chmod 644 /home/lists.py' <<'EOF2'
import socket, struct, sys, threading, time
def frame(message):
    return struct.pack(">I", len(message)) + message
where, until, sizes = sys.argv[1], time.monotonic() + float(sys.argv[2]), []
hello = frame(b'{"type":"hello","id":0,"program":"lists","major":1,"minor":0,"capabilities":[]}')
def asks(first, count):
    return b"".join(frame(b'{"type":"query","id":%d,"running":true,"queued":true,"jobs":[]}' % i) for i in range(first, first + count))
def read():
    s, size, asked = socket.socket(socket.AF_UNIX), 0, 30
    s.settimeout(1)
    s.connect(where)
    s.sendall(hello + asks(1, asked))
    while time.monotonic() < until:
        try:
            got = s.recv(1 << 20)
        except TimeoutError:
            continue
        if not got:
            sys.exit("the connection has ended")
        size += len(got)
        answered = got.count(b'"more":false')
        s.sendall(asks(asked + 1, answered))
        asked += answered
    sizes.append(size)
readers = [threading.Thread(target=read) for i in range(16)]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
if len(sizes) < 16:
    sys.exit("%d of 16 readers have been cut off" % (16 - len(sizes)))
print(sum(sizes) >> 20)
EOF2

blocker=$(submit alice -o /dev/null 2 sleep 600)
wait_for 10 'the processors are taken' running "$blocker"
as alice 1 sh -c 'for i in $(seq 400); do esubmit -o /dev/null 1 true; done' >/dev/null 2>&1
is 'jobs wait' "$(as alice 1 equery -q | grep -c ' queued')" 400

pids() { on 1 systemctl show -P MainPID elmer rsd rsd-net | xargs; }
used_ms() { on 1 systemctl show -P CPUUsageNSec elmer | awk '{ print int($1 / 1000000) }'; }
before=$(pids)
flood() { # USER SOCKET SECONDS MOST-MS
    local used got
    used=$(used_ms)
    got=$(as "$1" 1 python3 /home/lists.py "$2" "$3" 2>&1)
    ok "$2: all who ask are answered, with MB: $got" test "$got" -ge 30
    used=$(($(used_ms) - used))
    diag "$used ms of elmer"
    ok "$2: lists without end, for $3 s, take so much of elmer's time at most: $4 ms" test "$used" -le "$4"
}
# 3 s at once and 50 ms in each second, and what it costs to read requests that wait.
flood alice /run/elmer/elmer.sock 20 5500
is 'no daemon has ended' "$(pids)" "$before"
ok 'others are answered' eval '[ "$(as bob 1 equery -q | grep -c " queued")" = 400 ]'
flood bob /run/elmer-rsd/rsd.sock 10 4800
is 'no daemon has ended of those through rsd either' "$(pids)" "$before"
as alice 1 ekill "$blocker"
done_testing
