#!/bin/bash
# mutants.sh - break the core on purpose, one rule at a time, and see that the simulation notices, or a unit test.
# Each tests/sim/mutants/NN-name.sed begins with "# FILE: what it breaks" and must change exactly one place of that file of elmer/core.
# A second line "# by: tests/unit/FILE.c" names a test of parts of the core alone that shall notice it: nothing else can.
# Runs in the build folder, for config.h.
set -u
src=${srcdir:-.}
cc=${CC:-cc}
work=$(mktemp -d "${TMPDIR:-/tmp}/elmer-mutants.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
mapfile -t mutants < <(ls "$src"/tests/sim/mutants/*.sed)
# shellcheck disable=SC2086 # CC may carry options
compile() { $cc -std=gnu11 -O1 -D_GNU_SOURCE -I"$src" -I. -c -o "$2" "$1"; }
# shellcheck disable=SC2086
link() { $cc -o "$1" "${@:2}" -lcmocka; }
unit_of() { sed -n '2s/^# by: //p' "$1"; }
object_of() { local name=${1%.c} && echo "$work/${name//\//_}.o"; }
# Status 99: no end within 300 s of CPU time, which is no judgement; a busy machine takes longer by the clock.
run() {
    local rc=0
    { (ulimit -t 300 && exec "$1" short >"$1.log" 2>&1) || rc=$?; } 2>/dev/null # the shell would tell of each abort
    case $rc in 137 | 152) return 99 ;; esac # KILL, XCPU
    return $rc
}

echo "1..$((${#mutants[@]} + 1))"
sim=() core=() libs=()
for f in "$src"/tests/sim/*.c; do
    o=$work/sim_$(basename "$f" .c).o
    compile "$f" "$o" || { echo 'Bail out! the simulation does not compile'; exit 1; }
    sim+=("$o")
done
mkdir "$work/alloc" "$work/cube" "$work/policy"
for f in "$src"/elmer/core/*.c "$src"/elmer/core/*/*.c; do
    o=$work/${f#"$src"/elmer/core/}
    o=${o%.c}.o
    compile "$f" "$o" || { echo 'Bail out! the core does not compile'; exit 1; }
    core+=("$o")
done
for f in lib/memory/mem lib/base/log lib/base/journal lib/base/clock; do # what the core allocates with
    compile "$src/$f.c" "$work/${f##*/}_lib.o" || { echo "Bail out! $f.c does not compile"; exit 1; }
    libs+=("$work/${f##*/}_lib.o")
done
mapfile -t units < <(for m in "${mutants[@]}"; do unit_of "$m"; done | sort -u)
for f in "${units[@]}"; do
    compile "$src/$f" "$(object_of "$f")" || { echo "Bail out! $f does not compile"; exit 1; }
done

passes() { # as it is
    local f
    link "$work/sim" "${sim[@]}" "${core[@]}" "${libs[@]}" && run "$work/sim" || return 1
    for f in "${units[@]}"; do
        link "$work/unit" "$(object_of "$f")" "${core[@]}" "${libs[@]}" && run "$work/unit" || return 1
    done
}
bad=0 n=1
if passes; then
    echo 'ok 1 - the core as it is passes'
else
    echo 'not ok 1 - the core as it is passes'
    bad=1
fi
judge() { # N MUTANT: in a directory of its own, as several are judged at the same time
    local n=$1 m=$2 dir=$work/$1 name file what changed unit tests=("${sim[@]}")
    name=$(basename "$m" .sed)
    file=$(sed -n '1s/^# \([a-z0-9_/]*\)\.c: .*/\1/p' "$m")
    what=$(sed -n '1s/^# //p' "$m")
    unit=$(unit_of "$m")
    [ -z "$unit" ] || tests=("$(object_of "$unit")")
    mkdir "$dir"
    sed -f "$m" "$src/elmer/core/$file.c" >"$dir/mutant.c"
    changed=$(diff "$src/elmer/core/$file.c" "$dir/mutant.c" | grep -c '^[0-9]')
    if [ "$changed" -ne 1 ]; then
        echo "not ok $n - $name ($what): changes $changed places, not one"
    elif ! compile "$dir/mutant.c" "$dir/mutant.o"; then
        echo "not ok $n - $name ($what): does not compile"
    elif ! link "$dir/mutant" "${core[@]/"$work/$file.o"/"$dir/mutant.o"}" "${tests[@]}" "${libs[@]}"; then
        echo "not ok $n - $name ($what): does not link"
    else
        run "$dir/mutant"
        case $? in
        0) echo "not ok $n - $name ($what): nobody noticed" ;;
        99) echo "not ok $n - $name ($what): no end" ;;
        *)
            echo "ok $n - $name ($what)"
            grep -m 1 -E '^#? *sim walk|^not ok|Assertion|^.  FAILED  . [a-z]' "$dir/mutant.log" | sed 's/^\[  FAILED  \] //; s/^#* */#   /'
            ;;
        esac
    fi
}
free=$(nproc)
for m in "${mutants[@]}"; do
    n=$((n + 1))
    [ "$free" -gt 0 ] || { wait -n; free=$((free + 1)); }
    judge $n "$m" >"$work/$n.said" 2>&1 &
    free=$((free - 1))
done
wait
for ((n = 2; n <= ${#mutants[@]} + 1; n++)); do
    cat "$work/$n.said"
    grep -q '^ok ' "$work/$n.said" || bad=1
done
exit $bad
