#!/bin/bash
# The workstations themselves: what every other file here relies on.
. "$(dirname "$0")/lib.sh"

only_on_nodes 'it is about the nodes themselves'
lab_up 3
group=${LAB_ID:?}

for k in 1 2 3; do
    is "node $k runs systemd and all of its units" "$(on $k systemctl is-system-running)" running
    is "node $k is called ws$k" "$(on $k hostname)" "ws$k"
done
is 'nodes 1 and 3 have the same CPU' "$(on 1 nproc) $(on 3 cat /proc/self/status | grep Cpus_allowed_list:)" \
    "1 $(on 1 cat /proc/self/status | grep Cpus_allowed_list:)"
ok 'node 2 has another' test "$(on 1 grep Cpus_allowed_list: /proc/1/status)" != "$(on 2 grep Cpus_allowed_list: /proc/1/status)"
ok 'real time is granted in a node' on 1 chrt -f 10 true

# users and sessions
for user in alice:2001 bob:2002 carol:2003; do
    is "${user%:*} is ${user#*:} on node 2 and at home" "$(as "${user%:*}" 2 sh -c 'echo $(id -un):$(id -u) $PWD $HOME')" \
        "$user /home/${user%:*} /home/${user%:*}"
done
like 'carol is an administrator' "$(as carol 1 id -Gn)" '(^| )elmer-admin( |$)'
ok 'alice is not' test "$(as alice 1 id -Gn)" = alice
as alice 1 sh -c 'echo shared >file'
is 'homes are shared' "$(as alice 3 cat file)" shared
ok 'bob cannot read what is in it' test "$(as bob 3 cat /home/alice/file 2>/dev/null)" = ''
is 'arguments arrive as they are' "$(as bob 2 printf '<%s>' 'a  b' "c'd" '$HOME *' '')" "<a  b><c'd><\$HOME *><>"
is 'stdin and stdout pass unchanged' "$(head -c 3000000 /dev/urandom | tee "$tmp/random" | as bob 2 cat | sha256sum)" \
    "$(sha256sum <"$tmp/random")"
is 'stderr stays apart' "$(as bob 2 sh -c 'echo out; echo err >&2' 2>/dev/null)" out
for status in 0 1 42 255; do
    as alice 1 sh -c "exit $status"
    is "exit status $status" $? $status
done
as alice 1 sh -c 'kill -TERM $$' 2>/dev/null
is 'a death by a signal is seen' $? 143
is 'nothing of the caller gets in' "$(SECRET=1 as alice 1 env | grep -c SECRET)" 0

# network, power
listening() { on "$1" ss -Hltn | grep -q :7000; }
reach() { on "$1" timeout 3 nc -z -w 1 "ws$2" 7000; }
serve() { on "$1" systemd-run --quiet --collect nc -lk 7000; }
serve 2
until_ok 10 listening 2
ok 'node 1 reaches node 2' reach 1 2
"$lab" link 2 down
ok 'not with the cable pulled' test "$(reach 1 2 && echo reached)" = ''
"$lab" link 2 up
wait_for 10 'but again with the cable back' reach 1 2
on 2 sh -c 'echo kept >/etc/kept; echo gone >/run/gone'
"$lab" crash 2
"$lab" exec 2 true 2>/dev/null
is 'a node without power runs nothing' $? 125
ok 'and does not answer' test "$(reach 1 2 && echo reached)" = ''
ok 'the others go on' on 3 true
ok 'it boots again' "$lab" start 2
is 'with its disk but without its memory' "$(on 2 sh -c 'cat /etc/kept /run/gone 2>/dev/null')" kept
serve 2
wait_for 10 'and is back in the network' reach 1 2
ok 'a node powers off in order' "$lab" stop 3
ok 'and starts again' "$lab" start 3

# a second set beside this one, then nothing
ok 'a second lab can be up at the same time' env LAB_ID="$group-b" "$lab" up 1 --cpus 2
is 'with --cpus 2 a node has two CPUs' "$(LAB_ID=$group-b "$lab" exec 1 nproc)" 2
ok 'it goes down' env LAB_ID="$group-b" "$lab" down
ok 'the first does not notice' on 3 true

traces() {
    grep -F "elmer-lab-$1" /proc/mounts
    find /sys/fs/cgroup -maxdepth 2 -name "elmer-lab-$1*"
    ls -d "/var/tmp/elmer-lab-$1"*
    find /run/systemd/nspawn /run/netns -name "*ws[0-9]*"
    pgrep -f "elmer-lab-$1/"
}
ok 'down' "$lab" down
is 'nothing of it is left' "$(traces "$group" 2>/dev/null)" ''
"$lab" up 2 2>/dev/null &
pid=$!
until_ok 10 test -d "/var/tmp/elmer-lab-$group"
kill -TERM $pid
wait $pid
is 'an interrupted up says so' $? 143
is 'and leaves nothing either' "$(traces "$group" 2>/dev/null)" ''
nodes=0
done_testing
