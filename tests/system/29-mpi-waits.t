#!/bin/bash
# MPI programs above a later job, one CPU for each rank: they end, each time; and while a rank waits for another one, the later job
# gets its processor, unless the user wants it to spin, which equery says. A job that is alone waits at full speed, and counts as idle
# while it does. Debian's Open MPI and MPICH, over TCP.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/mpi.sh"

build_mpi
lab_up 2 --elmer 'allocator = v1'
install_programs
give_mpi
outrank_jobs

# The first job begins when the later one, an endless loop on each processor, is there.
above() { # VARIABLE COMMAND: in a shell of a job of two processors; the later job's id in $later, its output in $tmp/out
    local id
    as alice 1 rm -f out go
    id=$(submit alice -t 300s -o /home/alice/out -v "$1" 2 sh -c "until [ -e go ]; do sleep 0.1; done; $2")
    until_ok 10 running "$id"
    later=$(submit bob -o /dev/null --each 2 sh -c 'while :; do :; done')
    until_ok 10 running "$later"
    as alice 1 touch go
    until_ok 30 over "$id"
    as alice 1 cat out | grep -v 'Warning: setpgid' >"$tmp/out"
    as bob 1 ekill "$later" >/dev/null
    until_ok 10 over "$later"
}
above X=1 'for i in $(seq 50); do timeout -s KILL 20 mpirun.mpich /home/mpi.mpich ring; done'
is 'mpich: a ring, 50 of 50 times' "$(grep -c '^2 went around$' "$tmp/out")" 50
above X=1 'for i in $(seq 10); do timeout -s KILL 20 mpirun.mpich /home/mpi.mpich last; done'
is 'mpich: one rank comes late to its end, 10 of 10 times' "$(grep -c '^42 came$' "$tmp/out")" 10
above X=1 'for i in $(seq 10); do timeout -s KILL 20 mpirun.openmpi /home/mpi.openmpi ring; done'
is 'openmpi: a ring, 10 of 10 times' "$(grep -c '^2 went around$' "$tmp/out")" 10

used() { sed -n 's/^rank 1 used //p' "$tmp/out"; }
for m in openmpi mpich; do
    above X=1 "mpirun.$m /home/mpi.$m late"
    ok "$m: a rank that waits two seconds uses less than half of them ($(used) ms)" test "$(used)" -lt 1000
    above ELMER_SPIN=1 "timeout -s KILL 20 mpirun.$m /home/mpi.$m late" # nothing mends mpich's end then: it may hang
    ok "$m: with ELMER_SPIN=1 it uses them ($(used) ms)" test "$(used)" -gt 1500
done

# ---- alone, and who polls ----
polls() { field "$1" 'j["polls"]'; }
polls_is() { [ "$(polls "$1")" = "$2" ]; }
for m in openmpi mpich; do
    as alice 1 rm -f out
    id=$(submit alice -t 300s -o /home/alice/out 2 sh -c "exec mpirun.$m /home/mpi.$m late 12")
    until_ok 10 running "$id"
    is "$m: and nobody polls, because nobody is below" "$(polls "$id")" null
    until_ok 30 over "$id"
    as alice 1 cat out >"$tmp/out"
    ok "$m: it has waited at full speed ($(used) ms)" test "$(used)" -gt 9000

    as alice 1 rm -f out
    id=$(submit alice -t 300s -o /home/alice/out 2 sh -c "exec mpirun.$m /home/mpi.$m late 12")
    until_ok 10 running "$id"
    later=$(submit bob -o /dev/null --each 2 sh -c 'while :; do :; done')
    until_ok 10 running "$later"
    is "$m: nor does who sleeps" "$(polls "$id")" null
    until_ok 60 over "$id"
    as alice 1 cat out >"$tmp/out"
    ok "$m: which it does when a later job comes ($(used) ms)" test "$(used)" -lt 6000
    as bob 1 ekill "$later" >/dev/null
    until_ok 10 over "$later"

    id=$(submit alice -t 300s -o /home/alice/out --spin 2 sh -c "exec timeout -s KILL 60 mpirun.$m /home/mpi.$m late 12")
    until_ok 10 running "$id"
    wait_for 10 "$m: equery names the rank that polls" polls_is "$id" 1
    as alice 1 equery "$id" >"$tmp/page"
    ok "$m: and says what that means" grep -q 'rank 1 polls while it waits: nothing is left for others; see elmer-mpi(7)' "$tmp/page"
    as alice 1 ekill "$id" >/dev/null
    until_ok 10 over "$id"
done

done_testing
