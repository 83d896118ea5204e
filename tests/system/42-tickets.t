#!/bin/bash
# A network half that was taken over, and so an elmer that was, whose orders it passes on: in place of rsd's own one it asks the
# root half for what nobody has submitted, and for what somebody has, once more.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
on 1 sh -c 'cat >/home/hostile-net && chmod 755 /home/hostile-net' <"$here/programs/hostile_net.py"
on 2 sh -c 'cat >/home/hostile-net && chmod 755 /home/hostile-net' <"$here/programs/hostile_net.py"
hostile() { # on|off: whose program the network half of node 1 is
    if [ "$1" = on ]; then
        on 1 sh -c 'mkdir -p /run/systemd/system/rsd-net.service.d
            printf "[Service]\nType=simple\nWatchdogSec=0\nProtectHome=no\nExecStart=\nExecStart=/home/hostile-net\n" >/run/systemd/system/rsd-net.service.d/hostile.conf'
    else
        on 1 rm -f /run/systemd/system/rsd-net.service.d/hostile.conf
    fi
    on 1 systemctl daemon-reload
    on 1 systemctl restart rsd-net
}
restart_with() { # LINE..: in rsd.conf of node 1, in place of those of the time before
    printf '%s\n' "$@" | on 1 sh -c 'sed -i "/^# hostile/,\$ d" /etc/elmer/rsd.conf; { echo "# hostile"; cat; } >>/etc/elmer/rsd.conf; systemctl restart rsd'
}
said() { on 1 journalctl -u "rsd*" -o cat | sed -n "s/^hostile: $1: //p"; } # CASE
finished_cases() { on 1 journalctl -u "rsd*" -o cat | grep -qx "hostile: $1: finished"; }

# alice submits on node 2, by what every program may do; elmer and node 1 get it all
as alice 2 /home/hostile-net ticket >"$tmp/ticket"
on 1 sh -c 'cat >/home/ticket' <"$tmp/ticket"
like 'a user gets a ticket' "$(cat "$tmp/ticket")" '^[0-9a-f]{400,}$'
is 'and no file of the key' "$(as alice 2 sh -c 'cat /var/lib/elmer-ticket/key; ls /var/lib/elmer-ticket' 2>/dev/null)" ''

ticket_of_another_cluster 2 >"$tmp/other"
like 'another cluster gives her one as well' "$(cat "$tmp/other")" '^[0-9a-f]{400,}$'
on 1 sh -c 'cat >/home/other' <"$tmp/other"

like 'whoever has it cannot submit with it on another host' "$(as alice 1 /home/hostile-net submit <"$tmp/ticket")" \
    'its ticket was signed by ws2, and it comes from ws1'
like '... which the log of elmer says' "$(on 1 journalctl -u elmer -o cat)" \
    'host=ws1 user=alice submission refused: its ticket is of host=ws2'

hostile on
wait_for 20 'the hostile network half has asked for everything' finished_cases all
for case in 'without a ticket:missing' "for a user who did not submit:other-user" "with another's uid:other-user" 'cut short:garbled' \
    'one digit changed:forged' 'as another kind of job:other-launcher' 'on more processors:too-many-processors' 'with memory that was not asked for:other-memory' \
    'opened once more, on more processors:too-many-processors' 'a process on more processors:too-many-processors' \
    'changed argument:other-command' 'LD_PRELOAD:other-environment' 'a variable less:other-environment' \
    'other value of a variable of ours:added-variable' 'other directory:other-place' 'other umask:other-place' \
    'other output:other-output' 'a rank more:no-such-rank' "a virtual machine's daemon:other-helper" \
    "another cluster's:other-cluster" 'and with another argument:other-command' 'again:used' 'as another job:used' 'as the next attempt:used' 'as an attempt of long ago:too-often'; do
    like "refused, ${case%%:*}" "$(said "${case%%:*}")" "\\(ticket ${case##*:}\\)\$"
    like "... with a line of the log" "$(on 1 journalctl -u "rsd*" -o cat)" "job=[0-9]+ refused, ticket ${case##*:}"
done
like 'what alice has submitted runs' "$(said 'as submitted')" '^exited 0$'
is 'what is said of a rank that is asked for twice is what was said before' "$(said 'its rank once more')" 'exited 0'
is 'once, and nothing else has run' "$(as alice 1 cat ran)" ran
is 'as her' "$(as alice 1 stat -c %U ran)" alice

as alice 2 /home/hostile-net ticket >"$tmp/ticket"
on 1 sh -c 'cat >/home/ticket; echo removed >/home/cases' <"$tmp/ticket"
restart_with 'vouch = all !ws2'
wait_for 20 'once more, when the administrator believes that host no longer' finished_cases removed
like "refused, a removed host's" "$(said 'of a removed host')" '\(ticket not-vouched\)$'
is 'and nothing has run' "$(as alice 1 cat ran)" ran

restart_with
hostile off
wait_for 20 'the own network half serves as before' hosts_up 2
id=$(submit alice -w -o /dev/null 1 true)
wait_for 10 'and jobs run' over "$id"

# After a power cut elmer is there before rsd: who submits then is not left without a ticket
on 1 sh -c 'systemctl stop rsd && rm /run/elmer-rsd/*.sock'
submit alice -o /dev/null 1 true >"$tmp/early" &
early=$!
wait_for 5 'a submission finds elmer, but no rsd' on 1 pgrep -x esubmit
on 1 systemctl start rsd
wait "$early"
like 'it waits for a moment, and is accepted' "$(cat "$tmp/early")" '^[0-9]+$'
id=$(cat "$tmp/early")
wait_for 20 'it has been signed, and runs' over "$id"
is '... to its end' "$(field "$id" 'j["reason_code"]')" exited

# ... nor where systemd listens for rsd already, and for who signs not yet
on 1 sh -c 'systemctl stop rsd && rm /run/elmer-rsd/*.sock
    nc -lkU /run/elmer-rsd/rsd.sock </dev/null >/dev/null 2>&1 & echo $! >/run/nc.pid'
until_ok 5 on 1 chmod 666 /run/elmer-rsd/rsd.sock
submit alice -o /dev/null 1 true >"$tmp/early" &
early=$!
waits_for_a_second() { [ "$(on 1 ps -C esubmit -o etimes= | xargs)" -ge 1 ]; }
wait_for 5 'a submission finds elmer, and one socket of two: it waits' waits_for_a_second
on 1 sh -c 'kill "$(cat /run/nc.pid)"; systemctl start rsd'
wait "$early"
id=$(cat "$tmp/early")
wait_for 20 'is signed, and runs' over "$id"
is '... to its end, too' "$(field "$id" 'j["reason_code"]')" exited

# ... and where it stays away nothing is submitted that would be refused on its host
on 1 sh -c 'systemctl stop rsd && rm -f /run/elmer-rsd/*.sock'
begun=$SECONDS
as alice 1 esubmit -o /dev/null 1 true >"$tmp/early" 2>"$tmp/said"
is 'without rsd a submission fails' $? 6
like 'and says why' "$(cat "$tmp/said")" 'rsd does not run on this host, so nobody signs the submission: systemctl start rsd$'
ok 'in some seconds' test $((SECONDS - begun)) -le 20
on 1 systemctl start rsd
is 'nothing was accepted' "$(submit alice -o /dev/null 1 true)" $((id + 1))
done_testing
