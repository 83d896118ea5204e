#!/bin/bash
# An elmer that was taken: in place of the real one, with its key, it asks a host that links for what nobody has submitted, and for
# what somebody has, once more. 42-tickets.t has a network half that was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
for k in 1 2; do on "$k" sh -c 'cat >/home/hostile-net && chmod 755 /home/hostile-net' <"$here/programs/hostile_net.py"; done
said() { on 1 sed -n "s/^hostile: $1: //p" /home/said; } # CASE

# alice submits on node 1; whoever holds elmer has what she gave it
as alice 1 /home/hostile-net ticket >"$tmp/ticket"
like 'a user gets a ticket' "$(cat "$tmp/ticket")" '^[0-9a-f]{400,}$'
on 1 sh -c 'cat >/home/ticket' <"$tmp/ticket"
ticket_of_another_cluster 2 >"$tmp/other"
like 'another cluster gives her one as well' "$(cat "$tmp/other")" '^[0-9a-f]{400,}$'
on 1 sh -c 'cat >/home/other' <"$tmp/other"
on 1 systemctl stop elmer
on 1 sh -c '(/home/hostile-net elmer >/dev/null 2>/home/said </dev/null & echo $! >/home/pid)'
wait_for 20 'it listens where elmer did' on 1 grep -qx 'hostile: elmer: listens' /home/said
wait_for 60 'and a host links, because it has the key' on 1 grep -qx 'hostile: elmer: linked' /home/said
wait_for 60 'it has asked for everything' on 1 grep -qx 'hostile: all: finished' /home/said
for case in 'without a ticket:missing' "for a user who did not submit:other-user" "with another's uid:other-user" 'cut short:garbled' \
    'one digit changed:forged' 'as another kind of job:other-launcher' 'on more processors:too-many-processors' 'with memory that was not asked for:other-memory' \
    'opened once more, on more processors:too-many-processors' 'a process on more processors:too-many-processors' \
    'changed argument:other-command' 'LD_PRELOAD:other-environment' 'a variable less:other-environment' \
    'other value of a variable of ours:added-variable' 'other directory:other-place' 'other umask:other-place' \
    'other output:other-output' 'a rank more:no-such-rank' "a virtual machine's daemon:other-helper" \
    "another cluster's:other-cluster" 'and with another argument:other-command' 'again:used' 'as another job:used' 'as the next attempt:used' 'as an attempt of long ago:too-often'; do
    like "refused, ${case%%:*}" "$(said "${case%%:*}")" "\\(ticket ${case##*:}\\)\$"
    like '... with a line of the log there' "$(on 2 journalctl -u rsd -o cat)" "job=[0-9]+ refused, ticket ${case##*:}"
done
like 'what alice has submitted runs' "$(said 'as submitted')" '^exited 0$'
is 'what is said of a rank that is asked for twice is what was said before' "$(said 'its rank once more')" 'exited 0'
is 'once, and nothing else has run' "$(as alice 2 cat ran)" ran
is 'as her' "$(as alice 2 stat -c %U ran)" alice

on 1 sh -c 'kill $(cat /home/pid)'
on 1 systemctl start elmer
wait_for 60 'the real elmer serves as before' hosts_up 2
id=$(submit alice -w -o /dev/null 1 true)
wait_for 10 'and jobs run' over "$id"
done_testing
