#!/bin/bash
# One workstation with two CPUs and without any configuration: what somebody has after the first installation.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 1 --cpus 2
on 1 sh -c 'rm -f /etc/elmer/*.conf'
quiet || on 1 sh -c 'printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf' # the other work of the machine lets v2 let no job in
on 1 systemctl restart elmer rsd
install_programs
is 'nothing listens on the network' "$(on 1 ss -Hltn | grep -vc '127.0.0')" 0

# ---- --each pins ----
id=$(submit alice -w -D /home/alice --each 2 sh -c 'echo "$ELMER_RANK $(grep Cpus_allowed_list: /proc/self/status | cut -f2) $ELMER_HOSTS"')
as alice 1 sh -c "cat elmer-$id.0.out elmer-$id.1.out" | sort >"$tmp/each"
is 'ranks are 0 and 1, each in a file of its own' "$(cut -d' ' -f1 "$tmp/each" | xargs)" '0 1'
is 'each process has one CPU' "$(cut -d' ' -f2 "$tmp/each" | grep -cE '^[0-9]+$')" 2
is 'another one' "$(cut -d' ' -f2 "$tmp/each" | sort -u | wc -l)" 2
is 'one host name for each processor' "$(cut -d' ' -f3 "$tmp/each" | sort -u)" ws1:ws1
is 'equery agrees' "$(field "$id" 'sorted(p["cpu"] for p in j["processors"])')" \
    "[$(cut -d' ' -f2 "$tmp/each" | sort -n | xargs | sed 's/ /, /')]"
id=$(submit alice -w -o /dev/null --each 2 sh -c 'exit $((ELMER_RANK * 4))')
is 'the status is that of the lowest rank that failed' "$(field "$id" 'j["exit_status"]')" 4
id=$(submit alice -w -o /home/alice/one 1 sh -c 'grep Cpus_allowed_list: /proc/self/status | cut -f2')
like 'a job has its own processors only' "$(as alice 1 cat one)" '^[0-9]+$'

# ---- the default allocator: a busy processor takes no second job, an idle one does ----
allocator_of_default() {
    first=$(submit alice -o /dev/null 2 /home/testjob --threads 2 40)
    until_ok 10 running "$first"
    second=$(submit bob -o /dev/null 1 true)
    like 'v2 does not put a job on busy processors' "$(cat "$tmp/said")" "^job $second queued: 0 ahead"
    like 'and equery says why it waits' "$(why_queued "$second")" '^waits for 1 processor: of 2 that it may use, 2 (too busy|not measured since the last change there) \(allocator v2\)$'
    wait_for 15 'once they have been measured: both are too busy' says_why "$second" 'waits for 1 processor: of 2 that it may use, 2 too busy \(allocator v2\)'
    ok 'the first ends' as alice 1 ekill "$first"
    wait_for 15 'then the second runs' over "$second"
    first=$(submit alice -o /dev/null 2 /home/testjob --work-us 1000 --wait-us 20000 40)
    second=$(submit bob -o /dev/null 2 sleep 0.3)
    wait_for 25 'a job that mostly waits shares its processors, once that has been measured' over "$second"
    is 'below it' "$(field "$second" 'j["level_seconds"][1] > 0.1')" True
    as alice 1 ekill "$first"
    wait_for 5 'the first ends too' over "$first"
    wait_for 5 'nothing is left' nothing_left "$first"
}
if quiet; then
    allocator_of_default
else
    skip 'the default allocator' "not quiet: $quiet"
fi
done_testing
