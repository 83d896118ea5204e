#!/bin/bash
# eadmin shutdown and reboot: a host is drained, its jobs are waited for, and then it goes down, or it is said what to run there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'kill_grace = 200ms'
install_programs

exit_of() { # NAME STATUS WORD CMD..
    local name=$1 status=$2 word=$3 out rc=0
    shift 3
    out=$("$@" 2>&1) || rc=$?
    is "$name: exit status" $rc "$status"
    like "$name: what it says" "$out" "$word"
}
# systemctl is a script that writes down what it was called with.
on 1 sh -c 'mkdir -p /root/bin; printf "#!/bin/sh\necho \"\$*\" >>/root/called\n" >/root/bin/systemctl; chmod 755 /root/bin/systemctl'
here() { on 1 env PATH=/root/bin:/usr/bin:/bin:/usr/sbin:/sbin eadmin "$@"; }
called() { on 1 sh -c 'cat /root/called 2>/dev/null'; }

exit_of 'no host' 2 'the name of a host is missing' here reboot
exit_of 'two hosts' 2 'one host at a time' here reboot ws1 ws2
exit_of 'a host that is none' 1 'ws9' here reboot ws9
exit_of 'the own host by a user' 5 'only administrators' as alice 1 eadmin shutdown ws1
exit_of 'another host by a user' 5 'only administrators' as alice 1 eadmin shutdown ws2
is 'nothing has been drained' "$(on 1 eadmin hosts | grep -c drained)" 0

job=$(submit alice -o /dev/null --hosts ws2 sleep 1000)
wait_for 20 'a job runs on ws2' running "$job"
as carol 1 eadmin shutdown ws2 >"$tmp/out" 2>&1 &
waits=$!
drained() { on 1 eadmin hosts | grep -qE "^$1 +drained .*drained by $2 .*: $3"; }
wait_for 10 'the host is drained, with the reason' drained ws2 carol shutdown
waits_for() { grep -q "^waiting for 1 job: $job\$" "$tmp/out"; }
wait_for 10 'and the command waits for the job' waits_for
is 'which runs on' "$(state "$job")" running
as alice 1 ekill "$job" >/dev/null 2>&1
wait $waits
is 'then it has ended' $? 0
like 'and says what to run there' "$(cat "$tmp/out")" 'host ws2 has no jobs.*eadmin resume ws2.*as root on ws2: systemctl poweroff'
is 'nothing was called for that host' "$(called)" ''
as carol 1 eadmin resume ws2 >/dev/null

job=$(submit alice -o /dev/null --hosts ws2 sleep 1000)
wait_for 20 'a job runs there again' running "$job"
as carol 1 eadmin drain ws2 --wait >"$tmp/out" 2>&1 &
waits=$!
wait_for 10 'drain --wait waits for it, too' waits_for
is 'and lets it run' "$(state "$job")" running
as alice 1 ekill "$job" >/dev/null 2>&1
wait $waits
is 'until it has ended' $? 0
is 'and that is all that it says' "$(cat "$tmp/out")" "host ws2 takes no new jobs
waiting for 1 job: $job
host ws2 has no jobs"
as carol 1 eadmin resume ws2 >/dev/null

job=$(submit alice -o /dev/null --hosts ws1 sleep 1000)
wait_for 20 'a job runs on the queue host' running "$job"
exit_of 'a job is ended after its time' 0 "host ws1 has no jobs.*eadmin resume ws1" here reboot ws1 --reason kernel --kill-after 1s
is 'then this host goes down' "$(called)" reboot
wait_for 10 'with the reason that was given' drained ws1 root kernel
over "$job"
point $? 'the job has ended'
on 1 rm -f /root/called
exit_of 'without jobs at once' 0 'host ws1 has no jobs' here shutdown ws1
is 'it is switched off' "$(called)" poweroff
is 'eadmin log has both of this host, after the drains; the other one was only drained' "$(on 1 eadmin log --json | python3 -c 'import json, sys
print(*[":".join([d["what"], d["host"], d["by"], d["text"] or ""]) for d in json.load(sys.stdin)["decisions"] if d["what"] in ("shut-down", "rebooted")])')" \
    'rebooted:ws1:root:kernel shut-down:ws1:root:'
done_testing
