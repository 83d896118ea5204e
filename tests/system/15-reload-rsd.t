#!/bin/bash
# systemctl reload rsd: the files are checked first, each change is a line, and jobs of each kind run on; what would lose them is
# refused by name.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 5'
install_programs
ids=()
for kind in '' --each --pvm; do
    # shellcheck disable=SC2086 # one option or none
    ids+=("$(submit alice -o /dev/null $kind 2 /home/testjob --work-us 1000 --wait-us 20000 600)")
    wait_for 20 "a job${kind:+ with $kind} runs" running "${ids[-1]}"
done
rsd_pid() { on 2 systemctl show -P MainPID rsd; }
told() { on 2 journalctl -u rsd -o cat | grep -qE "$1"; }
conf() { on 2 sh -c 'cat >/etc/elmer/rsd.conf.d/80-reload.conf' <<<"[rsd]"$'\n'"$1"; }
mode_of_2() { on 1 eadmin hosts | awk '$1 == "ws2" { print $2, $4 }'; }
has_mode() { [ "$(mode_of_2)" = "up $1" ]; }
others() { [ "$(rsd_pid)" != "$1" ] && [ "$(rsd_pid)" != 0 ]; }
wait_for 20 'ws2 ranks in real time' has_mode rt
pid=$(rsd_pid)

conf 'mode = fast'
if on 2 systemctl reload rsd 2>/dev/null; then wrong=passed; else wrong=refused; fi
is 'a wrong file is refused by systemctl' $wrong refused
ok 'with key and line in the journal' told '^reload: .*80-reload.conf:2: mode = fast'
ok 'and the word that nothing has changed' told '^reload: refused, nothing has changed'
is 'rsd is the same process' "$(rsd_pid)" "$pid"

conf $'mode = idle\nname = ws9'
if on 2 systemctl reload rsd 2>/dev/null; then wrong=passed; else wrong=refused; fi
is 'what would lose the jobs is refused' $wrong refused
ok 'by name' told '^reload: name = ws9, was .*: needs a restart, which would lose the jobs that run here'
is 'and with it all else' "$(rsd_pid) $(mode_of_2)" "$pid up rt"

conf $'mode = idle\ndeny_users = bob\nuser_connections = 77'
ok 'a good one is reloaded' on 2 systemctl reload rsd
ok 'each key is a line' told '^reload: mode = idle, was auto$'
ok 'with what it was' told '^reload: user_connections = 77, was 1024$'
wait_for 20 'rsd has begun again' others "$pid"
wait_for 20 'the mode counts' has_mode idle
refused=$(submit bob -o /dev/null --hosts ws2 1 true)
wait_for 20 'a user who is denied now ends' over "$refused"
like 'because of that' "$(field "$refused" 'j["reason"]')" 'bob|deny_users'
for id in "${ids[@]}"; do
    ok "job $id runs on" running "$id"
    is "... it was not begun again" "$(field "$id" 'j["attempt"]')" 1
done
is 'nothing has failed' "$(on 2 systemctl list-units --failed --no-legend)" ''

pid=$(rsd_pid)
on 2 rm /etc/elmer/rsd.conf.d/80-reload.conf
ok 'back to what it was' on 2 systemctl reload rsd
ok 'that is said, too' told '^reload: mode = auto, was idle$'
wait_for 20 'rsd has begun again' others "$pid"
wait_for 20 'the mode counts' has_mode rt
for id in "${ids[@]}"; do
    ok "job $id runs on" running "$id"
    as alice 1 ekill "$id"
    wait_for 20 '... and ends' over "$id"
done

# ---- while it waits for something ----
on 2 mv /usr/libexec/elmer/elmer-rsd-net /usr/libexec/elmer/away
on 2 systemctl restart rsd
pid=$(rsd_pid)
conf 'minimum_uid = 900'
on 2 systemctl reload rsd
wait_for 20 'an rsd that waits begins again, too' others "$pid"
on 2 mv /usr/libexec/elmer/away /usr/libexec/elmer/elmer-rsd-net
wait_for 30 'and goes on' has_mode rt
done_testing
