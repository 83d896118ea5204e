#!/bin/bash
# mutants.sh - break the core on purpose, one rule at a time, and see that the simulation notices.
# Each tests/sim/mutants/NN-name.sed begins with "# FILE: what it breaks" and must change exactly one place of that file of elmer/core.
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
link() { $cc -o "$1" "${@:2}"; }
# Status 99: no end within 300 s of CPU time, which is no judgement; a busy machine takes longer by the clock.
run() {
    local rc=0
    { (ulimit -t 300 && exec "$1" short >"$1.log" 2>&1) || rc=$?; } 2>/dev/null # the shell would tell of each abort
    case $rc in 137 | 152) return 99 ;; esac # KILL, XCPU
    return $rc
}

echo "1..$((${#mutants[@]} + 1))"
sim=() core=()
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
    sim+=("$work/${f##*/}_lib.o")
done

bad=0 n=1
link "$work/sim" "${sim[@]}" "${core[@]}"
if run "$work/sim"; then
    echo 'ok 1 - the core as it is passes'
else
    echo 'not ok 1 - the core as it is passes'
    bad=1
fi
judge() { # N MUTANT: in a directory of its own, as several are judged at the same time
    local n=$1 m=$2 dir=$work/$1 name file what changed
    name=$(basename "$m" .sed)
    file=$(sed -n '1s/^# \([a-z0-9_/]*\)\.c: .*/\1/p' "$m")
    what=$(sed -n '1s/^# //p' "$m")
    mkdir "$dir"
    sed -f "$m" "$src/elmer/core/$file.c" >"$dir/mutant.c"
    changed=$(diff "$src/elmer/core/$file.c" "$dir/mutant.c" | grep -c '^[0-9]')
    if [ "$changed" -ne 1 ]; then
        echo "not ok $n - $name ($what): changes $changed places, not one"
    elif ! compile "$dir/mutant.c" "$dir/mutant.o"; then
        echo "not ok $n - $name ($what): does not compile"
    elif ! link "$dir/mutant" "${core[@]/"$work/$file.o"/"$dir/mutant.o"}" "${sim[@]}"; then
        echo "not ok $n - $name ($what): does not link"
    else
        run "$dir/mutant"
        case $? in
        0) echo "not ok $n - $name ($what): nobody noticed" ;;
        99) echo "not ok $n - $name ($what): no end" ;;
        *)
            echo "ok $n - $name ($what)"
            grep -m 1 -E '^#? *sim walk|^not ok|Assertion' "$dir/mutant.log" | sed 's/^#* */#   /'
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
