#!/bin/bash
# Who waits for several hosts keeps his turn when hosts come back one by one: after restarts of elmer and of each rsd, after kill -9,
# and while elmer is stopped. Drains stay; the time at a level goes on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --elmer 'allocator = v1' --elmer 'levels = 1' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 6s'
install_programs
reason() { field "$1" 'j["reason_code"]'; }
level_ms() { field "$1" 'int(1000 * sum(j["level_seconds"]))'; }
unit_runs() { on "$1" systemctl --quiet is-active "$2"; }
all_linked() { [ "$(on 1 eadmin hosts --json | python3 -c 'import json,sys; print(sum(h["state"] in ("up", "drained") for h in json.load(sys.stdin)["hosts"]))')" = 3 ]; }
down_lines() { on 1 journalctl --no-pager -u elmer -o cat | grep -cE 'host=[^ ]* is down'; }

first=$(submit alice -o /dev/null --hosts ws1 1 sleep 1000)
wait_for 10 'a job runs on ws1' running "$first"
again=$(submit alice -o /dev/null --requeue --hosts ws2 1 sleep 1000)
wait_for 10 'one with --requeue on ws2' running "$again"
wide=$(submit bob -o /dev/null 3 true)
narrow=()
add_narrow() { narrow+=("$(submit carol -o /dev/null 1 sleep 1000)"); }
passed() { # those that are later than the wide one and wait no more
    local id
    [ "$(state "$wide")" = queued ] || echo "job $wide itself is $(state "$wide")"
    for id in "${narrow[@]}"; do
        [ "$(state "$id")" = queued ] || echo "job $id is $(state "$id")"
    done
}
add_narrow

# ---- elmer, ten times; then as it dies ----
for ((i = 1; i <= 10; i++)); do
    on 1 systemctl restart elmer
    wait_for 20 "restart $i of elmer: all hosts are back" all_linked
    add_narrow
    [ "$i" -lt 10 ] || like 'equery says what the wide one waits for' "$(as alice 1 equery -q)" "$wide .*(waits for 3 processors|hosts that were up before)"
    is "restart $i of elmer: nobody has passed" "$(passed)" ''
done
on 1 systemctl kill -s KILL elmer
wait_for 20 'after kill -9 elmer is back' unit_runs 1 elmer
wait_for 20 'all hosts are back' all_linked
is 'nobody has passed' "$(passed)" ''

# ---- each rsd ----
for k in 1 2 3; do
    on "$k" systemctl restart rsd
    is "restart of rsd on ws$k: nobody has passed" "$(passed)" ''
    wait_for 20 "all hosts are back" all_linked
    is "nor when it is back" "$(passed)" ''
done

# ---- elmer does not run for longer than host_timeout ----
before=$(down_lines)
on 1 systemctl kill -s STOP elmer
sleep 10 # the stall
on 1 systemctl kill -s CONT elmer
wait_for 10 'elmer goes on and all hosts are linked' all_linked
is 'it has said of no host that it is down' "$(down_lines)" "$before"
is 'nobody has passed' "$(passed)" ''
ok 'the jobs run' running "$first"
is 'the one with --requeue in its first attempt' "$(state "$again") $(field "$again" 'j["attempt"]')" 'running 1'

# ---- the level, and a drain ----
shown=$(level_ms "$first")
on 1 systemctl kill -s KILL elmer
wait_for 20 'after another kill -9 all hosts are back' all_linked
now=$(level_ms "$first")
ok "the time at the level has not fallen ($shown ms, then $now ms)" test "$now" -ge "$shown"
ok 'a host is drained' on 1 eadmin drain ws3
on 1 systemctl restart elmer
wait_for 20 'after a restart all hosts are back' all_linked
like 'it is drained still' "$(on 1 eadmin hosts)" 'ws3 +drained'
ok 'and takes jobs again when told so' on 1 eadmin resume ws3

# ---- in the end they start in their order ----
as carol 1 ecancel "${narrow[@]:1}" >/dev/null 2>&1
as alice 1 ekill "$first" "$again"
wait_for 20 'the wide one runs and ends' over "$wide"
is 'as it should' "$(field "$wide" 'j["exit_status"]')" 0
wait_for 20 'then a narrow one' running "${narrow[0]}"
as carol 1 ekill "${narrow[0]}"
wait_for 20 'and ends' over "${narrow[0]}"
done_testing
