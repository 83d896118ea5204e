# shellcheck shell=bash
# Sourced by tests/system/*.t: TAP, waiting for conditions, and the workstations.
#
#   . "$(dirname "$0")/lib.sh"
#   lab_up 2 [--cpus 2]              fresh nodes for this file; removed again however it ends. With LAB_STANDING=N in the environment a
#                                    set of N is up already, and stays: it gets the configuration that the file asks for
#   ok NAME CMD..                    passes if CMD succeeds
#   is NAME GOT EXPECTED             passes if both are equal        like NAME GOT REGEX
#   wait_for SECONDS NAME CMD..      passes as soon as CMD succeeds, fails after ten times SECONDS: what it should take, and what it may where
#                                    the machine has other work
#   within SECONDS NAME CMD..        the same where SECONDS are promised, and are the bar
#   until_ok SECONDS CMD..           wait_for without a test point
#   on K CMD..                       as root on node K               as USER K CMD..   as USER, from a login shell
#   quiet                            whether this machine has no other work; for the few cases that need it
#   now_ms                           monotonic milliseconds, the clock of the observer and of every node
#   observe FILE LABEL=GROUP..       start the observer on groups of nodes; `observed` ends it (see observer.c)
#   only_on_nodes REASON             the file cannot run on virtual machines
#   done_testing                     last line
#
# With LAB=vm in the environment the same file runs on virtual machines (tests/vm/vm), where that is possible.
#
# A failed point does not end the file. The journals of all nodes are kept beside the log when a point has failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=${here%/tests/*}
LAB=${LAB:-lab} # or vm: machines instead of nodes
lab=$top/tests/$LAB/$LAB
build=${LAB_BUILD:-$top/build}
export LAB LAB_BUILD=$build LAB_ID=${LAB_ID:-t-$$}
lab_set=$("$lab" path state)
patience=1 # what is promised may take so many times longer there
leniency=10 # all other waiting
sanitized=$(grep -o -m 1 enable-sanitizers "$build/config.status" 2>/dev/null)
# For a program without sanitizers that loads libelmer, whose ASan comes late then and would take what the program keeps for leaks.
# shellcheck disable=SC2034 # of the files
asan_late=${sanitized:+ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0}
[ -z "$sanitized" ] || patience=${TEST_PATIENCE:-5}
[ "$LAB" = lab ] || patience=${TEST_PATIENCE:-10}
points=0 failures=0 nodes=0 observer_pid='' finished=

tmp=$(mktemp -d)

leave() {
    local rc=$?
    trap '' INT TERM HUP
    trap - EXIT
    [ -z "$observer_pid" ] || kill -TERM "$observer_pid" 2>/dev/null
    [ -n "$finished" ] || echo "Bail out! $(basename "$0") ended before its last line"
    [ "$failures" -eq 0 ] && [ -n "$finished" ] || keep_journals
    [ "$nodes" -eq 0 ] || [ -n "${LAB_STANDING:-}" ] || "$lab" down
    rm -rf "$tmp"
    [ -n "$finished" ] && [ "$failures" -eq 0 ] || rc=1
    exit $rc
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

keep_journals() {
    local k
    [ -n "${TEST_LOGS:-}" ] || return 0
    for ((k = 1; k <= nodes; k++)); do
        timeout $((20 * patience)) "$lab" log "$k" >"$TEST_LOGS/$(basename "$0" .t).ws$k.log" 2>&1
    done
}

diag() { printf '%s\n' "$@" | sed 's/^/#   /'; }

point() { # STATUS NAME
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $points - $2"
    else
        failures=$((failures + 1))
        echo "not ok $points - $2"
    fi
    return "$1"
}

ok() {
    local name=$1 out rc=0
    shift
    out=$("$@" 2>&1) || rc=$?
    if [ $rc -eq 0 ]; then
        point 0 "$name"
    else
        point 1 "$name"
        diag "'$*' ended with $rc" "${out:0:2000}"
    fi
    return $rc
}

is() {
    [ "$2" = "$3" ] && point 0 "$1" && return 0
    point 1 "$1"
    diag "got:      $2"
    diag "expected: $3"
    return 1
}

like() {
    [[ $2 =~ $3 ]] && point 0 "$1" && return 0
    point 1 "$1"
    diag "got:              $2"
    diag "does not match:   $3"
    return 1
}

skip() { # NAME REASON
    points=$((points + 1))
    echo "ok $points - $1 # SKIP $2"
}

# 0 if this machine has no other work. What was measured is in $quiet: skip NAME "not quiet: $quiet".
# shellcheck disable=SC2034
quiet() { quiet=$("$top/tests/lab/quiet"); }

[ "$LAB" = lab ] && long_pause=100 || long_pause=500
exec {never}<> <(:) # nothing ever comes: to pause without a process
# Poll every 20 ms, after a second every 100, or 500 in an emulated machine; and three times as long as the asking took, which takes the CPU
# from what is waited for. The last look is at the deadline.
until_ms() { # MILLISECONDS CMD..
    local uptime_ms begin deadline asked pause
    read_uptime
    begin=$uptime_ms deadline=$((uptime_ms + $1))
    shift
    asked=$uptime_ms
    until "$@" >/dev/null 2>&1; do
        read_uptime
        [ "$uptime_ms" -lt $deadline ] || return 1
        pause=$((3 * (uptime_ms - asked) < 500 ? 3 * (uptime_ms - asked) : 500))
        [ $((uptime_ms - begin)) -lt 1000 ] || [ "$pause" -ge "$long_pause" ] || pause=$long_pause
        [ "$pause" -ge 20 ] || pause=20
        [ $((uptime_ms + pause)) -lt $deadline ] || pause=$((deadline - uptime_ms))
        printf -v pause '%d.%03d' $((pause / 1000)) $((pause % 1000))
        read -rt "$pause" -u "$never" || true
        read_uptime
        asked=$uptime_ms
    done
}
until_ok() { until_ms $(($1 * 1000 * leniency)) "${@:2}"; }

wait_for() { wait_point $(($1 * leniency)) "${@:2}"; }
within() { wait_point $(($1 * patience)) "${@:2}"; }
wait_point() { # SECONDS NAME CMD..
    local seconds=$1 name=$2
    shift 2
    if until_ms $((seconds * 1000)) "$@"; then
        point 0 "$name"
    else
        point 1 "$name"
        diag "not within $seconds s: $*" "$("$@" 2>&1 | tail -n 20)"
        return 1
    fi
}

read_uptime() { # to $uptime_ms; /proc/uptime counts in 10 ms, this in 1; no process is started
    local s
    read -r s _ </proc/uptime
    uptime_ms=$((10#${s%.*} * 1000 + 10#${s#*.} * 10))
}
now_ms() {
    local uptime_ms
    read_uptime
    echo "$uptime_ms"
}

bail_out() {
    echo "Bail out! $*"
    finished=1 failures=1
    exit 1
}

sanitizers_said() {
    local k
    for ((k = 1; k <= nodes; k++)); do
        "$lab" exec "$k" journalctl --no-pager -o cat 2>/dev/null | grep -E 'ERROR: [A-Za-z]*Sanitizer|runtime error:'
    done
}

done_testing() {
    if [ "$nodes" -gt 0 ] && [ -n "$sanitized" ]; then
        is 'no sanitizer has found anything in the daemons' "$(sanitizers_said | sort | uniq -c | head -n 5)" ''
    fi
    echo "1..$points"
    finished=1
}

only_on_nodes() {
    [ "$LAB" = lab ] || skip_file "on nodes only: $1"
}

lab_up() {
    nodes=$1
    if [ -n "${LAB_STANDING:-}" ]; then
        reconfigure "$@"
        return
    fi
    "$lab" up "$@" || bail_out "the workstations do not come up"
}

# A cluster that stands (71-install.t has made it) gets other lines in its configuration, in place of those of the file before.
reconfigure() { # N [--elmer LINE].. [--rsd LINE]..
    local n=$1 k elmer_lines='' rsd_lines='# of this test'
    [ "$n" -le "$LAB_STANDING" ] || { skip_file "it needs $n, and $LAB_STANDING are up"; }
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --bare) return 0 ;;
        --elmer) elmer_lines+=$2$'\n' ;;
        --rsd) rsd_lines+=$'\n'$2 ;;
        *) skip_file "it needs $1 $2, and what is up is as it is" ;;
        esac
        shift 2
    done
    printf '[elmer]\nlisten = ws1:7110\nhosts =%s\n%s' "$(seq -f ' ws%g' -s '' "$n")" "$elmer_lines" | on 1 tee /etc/elmer/elmer.conf >/dev/null
    for ((k = 1; k <= n; k++)); do
        printf '%s\n' "$rsd_lines" |
            on "$k" sh -c 'cd /etc/elmer; grep -qs "^\[rsd\]" rsd.conf || echo "[rsd]" >rsd.conf; sed -i "/^# of this test/,\$ d" rsd.conf; cat >>rsd.conf; systemctl restart rsd'
    done
    on 1 systemctl restart elmer || bail_out "elmer does not take the configuration of this file"
}

skip_file() {
    echo "1..0 # SKIP $1"
    nodes=0 finished=1
    exit 0
}

# On nodes without the script, which is a quarter of what it costs there.
on() {
    local k=$1
    shift
    if [ "$LAB" = lab ]; then "$lab_set/enter" "$lab_set" "$k" "$@"; else "$lab" exec "$k" "$@"; fi
}

as() {
    local user=$1 k=$2
    shift 2
    if [ "$LAB" = lab ]; then "$lab_set/enter" "$lab_set" "$k" -u "$user" "$@"; else "$lab" login "$k" "$user" "$@"; fi
}

# observe FILE [OPTION..] LABEL=GROUP..: GROUP is absolute; node_group K PATH gives that of a path inside a node.
observe() {
    local file=$1
    shift
    "$build/tests/system/observer" "$@" >"$file" &
    observer_pid=$!
    until_ok 10 grep -q '^# ready' "$file" || bail_out "the observer does not start"
}

observed() {
    kill -TERM "$observer_pid"
    wait "$observer_pid" || diag "the observer ended with $?"
    observer_pid=
}

node_group() { echo "$("$lab" path group "$1")/${2#/}"; }
