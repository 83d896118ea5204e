#!/bin/bash
# erun: processes of a job on any of its hosts, their streams, ends and signals; as ssh; and who may.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
job() { # FILE NPROCS TEXT: runs TEXT with /bin/sh in a job of alice on both hosts, all output in FILE; its status
    as alice 1 rm -f "$1"
    as alice 1 esubmit -t 40s -w -o "/home/alice/$1" "$2" sh -c "$3" >/dev/null 2>&1
}
printed() { as alice 1 cat "$1"; }

# ---- where, and what it finds ----
job where 4 'erun hostname; for h in ws1 ws2; do erun --host $h hostname; erun $h hostname; done; erun --rank 3 sh -c "hostname; echo \$ELMER_RANK; nproc"'
is 'on the first host, on one, as ssh, on the processor of a rank' "$(printed where | xargs)" 'ws1 ws1 ws1 ws2 ws2 ws2 3 1'
job each 4 'erun --each sh -c "echo \$ELMER_RANK of \$ELMER_NPROCS on \$(hostname) \$(nproc) \$OMP_NUM_THREADS"'
is '--each' "$(printed each | sort | xargs)" '0 of 4 on ws1 1 1 1 of 4 on ws1 1 1 2 of 4 on ws2 1 1 3 of 4 on ws2 1 1'
job many 4 'erun -n 6 sh -c "echo \$ELMER_RANK of \$ELMER_NPROCS on \$(hostname) \$OMP_NUM_THREADS"'
is '-n, more than there are processors' "$(printed many | sort | xargs)" '0 of 6 on ws1 2 1 of 6 on ws1 2 2 of 6 on ws2 2 3 of 6 on ws2 2 4 of 6 on ws1 2 5 of 6 on ws1 2'
job address 4 'echo $ELMER_ADDRESS; erun ws2 "echo \$ELMER_ADDRESS"'
is 'the address is that of its host' "$(printed address | sort -u | wc -l)" 2
as alice 2 mkdir -p deep/down
job place 4 'mkdir -p deep/down; cd deep/down; umask 027; MINE="a  b" OMP_NUM_THREADS=7 erun ws2 "pwd; umask; echo \"\$MINE\" \$OMP_NUM_THREADS \$GOMAXPROCS; id -un"'
is 'directory, umask, environment, user' "$(printed place | xargs -d '\n')" '/home/alice/deep/down 0027 a  b 7 2 alice'
job quotes 4 'erun ws2 "echo" "\"a  b\"" "; echo c"; erun --host ws2 echo "\"a  b\"" "; echo c"'
is 'as ssh the words are a line for a shell, else they are words' "$(printed quotes | xargs -d '\n')" 'a  b c "a  b" ; echo c'
job ssh 4 'erun -x -q -o BatchMode=yes -l alice ws2 -- hostname; erun -n -T alice@ws2 cat; echo $?; erun -l bob ws2 true; echo $?; erun -x ws9 true; echo $?'
is "ssh's command line" "$(printed ssh | grep -v erun: | xargs)" 'ws2 0 2 2'

job words 4 'erun --host ws2 /bin/echo $(seq 70000) | wc -w'
is 'as many words as execve(2) takes' "$(printed words)" 70000

# ---- ends ----
job ends 4 'for c in "exit 0" "exit 7" "kill -9 \$\$" "kill -TERM \$\$"; do erun --host ws2 sh -c "$c"; echo $?; done
    erun --host ws2 /no/such; echo $?; erun --host ws2 /etc/passwd; echo $?; erun -n 4 sh -c "exit \$ELMER_RANK"; echo $?'
is 'exit statuses' "$(printed ends | grep -v erun: | xargs)" '0 7 137 143 127 126 3'
like 'with a sentence' "$(printed ends | grep erun: | xargs)" 'erun: ws2: command not found: /no/such erun: ws2: command /etc/passwd cannot be executed: Permission denied'
job meant 4 'erun ws9 date; erun /no@such/command date; env -i PATH="$PATH" ELMER_HOSTS="$ELMER_HOSTS" erun true'
like 'what may have been meant as a host' "$(printed meant)" 'ws1: command not found: ws9, which is no host of job [0-9]+ either'
like "a command's path may have an @" "$(printed meant)" 'ws1: command not found: /no@such/command'
like 'where the environment is not that of the job' "$(printed meant)" 'ELMER_JOB_ID has been removed from the environment of this process of job [0-9]+'
job again 4 'erun --host ws2 sleep 100 & p=$!; sleep 0.5; kill -9 $p; i=0; while erun --host ws2 pgrep -x sleep; do i=$((i + 1)); [ $i -lt 100 ] || break; done; echo gone'
is 'the end of erun, whatever it is, ends what it has started' "$(printed again | tail -n 1)" gone
job signals 4 'for s in INT TERM USR1 USR2; do env --default-signal=$s erun --host ws2 sh -c "trap \"echo got $s; kill \\\$! 2>/dev/null; exit 5\" $s; sleep 100 & until grep -qx sleep /proc/\$!/comm; do :; done; echo ready >/tmp/ready.$s; wait" & p=$!
    until erun ws2 test -e /tmp/ready.$s; do :; done; kill -$s $p; wait $p; echo $?; erun ws2 rm /tmp/ready.$s; done'
is 'signals are passed on' "$(printed signals | xargs)" 'got INT 5 got TERM 5 got USR1 5 got USR2 5'

# ---- streams ----
job bytes 4 'head -c 50000000 /dev/urandom >/tmp/a; erun ws2 "cat; echo to stderr >&2" </tmp/a 2>/tmp/err >/tmp/b; cmp /tmp/a /tmp/b && cat /tmp/err; rm /tmp/a /tmp/b'
is '50 MB there and back, and standard error beside it' "$(printed bytes)" 'to stderr'
job slow 4 'erun -n 4 sh -c "head -c 20000000 /dev/zero | tr \"\\0\" \$ELMER_RANK; echo >&2 done \$ELMER_RANK" 2>/tmp/slow.err | (sleep 1; wc -c); sort /tmp/slow.err | xargs'
is 'a slow reader loses nothing' "$(printed slow | xargs)" '80000000 done 0 done 1 done 2 done 3'
job flood 4 'erun --host ws2 yes | head -n 1; erun --host ws2 pgrep -x yes; echo $?'
is 'who does not read any more ends the writer' "$(printed flood | grep -v '^[0-9]\{2,\}$' | xargs)" 'y 1'
job beside 4 '(erun -n 1 --host ws2 cat /dev/zero 2>/dev/null | (sleep 3; cat >/dev/null)) & erun --host ws2 echo beside; pkill -P $$ ; kill $! 2>/dev/null; exit 0'
is 'one that floods does not keep others' "$(printed beside | grep -c beside)" 1
job pty 4 'erun --pty --host ws2 sh -c "tty; test -t 0 && test -t 1 && echo a terminal; stty size" | tr -d "\r"; erun -tt ws2 "test -t 0 && echo too" | tr -d "\r"'
like '--pty' "$(printed pty | xargs)" '^/dev/pts/[0-9]+ a terminal [0-9]+ [0-9]+ too$'

job stopped 4 'erun --host ws2 sh -c "echo >/tmp/up; until test -e /tmp/go; do sleep 0.1; done; head -c 3000000 /dev/zero" >/tmp/stopped & p=$!
    until erun ws2 test -e /tmp/up; do :; done; kill -STOP $p; erun ws2 touch /tmp/go; sleep 14; kill -CONT $p; wait $p; echo $?; wc -c </tmp/stopped'
is 'who is stopped for longer than a host may be silent keeps his connection' "$(printed stopped | xargs)" '0 3000000'
job fifo 4 'mkfifo named; echo text >named & exec <named; wait $!; timeout 20 erun --host ws2 cat; echo $?; rm named; timeout 20 erun --host ws2 cat <&1 | cat; echo ended'
is 'a named pipe whose writer has gone ends, and what cannot be read' "$(printed fifo | xargs)" 'text 0 ended'

# ---- the size of a terminal ----
on 1 sh -c 'cat >/home/sit.py && chmod 755 /home/sit.py' <"$here/programs/sit.py"
as alice 1 sh -c 'cat >sized.sh' <<'END'
stty size
changes=0
trap 'changes=$((changes + 1)); echo "changed to $(stty size)"' WINCH
echo ready
until [ $changes = 2 ]; do sleep 0.05; done
exit 3
END
changes=('see:40 132\r+\n.*ready' size:50x100 'see:changed to 50 100\r+\n' size:60x200 'see:changed to 60 200\r+\n' end)
for call in '--pty --host ws2 sh' '--pty sh' '-t ws2 sh'; do
    # shellcheck disable=SC2086 # words
    as alice 1 esubmit -t 100s -w -o /home/alice/sized 4 python3 /home/sit.py 40x132 "${changes[@]}" -- erun $call sized.sh >/dev/null 2>&1
    is "erun $call: the command has the size, and hears of each change" "$(printed sized | tail -n 1)" 'status 3 modes same' || diag "$(printed sized)"
    as alice 1 rm sized
done
as alice 1 env TERM=dumb python3 /home/sit.py 40x132 "${changes[@]}" -- esubmit -t 100s --pty 4 erun --pty --host ws2 sh sized.sh >"$tmp/sat" 2>&1
is 'also in a job that has a terminal' "$(tail -n 1 "$tmp/sat")" 'status 3 modes same' || diag "$(tail -n 20 "$tmp/sat")"
as alice 1 esubmit -t 100s -w -o /home/alice/sized 4 python3 /home/sit.py 40x132 "${changes[@]}" -- sh -c 'echo | erun --pty --host ws2 sh sized.sh' >/dev/null 2>&1
is 'and where the terminal is that of the output alone' "$(printed sized | tail -n 1)" 'status 3 modes same' || diag "$(printed sized)"

# ---- who may ----
is 'outside of a job there is no erun' "$(as alice 1 erun true 2>&1 | grep -c 'no process of a job')" 1
id=$(submit alice -o /home/alice/couriers 4 sh -c 'erun --each true; echo ready; sleep 100')
wait_for 10 'a job with couriers runs' eval 'printed couriers | grep -q ready && [ -n "$(on 2 pgrep -x elmer-courier)" ]'
as alice 1 env ELMER_JOB_ID="$id" ELMER_HOSTS=ws1:ws1:ws2:ws2 erun ws2 id >"$tmp/out" 2>&1
like "its user's own shell beside it gets no pass" "$(cat "$tmp/out")" 'no process of a job: its control group is'
is 'a courier is the user, in the group of the job' "$(on 2 sh -c 'p=$(pgrep -x elmer-courier); stat -c %U /proc/$p; sed -n "s/^0::.*scope//p" /proc/$p/cgroup' | xargs)" "alice /$id.1/job"
port=$(on 2 sh -c 'ss -Hltnp | grep elmer-courier | head -n 1 | sed "s/.*:\([0-9]*\) .*:\*.*/\1/"' | grep -oE '[0-9]+' | head -n 1)
is 'who says nothing, or garbage, to a courier gets nothing' "$(on 1 timeout 5 bash -c 'exec 3<>/dev/tcp/ws2/'"${port:-1}"'; head -c 100000 /dev/urandom >&3; cat <&3' 2>/dev/null | grep -a -c 'uid=')" 0
as alice 2 esubmit -t 20s -w --hosts ws2 -o /home/alice/beside 1 sh -c "ELMER_JOB_ID=$id ELMER_HOSTS=ws1:ws1:ws2:ws2 erun ws1 id" >/dev/null 2>&1
like 'a process of another job has another pass' "$(as alice 2 cat beside)" "who answers for ws1 is of job $id on ws1"
ok 'ekill' as alice 1 ekill "$id"
wait_for 5 'ends a job with couriers' over "$id"
ok 'and nothing is left' until_ok 5 nothing_left "$id"
id=$(submit alice -o /home/alice/alone --hosts ws1 1 sh -c 'echo alone; sleep 100')
wait_for 10 'a job runs on one host' eval 'printed alone | grep -q alone'
as alice 2 esubmit -t 20s -w --hosts ws2 -o /home/alice/beside 1 sh -c "ELMER_JOB_ID=$id ELMER_HOSTS=ws1:ws2 erun ws1 id" >/dev/null 2>&1
like 'another host is not told where its courier is' "$(as alice 2 cat beside)" "nothing of job $id can be started on ws1: only processes of this job may do that, and none is on the host of who asks"
is 'and none is there' "$(on 1 pgrep -x elmer-courier)" ''
as alice 1 ekill "$id"
wait_for 5 'it ends' over "$id"
on 1 sh -c 'printf "deny_users = alice\n" >>/etc/elmer/rsd.conf; systemctl restart rsd'
wait_for 20 'ws1 is up again, and denies alice by the word of others' up_again
job denied 4 'erun ws2 "hostname; erun ws1 hostname"; echo $?; erun ws1 hostname'
is 'from the host of the submission she reaches others, and nobody there reaches her on it' "$(printed denied | grep -v erun: | xargs)" 'ws2 255 ws1'
like 'why' "$(printed denied)" 'erun: .*jobs of user alice from other hosts are refused \(deny_users in rsd.conf\)'
on 1 sh -c 'sed -i "/^deny_users = alice/d" /etc/elmer/rsd.conf; systemctl restart rsd'
wait_for 20 'ws1 is up again' up_again

# ---- what fails ----
id=$(submit alice -o /home/alice/lost 4 sh -c 'erun --host ws2 sh -c "echo here; exec sleep 987"; echo status $?; sleep 100')
wait_for 10 'a process runs on the other host' eval 'printed lost | grep -q here'
ok 'rsd is killed there' on 2 systemctl kill -s KILL rsd
wait_for 10 'and comes again' up_again
is 'its stream goes on' "$(printed lost | xargs)" here
ok 'a courier is killed' on 2 pkill -KILL -x elmer-courier
wait_for 5 'who waits for it is told' eval 'printed lost | grep -q "status 255"'
like 'why' "$(printed lost)" 'erun: the connection to ws2 is lost \(.*\): what ran there is told to end'
ok 'what it had started is' until_ok 5 eval '[ -z "$(on 2 pgrep -f "^sleep 987")" ]'
as alice 1 ekill "$id"
wait_for 10 'it ends' over "$id"
ok 'nothing is left' until_ok 5 nothing_left "$id"
id=$(submit alice -o /home/alice/left 4 sh -c 'erun --host ws2 sh -c "sleep 986; true"; echo status $?; sleep 100')
wait_for 10 'a process runs below a shell on the other host' eval '[ -n "$(on 2 pgrep -f "^sleep 986")" ]'
ok 'its courier is killed' on 2 pkill -KILL -x elmer-courier
wait_for 5 'who waits for it is told' eval 'printed left | grep -q "status 255"'
ok 'the shell is ended by the kernel' until_ok 5 eval '[ -z "$(on 2 pgrep -f "^sh -c sleep 986")" ]'
ok 'what it has started goes on' on 2 pgrep -f '^sleep 986'
as alice 1 ekill "$id"
wait_for 10 'until the job ends' over "$id"
ok 'then nothing is left' until_ok 5 nothing_left "$id"
id=$(submit alice -o /home/alice/kept 4 sh -c 'erun --each sh -c "head -c 60000 /dev/zero; exec sleep 987" |
    (all=0; while n=$(head -c 8000 | wc -c); test "$n" -gt 0; do all=$((all + n)); echo "read $all"; sleep 0.2; done); sleep 100')
wait_for 10 'who reads slowly has read some of what processes on both hosts print' eval 'printed kept | grep -q "read 24000"'
ok 'the courier on the other host is killed' on 2 pkill -KILL -x elmer-courier
wait_for 20 'what has come is still written' eval 'printed kept | grep -q "read 240000"'
as alice 1 ekill "$id"
wait_for 10 'it ends' over "$id"
id=$(submit alice -o /home/alice/asks 4 sh -c 'echo ready; until test -e /tmp/go.asks; do sleep 0.1; done; env --default-signal=INT erun --host ws2 true & p=$!
    until ls -l /proc/$p/fd | grep -q signalfd; do sleep 0.1; done; begun=$(date +%s); kill -INT $p; wait $p; echo $? $(($(date +%s) - begun < 8))')
wait_for 10 'a process is about to ask elmer' eval 'printed asks | grep -q ready'
ok 'elmer is stopped' on 1 systemctl kill -s STOP elmer
on 1 touch /tmp/go.asks
wait_for 5 'who asks it hears a signal at once' eval 'printed asks | grep -q "130 1"'
ok 'elmer goes on' on 1 systemctl kill -s CONT elmer
wait_for 10 'it ends' over "$id"
job another 4 'erun ws2 pkill -KILL -x elmer-courier; erun ws2 echo another'
is 'the next erun gets another courier' "$(printed another | tail -n 1)" another

done_testing
