#!/bin/bash
# A job's process that has itself moved into a unit of its user keeps its life, and no rank; what is born there never had one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --elmer 'allocator = v1' --elmer 'levels = 3' --rsd 'tmpdir_size = 8M'
install_programs
uid=$(on 1 id -u alice)
until_ms 10000 on 1 systemctl start "user@$uid.service" || skip_file 'users have no service manager here'

on 1 sh -c 'cat >/home/escape; chmod 755 /home/escape' <<'EOF2'
#!/bin/sh
export XDG_RUNTIME_DIR=/run/user/$(id -u)
until chrt -p $$ | grep -q 'SCHED_FIFO\|SCHED_RR'; do sleep 0.05; done
systemd-run -q --user --unit=born sh -c 'chrt -p $$$$ >/tmp/born; exec /home/testjob 400'
systemd-run -q --user --scope --unit=escaped /home/testjob 400
EOF2
in_unit() { # UNIT: class and priority of its threads
    on 1 sh -c 'ps -L -o cls=,rtprio= -p "$(find /sys/fs/cgroup/user.slice -path "*/$1/cgroup.procs" -exec paste -sd, {} +)"' - "$1" | sort -u | xargs
}
is_in_unit() { [ "$(in_unit "$1")" = "$2" ]; }
has_left() { [ -n "$(in_unit escaped.scope)" ]; }

first=$(submit alice -o /dev/null 1 /home/escape)
later=$(submit bob -o /dev/null 1 /home/testjob 400)
wait_for 20 'a process of the first job leaves it' has_left
wait_for 10 'it is an ordinary one then' is_in_unit escaped.scope 'TS -'
wait_for 10 'the job itself has its rank' eval '[[ $(rank_in 1 "$first") =~ ^(FF|RR)\ 49$ ]]'
is 'what its user had started there is ordinary' "$(in_unit born.service)" 'TS -'
like 'and was from the beginning' "$(on 1 cat /tmp/born)" 'policy: SCHED_OTHER'
as alice 1 ekill "$first"
as bob 1 ekill "$later"
for i in $first $later; do wait_for 10 "job $i ends" over "$i"; done
ok 'what has left lives on' is_in_unit escaped.scope 'TS -'
ok 'and holds nobody up' over "$(submit bob -w -o /dev/null 1 true)"
like 'the log says it' "$(on 1 journalctl -q -o cat --no-pager -u rsd-spawn _TRANSPORT=journal)" "left their job for a group of their user's .*uid=$uid"
on 1 systemctl stop "user@$uid.service"

# ---- its directory ----
room() { on 1 stat -f -c %a /run; }
before=$(room)
filler=$(submit alice -o /dev/null 1 sh -c 'cat /dev/zero >$ELMER_TMPDIR/full; exec /home/testjob 400')
is_full() { [ "$(on 1 stat -f -c %a /run/elmer-rsd/jobs)" = 0 ]; }
wait_for 20 'a job fills its directory' is_full
ok 'and takes less than 4 MB of /run' test $(((before - $(room)) * $(on 1 stat -f -c %S /run))) -lt 4194304
on 1 systemctl restart rsd
ok 'rsd can be restarted' on 1 systemctl -q is-active rsd
wait_for 10 'and others run' hosts_up 1
as alice 1 ekill "$filler"
wait_for 10 'it ends' over "$filler"
wait_for 10 'and leaves nothing' nothing_left "$filler"
done_testing
