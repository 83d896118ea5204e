# shellcheck shell=bash
# Sourced after lib.sh and jobs.sh: programs/mpi.c for Debian's Open MPI and MPICH.
#
#   build_mpi                 as $tmp/mpi.openmpi and $tmp/mpi.mpich; skips the file where a compiler is missing
#   give_mpi                  to all nodes, as /home/mpi.openmpi and /home/mpi.mpich
#   run NPROCS [ARG..] COMMAND..      a job of alice with this command, its output in $tmp/out; its status, its id in $ran. Its limit: $MPI_LIMIT
#
# shellcheck disable=SC2154 # variables of lib.sh
build_mpi() {
    local m
    [ "$LAB" = lab ] || export LAB_PACKAGES='openmpi-bin mpich rsync parallel jq lammps' # nodes have them
    for m in openmpi mpich; do
        command -v mpicc.$m >/dev/null || skip_file "no mpicc.$m on this machine: the packages for mpi in tests/lab/packages"
        mpicc.$m -O1 -o "$tmp/mpi.$m" "$here/programs/mpi.c" || bail_out "mpicc.$m"
    done
}
give_mpi() {
    local m k
    for m in openmpi mpich; do
        for ((k = 1; k <= nodes; k++)); do on "$k" sh -c "cat >/home/mpi.$m && chmod 755 /home/mpi.$m" <"$tmp/mpi.$m"; done
    done
}
run() {
    local rc
    as alice 1 rm -f out
    ran=$(as alice 1 esubmit -t "${MPI_LIMIT:-60s}" -w -o /home/alice/out "$@" 2>/dev/null)
    rc=$?
    ran=${ran%%[!0-9]*}
    as alice 1 cat out | grep -v "Warning: setpgid" >"$tmp/out" # Open MPI: its agent was quicker than it
    return $rc
}
