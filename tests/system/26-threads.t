#!/bin/bash
# How many processors a job finds: in its CPU mask, and in what the runtimes of threads read.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --cpus 2 --elmer 'allocator = pack' --rsd 'tickets = require'
install_programs
names='OMP_NUM_THREADS JULIA_NUM_THREADS RAYON_NUM_THREADS GOMAXPROCS PYTHON_CPU_COUNT'
show='nproc; for n in '$names'; do eval "echo $n=\${$n-unset}"; done'
finds() { # ARG..: what a job that is submitted so prints
    as alice 1 rm -f found
    as alice 1 esubmit -w -o /home/alice/found "$@" sh -c "$show" >/dev/null 2>&1
    as alice 1 cat found | xargs
}
all() { # NPROC VALUE [VARIABLE=VALUE..]: the same for all, but for these
    local n value out=$1 two=$2 pair
    shift 2
    for n in $names; do
        value=$two
        for pair; do [ "${pair%%=*}" != "$n" ] || value=${pair#*=}; done
        out+=" $n=$value"
    done
    echo "$out"
}

is 'a job of one processor finds one' "$(finds --hosts ws1 1)" "$(all 1 1)"
is 'a job of two on one host finds two' "$(finds --hosts ws1 2)" "$(all 2 2)"
is 'of four on two hosts its command finds the two of its host' "$(finds 4)" "$(all 2 2)"
as alice 1 esubmit -w -o /home/alice/each.%r --each --hosts ws1 2 sh -c "$show" >/dev/null 2>&1
for r in 0 1; do
    is "process $r of --each finds its own" "$(as alice 1 cat each.$r | xargs)" "$(all 1 1)"
done
is 'what the user sets stays' "$(finds --hosts ws1 -v OMP_NUM_THREADS=7 -v GOMAXPROCS= 2)" \
    "$(all 7 2 OMP_NUM_THREADS=7 GOMAXPROCS=)"
as alice 1 esubmit -w -o /home/alice/own 4 sh -c 'export OMP_NUM_THREADS=1
    for h in ws1 ws2; do erun $h "env | grep -E ^\(OMP\|OPENBLAS\|MKL\)_NUM_THREADS="; done' >/dev/null 2>&1
is 'nothing goes over what a script exports for OpenBLAS and MKL, on no host' "$(as alice 1 cat own | xargs)" \
    'OMP_NUM_THREADS=1 OMP_NUM_THREADS=1'
like 'nproc(1) without OMP_NUM_THREADS, which it obeys' "$(as alice 1 esubmit -w -o /home/alice/mask --hosts ws1 2 sh -c 'env -u OMP_NUM_THREADS nproc' >/dev/null 2>&1; as alice 1 cat mask)" '^2$'
like 'the user cannot name what Elmer has added' "$(as alice 1 esubmit -v ELMER_ADDED=x 1 true 2>&1)" 'ELMER_ADDED: Elmer sets this variable itself'

done_testing
