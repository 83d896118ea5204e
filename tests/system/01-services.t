#!/bin/bash
# What make install gives is a running cluster: the services on the nodes, as an administrator meets them.
. "$(dirname "$0")/lib.sh"

lab_up 3
ok 'the units are clean' on 1 systemd-analyze verify --man=no elmer.service rsd.service rsd-spawn.service rsd-net.service rsd-tickets.service
for unit in 1:elmer 1:rsd 2:rsd 3:rsd; do
    is "${unit#*:} runs on node ${unit%:*}" "$(on "${unit%:*}" systemctl is-active "${unit#*:}")" active
done
[ "$failures" -eq 0 ] || bail_out 'the services do not run'
is 'elmer runs on node 1 only' "$(on 2 systemctl is-active elmer)" inactive


rank() { # NODE UNIT -> class and priority of the main process
    on "$1" sh -c 'chrt -p "$(systemctl show -P MainPID "$1")"' - "$2" | sed 's/.*: //' | xargs
}
is 'elmer outranks every job' "$(rank 1 elmer)" 'SCHED_FIFO 60'
is 'and so does rsd' "$(rank 2 rsd)" 'SCHED_FIFO 60'
is 'elmer is not root' "$(on 1 sh -c 'stat -c %U /proc/$(systemctl show -P MainPID elmer)')" elmer

forge() { # from the unit's group, and as root
    on 2 sh -c 'echo $$ >/sys/fs/cgroup/system.slice/rsd.service/cgroup.procs && NOTIFY_SOCKET=/run/systemd/notify systemd-notify --status=forged'
}
ok 'a process of the service that is not its main one says something to systemd' forge
like 'which listens to rsd itself alone' "$(on 2 systemctl show -P StatusText rsd)" '^mode '

main_pid() { on "$1" systemctl show -P MainPID "$2"; }
back() { test "$(main_pid "$1" "$2")" -gt 0 && test "$(main_pid "$1" "$2")" != "$3" && on "$1" systemctl -q is-active "$2"; }
for unit in 1:elmer 2:rsd; do
    k=${unit%:*} unit=${unit#*:}
    for _ in 1 2 3 4 5 6 7; do # more often than systemd's default limit
        old=$(main_pid "$k" "$unit")
        on "$k" systemctl kill --kill-whom=main -s KILL "$unit"
        until_ok 20 back "$k" "$unit" "$old"
    done
    ok "$unit comes back however often it is killed" back "$k" "$unit" "$old"
done

bad_config() { # NODE UNIT FILE: start the unit with a key that does not exist
    on "$1" sh -c 'cp "$2" "$2.good"; echo "no_such_key = 1" >>"$2"; systemctl restart "$1" 2>/dev/null; mv "$2.good" "$2"' - "$2" "$3"
}
says() { on "$1" journalctl -u "$2" -o cat --no-pager -n 20 | grep -E "$3"; } # NODE UNIT PATTERN; journald may be behind
for unit in 1:elmer 2:rsd; do
    k=${unit%:*} unit=${unit#*:}
    bad_config "$k" "$unit" "/etc/elmer/$unit.conf"
    within 20 "a wrong key stops $unit with file, line and key" says "$k" "$unit" "/etc/elmer/$unit.conf:[0-9]+.*no_such_key"
    is "and systemd does not try again" "$(on "$k" systemctl show -P ActiveState "$unit")" failed
    ok "with the key gone $unit starts" on "$k" systemctl restart "$unit"
done
done_testing
