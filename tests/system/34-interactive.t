#!/bin/bash
# Terminals in jobs: esubmit --pty, eattach; what is typed and shown, lost connections, restarts, and who may look.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
for k in 1 2 3; do on "$k" sh -c 'cat >/home/sit.py && chmod 755 /home/sit.py' <"$here/programs/sit.py"; done
ready='ready> $'
bash=(env 'PS1=ready> ' bash --norc --noprofile -i)
sit() { # USER NODE SIZE STEP.. -- COMMAND..: in $tmp/sat
    local user=$1 k=$2
    shift 2
    as "$user" "$k" env TERM=dumb python3 /home/sit.py "$@" >"$tmp/sat" 2>&1
}
last() { tail -n 1 "$tmp/sat"; }
shown() { tr -d '\r' <"$tmp/sat" | grep -aE -- "$1"; }
new_job() { on 1 equery -r | awk '$1 ~ /^[0-9]+$/ { print $1 }' | tail -n 1; }
none_runs() { [ -z "$(new_job)" ]; }
marked() { on "$1" test -e "$2"; }

# ---- a session: submitted on ws3, on ws2 ----
# The shell shows a command that is to go on before that has the terminal: what is typed then is for the shell. So the command says it,
# also if it was stopped before it could wait.
stops="bash -c 'trap \"echo goes on\" CONT; echo begun; while :; do read -rt 0.2; done'"
sit alice 3 40x132 "see:$ready" 'type:hostname; tty\r' "see:ws2\r\n.*/dev/pts/.*$ready" 'type:stty size\r' "see:40 132\r\n.*$ready" \
    size:50x100 'type:until [ "$(stty size)" = "50 100" ]; do :; done; echo changed $((6*7))\r' "see:changed 42\r\n.*$ready" \
    'type:sh -c "echo begun; exec sleep 1000"\r' 'see:begun\r\n' 'type:\x03' "see:\\^C.*$ready" 'type:echo status $?\r' "see:status 130\r\n.*$ready" \
    "type:$stops\r" 'see:begun\r\n' 'type:\x1a' "see:Stopped.*$ready" 'type:jobs\r' "see:Stopped.*$ready" \
    'type:fg\r' 'see:goes on\r\n' 'type:\x03' "see:\\^C.*$ready" 'type:echo status $?\r' "see:status 130\r\n.*$ready" \
    'type:echo "$TERM [$ELMER_TERMINAL] $ELMER_NPROCS"; ps -o stat= -p $$\r' "see:dumb \[\] 2\r\n.*Ss.*$ready" \
    'type:sed -n "s/^0::.*scope//p" /proc/self/cgroup\r' "see:/[0-9]+[.]1/job\r\n.*$ready" \
    'type:exit 7\r' end -- esubmit --pty --hosts ws2 2 "${bash[@]}"
is 'a shell on another host: size, Ctrl-C, Ctrl-Z and fg, its group, its status' "$(last)" 'status 7 modes same' || diag "$(tail -n 30 "$tmp/sat")"
is 'nothing runs any more' "$(until_ok 10 none_runs && echo none)" none
sit alice 1 24x80 end -- esubmit --pty sh -c 'stty size; exit 3'
is 'a command has the size from its begin' "$(shown '^24 80$'; last)" $'24 80\nstatus 3 modes same'
sit alice 1 24x80 end -- esubmit --pty 1 /no/such/command
like 'a command that is not there' "$(last)" 'status 127 modes same'
is 'input that ends in half a line' "$(as alice 1 sh -c 'printf half | timeout 60 esubmit --pty cat 2>/dev/null | tr -d "\r"')" halfhalf
sit alice 1 24x80 end -- esubmit --pty 1 sh -c 'kill -9 $$'
like 'a command that dies by a signal' "$(last)" 'status 137 modes same'
is '--dry-run' "$(as alice 1 esubmit --pty --keep --dry-run --hosts ws3 bash 2>&1 | tail -n 1)" 'its terminal would be on ws3, and stay while nobody looks'

# ---- with --keep ----
id=$(as alice 1 esubmit --pty --keep --detach --hosts ws2 2 "${bash[@]}" 2>/dev/null)
wait_for 10 'one that nobody looks at runs' running "$id"
is 'equery says so' "$(on 1 equery --json "$id" | grep -c '"terminal": *"keep"')" 1
like 'and how to see it' "$(as alice 1 equery "$id")" "terminal +stays while nobody looks: eattach $id"
sit alice 1 24x80 "see:$ready" 'type:x=41\r' "see:$ready" 'type:(sleep 1; echo; seq 1 20000; : >/tmp/printed) &\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
is 'left by ~.' "$(last)" 'status 0 modes same'
wait_for 20 'it prints while nobody looks' marked 2 /tmp/printed
sit alice 3 24x80 'see:\r\n20000\r\n' 'type:echo $((x+1))\r' "see:\r\n42\r\n.*$ready" signal:TERM end -- eattach "$id"
is 'from another host, all of it; ended by a signal' "$(last)" 'status 143 modes same' || diag "$(tail -n 5 "$tmp/sat")"
is 'no line is missing or twice' "$(shown '^[0-9]+$' | head -n 20000 | cksum)" "$(seq 1 20000 | cksum)"
sit alice 3 24x80 'type:\r' "see:$ready" signal:KILL end -- eattach "$id"
like 'one who looks is killed' "$(last)" 'status -9 '
as alice 2 rm -f /tmp/printed
sit alice 3 24x80 'type:\r' "see:$ready" 'type:(sleep 1; echo; seq 1 400000; : >/tmp/printed) &\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
wait_for 60 'it prints more than is kept' marked 2 /tmp/printed
sit alice 1 24x80 'see:\r\n400000\r\n' 'type:\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
like 'what is lost is said' "$(shown 'bytes that nobody has seen are lost')" '[0-9]+ bytes that nobody has seen are lost; the last 1024 KiB are kept'
lines=$(shown '^[0-9]+$' | wc -l)
is 'and the rest is whole' "$(shown '^[0-9]+$' | tail -n $((lines - 1)) | cksum)" "$(seq 1 400000 | tail -n $((lines - 1)) | cksum)"
ok '1 MiB of it' test "$lines" -gt 120000

# ---- who may ----
sit bob 2 24x80 end -- eattach "$id"
like 'another user is refused' "$(cat "$tmp/sat")" "job $id belongs to alice: only he may see its terminal"
sit root 1 24x80 end -- eattach "$id"
like 'root of the queue host, too' "$(last)" 'status 5 modes same'
port=$(on 2 sh -c 'ss -Hltnp | grep elmer-courier | head -n 1 | grep -oE ":[0-9]+ " | head -n 1 | tr -dc 0-9')
ok 'its port is found' test -n "$port"
stranger() { # SAYS: what comes back is in /tmp/said on ws1; how many bytes that are, when the other side has ended
    on 1 timeout 20 bash -c 'exec 3<>/dev/tcp/ws2/"$1" && printf "$2" >&3 && cat <&3 >/tmp/said; stat -c "%s bytes" /tmp/said' - "${port:-1}" "$1" 2>/dev/null
}
garbage=$(stranger 'GET / HTTP/1.0\r\n\r\n')
like 'who says garbage gets a pass, and is cut off' "$garbage" '^[1-9][0-9]{2,3} bytes$'
is 'it is one' "$(on 1 grep -a -c 'elmer run 1' /tmp/said)" 1
is 'who says nothing gets no more' "$(stranger '')" "$garbage"
is 'what holds it is the user' "$(on 2 sh -c 'p=$(pgrep -x elmer-courier | head -n 1); stat -c %U /proc/$p')" alice
on 2 sh -c 'printf "vouch = all !ws3\n" >>/etc/elmer/rsd.conf; systemctl restart rsd'
wait_for 20 'ws2 is up again, and does not believe ws3' up_again
sit alice 3 24x80 end -- eattach "$id"
is 'from there nobody looks' "$(last)" 'status 5 modes same'
like 'and is told why' "$(cat "$tmp/sat")" 'ws2 does not believe the pass'
sit alice 1 24x80 'type:\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
is 'from another host he does' "$(last)" 'status 0 modes same'
on 2 sh -c 'sed -i "/^vouch = all !ws3/d" /etc/elmer/rsd.conf; printf "deny_users = alice\n" >>/etc/elmer/rsd.conf; systemctl restart rsd'
wait_for 20 'ws2 is up again, and denies alice by the word of others' up_again
sit alice 1 24x80 end -- eattach "$id"
is 'then she does not look from there' "$(last)" 'status 5 modes same'
like 'and is told why' "$(cat "$tmp/sat")" 'of user alice from other hosts are refused'
sit alice 2 24x80 'type:\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
is 'on ws2 itself she does' "$(last)" 'status 0 modes same'
on 2 sh -c 'sed -i "/^deny_users = alice/d" /etc/elmer/rsd.conf; systemctl restart rsd'
wait_for 20 'ws2 is up again' up_again

# ---- restarts, and a cable ----
sit alice 3 24x80 'type:\r' "see:$ready" mark:/tmp/sits await:/tmp/killed 'type:echo still $((6*7))\r' "see:still 42\r\n.*$ready" \
    mark:/tmp/sits2 await:/tmp/cut 'type:echo; seq 1 3000\r' await:/tmp/plugged "see:\r\n3000\r\n.*$ready" 'type:\r~.' end -- eattach "$id" &
seat=$!
wait_for 20 'she looks again' marked 3 /tmp/sits
ok 'rsd is killed where it runs' on 2 systemctl kill -s KILL rsd
ok 'and where she sits' on 3 systemctl kill -s KILL rsd
ok 'elmer is restarted' on 1 systemctl restart elmer
wait_for 20 'all are up again' up_again
on 3 touch /tmp/killed
wait_for 20 'her session has not noticed' marked 3 /tmp/sits2
ok 'the cable is pulled' "$lab" link 2 down
on 3 touch /tmp/cut
read -rt 15 -u "$never" || true # longer than the kernels take to notice it
ok 'and plugged in again' "$lab" link 2 up
on 3 touch /tmp/plugged
wait "$seat"
is 'the session goes on where it was' "$(last)" 'status 0 modes same' || diag "$(tail -n 20 "$tmp/sat")"
is 'with every line once' "$(shown '^[0-9]+$' | cksum)" "$(seq 1 3000 | cksum)"
like 'and it was said' "$(shown 'connection to ws2')" 'the connection to ws2 is lost.*the connection to ws2 is back'
sit alice 1 24x80 'type:\r' "see:$ready" 'type:\r~.' end -- eattach "$id"
is 'a new one finds it after all restarts' "$(last)" 'status 0 modes same'

# ---- the end ----
sit alice 3 24x80 'type:\r' "see:$ready" mark:/tmp/sits3 end -- eattach "$id" &
seat=$!
wait_for 20 'she looks' marked 3 /tmp/sits3
ok 'ekill' as alice 1 ekill "$id"
wait "$seat"
like 'ends it, and she is told' "$(last)" 'status (129|137|143) modes same'
wait_for 10 'it has ended' over "$id"
ok 'and nothing is left' until_ok 10 nothing_left "$id"
id=$(as alice 1 esubmit --pty --keep --detach -o /home/alice/unseen -e /home/alice/unseen.errors --hosts ws2 1 sh -c 'echo last words; exit 4' 2>/dev/null)
wait_for 10 'one that nobody has looked at ends' over "$id"
is 'what nobody has seen is in its output file' "$(as alice 2 cat unseen | tr -d '\r')" 'last words'
sit alice 1 24x80 end -- eattach "$id"
like 'eattach says so' "$(cat "$tmp/sat")" "job $id has ended, and its terminal with it"
sit alice 3 24x80 "see:$ready" signal:HUP end -- esubmit --pty --hosts ws2 1 "${bash[@]}"
is 'without --keep the end of who looks' "$(last)" 'status 129 modes same'
wait_for 20 'is the end of the job' none_runs
sit alice 3 24x80 "see:$ready" end -- esubmit --pty -t 6s --hosts ws2 1 "${bash[@]}"
is 'a limit ends it' "$(last)" 'status 125 modes same'

done_testing
