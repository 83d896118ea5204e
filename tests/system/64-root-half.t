#!/bin/bash
# The root half against users: what a job is born with, what its paths cannot do, and floods of processes on one CPU.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'it looks at groups of the nodes from outside'
lab_up 1 --elmer 'allocator = v1'
install_programs
on 1 sh -c 'cat >/home/bomb && chmod 755 /home/bomb' <"$build/tests/system/bomb"

# ---- rsd's own processes -------------------------------------------------------------------------------------------

rsd=$(on 1 systemctl show -P MainPID rsd)
net=$(on 1 systemctl show -P MainPID rsd-net)
status_of() { on 1 sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; } # PID FIELD
is 'they are two programs, and that of root has nothing of TLS' \
    "$(on 1 sh -c 'readlink "/proc/$1/exe" "/proc/$2/exe"; ldd "/proc/$1/exe" | grep -E "lib(ssl|crypto|uv)\."' - "$rsd" "$net" | xargs)" \
    '/usr/sbin/rsd /usr/libexec/elmer/elmer-rsd-net'
jobs=$(on 1 id -u elmer-jobs)
is 'rsd is not root' "$(status_of "$rsd" Uid | xargs)" "$jobs $jobs $jobs $jobs"
is 'and may rank, no more' "$(for c in Eff Prm Inh Amb; do status_of "$rsd" Cap$c; done | xargs)" \
    '0000000000800000 0000000000800000 0000000000000000 0000000000000000'
is 'nor can get more' "$(status_of "$rsd" NoNewPrivs)" 1
spawn=$(on 1 systemctl show -P MainPID rsd-spawn)
is 'what is root for it has neither libuv nor TLS' "$(on 1 sh -c 'ldd "/proc/$1/exe" | grep -Ec "lib(ssl|crypto|uv|systemd)\."' - "$spawn")" 0
is 'the network half has no capability' "$(for c in Eff Prm Inh Amb Bnd; do status_of "$net" Cap$c; done | sort -u)" 0000000000000000
is 'and cannot get one' "$(status_of "$net" NoNewPrivs)" 1
for pid in "$rsd" "$net" $(on 1 pgrep -x elmer-tickets); do
    is "and a filter of system calls ($(status_of "$pid" Name))" "$(status_of "$pid" Seccomp)" 2
done
is 'what jobs are born of has that of its unit' "$(status_of "$spawn" Seccomp)" 2
is 'which does not take set-user-id programs from them' "$(status_of "$spawn" NoNewPrivs)" 0
for pid in "$rsd" "$net" "$spawn"; do
    # Units of a build with sanitizers have no such limit (tests/lab); what sets its own has it there, too.
    like "a process above all jobs ends when it spins for 5 s ($pid)" "$(on 1 awk '/realtime timeout/ { print $4 }' "/proc/$pid/limits")" "^(5000000${sanitized:+|unlimited})\$"
done

# ---- a supervisor and its user ----

id=$(submit alice -o /dev/null 1 sleep 300)
wait_for 20 'a job runs' running "$id"
supervisor=$(on 1 cat "/sys/fs/cgroup/$jobs_scope/$id.1/sup/cgroup.procs")
own=$(on 1 id -u elmer-sup) alice=$(on 1 id -u alice)
is 'a supervisor has a user of its own, and the user of the job as the effective one' "$(status_of "$supervisor" Uid | xargs)" "$own $alice $own $own"
is 'and may rank, no more' "$(for c in Eff Prm Inh Amb; do status_of "$supervisor" Cap$c; done | xargs)" \
    '0000000000800000 0000000000800000 0000000000000000 0000000000000000'
is 'users cannot read its program' "$(on 1 stat -c %a:%U /usr/libexec/elmer/elmer-supervisor)" 711:root
is 'its user can neither signal it nor see what it has open' \
    "$(as alice 1 sh -c 'for s in CONT STOP CHLD TERM KILL; do kill -$s "$1" 2>/dev/null && echo "$s"; done; ls "/proc/$1/fd" 2>/dev/null' - "$supervisor")" ''
is_root() { # programs of Elmer with a thread that is root in any way
    on 1 sh -c 'for p in /proc/[0-9]*; do
        program=$(readlink "$p/exe") || continue
        case $program in
        /usr/sbin/elmer | /usr/sbin/rsd | /usr/libexec/elmer/*) cat "$p"/task/*/status | grep -q "^Uid:.*[[:space:]]0\([[:space:]]\|\$\)" && echo "${program##*/}" ;;
        esac
    done | sort -u'
}
# Each time that it is looked: one time out of many without the others would prove nothing.
seen=$(for _ in {1..25}; do is_root && sleep 0.2; done | sort -u | xargs)
like 'nothing but elmer-spawn, and the signer of the queue host, is root' "$seen" '^(elmer-signer )?elmer-spawn$'
is 'the keeper of the jobs is not' "$(status_of "$(on 1 cat "/sys/fs/cgroup/$jobs_scope/keeper/cgroup.procs")" Uid | xargs)" "$own $own $own $own"
escapes=$(on 1 pgrep -P "$spawn" -x elmer-escapes)
is 'who looks for what leaves a job may rank, no more' "$(for c in Eff Prm Inh Amb; do status_of "$escapes" Cap$c; done | xargs)" \
    '0000000000800000 0000000000800000 0000000000000000 0000000000000000'
is "and has rsd's group, no other" "$(for f in Gid Groups; do status_of "$escapes" $f; done | xargs)" "$(on 1 id -g elmer-jobs | sed 's/.*/& & & &/')"
on 1 kill -STOP "$supervisor"
as alice 1 ekill "$id"
wait_for 10 'one that is stopped does not hold up the end' over "$id"
wait_for 10 'and nothing is left' nothing_left "$id"
id=$(submit alice -o /dev/null 1 sleep 300)
wait_for 20 'another job runs' running "$id"
on 1 kill -KILL "$(on 1 cat "/sys/fs/cgroup/$jobs_scope/$id.1/sup/cgroup.procs")"
wait_for 10 'one that is killed ends its job' over "$id"
like 'with the reason' "$(on 1 equery --json "$id")" 'supervisor of job [0-9]+ was killed'
wait_for 10 'and nothing is left of that' nothing_left "$id"

# ---- what a job is born with ---------------------------------------------------------------------------------------

out_of() { # SCRIPT: what it prints as a job of alice
    local id
    as alice 1 rm -f out
    id=$(submit alice -o out -v NOTIFY_SOCKET=mine 1 sh -c "$1")
    until_ok 20 over "$id" || diag "job $id: $(state "$id")"
    as alice 1 cat out
}
is 'no capability in any set' "$(out_of 'grep -E "^Cap(Inh|Prm|Eff|Amb)" /proc/self/status | cut -f2 | sort -u')" 0000000000000000
is 'set-user-id programs work as in a shell' "$(out_of 'grep NoNewPrivs /proc/self/status | cut -f2')" 0
is 'no io_uring, as on a kernel without it: its threads go round the cpuset of a job' "$(out_of 'python3 -c "import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for number in 425, 426, 427: # io_uring_setup, _enter, _register
    print(libc.syscall(number, 0, 0, 0, 0, 0, 0), errno.errorcode.get(ctypes.get_errno()))"' | sort -u)" '-1 ENOSYS'
# Refused by the controller, or taken back by the sweep of each second.
is 'and other processors than its own until the next sweep at most' "$(out_of 'python3 -c "import os, time
own = os.sched_getaffinity(0)
try:
    os.sched_setaffinity(0, range(os.cpu_count()))
except OSError:
    pass
end = time.monotonic() + 10
while os.sched_getaffinity(0) != own and time.monotonic() < end:
    time.sleep(0.1)
print(len(own), os.sched_getaffinity(0) == own)"')" '1 True'
is 'the groups of a login' "$(out_of 'id -G')" "$(as alice 1 id -G)"
is 'three descriptors' "$(out_of 'python3 -c "import os
for f in range(200):
    try:
        os.fstat(f)
        print(f)
    except OSError:
        pass"' | xargs)" '0 1 2'
is 'a session of its own, without a terminal' "$(out_of 'set -- $(ps -o pid=,sid=,tty= $$); [ $1 = $2 ] && echo leads, $3')" 'leads, ?'
is 'no signal blocked or ignored' "$(out_of 'grep -E "^Sig(Blk|Ign)" /proc/$$/status | cut -f2 | sort -u')" 0000000000000000
is 'real time is not limited for it, descriptors are as in the unit' \
    "$(out_of 'awk "/realtime timeout/ { print \$4 }" /proc/self/limits; ulimit -Sn' | xargs)" "unlimited $(on 1 systemctl show -P LimitNOFILESoft rsd-spawn)"
is 'nothing of the environment of rsd' "$(out_of 'env | grep -E "^(INVOCATION_ID|JOURNAL_STREAM|WATCHDOG|NOTIFY_SOCKET|LISTEN)"')" NOTIFY_SOCKET=mine
is 'what it preloads is loaded by itself alone' "$(as alice 1 sh -c 'LD_PRELOAD=/no/such.so esubmit -w -o preload 1 sh -c "exit 7" >/dev/null 2>&1; echo $?')" 7

# ---- paths ---------------------------------------------------------------------------------------------------------

as bob 1 sh -c 'echo whole >victim; chmod 644 victim; chmod 711 .'
for how in 'ln -s' ln; do
    as alice 1 sh -c "rm -f trap; $how ~bob/victim trap" 2>/dev/null # the kernel may refuse the hard link already
    as alice 1 esubmit -w -o trap 1 echo hurt >/dev/null 2>&1
    is "another user's file as output, by $how" "$(as bob 1 cat victim)" whole
done
as alice 1 sh -c 'rm -f trap; mkfifo trap'
id=$(submit alice -o trap 1 echo hurt)
wait_for 10 'a FIFO that nobody reads holds up nobody' over "$id"
# a link that changes its aim all the time
as alice 1 sh -c 'rm -f trap; (timeout 5 sh -c "while :; do ln -sfn ~bob/victim trap; ln -sfn mine trap; done") >/dev/null 2>&1 &'
for _ in 1 2 3 4 5; do
    as alice 1 esubmit -w -o trap 1 echo hurt >/dev/null 2>&1
done
is "a link that changes its aim: another user's file" "$(as bob 1 cat victim)" whole

# ---- floods --------------------------------------------------------------------------------------------------------

outrank_jobs # this shell; what is measured goes through `plain`
plain() { chrt -o 0 env LAB_FIFO= "$lab" login "$@"; }
flood() { # NAME JOB [RANK]: a login, and the end of the job from the typing of the command; its rank until then
    local name=$1 job=$2 rank=${3:-} begin group typed
    group=$(job_group 1 "$job")
    wait_for 10 "$name: it has many processes" has_many "$group"
    begin=$(now_ms)
    timeout 20 chrt -o 0 env LAB_FIFO= "$lab" login 1 bob true
    took=$(($(now_ms) - begin))
    if [ "$weighed" -gt 0 ] || [[ $name != *--sessions || $name == 'the first job'* ]]; then
        ok "$name: a login is answered in 5 s ($took ms)" test $took -le 5000
    else
        skip "$name: a login is answered in 5 s" "in $took ms: without the controller cpu the kernel shares by session"
    fi
    [ -z "$rank" ] || ok "$name: it has kept its rank" "$rank" "$group"
    plain 1 alice sh -c 'read -r up _ </proc/uptime; echo "$up" >typed; exec ekill '"$job" >/dev/null 2>&1 &
    until_ok 60 eval '! grep -q "populated 1" "$group/cgroup.events" 2>/dev/null' || diag 'processes are left after 60 s'
    begin=$(now_ms)
    wait $!
    read -r typed < <(as alice 1 cat typed)
    took=$((begin - 10#${typed%.*} * 1000 - 10#${typed#*.} * 10))
    # Without the controller cpu they share the 50 ms of a second that a job in real time above them leaves with ekill, and die in
    # the next 50 ms after it. And each of many sessions has as much of a processor as that of ekill.
    if [ "$weighed" -gt 0 ] || [[ $name != 'below one that spins'* && $name != 'the only job, --sessions' ]]; then
        ok "$name: ekill has ended it in 2 s ($took ms)" test $took -le 2000
    else
        ok "$name: without the controller cpu ekill has ended it in 4 s ($took ms)" test $took -le 4000
    fi
    wait_for 10 "$name: nothing is left" nothing_left "$job"
}
# Policy and nice value of the first process of a group. Not from the journal, whose daemon waits for the CPU too, and without a
# program of its own, which would take the CPU from those that it looks at.
rank_of() {
    local pid stat fields
    read -r pid <"$1/cgroup.procs" && read -r stat <"/proc/$pid/stat" || return
    read -ra fields <<<"${stat##*) }"
    echo "${fields[38]} ${fields[16]}"
}
weighed=$(on 1 grep -cw cpu "/sys/fs/cgroup/$jobs_scope/cgroup.controllers")
crowded() { [ "$(rank_of "$1")" = '2 0' ]; } # SCHED_RR
ordinary() { [ "$(rank_of "$1")" = '0 0' ]; } # SCHED_OTHER
many=300
# Below a job in real time they are made, and end, in 50 ms of each second: so many as it takes 450 ms of CPU time to make, and 300 at most.
cost_us=$(python3 -c '
import os, resource
for _ in range(200):
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
print(round(sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 5000))')
[ $((many * cost_us)) -le 450000 ] || many=$((450000 / cost_us > 60 ? 450000 / cost_us : 60))
[ "$patience" -eq 1 ] || many=60
diag "$many processes, $cost_us us for each"
has_many() { [ "$(wc -l <"$1/cgroup.procs")" -ge "$many" ]; }

for how in '' --sessions; do
    # shellcheck disable=SC2086 # options
    job=$(submit alice -o /dev/null 1 /home/bomb $how --ignore-term $many 25)
    wait_for 10 "$many processes that spin${how:+, $how}, alone: outside of real time" ordinary "$(job_group 1 "$job")"
    flood "the only job${how:+, $how}" "$job"
    # shellcheck disable=SC2086
    job=$(submit alice -o /dev/null 1 /home/bomb $how --ignore-term $many 25)
    below=$(submit alice -o /dev/null 1 /home/testjob 25)
    wait_for 10 "as the first job${how:+, $how}: in real time" crowded "$(job_group 1 "$job")"
    flood "the first job${how:+, $how}" "$job" crowded
    wait_for 5 'the job below runs on' running "$below"
    as alice 1 ekill "$below" >/dev/null 2>&1
    wait_for 5 'and ends' over "$below"
    # Below one that takes all in real time: what is left of each second, 50 ms, is for the others.
    if [ "$weighed" -eq 0 ] && [ -n "$how" ]; then
        skip "below one that spins, $how" 'without the controller cpu the kernel shares by session; 77-bombs has it on machines'
        continue
    fi
    above=$(submit alice -o /dev/null 1 /home/testjob 100)
    # shellcheck disable=SC2086
    job=$(submit alice -o /dev/null 1 /home/bomb $how --ignore-term $many 100)
    flood "below one that spins${how:+, $how}" "$job" ordinary
    as alice 1 ekill "$above" >/dev/null 2>&1
    wait_for 5 'the first has ended' over "$above"
done
above=$(submit alice -o /dev/null 1 /home/testjob --work-us 3000 --wait-us 7000 25)
job=$(submit alice -o /dev/null 1 /home/bomb --ignore-term $many 20)
flood 'below a job that waits' "$job" ordinary
as alice 1 ekill "$above" >/dev/null 2>&1
wait_for 5 'the first has ended' over "$above"
done_testing
