#!/bin/bash
# More ranks than processors, on four hosts, and a program of MPI that none of us wrote: LAMMPS, Debian's, for Open MPI.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/mpi.sh"

MPI_LIMIT=300s # sixteen ranks of Open MPI on each host poll for a minute where four hosts share two CPUs
build_mpi
lab_up 4 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
give_mpi
is 'no ssh server runs, and there is no key' "$(for k in 1 2 3 4; do on $k sh -c 'ss -Hltn sport = :22 or sport = :514; ls /home/alice/.ssh 2>/dev/null'; done)" ''

run 8 mpirun.openmpi -n 64 --oversubscribe /home/mpi.openmpi ring
is 'openmpi: a ring of 64 ranks over four hosts' "$? $(cat "$tmp/out")" '0 64 went around'
run 8 mpirun.mpich -n 64 /home/mpi.mpich ring
is 'mpich: a ring of 64 ranks over four hosts' "$? $(cat "$tmp/out")" '0 64 went around'
run 8 mpirun.openmpi -n 64 --oversubscribe /home/mpi.openmpi hello
is 'openmpi: 16 ranks on each' "$(sed -n 's/.* on \(ws[0-9]\).*/\1/p' "$tmp/out" | sort | uniq -c | xargs)" '16 ws1 16 ws2 16 ws3 16 ws4'
run 8 mpirun.mpich -n 64 /home/mpi.mpich hello
is 'mpich: 16 ranks on each' "$(sed -n 's/.* on \(ws[0-9]\).*/\1/p' "$tmp/out" | sort | uniq -c | xargs)" '16 ws1 16 ws2 16 ws3 16 ws4'

# A liquid of 4,000 atoms, the example `melt` of LAMMPS: 4 ranks on two hosts, and the same 4 on one.
as alice 1 sh -c 'cat >melt' <<'END'
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 250
END
energies() { sed -n '/^Step/,/^Loop/p' "$tmp/out" | grep -E '^ *[0-9]'; }
run --hosts ws1,ws2 4 mpirun.openmpi lmp -in melt -log none
is 'LAMMPS on two hosts ends well' "$? $(grep -c 'for 250 steps with 4000 atoms' "$tmp/out") $(grep -o 'with [0-9]* MPI tasks' "$tmp/out")" '0 1 with 4 MPI tasks'
two=$(energies)
run --hosts ws1 2 mpirun.openmpi -n 4 --oversubscribe lmp -in melt -log none
is 'and on one' "$? $(grep -c 'for 250 steps with 4000 atoms' "$tmp/out") $(grep -o 'with [0-9]* MPI tasks' "$tmp/out")" '0 1 with 4 MPI tasks'
is 'six lines of energies' "$(wc -l <<<"$two")" 6
is 'they are the same' "$two" "$(energies)"
done_testing
