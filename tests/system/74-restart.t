#!/bin/bash
# Restarts of the daemons below jobs that run: the same processes, at the same ranks.
# The jobs leave most of the CPU: how long systemd takes behind jobs that spin is not the question here.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

# A daemon that an emulated machine needs a minute to start is not a host that is lost.
lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 3' --elmer 'host_timeout = 300s'
install_programs
outrank_jobs
a=$(submit alice -o /dev/null --each 2 /home/testjob --work-us 2000 --wait-us 8000 600)
b=$(submit bob -o /dev/null --each 2 /home/testjob --work-us 2000 --wait-us 8000 600)
in_real_time() { # both jobs have their ranks on both machines
    local k
    for k in 1 2; do [[ $(ranks_of $k "$a") =~ FF\ 4 ]] && [[ $(ranks_of $k "$b") = *TS* ]] || return 1; done
}
wait_for 20 'two jobs run on both, the first in real time' in_real_time || diag "$(ranks_of 1 "$a" "$b")"
picture() { # process, class, priority and command of each thread of both jobs
    local k
    for k in 1 2; do ranks_of $k "$a" "$b"; done
}
before=$(picture)
for what in 'restart rsd' 'restart elmer' 'restart elmer rsd' 'kill -s KILL --kill-whom=main rsd' 'kill -s KILL --kill-whom=main elmer' daemon-reexec; do
    for k in 2 1; do
        [ $k = 1 ] || [[ $what != *elmer* ]] || continue # it runs on ws1 only
        # shellcheck disable=SC2086 # words
        on $k systemctl $what
    done
    wait_for 20 "systemctl $what: both hosts are up" up_again
    is "systemctl $what: the same processes at the same ranks" "$(picture)" "$before"
done
ok 'the jobs can be ended' as alice 1 ekill "$a"
as bob 1 ekill "$b"
for i in $a $b; do
    wait_for 10 "job $i ends" over "$i"
    is "job $i was not lost" "$(field "$i" 'j["reason_code"]')" killed
done
done_testing
