#!/bin/bash
# systemctl reload elmer: all or nothing; what counts at once, what needs a restart; and jobs of each kind run on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs
ids=()
for kind in '' --each --pvm; do
    # shellcheck disable=SC2086 # one option or none
    ids+=("$(submit alice -o /dev/null $kind 2 /home/testjob --work-us 1000 --wait-us 20000 600)")
    wait_for 20 "a job${kind:+ with $kind} runs" running "${ids[-1]}"
done
elmer_pid() { on 1 systemctl show -P MainPID elmer; }
reload_log() { on 1 journalctl -u elmer -o cat | sed -n 's/^.*reload: /reload: /p'; }
told() { reload_log | grep -qE "$1"; }
conf() { on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d && cat >/etc/elmer/elmer.conf.d/80-reload.conf' <<<"[elmer]"$'\n'"$1"; }
pid=$(elmer_pid)

conf 'max_nprocs = 1'
ok 'a good file is reloaded' on 1 systemctl reload elmer
wait_for 10 'the log says which key, and what it was' told '^reload: max_nprocs = 1, was [0-9]+$'
like 'it counts at once' "$(as alice 2 esubmit 2 true 2>&1)" 'allows 1 for a job'
like 'the status tells it' "$(on 1 systemctl show -P StatusText elmer)" 'reloaded: 1 changed'

conf 'max_nprocs = many'
if on 1 systemctl reload elmer 2>"$tmp/err"; then wrong=passed; else wrong=refused; fi
is 'a wrong file is refused by systemctl' $wrong refused
like 'with key and line in the journal' "$(on 1 journalctl -u elmer -o cat -n 30)" '80-reload.conf:2: .*max_nprocs'
like 'and nothing has changed' "$(as alice 2 esubmit 2 true 2>&1)" 'allows 1 for a job'

conf $'max_nprocs = 2\nlevels = 2'
ok 'one key that can and one that cannot' on 1 systemctl reload elmer
wait_for 10 'what needs a restart is said by name' told '^reload: levels = 2, was 3: needs a restart'
wait_for 10 'the other counts' told '^reload: max_nprocs = 2, was 1$'
like 'the status tells both' "$(on 1 systemctl show -P StatusText elmer)" 'reloaded: 1 changed, 1 NEED A RESTART'

is 'elmer is the same process' "$(elmer_pid)" "$pid"
for id in "${ids[@]}"; do
    ok "job $id runs on" running "$id"
    is "... it was not begun again" "$(field "$id" 'j["attempt"]')" 1
    as alice 1 ekill "$id"
    wait_for 20 '... and ends' over "$id"
done
done_testing
