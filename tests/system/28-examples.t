#!/bin/bash
# The examples, as examples/README.md says: built by its commands against what `make install` puts there, run on two nodes, with the
# output that it shows.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

for m in openmpi mpich; do
    command -v mpicc.$m >/dev/null || skip_file "no mpicc.$m on this machine: the packages for mpi in tests/lab/packages"
done
only_on_nodes 'there are no compilers on the machines, and no home that they share'

# ---- what the page says ----
# Lines "SECTION<tab>COMMAND" and "SECTION<tab>= OUTPUT", in their order.
page=$top/examples/README.md
steps() { awk 'BEGIN { section = "The copy" } /^## /{ section = substr($0, 4) } /^    \$ /{ print section "\t" substr($0, 7); next } /^    /{ print section "\t= " substr($0, 5) }' "$page"; }
is 'a command for each example' "$(cd "$top/examples" && for f in pvm/{ep,barrier,flood,placed} mpi/pi.c mpi/pi.py tasks/* library/loop library/elmer.py; do
    steps | grep -qw -- "$(basename "$f")" || echo "$f"; done)" ''
is 'each is in its table' "$(cd "$top/examples" && for f in */*.py */*.sh mpi/*.c library/*.c; do sed -n '1,/^$/!{/^|/p}' "$page" | grep -qF "\`$(basename "$f")\`" || echo "$f"; done)" ''
is 'and outputs are shown' "$(steps | grep -c "$(printf '\t= ')")" 7

# ---- built as a user does, here, where the compilers are ----
make -C "$build" -s install DESTDIR="$tmp/installed" >"$tmp/install.log" 2>&1 || bail_out "make install: $(tail -n 5 "$tmp/install.log")"
cp -r "$top/examples" "$tmp/examples" # which has nothing of the tree around it
export C_INCLUDE_PATH=$tmp/installed/usr/include LIBRARY_PATH
LIBRARY_PATH=$(dirname "$(find "$tmp/installed" -name libelmer.so)")
is_build() { [[ $1 =~ ^(gcc|mpicc) ]]; }
section='' at=$tmp/examples
while IFS=$'\t' read -r name command; do
    [ "$name" = "$section" ] || at=$tmp/examples
    section=$name
    [[ $command != 'cd '* ]] || at=$tmp/examples/${command#cd }
    ! is_build "$command" || ok "$name: $command" env -C "$at" sh -c "$command -Wall -Wextra -Werror"
done < <(steps)

# ---- run ----
lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
tar -C "$tmp" -c examples | as alice 1 tar -x
# The warning is of Open MPI, whose agent was quicker than it.
said() { as alice 1 env ${asan_late:+"$asan_late"} bash -c "set -o pipefail; cd examples && cd ./$1 && { $2; } | { grep -v 'Warning: setpgid' || :; }" 2>"$tmp/stderr" </dev/null; }
section='' at=. shown='' got=''
compare() { # what was shown behind the command before, if anything
    [ -z "$shown" ] || is "$section: it prints what the page shows" "$got" "${shown%$'\n'}"
    shown=''
}
while IFS=$'\t' read -r -u 3 name command; do
    if [[ $command == '= '* ]]; then
        shown+=${command#= }$'\n'
        continue
    fi
    compare
    [ "$name" = "$section" ] || at=.
    section=$name
    case $command in
    'cd '*) at=${command#cd } ;;
    'cp '*) ;; # done above
    *)
        is_build "$command" && continue
        rc=0
        got=$(said "$at" "$command") || rc=$?
        point $rc "$name: $command" || diag "ended with $rc" "$(tail -n 10 "$tmp/stderr")" "$(as alice 1 sh -c "cd examples/$at; tail -n 10 *.out" 2>/dev/null | tail -n 20)"
        ;;
    esac
done 3< <(steps)
compare
is 'rsync was here' "$(on 2 ls /tmp/pvm/ep.c)" /tmp/pvm/ep.c
done_testing
