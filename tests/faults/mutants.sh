#!/bin/bash
# mutants.sh - break elmer's promises on purpose, one at a time, and see that sweep notices, or for rsd's the stories of
# outside about results. Run in the build directory. Each tests/faults/mutants/NN-name.sed begins with
# "# FILE: what it breaks" and changes exactly one place of that file (with its folder). The last one is no
# mutant: the shim lets no fsync work.
set -u
src=${srcdir:-.}
work=$(mktemp -d "${TMPDIR:-/tmp}/elmer-faults.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
export BUILDDIR=$PWD
libs=$(pkg-config --cflags --libs libuv inih jansson sqlite3 openssl libsystemd) || exit 99

build() { # DAEMON FILE.c
    local parts=("$src/elmer/main.c" "$2" "-Wl,--start-group" elmer/libelmerd.a elmer/*/lib*.a lib/lib*.a "-Wl,--end-group")
    [ "$1" = elmer ] || parts=("$src"/rsd/{main,errand,options,prepare,word,net_start}.c "$2" "-Wl,--start-group" rsd/lib{rsdroot,host}.a lib/lib*.a "-Wl,--end-group")
    # shellcheck disable=SC2086 # many words
    ${CC:-cc} -std=gnu11 -O1 -w -D_GNU_SOURCE -I. -I"$src" -o "$work/$1" "${parts[@]}" -DELMER_SYSCONFDIR='"/etc/elmer"' \
        -DELMER_LIBEXECDIR='"/usr/libexec/elmer"' -DELMER_STATEDIR='"/var/lib/elmer"' -DELMER_RUNDIR='"/run/elmer"' \
        -DELMER_RSD_RUNDIR='"/run/elmer-rsd"' $libs -lpthread -lm
}
noticed() { # NUMBER NAME WHAT [SWEEP-OPTION..]
    local n=$1 name=$2 what=$3
    shift 3
    mkdir -p "$work/logs"
    if [ -e "$work/rsd" ]; then
        FAULTS_RSD=$work/rsd tests/faults/outside "$work/logs" 'jobs end on a full disk' >"$work/log" 2>&1
    else
        FAULTS_ELMER=$work/elmer tests/faults/sweep -b -t "${FAULTS_MUTANT_SECONDS:-60}" -l "$work/logs" "$@" >"$work/log" 2>&1
    fi
    case $?$(grep -qE '^not ok|^# [a-z-]+ step' "$work/log" || echo ', and no fault') in
    1) echo "ok $n - $name ($what)"; sed -n 's/^not ok [0-9]* -/# not/p; /^# .* step/p' "$work/log" | head -n 1 ;;
    0*) echo "not ok $n - $name ($what): nobody noticed"; bad=1 ;;
    *) echo "not ok $n - $name ($what): sweep failed"; sed 's/^/#   /' "$work/log"; bad=1 ;;
    esac
}

mapfile -t mutants < <(ls "$src"/tests/faults/mutants/*.sed)
echo "1..$((${#mutants[@]} + 1))"
bad=0 n=0
for m in "${mutants[@]}"; do
    n=$((n + 1))
    name=$(basename "$m" .sed)
    file=$(sed -n '1s/^# \([a-z_/]*\)\.c: .*/\1/p' "$m")
    what=$(sed -n '1s/^# //p' "$m")
    daemon=${file%%/*} from=$file.c
    file=$(basename "$file")
    rm -f "$work/rsd" "$work/elmer"
    sed -f "$m" "$src/$from" >"$work/$file.c"
    if [ "$(diff "$src/$from" "$work/$file.c" | grep -c '^[0-9]')" -ne 1 ]; then
        echo "not ok $n - $name ($what): does not change exactly one place"
        bad=1
    elif ! build "$daemon" "$work/$file.c" >"$work/log" 2>&1; then
        echo "not ok $n - $name ($what): does not build"
        sed 's/^/#   /' "$work/log"
        bad=1
    else
        noticed $n "$name" "$what"
    fi
done
rm -f "$work/rsd"
cp elmer/elmer "$work/elmer"
noticed $((n + 1)) unsynced 'no fsync of the store works' -i
exit $bad
