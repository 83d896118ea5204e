#!/bin/bash
# Shares: whatever the first job is made of, and whatever the later one, the later one gets what the first leaves and the 5 %
# that the kernel keeps from real time, and no more. In CPU seconds of their groups, so that it holds wherever it runs. The kernel
# keeps now more and now less: a bystander in real time, which has nothing to do with Elmer, says how much.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --elmer 'allocator = v1'
install_programs
on 1 sh -c 'cat >/home/gaps && chmod 755 /home/gaps' <"$build/tests/system/gaps"
outrank_jobs

window=${ELMER_TEST_FULL:+5}
window=${window:-2} # seconds
usage() { # ID..: what each has used, in microseconds, how long the first one was kept from running (its one process), in nanoseconds,
    # and the time, read together; what the kernel kept from real time, in microseconds; and the first four at the end of the window
    on 1 bash -c 'picture() {
            local id key value pid
            for id; do
                while read -r key value; do [ "$key" != usage_usec ] || echo "$value"; done <"/sys/fs/cgroup/'"$jobs_scope"'/$id.1/job/cpu.stat"
            done
            read -r pid <"/sys/fs/cgroup/'"$jobs_scope"'/$1.1/job/cgroup.procs"
            read -r _ value _ <"/proc/$pid/schedstat"; echo "$value"
            read -r value _ </proc/uptime; echo "$value"
        }
        read -r one <"/sys/fs/cgroup/'"$jobs_scope"'/$1.1/job/cgroup.procs"
        cpu=$(taskset -cp "$one"); cpu=${cpu##* }
        coproc bystander { exec /home/gaps "$cpu"; }
        kept() { echo >&"${bystander[1]}" && read -r "$1" <&"${bystander[0]}"; }
        exec {never}<> <(:)
        kept before # before and after the window: a gap beside it may count, one within it always does
        picture "$@"; read -rt '"$window"' -u "$never"; pictured=$(picture "$@")
        kept after
        echo "$((after - before)) $pictured"' - "$@" | xargs
}
kind() { # NUMBER KIND: options of testjob
    [ "$1" -eq 1 ] || echo "--$2 $1"
}
signal() { # NAME ID
    on 1 sh -c 'kill -s "$1" $(cat "/sys/fs/cgroup/'"$jobs_scope"'/$2.1/job/cgroup.procs")' - "$1" "$2"
}

# The first leaves nothing.
shares() { # NAME-OF-FIRST FIRST NAME-OF-LATER ID-OF-LATER
    local verdict
    verdict=$(python3 -c '
import sys
figures = [float(x) for x in sys.argv[1].split()]
a, kept, b = figures[:4], figures[4] / 1e6, figures[5:]
wall = b[3] - a[3]
first, later = ((y - x) / 1e6 for x, y in zip(a[:2], b[:2]))
bound = kept + 0.02 # the bystander may miss 4 ms of each gap, and uptime counts in 10 ms
print("ok" if later <= bound else "too much", f"first {first / wall:.1%} later {later / wall:.1%} of {wall:.2f} s, at most {bound / wall:.1%}; the kernel kept {kept / wall:.1%}")
' "$(usage "$2" "$4")")
    like "$1, and below it $3: ${verdict#* }" "$verdict" '^ok '
}

# A single thread that waits leaves the time in which it does not want to run. In some machines, and in all emulated ones, it takes 0.1 ms
# from a timer until its thread runs, and by the kernel's account that is time of whoever is there, with a later job or without: 0.8 % of a
# first one that waits 500 times in 5 s. So the promise itself is asked: the first waits no longer for the CPU than while the later one
# stands still, before and after, but for what the kernel keeps.
waits_as_alone() { # NAME-OF-FIRST FIRST NAME-OF-LATER LATER
    local alone beside again verdict
    signal STOP "$4"
    alone=$(usage "$2" "$4")
    signal CONT "$4"
    beside=$(usage "$2" "$4")
    signal STOP "$4"
    again=$(usage "$2" "$4")
    verdict=$(python3 -c '
import sys
def window(text):
    figures = [float(x) for x in text.split()]
    a, kept, b = figures[:4], figures[4] / 1e6, figures[5:]
    wall = b[3] - a[3]
    return wall, *((y - x) / 1e6 / wall for x, y in zip(a[:2], b[:2])), (b[2] - a[2]) / 1e9 / wall, kept / wall
alone, beside, again = map(window, sys.argv[1:])
wall, first, later, waited, kept = beside
most = (alone[3] + again[3]) / 2 + abs(alone[3] - again[3]) + kept + 0.02 / wall
print("ok" if waited <= most else "too much", f"first {first:.1%} later {later:.1%} of {wall:.2f} s; the first waits {waited:.1%}, without the later one {alone[3]:.1%} and {again[3]:.1%}, at most {most:.1%}; the kernel kept {kept:.1%}")
' "$alone" "$beside" "$again")
    like "$1, and below it $3: ${verdict#* }" "$verdict" '^ok '
}

below() { # NAME FIRST WAITS COUNT KIND..: a later job of each kind
    local name=$1 first=$2 waits=$3 count=$4 what later
    shift 4
    for what; do
        signal STOP "$first" # while it goes on, they would be made, and end, in what the kernel keeps from real time
        # shellcheck disable=SC2046 # options
        later=$(submit bob -o /dev/null 1 /home/testjob $(kind "$count" "$what") 600)
        until_ok 30 running "$later" || diag "job $later: $(state "$later")"
        is "$name: job $later is below it" "$(field "$later" 'j["level"]')" 1
        ok "$name: job $later has $count $what" has_threads_within 10 "$later" "$count"
        signal CONT "$first"
        if [ -n "$waits" ]; then
            waits_as_alone "$name" "$first" "$count $what" "$later"
        else
            shares "$name" "$first" "$count $what" "$later"
        fi
        signal STOP "$first"
        as bob 1 ekill "$later" >/dev/null 2>&1
        wait_for 20 "$name: job $later ends" over "$later"
    done
}

first() { # COUNT KIND spin|wait LATER-COUNT LATER-KIND..
    local count=$1 what=$2 how=$3 later=$4 id name waits='' options=
    shift 4
    if [ "$how" = wait ]; then
        options='--work-us 8000 --wait-us 2000'
        [ "$count" -gt 1 ] || waits=1
    fi
    name="$count $what that ${how}"
    # shellcheck disable=SC2046,SC2086 # options
    id=$(submit alice -o /dev/null 1 /home/testjob $(kind "$count" "$what") $options 600)
    until_ok 20 running "$id" || diag "job $id: $(state "$id")"
    has_threads_within 20 "$id" "$count" >/dev/null || diag "not all $count $what"
    below "$name" "$id" "$waits" "$later" "$@"
    as alice 1 ekill "$id" >/dev/null 2>&1
    wait_for 10 "$name: it ends" over "$id"
}

# Without the controller cpu all that live on what the kernel keeps are alike, its thread for soft interrupts too. An emulated machine,
# in which many of these are left to that thread, then hears of no timer for minutes: nothing can be measured there, nor ended.
weighed=$(on 1 grep -cw cpu "/sys/fs/cgroup/$jobs_scope/cgroup.controllers")
many_below() { # as first
    if [ "$weighed" -gt 0 ]; then
        first "$@"
    else
        skip "$1 $2 that $3, with $4 ${*:5} below" 'without the controller cpu they leave an emulated machine no time to hear of its timers'
    fi
}

if [ "$LAB" = vm ]; then # emulated: all that is around a window takes ten times longer
    many_below 1 processes spin 200 processes
    many_below 20 sessions spin 20 sessions
    first 200 processes spin 1 processes
    if [ -n "${ELMER_TEST_FULL:-}" ]; then
        many_below 1 processes wait 200 sessions threads
        many_below 20 threads spin 200 sessions
        many_below 20 processes spin 200 sessions
        many_below 200 sessions wait 20 processes threads
        many_below 200 threads spin 200 processes
        first 20 threads spin 1 processes
        first 200 sessions wait 1 processes
    fi
elif [ -n "${ELMER_TEST_FULL:-}" ]; then
    for how in spin wait; do
        for later in 1 20 200; do
            [ $later -eq 1 ] && kinds='processes' || kinds='threads processes sessions'
            # shellcheck disable=SC2086 # words
            first 1 processes $how $later $kinds
            for count in 20 200; do
                for what in threads processes sessions; do
                    # shellcheck disable=SC2086
                    first $count $what $how $later $kinds
                done
            done
        done
    done
else
    first 1 processes spin 200 sessions threads
    first 1 processes wait 200 sessions
    first 20 threads spin 1 processes
    first 20 processes spin 200 sessions
    first 200 sessions wait 20 processes
fi
done_testing
