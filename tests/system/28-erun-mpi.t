#!/bin/bash
# erun --mpi=pmi1: ranks of Debian's MPICH over two hosts, without mpirun; and what becomes of them all when one ends too early.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/mpi.sh"

build_mpi
lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
give_mpi
program=/home/mpi.mpich
begin() { # [ARG..] COMMAND..: in the background on both hosts: its id, when its ranks wait
    as alice 1 rm -f out
    id=$(submit alice -t 120s -o /home/alice/out 4 "$@")
    until_ok 20 eval 'as alice 1 grep -q waiting out'
}
ranks() { sort "$tmp/out" | xargs; }
why() { grep -o 'erun: .*' "$tmp/out"; } # behind a part of a line: ranks of MPICH have no buffer

# ---- where ----
run 4 erun -n 4 --mpi=pmi1 $program hello
is 'a rank for each processor of the job, in its order, each on its own' "$? $(ranks)" \
    '0 rank 0 of 4 on ws1 with 1 rank 1 of 4 on ws1 with 1 rank 2 of 4 on ws2 with 1 rank 3 of 4 on ws2 with 1'
run 4 erun --mpi=pmi1 $program hello
is 'the same is what comes without a number' "$? $(grep -c 'of 4 on ws[12] with 1' "$tmp/out")" '0 4'
run 4 erun -n 3 --mpi pmi1 $program hello
is 'fewer' "$? $(ranks)" '0 rank 0 of 3 on ws1 with 1 rank 1 of 3 on ws1 with 1 rank 2 of 3 on ws2 with 1'
run 4 erun -n 6 --mpi=pmi1 $program hello
is 'more' "$? $(ranks)" '0 rank 0 of 6 on ws1 with 2 rank 1 of 6 on ws1 with 2 rank 2 of 6 on ws2 with 2 rank 3 of 6 on ws2 with 2 rank 4 of 6 on ws1 with 2 rank 5 of 6 on ws1 with 2'
run 4 erun --host ws2 --mpi=pmi1 $program hello
is 'on one host' "$? $(ranks)" '0 rank 0 of 2 on ws2 with 1 rank 1 of 2 on ws2 with 1'
run 4 sh -c "erun -n 2 --mpi=pmi1 $program ring & erun -n 4 --mpi=pmi1 $program ring; rc=\$?; wait; exit \$rc"
is 'two of them at once in a job' "$? $(ranks)" '0 2 went around 4 went around'
run 4 sh -c "for i in 1 2 3 4 5 6 7 8; do erun --mpi=pmi1 $program ring || exit; done"
is 'a ring, eight times' "$? $(grep -c '^4 went around$' "$tmp/out")" '0 8'
run 4 erun --mpi=pmi1 $program last
is 'one that comes late to its end, and needs an answer there' "$? $(cat "$tmp/out")" '0 42 came'
run 4 erun -n 32 --mpi=pmi1 $program ring
is '32 ranks on four processors' "$? $(cat "$tmp/out")" '0 32 went around'
run 4 erun --mpi=pmi1 sh -c 'echo "$PMI_RANK of $PMI_SIZE"; exec '"$program"' hello'
is 'by a script in each' "$? $(grep -c '^[0-3] of 4$' "$tmp/out") $(grep -c ' of 4 on ' "$tmp/out")" '0 4 4'
run 4 erun --mpi=pmi1 sh -c 'exit $PMI_RANK'
is 'a command that is none of MPI' "$? $(cat "$tmp/out")" '3 '

# ---- ends ----
run 4 erun --mpi=pmi1 $program abort
is 'MPI_Abort(7)' $? 7
like 'is told, with what the ranks have said' "$(xargs <"$tmp/out")" 'erun: rank 1 on ws1 has ended all with status 7: .*application called MPI_Abort|application called MPI_Abort.*erun: rank 1 on ws1 has ended all with status 7: '
run 4 erun --mpi=pmi1 $program segfault
like 'a rank that segfaults' $? '^(139|15)$' # 15: one that has lost its connection to it was quicker
like 'why' "$(why)" 'erun: rank 1 on ws1 was ended by signal 11 \(Segmentation fault\)(, too| before MPI_Finalize: all are ended)'
run 4 erun -n 2 --mpi=pmi1 $program segfault
is 'by shared memory' "$? $(why)" '139 erun: rank 1 on ws1 was ended by signal 11 (Segmentation fault) before MPI_Finalize: all are ended'
run 4 erun --mpi=pmi1 sh -c 'sleep 600 & exec '"$program"' segfault'
like 'one that others of its own hold the output of' "$? $(why)" '^(139|15) erun: rank 1 on ws1 was ended by signal 11'
for library in with without; do
    arg=(); [ $library = with ] || arg=(-v LD_PRELOAD=)
    run "${arg[@]}" 4 erun --mpi=pmi1 $program exit
    is "a rank that exits with 5 before MPI_Finalize, $library libelmer-yield.so" $? 5
    like "why ($library)" "$(why)" 'erun: rank 1 on ws1 has (exited with 5|ended all with status 5)'
done
run 4 erun -n 2 --mpi=pmi1 $program leave # two, by shared memory: no connection ends, which the other one would notice
is 'a rank that exits with 0, and others wait for it in MPI_Finalize' $? 1
like 'why' "$(why | xargs)" 'erun: rank 1 on ws1 has exited with 0 before MPI_Finalize: .* erun: others wait for rank 1 on ws1, which has ended: all are ended'
run 4 erun --mpi=pmi1 $program leave
like 'over two hosts, where some notice' $? '^(1|15)$'
like 'why' "$(why | xargs)" 'rank 1 on ws1 has exited with 0'
run 4 erun --mpi=pmi1 sh -c '[ $PMI_RANK = 2 ] || exec '"$program"' hello'
is 'a rank that never calls MPI, and others wait for it in MPI_Init' $? 1
is 'why' "$(why)" 'erun: others wait for rank 2 on ws2, which has ended: all are ended'
run 4 erun --mpi=pmi1 sh -c '[ $PMI_RANK != 3 ] || exit 9; exec '"$program"' hello'
is 'one that fails before that' $? 9
on 1 cp $program /usr/bin/mpi.here # /home is that of all
run 4 erun --mpi=pmi1 mpi.here hello
is 'a host without the program' $? 127
like 'why' "$(why | xargs)" 'erun: ws2: command not found: mpi.here .*erun: others wait for rank [23] on ws2, which has ended: all are ended'
run 4 erun --mpi=pmi1 sh -c '[ $PMI_RANK = 2 ] || exec '"$program"' hello; echo cmd=nonsense >&$PMI_FD; exec sleep 100'
is 'a rank that says what is no PMI' "$? $(why)" '1 erun: rank 2 on ws2: it asks for what erun does not know of PMI 1: all are ended'
run 4 erun --mpi=pmi1 sh -c '[ $PMI_RANK = 2 ] || exec '"$program"' hello; exec cat /dev/zero >&$PMI_FD'
like 'one that floods' "$? $(why)" '1 erun: rank 2 on ws2: it says a line without end: all are ended'
begin erun --mpi=pmi1 $program wait
ok 'a rank elsewhere is killed' on 2 pkill -KILL -n -x mpi.mpich
wait_for 4 'which ends the job' over "$id"
is 'with its status' "$(field "$id" 'j["exit_status"]')" 137
like 'why' "$(as alice 1 cat out)" 'erun: rank [23] on ws2 was ended by signal 9 \(Killed\) before MPI_Finalize: all are ended'
ok 'and nothing is left on any host' until_ok 4 nothing_left "$id"
begin sh -c "erun --mpi=pmi1 $program wait; echo status \$?; sleep 100"
ok 'erun is killed' on 1 pkill -KILL -x erun
wait_for 4 'which ends its ranks and not the job' eval '[ -z "$(on 1 pgrep -x mpi.mpich; on 2 pgrep -x mpi.mpich)" ] && as alice 1 grep -q "status 137" out'
as alice 1 ekill "$id"
wait_for 4 'ekill ends it' over "$id"
begin erun --mpi=pmi1 $program wait
ok 'a courier is killed' on 2 pkill -KILL -x elmer-courier
wait_for 4 'which ends the job' over "$id"
is 'as a connection that is lost' "$(field "$id" 'j["exit_status"]')" 255
ok 'and nothing is left on any host' until_ok 4 nothing_left "$id"
begin erun --mpi=pmi1 $program wait
ok 'ekill' as alice 1 ekill "$id"
wait_for 4 'ends the job' over "$id"
ok 'and nothing is left on any host' until_ok 4 nothing_left "$id"

# ---- what there is not ----
run 4 erun --mpi=pmix true
is 'no PMIx' $? 2
like 'and what to do instead' "$(why)" 'start programs of Open MPI with mpirun'

done_testing
