#!/bin/bash
# PVM programs that others have written: all of Debian's package pvm-examples, as jobs on two hosts. They use what PVM has: its group
# server, contexts, mailboxes, message handlers. What they must say is from the package's two Readme files and the heads of the
# sources; those that cannot run stand at the end, and in doc/03-daemons.md.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs

# For those that the Readme starts from the console: N tasks, then wait until they have said TEXT in the job's output.
on 1 sh -c 'cat >/home/console; chmod 755 /home/console' <<'EOF2'
#!/bin/sh
# console N PROGRAM TEXT FILE
printf 'spawn -%s %s\n' "$1" "$2" | pvm >/dev/null
i=0
while [ $i -lt 3000 ]; do
    ! grep -q "$3" "$4" || exit 0
    sleep 0.1
    i=$((i + 1))
done
exit 1
EOF2

example() { # NAME STATUS COMMAND TEXT..: it ends with that status, and has said every TEXT (an expression of grep -E)
    local name=$1 status=$2 command=$3 id text said
    shift 3
    id=$(as alice 1 timeout 300 esubmit --pvm -w -o "/home/alice/$name.out" 2 sh -c "$command" 2>"$tmp/said")
    is "$name ends with status $status" "$(field "$id" '(j["state"], j["exit_status"])')" "('done', $status)" || as alice 1 ekill "$id"
    said=$(as alice 1 head -c 20000 "$name.out" | tr -d '\0')
    for text in "$@"; do
        ok "$name says: $text" grep -qE -- "$text" <<<"$said" || diag "$(tail -n 5 <<<"$said" | cut -c1-200)"
    done
}

# ---- examples/Readme ----
example hello 0 'hello.pvm' "^i'm t[0-9a-f]+" 'from t[0-9a-f]+: hello, world from ws[12]' # it spawns hello_other
example master1 0 'master1' 'Spawning 6 worker tasks ... SUCCESSFUL' 'I got 900\.0+ from 5; \(expecting 900\.0+\)' # it spawns slave1
example fmaster1 0 'fmaster1' 'SUCCESSFUL' 'I got +900\.0+ from +5 \(expected +900\.0+' # it spawns fslave1
example spmd 0 '/home/console 4 spmd "token ring done" spmd.out' 'Pass a token through the +4 +tid ring' 'token ring done'
example fspmd 0 '/home/console 4 fspmd "token ring done" fspmd.out' 'Pass a token through the +4 +tid ring' 'token ring done'
for pack in dbwtest ibwtest pbwtest rbwtest; do
    example $pack 0 "/home/console 2 $pack 'Data size: 800000' $pack.out" 'I am the master' '100000 doubles received correctly' 'Data size: 800000'
done
example timing 1 'timing' 'Message size 1000000' '^done' # its source ends with exit(1); it spawns timing_slave
example hitc 0 'hitc' 'received no-more-work flag' 'Program Finished' # it spawns hitc_slave
example gexample 0 'printf "100\n3\n" | gexample' 'Using 3 processors' 'The 1-Norm is 5050' 'product of column 1 is 9.33262e\+157'
example fgexample 0 'printf "100\n3\n" | fgexample' 'The 1-Norm is +5050' 'product of column 1 is +9.33262'

# ---- gexamples/Readme ----
# Its first sum begins with what happens to be on the stack, without Elmer as well; its second one, and trsg, are right.
example frsg 0 'printf "4\n5\n" | frsg' 'Test OK: Sum of Squares of first +20 +integers is +2870|by Sum2 as +2870 '
example trsg 0 'printf "4\n5\n" | trsg; true' 'Test OK: Sum of Squares of first 20 integers is 2870' # its main() has no return
example gexamp 0 'gexamp 3' 'gexamp 0: sync' 'gexamp 1: sync' 'gexamp 2: sync'
example joinleave 0 'joinleave 200' 'Joined 100 times' 'Joined 200 times'
example thb 0 'thb 3' 'joined group31' 'barrier on group0' '^done' # it spawns tnb

# ---- those of which only the source says what they do ----
example ge 0 'ge 3' 'group ge size [123] gid 0: sync' '^done'
example gs 0 'gs.pvm 2 2>&1 | uniq' 'gs.pvm 0x[0-9a-f]+ enrolled'
example tjf 0 'tjf 3; true' 'joined group31'
example tjl 0 'tjl 3; true' 'joined group31'
example tst 0 'tst; true' 'joined prognosis 0, negative 0' 'left prognosis 0, negative 0'
example inherita 0 'inherita inherit1; inherita inherit3; true' 'inherit1 t[0-9a-f]+ on machine <ws[12]>' 'inherit3 t[0-9a-f]+ on machine <ws[12]>' \
    'inherit2 t[0-9a-f]+ on machine <ws[12]>'
example inheritb 0 'inheritb; true' 'received from 1st inherit2' 'received from 2nd inherit2'
example mailbox 0 'lmbi 3 po e; gmbi; rme "$(gmbi | sed -n "s/.*<\(.*lmbi0\)>.*/\1/p")" 0; gmbi | sed "s/^/after /"; true' 'gmbi: class name: <t[0-9a-f]+lmbi0>' \
    'after gmbi: class name: <t[0-9a-f]+lmbi1>'
ok 'mailbox: rme has removed what it was told to' eval '! as alice 1 grep -q "after.*lmbi0" mailbox.out'
example task0 0 'task0 service d & i=0; while [ $i -lt 1000 ] && ! grep -q "waiting for service" task0.out; do sleep 0.1; i=$((i + 1)); done; task1 service 0; task_end service 0; wait' \
    'just inserted service name <service>' 'handled [12] service requests'
example mhf 0 'mhf_server & i=0; while [ $i -lt 1000 ] && ! gmbi | grep -q mhf; do sleep 0.1; i=$((i + 1)); done; printf "0\n9\n8\n" | timeout 10 mhf_tickle; wait' \
    'PMH: Are you talking to me' 'mhid = +0'

# ---- those that cannot: why ----
example xep 1 'xep' "Can't open display" # needs an X server; mtile are its tasks
example srm 125 'timeout 5 srm.pvm; [ $? = 124 ] && exit 125' # PVM's resource manager ends only with its machine

is 'nothing of PVM is left on the nodes' "$(for k in 1 2; do on $k sh -c 'pgrep -x pvmd; pgrep -x pvmgs'; done)" ''
done_testing
