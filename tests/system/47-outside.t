#!/bin/bash
# What a job has others start outside of it, by at, cron, ssh, and its user's service manager, never has a rank there; what has itself been
# moved out of the job, by su and by systemd-run, loses rank and CPUs in a moment. The job's end changes nothing of that.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

[ "$LAB" = lab ] || export LAB_PACKAGES='at cron openssh-server' # nodes have them
lab_up 1 --cpus 2 --elmer 'allocator = v1' --elmer 'levels = 3'
install_programs
uid=$(on 1 id -u alice) other=$(on 1 id -u bob)
until_ms 10000 on 1 systemctl start "user@$uid.service" || skip_file 'users have no service manager here'
ok 'atd, cron and sshd run' on 1 systemctl start atd cron ssh
printf '%s:secret\n' alice bob root | on 1 chpasswd
as alice 1 sh -c 'mkdir -p -m 700 .ssh .config/systemd/user && ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519 && cp .ssh/id_ed25519.pub .ssh/authorized_keys
    printf "[Service]\nExecStart=/home/look service\n" >.config/systemd/user/look.service && XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user daemon-reload'

moved=(su-other su-self su-root scope)
born=(at cron ssh service)
on 1 sh -c 'mkdir -m 1777 /home/seen; cat >/home/look; chmod 755 /home/look; for i; do cp /bin/sleep "/home/by-$i"; done' - inside late "${moved[@]}" "${born[@]}" <<'EOF2'
#!/bin/sh
# look -p PID: class, priority, CPUs and group of that process
# look NAME: write what this one is at its first instruction, and for how long it is in real time outside of the job; then be by-NAME
is() {
    echo "$(ps -o cls=,rtprio= -p "$1" | xargs) $(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status") $(sed -n 's/^0:://p' "/proc/$1/cgroup")"
}
ms() { read -r up _ </proc/uptime && echo "${up%.*}${up#*.}0"; }
ranked() { case $(ps -o cls= -p $$) in *FF* | *RR*) ;; *) return 1 ;; esac; }
[ "$1" != -p ] || { is "$2" && exit; }
is $$ >"/home/seen/$1"
begin=$(ms) i=0
while [ "$1" != inside ] && ranked && [ $i -lt 1500 ]; do
    sleep 0.02
    i=$((i + 1))
done
echo $(($(ms) - begin)) >"/home/seen/$1.ms"
exec "/home/by-$1" 600
EOF2
on 1 sh -c 'cat >/home/leave; chmod 755 /home/leave' <<'EOF2'
#!/bin/sh
export XDG_RUNTIME_DIR=/run/user/$(id -u)
until chrt -p $$ | grep -q 'SCHED_FIFO\|SCHED_RR'; do sleep 0.05; done
if [ "$1" = late ]; then # and this job ends in the same moment
    systemd-run -q --user --scope --unit=look-late /home/look late &
    until [ -s /home/seen/late ]; do sleep 0.01; done
    exit
fi
/home/look inside &
echo /home/look at | at now
echo '* * * * * mkdir /home/seen/once && exec /home/look cron' | crontab -
ssh -o StrictHostKeyChecking=no localhost /home/look ssh &
systemctl --user start look
systemd-run -q --user --scope --unit=look-scope /home/look scope &
echo secret | su bob -c '/home/look su-other' &
echo secret | su alice -c '/home/look su-self' &
echo secret | su root -c '/home/look su-root' &
wait
EOF2

all=$(on 1 sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/1/status)
slice=/user.slice/user-$uid.slice
declare -A group=(
    [at]=/system.slice/atd.service [cron]=/system.slice/cron.service
    [ssh]="$slice/session-[0-9c]+.scope" [su-self]="$slice/session-[0-9c]+.scope" [su-other]="/user.slice/user-$other.slice/session-[0-9c]+.scope"
    [su-root]="/user.slice/user-0.slice/session-[0-9c]+.scope"
    [service]="$slice/user@$uid.service/app.slice/look.service" [scope]="$slice/user@$uid.service/app.slice/look-scope.scope"
    [late]="$slice/user@$uid.service/app.slice/look-late.scope"
)
now() { on 1 sh -c 'for p in $(pgrep -x "by-$1"); do /home/look -p "$p"; done' - "$1"; }
there() { [ -n "$(now "$1")" ]; }
is_ordinary() { # NAME: now, in its place
    local is
    is=$(now "$1")
    echo "$is"
    [[ $is =~ ^TS\ -\ $all\ ${group[$1]}$ ]]
}
# All threads in real time in the groups that are users', and of those who start something for them. su itself is root.
ranked_outside() {
    on 1 ps -eLo cls=,rtprio=,user=,comm=,cgroup:600= |
        awk '$1 ~ /^(FF|RR)$/ && $NF ~ /(^|:)\/(user\.slice\/|system\.slice\/(atd|cron|ssh)\.service)/ { print $1, $2, $3, $4 }'
}
none_ranked_outside() {
    local ranked
    ranked=$(ranked_outside)
    echo "$ranked"
    [ -z "$ranked" ]
}
as_they_should_be() { # WHEN
    local i
    for i in "${moved[@]}" "${born[@]}"; do wait_for 2 "$1: $i" is_ordinary "$i"; done
    within 5 "$1: nothing of them is in real time" none_ranked_outside
}

# ---- while the job runs ----
job=$(submit alice -o /home/alice/said 1 /home/leave)
below=$(submit bob -o /dev/null --each 2 sleep 400) # else there is nobody to be ranked above
wait_for 20 'a process stays in the job' there inside || bail_out 'the job has no rank'
like 'it has a rank, and the CPU of its job' "$(now inside)" "^(FF|RR) 49 [0-9]+ /$jobs_scope/$job.1/job$"
for i in "${moved[@]}" at ssh service; do wait_for 20 "$i starts one" there "$i"; done
wait_for 70 'cron starts one' there cron
as_they_should_be 'while the job runs'
for i in "${born[@]}"; do like "$i: from its first instruction" "$(on 1 cat "/home/seen/$i")" "^TS - $all ${group[$i]}$"; done
for i in "${moved[@]}"; do
    diag "$i: $(on 1 cat "/home/seen/$i") when it had left, for $(on 1 cat "/home/seen/$i.ms") ms"
    like "$i: where it began" "$(on 1 cat "/home/seen/$i")" " ${group[$i]}$"
    ok "$i: in real time for 5 s at most" test "$(on 1 cat "/home/seen/$i.ms")" -le $((5000 * patience))
done
like 'what has stayed has its rank' "$(now inside)" "^(FF|RR) 49 [0-9]+ /$jobs_scope/$job.1/job$"

# ---- when it has ended ----
as alice 1 ekill "$job"
as bob 1 ekill "$below"
for i in $job $below; do wait_for 10 "job $i ends" over "$i"; done
is 'what was in it has ended' "$(now inside)" ''
as_they_should_be 'when it has ended'
ok 'and holds nobody up' over "$(submit bob -w -o /dev/null --each 2 true)"

# ---- as it ends ----
job=$(submit alice -o /dev/null 1 /home/leave late)
below=$(submit bob -o /dev/null --each 2 sh -c 'until [ -s /home/seen/late ]; do sleep 0.01; done') # so that no job is left
for i in $job $below; do wait_for 20 "job $i ends in the moment in which a process leaves" over "$i"; done
wait_for 20 'that one lives' there late
ok 'it is ordinary in 5 s at most' test "$(on 1 cat /home/seen/late.ms)" -le $((5000 * patience))
wait_for 2 'with all CPUs' is_ordinary late
within 5 'nothing outside is in real time' none_ranked_outside

as alice 1 crontab -r
on 1 pkill '^by-'
done_testing
