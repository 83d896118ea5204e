#!/bin/bash
# A day of three users, compressed: arrays with dependencies, terminals, limits that strike, hosts lost, elmer restarted again and again.
# Every task has run exactly once or says why not, and turnarounds and levels are those that the core's simulation of the same day says.
# With ELMER_TEST_FULL=1 arrays of 1,000 tasks and ten restarts, else of 150 and four. DAY_SEED=N is another day.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'hosts are lost, and a day on emulated ones is long'
day() { python3 "$here/programs/day.py" "$@"; }
is 'what judges the day notices what is wrong in one' "$(day try 2>&1)" ''

lab_up 3 --elmer 'allocator = v1' --elmer 'levels = 3' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 6s' --elmer 'report_interval = 1s'
install_programs
on 1 sh -c 'cat >/home/sit.py && chmod 755 /home/sit.py' <"$here/programs/sit.py"
on 1 sh -c 'cat >/home/day-task && chmod 755 /home/day-task' <<'END'
#!/bin/sh
echo "$ELMER_JOB_ID ${ELMER_ARRAY_INDEX:--} ${ELMER_RANK:-0} begin" >>/home/day/marks
sleep "$(awk "BEGIN { print $1 + ${ELMER_ARRAY_INDEX:-0} * 37 % 21 / 100 }")"
echo "$ELMER_JOB_ID ${ELMER_ARRAY_INDEX:--} ${ELMER_RANK:-0} end" >>/home/day/marks
exit "${2:-0}"
END
on 1 sh -c 'mkdir -m 777 /home/day && cd /home/day && : >marks && chmod 666 marks
    for n in 40 200; do seq $n | awk "{ print \$1, 0.2 + \$1 * 37 % 21 / 100 }" >lines-$n; done'

day play "$tmp" "${DAY_SEED:-1}" ${ELMER_TEST_FULL:+full} >"$tmp/said" 2>&1
point $? 'the day is over' || diag 'it has not been played to its end:' "$(tail -n 5 "$tmp/said")"
sed 's/^#* */# /' "$tmp/said"
[ -e "$tmp/marks" ] || bail_out 'without a day there is nothing to judge'
judged() { day judge "$tmp" "$1" 2>&1 | head -n 10; }
is 'every job that was accepted is known, and no other' "$(judged lost)" ''
is 'each task has run exactly once, or its record says why not' "$(judged once)" ''
is 'each reason and status is that of what was planned or done' "$(judged why)" ''
is 'nobody has started before what he waits for' "$(judged order)" ''
is 'limits have struck in time' "$(judged limit)" ''
left_on_nodes() {
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" sh -c "ls -d /sys/fs/cgroup/$jobs_scope/[0-9]*.* /run/elmer-rsd/jobs/[0-9]*.* /run/elmer-rsd/sup/[0-9]*.* 2>/dev/null; pgrep -u alice,bob,carol"
    done
}
none_left() { [ -z "$(left_on_nodes)" ]; }
wait_for 10 'nothing of it is left on any node' none_left

# ---- the core's simulation of the same day ----
day replay "$tmp" >"$tmp/said" 2>&1
point $? 'it is replayed' || diag 'esim or the backup has failed'
sed 's/^/# /' "$tmp/said"
day compare "$tmp" >"$tmp/compared" 2>&1
grep '^#' "$tmp/compared"
is 'turnarounds and levels are as the simulation says' "$(grep -v '^#' "$tmp/compared")" ''
done_testing
