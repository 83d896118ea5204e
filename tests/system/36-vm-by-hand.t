#!/bin/bash
# A PVM virtual machine without a command (esubmit -P, -p): a console and programs that are started by hand use it; it
# ends when it is halted, by ekill, by a limit, or with a daemon.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
examples=/usr/libexec/elmer/examples
reason() { field "$1" 'j["reason_code"]'; }
machine() { # ARG.. -> its id in $id, what was said in $said
    as alice 1 esubmit -o /home/alice/vm.out "$@" >"$tmp/id" 2>"$tmp/said"
    id=$(cat "$tmp/id") said=$(cat "$tmp/said")
}
by_hand() { # NODE COMMAND..: alice in a shell there, with the line that esubmit has said
    local node=$1
    shift
    as alice "$node" sh -c "$(grep -o 'export PVM_TMP=.*' "$tmp/said"); cd; \"\$@\"" - "$@"
}
console() { # NODE LINE: of a console
    by_hand "$1" sh -c 'echo "$0" | pvm' "$2"
}

# ---- up ----
machine -P 2 --per-host 1
like 'the id, and how it is used' "$said" "the virtual machine of job $id is up; on ws1 or ws2"
like 'with the directory of its daemons' "$said" "export PVM_TMP=/run/elmer-rsd/jobs/$id.1"
ok 'it runs when this is said' running "$id"
like 'equery says it as well' "$(as alice 1 equery "$id")" "machine +export PVM_TMP=/run/elmer-rsd/jobs/$id.1"
like 'a console finds it' "$(console 1 conf)" '2 hosts'
like 'on each of its hosts' "$(console 2 conf)" '2 hosts'

# ---- programs that are started by hand ----
ok 'a program of PVM runs in it' by_hand 1 "$examples/ep" -P 2 -c S
like 'its tasks are the job, and know its hosts' "$(by_hand 1 "$examples/placed" 2>&1)" 'ws'
cat >"$tmp/register.py" <<'EOF'
import ctypes, ctypes.util, errno
lib = ctypes.CDLL(ctypes.util.find_library("elmer") or "libelmer.so.1", use_errno=True)
print(lib.elmer_register(), errno.errorcode.get(ctypes.get_errno(), 0))
EOF
on 1 sh -c 'cat >/home/register.py; chmod 644 /home/register.py' <"$tmp/register.py"
is 'a program in a shell is in no job, and is told so' "$(by_hand 1 env ${asan_late:+"$asan_late"} python3 /home/register.py)" '0 ENOENT'
on 1 sh -c 'printf "#!/bin/sh\nenv -u ELMER_HOSTS $1 python3 /home/register.py >/home/alice/registered\n" >/home/task.sh; chmod 755 /home/task.sh' - "$asan_late"
console 1 'spawn -(ws1) /home/task.sh' >/dev/null
wait_for 10 'a task that the console has started' as alice 1 test -s registered
like 'joins its own job' "$(as alice 1 cat registered)" '^2 '

# ---- the ends ----
console 2 halt >/dev/null 2>&1
wait_for 10 'halted by its user it ends' over "$id"
is 'as a job that has ended well' "$(field "$id" '(j["reason_code"], j["exit_status"], j["reason"])')" "('exited', 0, 'its virtual machine was halted')"
wait_for 5 'nothing of it is left' nothing_left "$id"
machine -P 1 --hosts ws2
console 2 'add ws1' >/dev/null
like 'no host can be added' "$(console 2 conf)" '1 host,'
ok 'ekill' as alice 1 ekill "$id"
wait_for 10 'ends it' over "$id"
is 'with that reason' "$(reason "$id")" killed
wait_for 5 'and nothing is left' nothing_left "$id"
machine -P 2 -t 3s
wait_for 20 'a limit ends it' over "$id"
is 'with that reason' "$(reason "$id")" time-limit
machine -P 2 --per-host 1
on 2 sh -c 'kill -KILL $(head -n 1 "/sys/fs/cgroup/$1/$2.1/job/cgroup.procs")' - "$jobs_scope" "$id"
wait_for 10 'the death of a daemon ends it' over "$id"
is 'with that reason' "$(reason "$id")" pvm-failed

# ---- hosts from a file; a full cluster ----
as alice 1 sh -c 'printf "# as in 1995\n* dx=/usr/bin/pvmd\nws2 wd=/tmp\nws1\n" >hosts'
machine -p /home/alice/hosts
is 'a processor of each host of a file' "$(field "$id" '(sorted(p["host"] for p in j["processors"]), j["per_host"])')" "(['ws1', 'ws2'], 1)"
like 'a console finds both' "$(console 1 conf)" '2 hosts'
ok 'it is ended' as alice 1 ekill "$id"
wait_for 10 'it ends' over "$id"
on 1 eadmin drain ws2
machine -P 1 --hosts ws2
like 'one that has to wait says so, and does not wait for it' "$said" "equery $id says when it is up"
on 1 eadmin resume ws2
wait_for 15 'it comes up' running "$id"
ok 'it is ended, too' as alice 1 ekill "$id"
like 'a command is refused' "$(as alice 1 esubmit -P 2 true 2>&1)" 'has no command'

done_testing
