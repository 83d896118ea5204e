#!/bin/bash
# A rank that prints without end to somebody who stands still: it waits, the other ranks and other eruns of the job do not, and nothing grows
# meanwhile, neither a daemon nor a courier nor erun. With ELMER_TEST_FULL=1 it prints 1 GiB.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
only_on_nodes 'the homes are of one file server'

mib=64 mode=()
[ -z "${ELMER_TEST_FULL:-}" ] || mib=1024 mode=(--rsd 'mode = idle') # then no job is above other files' daemons for seconds
lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require' "${mode[@]}"
install_programs
printed() { as alice 1 cat "$1"; }
marked() { as alice 1 test -e "$1"; }
mark() { as alice 1 touch "$1"; }
lines() { [ "$(printed "$1" | wc -l)" = "$2" ]; } # FILE COUNT

# The most that each of Elmer's processes ever had in memory, with pages that it shares with others: "wsK NAME KIB".
peaks() {
    local k
    for k in 1 2; do
        on $k sh -c 'for p in /proc/[0-9]*; do sed -n "s/^Name:\t//p; s/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p" $p/status | xargs echo "$1"; done' - ws$k 2>/dev/null
    done | grep -E '^ws. (elmer|rsd|erun)[^ ]* [0-9]+$' | sort -k 1,2 -k 3,3nr | sort -u -k 1,2
}
# Those of FILE that are above BOUND KiB, or more than KIB above what they were in EARLIER.
grown() { # FILE BOUND [EARLIER KIB]
    awk -v bound="$2" -v more="${4:-0}" 'FILENAME == ARGV[1] { before[$1 $2] = $3; next } $3 > bound || (($1 $2) in before && $3 > before[$1 $2] + more)' "${3:-/dev/null}" "$1"
}

as alice 1 sh -c 'cat >wait-for && chmod 755 wait-for' <<'END'
#!/bin/sh
until test -e ~/$1; do sleep 0.05; done
END
as alice 1 sh -c 'cat >flood' <<END
erun -n 4 sh -c '
    if [ \$ELMER_RANK = 2 ]; then head -c $((mib << 20)) /dev/zero; else echo \$ELMER_RANK is done >&2; fi
    exec ~/wait-for end' 2>errors | { ./wait-for go; head -c $((mib << 20)) | wc -c; touch read; wc -c; } >printed &
./wait-for ask
for host in ws1 ws2; do erun \$host hostname; done >answers
wait
END

ok 'a job with couriers, to compare with' as alice 1 esubmit -t 1m -w -o /dev/null 4 erun --each true
peaks >"$tmp/before"
id=$(submit alice -t 10m -o /home/alice/said 4 sh flood)
wait_for 10 'a rank prints to somebody who stands still: the others go on' lines errors 3
mark ask
within 10 'and so do other eruns of the job' lines answers 2
is 'on both hosts' "$(printed answers | xargs)" 'ws1 ws2'
waits() { on 2 sh -c 'grep -qs pipe_write /proc/$(pgrep -x head)/wchan'; }
wait_for 5 'it waits itself' waits
written() { on 2 sh -c 'sed -n "s/^wchar: //p" /proc/$(pgrep -x head)/io'; }
size=$(written)
ok "with $size bytes of $((mib << 20)) printed" test "$size" -gt 200000 -a "$size" -lt 700000
mark go
wait_for $((5 + mib / 10)) 'when he goes on all is read' marked read
peaks >"$tmp/after"
mark end
wait_for 10 'the job ends' over "$id"
is 'every byte once' "$(printed printed | xargs)" "$((mib << 20)) 0"
# 16 MiB each, whatever is printed; measured: 12 of elmer, 8 of the network half, 6 of a courier, 7 of erun.
bound=16384
diag "the most that each had, in KiB, before and after:" "$(join -a 2 <(sed 's/ /:/' "$tmp/before" | sort) <(sed 's/ /:/' "$tmp/after" | sort) | xargs -d '\n' | fold -sw 100)"
if [ -z "$sanitized" ]; then
    is 'those of Elmer on both hosts, the couriers and erun have been looked at' "$(grep -cE '^ws1 (elmer|rsd|elmer-rsd-net|elmer-superviso|elmer-courier|erun) |^ws2 (rsd|elmer-rsd-net|elmer-superviso|elmer-courier) ' "$tmp/after")" 10
    is 'none has had more than 16 MiB' "$(grown "$tmp/after" $bound)" ''
    is 'and no daemon grew by more than 1 MiB' "$(grown "$tmp/after" $bound "$tmp/before" 1024)" ''
else
    skip 'what they had in memory' 'a sanitizer keeps what has been freed'
fi
done_testing
