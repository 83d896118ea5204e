#!/bin/bash
# mutants.sh - break elmer's promises on purpose, one at a time, and see that sweep notices. Run in the build directory.
# Each tests/faults/mutants/NN-name.sed begins with "# FILE: what it breaks" and changes exactly one place of that file
# of elmer. The last one is no mutant: the shim lets no fsync work.
set -u
src=${srcdir:-.}
work=$(mktemp -d "${TMPDIR:-/tmp}/elmer-faults.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
export BUILDDIR=$PWD
libs=$(pkg-config --cflags --libs libuv inih jansson sqlite3 openssl libsystemd) || exit 99

build() { # FILE.c
    # shellcheck disable=SC2086 # many words
    ${CC:-cc} -std=gnu11 -O1 -w -D_GNU_SOURCE -I. -I"$src" -o "$work/elmer" "$src/elmer/main.c" "$1" \
        -DELMER_SYSCONFDIR='"/etc/elmer"' -DELMER_STATEDIR='"/var/lib/elmer"' -DELMER_RUNDIR='"/run/elmer"' \
        elmer/.libs/libelmerd.a elmer/core/libcore.a $libs -lpthread -lm
}
noticed() { # NUMBER NAME WHAT [SWEEP-OPTION..]
    local n=$1 name=$2 what=$3
    shift 3
    mkdir -p "$work/logs"
    FAULTS_ELMER=$work/elmer tests/faults/sweep -b -t "${FAULTS_MUTANT_SECONDS:-60}" -l "$work/logs" "$@" >"$work/log" 2>&1
    case $? in
    1) echo "ok $n - $name ($what)"; grep -m 1 '^# .* step' "$work/log" ;;
    0) echo "not ok $n - $name ($what): nobody noticed"; bad=1 ;;
    *) echo "not ok $n - $name ($what): sweep failed"; sed 's/^/#   /' "$work/log"; bad=1 ;;
    esac
}

mapfile -t mutants < <(ls "$src"/tests/faults/mutants/*.sed)
echo "1..$((${#mutants[@]} + 1))"
bad=0 n=0
for m in "${mutants[@]}"; do
    n=$((n + 1))
    name=$(basename "$m" .sed)
    file=$(sed -n '1s/^# \([a-z_]*\)\.c: .*/\1/p' "$m")
    what=$(sed -n '1s/^# //p' "$m")
    sed -f "$m" "$src/elmer/$file.c" >"$work/$file.c"
    if [ "$(diff "$src/elmer/$file.c" "$work/$file.c" | grep -c '^[0-9]')" -ne 1 ]; then
        echo "not ok $n - $name ($what): does not change exactly one place"
        bad=1
    elif ! build "$work/$file.c" >"$work/log" 2>&1; then
        echo "not ok $n - $name ($what): does not build"
        sed 's/^/#   /' "$work/log"
        bad=1
    else
        noticed $n "$name" "$what"
    fi
done
cp elmer/elmer "$work/elmer"
noticed $((n + 1)) unsynced 'no fsync of the store works' -i
exit $bad
