#!/bin/bash
# A PVM job over two workstations, where /etc/hosts names the own host by 127.0.1.1 too, as Debian's installer writes it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
wait_for 20 'all hosts are up' hosts_up 2
examples=/usr/libexec/elmer/examples
id=$(submit alice --pvm -w -o /home/alice/ep.out 2 "$examples/ep" -P 2 -c S)
is 'ep of class S ends well' "$(field "$id" 'j["exit_status"]')" 0
like 'and verifies' "$(as alice 1 cat ep.out)" 'verified|VERIFIED'
id=$(submit bob --pvm -w -o /home/bob/barrier.out 2 "$examples/barrier" -P 2 -v 3)
is 'barrier works' "$(field "$id" 'j["exit_status"]')" 0
is 'and has computed on both' "$(computed_on "$id")" "['ws1', 'ws2']"
wait_for 10 'nothing of it is left' nothing_left "$id"
for k in 1 2; do
    is "no pvmd on ws$k, no file of PVM in /tmp" "$(on $k sh -c 'pgrep -x pvmd; ls /tmp | grep pvm')" ''
done
done_testing
