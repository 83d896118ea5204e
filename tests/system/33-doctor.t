#!/bin/bash
# eadmin doctor: a cluster that is well, and then one thing after the other that is not. What it says of each is in
# tests/unit/client/test_doctor; here is that it sees them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 3s'
install_programs
found() { grep -E "^$1 +$2 +$3 " "$tmp/out" | sed 's/  */ /g'; } # LEVEL HOST CHECK
doctor() { "$@" >"$tmp/out" 2>"$tmp/err"; }

# ---- all is well ----
ok 'it ends well' doctor on 1 eadmin doctor --user alice
is 'nothing is bad' "$(grep -c ^bad "$tmp/out")" 0
for check in name link certificate real-time job user home own-name other-names clock scratch pvm version; do
    ok "ws2: $check is good" test -n "$(found good ws2 $check)"
done
like 'nobody needs a certificate on the queue host itself' "$(found good ws1 certificate)" '^$'
like "but elmer has one" "$(found good - certificate)" 'is good until 20'
ok 'and its address' test -n "$(found good - listen)"
ok 'the store has room' test -n "$(found good - store)"
ok 'a job of PVM has run over both' test -n "$(found good - pvm-job)"
ok 'a user may ask, too' doctor as alice 2 eadmin doctor
is 'and sees the same' "$(grep -cE '^good +ws[12] +job ' "$tmp/out")" 2
on 1 eadmin doctor --user alice --json ws2 >"$tmp/json"
ok 'its JSON is as its schema says' "$top/tests/schema" "$top/schemas" <"$tmp/json"
is 'of the host that was named, and of all' "$(python3 -c 'import json, sys; print(*sorted({f["host"] for f in json.load(sys.stdin)["findings"]}))' <"$tmp/json")" ' ws2'
nothing_is_left() { ! on 1 sh -c 'equery -r --name doctor | grep -q doctor' && ! on 1 sh -c 'ls /tmp/elmer-doctor.*' && ! on 2 sh -c 'ls /tmp/elmer-doctor.*'; }
wait_for 10 'nothing is left of it' nothing_is_left

# ---- root runs no jobs ----
doctor on 1 eadmin doctor
is 'root without a user: it says so' "$(found warning - job)" 'warning - job no job was tried, because root runs none: eadmin doctor --user NAME'
doctor on 1 eadmin doctor --no-jobs
is 'jobs are not tried where that is not wanted' "$(grep -cE '^[a-z]+ +[^ ]+ +job ' "$tmp/out")" 0

# ---- a thing after the other ----
broken() { # NAME LEVEL HOST CHECK REGEX
    doctor as alice 1 eadmin doctor
    is "$1: the exit status" $? "$([ "$2" = bad ] && echo 1 || echo 0)"
    like "$1" "$(found "$2" "$3" "$4")" "$5"
}
on 2 sh -c 'cp /etc/hosts /run/hosts; echo "127.0.1.1 ws2 ws1" >/run/new; cat /run/hosts >>/run/new; cat /run/new >/etc/hosts'
broken 'the own name is a loopback' bad ws2 own-name '127\.0\.1\.1'
like 'so is that of another host' "$(found warning ws2 other-names)" 'ws1 is 127\.0\.1\.1 there, .*/etc/hosts'
like 'which knows its names' "$(found good ws1 other-names)" 'are known there'
on 2 sh -c 'cat /run/hosts >/etc/hosts'
on 1 sh -c 'cp /etc/hosts /run/hosts; { echo "127.0.1.1 ws1"; sed "/ws1/d" /run/hosts; } >/etc/hosts' # as Debian's installer leaves it
doctor as alice 1 eadmin doctor --no-jobs
like 'the name of the queue host is a loopback' "$(found bad ws1 name)" '127\.0\.1\.1 here, which no other host reaches: in /etc/hosts write'
on 1 sh -c 'cat /run/hosts >/etc/hosts'
on 1 sh -c 'cp /etc/hosts /run/hosts; sed "/ws2/d" /run/hosts >/etc/hosts'
broken 'a name that is not known' bad ws2 name 'is not known here'
like 'a job there does not know it either' "$(found warning ws1 other-names)" 'ws2 is not known there, .*/etc/hosts'
on 1 sh -c 'cat /run/hosts >/etc/hosts'
on 2 chmod -x /usr/bin/pvmd
broken 'no PVM there' warning ws2 pvm 'apt install pvm'
on 2 chmod +x /usr/bin/pvmd
on 2 sed -i 's/^alice:x:2001:/alice:x:3001:/' /etc/passwd
broken 'another number of the user' bad ws2 job 'alice'
on 2 sed -i 's/^alice:x:3001:/alice:x:2001:/' /etc/passwd
on 2 sh -c 'cp /etc/passwd /run/passwd; sed -i /^alice:/d /etc/passwd'
broken 'a user who is not there' bad ws2 job 'user alice is not known on this host'
on 2 sh -c 'cat /run/passwd >/etc/passwd'
on 2 mv /usr/libexec/elmer/elmer-doctor /usr/libexec/elmer/away
broken 'another version there' bad ws2 job 'no /usr/libexec/elmer/elmer-doctor'
on 2 mv /usr/libexec/elmer/away /usr/libexec/elmer/elmer-doctor
on 1 eadmin drain ws2 --reason 'a new disk' >/dev/null
broken 'a drained host' warning ws2 link 'drained.*a new disk.*eadmin resume ws2'
on 1 eadmin resume ws2 >/dev/null
on 2 systemctl stop rsd
wait_for 20 'rsd is away' eval 'on 1 eadmin hosts | grep -qE "^ws2 +down"'
broken 'no rsd there' bad ws2 link 'down: .*systemctl status rsd'
on 2 systemctl start rsd
wait_for 20 'it is back' hosts_up 2
gone_from_ws1() { ! on 1 eadmin hosts | grep -qE '^ws1 +up'; }
on 1 systemctl stop rsd
wait_for 20 'rsd of the queue host is away' gone_from_ws1
doctor as alice 1 eadmin doctor --no-jobs
is 'that is bad' $? 1
like 'it has its own advice' "$(found bad ws1 link)" 'it is the queue host, where rsd runs only if it is to have jobs: .*systemctl status rsd'
is 'no token, no certificate' "$(grep -E '^[a-z]+ +ws1 ' "$tmp/out" | grep -ciE 'token|certificate')" 0
on 1 systemctl start rsd
wait_for 20 'it is back' hosts_up 2

# ---- a host that was never there, a user who may submit nothing ----
conf() { on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d; cat >/etc/elmer/elmer.conf.d/80-doctor.conf; systemctl reload elmer'; }
printf '[elmer]\nhosts = ws1 ws2 ws3\nminimum_uid = 5000\n' | conf
wait_for 10 'there is one host more' eval 'on 1 eadmin hosts | grep -qE "^ws3 +never-seen"'
doctor as alice 1 eadmin doctor
is 'that is bad, too' $? 1
like 'a host that has never been here' "$(found bad ws3 link)" 'has never been here: never linked; .*eadmin token here and rsd --join there'
like 'nor has it a certificate' "$(found bad ws3 certificate)" 'it has none that is good: eadmin token here, rsd --join there'
like 'no job can be tried' "$(found bad ws2 job)" 'no job can be tried: user alice .*minimum_uid'
on 1 sh -c 'rm /etc/elmer/elmer.conf.d/80-doctor.conf; systemctl reload elmer'
wait_for 20 'the two are left' hosts_up 2

# ---- what is no fault of the cluster ----
printf '[elmer]\nmax_nprocs = 1\n' | conf
limited() { as alice 1 esubmit --dry-run 2 true 2>&1 | grep -q max_nprocs; }
wait_for 10 'a job gets one processor at most' limited
broken 'that is a limit' warning - pvm-job 'no job can be tried: 2 processors .*max_nprocs'

printf '[elmer]\nlevels = 1\n' | conf
full=$(submit bob -o /dev/null --hosts ws2 "$(on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*(h["processors"] for h in json.load(sys.stdin)["hosts"] if h["host"] == "ws2"))')" sleep 300)
wait_for 20 'ws2 is full' running "$full"
{ doctor as alice 1 eadmin doctor; echo $? >"$tmp/code"; } &
asked() { [ -n "$(state $((full + 2)))" ]; }
wait_for 20 'doctor has asked for a job on each' asked
id=$(submit bob -o /dev/null --hosts ws1 1 true)
within 10 'no job of a user waits for it' over "$id"
wait $!
is 'a host that is full is not bad' "$(cat "$tmp/code")" 0
like '... and the line' "$(found warning ws2 job)" 'no job was tried: it would have waited, and jobs of users behind it: .'
ok 'the other one is tried' test -n "$(found good ws1 job)"
is 'nothing of it waits' "$(on 1 equery --name doctor | grep -c doctor)" 0
as bob 1 ekill "$full" 2>/dev/null
on 1 sh -c 'rm /etc/elmer/elmer.conf.d/80-doctor.conf; systemctl reload elmer'
wait_for 20 'there is room again' hosts_up 2

# ---- what a job there tells ----
# Things that do not hinder each other, broken together and read one by one. Not the user: with another number, or another name of
# it, there is no job. The disk is not full, df says so.
of_ws2() { like "$2" "$(found "$1" ws2 "$3")" "$4"; } # LEVEL NAME CHECK REGEX
on 2 sh -c 'mount -t tmpfs none /home; printf "#!/bin/sh\nexec /bin/date -d \"90 seconds ago\" \"\$@\"\n" >/usr/local/bin/date
    printf "#!/bin/sh\nprintf \"Filesystem 1024-blocks Used Available Capacity Mounted\\\\nx 1000000 930000 70000 93 /x\\\\n\"\n" >/usr/local/bin/df
    chmod 755 /usr/local/bin/date /usr/local/bin/df; printf "#!/bin/sh\necho rsd 0.0.9\n" >/run/old; chmod 755 /run/old; mount --bind /run/old /usr/sbin/rsd'
doctor as alice 1 eadmin doctor
is 'that is bad' $? 1
of_ws2 bad 'no home' home '/home/alice is not there'
of_ws2 warning 'a clock that is late' clock 'is (89|90|91) s behind the one here.*timedatectl set-ntp true there'
of_ws2 warning 'an older version' version '0\.0\.9, here .*bring all to one; the rsd that runs there is still [0-9].*systemctl restart rsd there'
of_ws2 warning 'a disk that is nearly full' scratch 'has 68 MiB free of 977: it will be full soon'
is 'all is well on the other one' "$(grep -cE '^bad +ws1 ' "$tmp/out")" 0
on 2 sh -c 'umount /home; rm /usr/local/bin/date /usr/local/bin/df; umount /usr/sbin/rsd'

unit_of_rsd() { # UNIT LINE..: of its [Service], until the next call
    on 2 sh -c 'rm -rf /run/systemd/system/rsd*.service.d; mkdir -p /run/systemd/system/$1.service.d; exec >/run/systemd/system/$1.service.d/90-test.conf
        shift; echo "[Service]"; printf "%s\n" "$@"; systemctl daemon-reload; systemctl restart rsd' - "$@"
    wait_for 20 'rsd is there again' hosts_up 2
}
on 2 sh -c 'mount -t tmpfs -o size=4m,mode=711 small /run/elmer-rsd/jobs; mount -t tmpfs -o mode=755 none /home; mkdir -m 755 /home/alice'
unit_of_rsd rsd-spawn LimitNOFILE=256 LimitNPROC=200
doctor as alice 1 eadmin doctor
is 'a small disk for jobs is bad' $? 1
of_ws2 bad 'and a line' scratch 'has 4 MiB free of 4: free some'
of_ws2 bad 'a home that is not his' home '/home/alice may not be written: .*let it be his'
of_ws2 warning 'few files' limits 'open files: 256, .*systemctl edit rsd-spawn there, \[Service\] LimitNOFILE=1024'
of_ws2 warning 'few processes' limits 'processes of a user: 200, .*LimitNPROC=256'
on 2 sh -c 'umount /home; umount -l /run/elmer-rsd/jobs' # the latter until the restart
unit_of_rsd rsd-spawn LimitNOFILE=1024:4096 LimitNPROC=256
doctor as alice 1 eadmin doctor
is 'as the lines say, it is well' "$?:$(grep -E '^(bad|warning) +ws2 ' "$tmp/out" | grep -cE ' (limits|scratch) ')" 0:0
unit_of_rsd rsd-spawn RestrictRealtime=yes
doctor as alice 1 eadmin doctor
is 'real time that is refused is bad' $? 1
of_ws2 bad 'and a line, with what to look for' real-time 'mode idle.*look for RestrictRealtime= or SystemCallFilter= in the unit'
is 'jobs run there all the same, in mode idle' "$(found good ws2 job) $(found good - pvm-job)" 'good ws2 job has run good - pvm-job has run'
unit_of_rsd rsd CapabilityBoundingSet=~CAP_SYS_NICE
doctor as alice 1 eadmin doctor
of_ws2 bad 'a capability that rsd has not' real-time 'mode idle.*rsd has no CAP_SYS_NICE; let its unit or container have it'
is 'nothing is left to complain of in the log' "$(on 2 sh -c 'journalctl -q -o cat -u rsd _PID=$(systemctl show -P MainPID rsd)' | grep -c 'put root down')" 0
is 'jobs run there all the same' "$(found good ws2 job) $(found good - pvm-job)" 'good ws2 job has run good - pvm-job has run'
unit_of_rsd rsd
on 2 sh -c 'mkdir -p /etc/elmer/rsd.conf.d; printf "[rsd]\nmode = idle\n" >/etc/elmer/rsd.conf.d/90-mode.conf; systemctl restart rsd'
wait_for 20 'rsd is there again' hosts_up 2
broken 'a mode that the administrator has chosen' warning ws2 real-time 'is not used: the configuration says mode = idle'
on 2 sh -c 'rm /etc/elmer/rsd.conf.d/90-mode.conf; systemctl restart rsd'
wait_for 20 'and again' hosts_up 2
missing() { for c in memory cpuset cpu; do on 2 grep -qw $c /sys/fs/cgroup/cgroup.controllers || echo "no controller $c"; done; }
doctor as alice 1 eadmin doctor
is 'controllers that the kernel does not offer' "$(found warning ws2 controllers | grep -o 'no controller [a-z]*')" "$(missing)"

# ---- jobs over all ----
# A firewall: what ws1 sends to ws2 from another port than elmer's goes to nobody.
to_ws2=$(on 1 getent ahostsv4 ws2 | awk '{ print $1; exit }') nobody=${to_ws2%.*}.250
if on 1 ip rule add pref 10 to "$to_ws2" ipproto tcp sport 7110 lookup main; then
    on 1 sh -c "ip neigh replace $nobody lladdr 02:00:00:00:00:99 dev e0 nud permanent && ip route add default via $nobody dev e0 table 77 &&
        ip rule add pref 11 to $to_ws2 lookup 77"
    doctor as alice 1 eadmin doctor
    is 'hosts whose programs do not reach each other: the exit status' $? 1
    is 'the job of PVM has not run' "$(found '[a-z]*' - pvm-job | cut -d ' ' -f 1)" bad
    on 1 test ! -x /usr/bin/mpirun || like 'that of mpirun runs, and does not end' "$(found '[a-z]*' - mpi-job)" \
        '^bad - mpi-job the job has been running for [3-9][0-9] s.*any port above 1023 \(firewall\)\?$'
    diag "$(found '[a-z]*' - pvm-job)"
    on 1 sh -c "ip rule del pref 10; ip rule del pref 11; ip route flush table 77; ip neigh del $nobody dev e0"
    wait_for 20 'both hosts are up' hosts_up 2
else
    skip 'a firewall between hosts' 'this ip has no rules for ports'
fi
printf '#!/bin/sh\nexit 3\n' >"$tmp/ends"
on 2 sh -c 'cp /usr/bin/pvmd /run/pvmd; cat >/usr/bin/pvmd' <"$tmp/ends"
broken 'PVM that does not start' bad - pvm-job 'the job has failed: .'
like '... and the host where it does not' "$(found bad ws2 pvm-job)" 'the job has failed: .'
ok 'on the other one it does' test -n "$(found good ws1 pvm-job)"
on 2 sh -c 'cat /run/pvmd >/usr/bin/pvmd'
for k in 1 2; do on $k sh -c 'mkdir /root/mpi; [ ! -e /usr/bin/mpirun ] || mv /usr/bin/mpirun /usr/bin/mpiexec /root/mpi'; done
broken 'no MPI' warning ws2 mpi 'apt install openmpi-bin, or mpich'
# Nodes have both; machines get what does enough, first by the one name and then by the other.
for k in 1 2; do
    on $k sh -c 'mv /root/mpi/mpiexec /usr/bin 2>/dev/null || { printf "#!/bin/sh\nexec \"\$@\"\n" >/usr/local/bin/mpiexec; chmod 755 /usr/local/bin/mpiexec; }'
done
doctor as alice 1 eadmin doctor
is 'with mpiexec alone the job has run' "$(found good ws2 mpi | grep -c mpiexec) $(found good - mpi-job)" '1 good - mpi-job has run'
for k in 1 2; do on $k sh -c 'mv /root/mpi/mpirun /usr/bin 2>/dev/null || mv /usr/local/bin/mpiexec /usr/local/bin/mpirun'; done
doctor as alice 1 eadmin doctor
is 'with mpirun, too' "$(found good ws2 mpi | grep -c mpirun) $(found good - mpi-job)" '1 good - mpi-job has run'
for k in 1 2; do on $k sh -c 'cat >/usr/local/bin/mpirun && chmod 755 /usr/local/bin/mpirun' <"$tmp/ends"; done
broken 'an mpirun that fails' bad - mpi-job 'the job has failed: .*status 3'
for k in 1 2; do on $k rm /usr/local/bin/mpirun; done

# ---- certificates ----
joins() { on 1 eadmin token --hosts ws2 2>/dev/null | on 2 rsd --join ws1:7110 - >/dev/null 2>&1; }
on 1 sh -c 'printf "[ca]\ncertificate_valid = 10d\n" >/etc/elmer/ca.conf'
ok 'ws2 joins with a certificate of ten days' joins
wait_for 20 'it links' hosts_up 2
doctor as alice 1 eadmin doctor
like 'one that is new is good, for how short it may be' "$(found good ws2 certificate)" 'is good until 20'
on 1 rm /etc/elmer/ca.conf
broken 'a certificate that should have been renewed' warning ws2 certificate 'is good until 20.* and should have been renewed before: journalctl -u elmer-signer@'
ok 'it joins again' joins
wait_for 20 'it links' hosts_up 2

on 1 eadmin remove ws2 >/dev/null
doctor as alice 1 eadmin doctor --no-jobs
is 'a certificate that was revoked: the exit status' $? 1
like 'and the line' "$(found bad ws2 certificate)" 'it has none that is good: eadmin token here, rsd --join there'
like 'and that of its link' "$(found bad ws2 link)" '(down|suspect): .*systemctl status rsd there'
ok 'it joins once more' joins
wait_for 20 'it links' hosts_up 2

# ---- no host, no elmer, no room for its store, no port ----
doctor as alice 1 eadmin doctor ws7
is 'a host that is none: the exit status' $? 1
like 'and the line' "$(found bad ws7 link)" 'no host of this cluster'
on 1 systemctl stop elmer
doctor as alice 1 env ELMER_SOCKET=/run/elmer/elmer.sock eadmin doctor
is 'no elmer: the exit status' $? 1
like 'and the line' "$(found bad - elmer)" 'not reachable'
on 1 mount -t tmpfs -o size=4m small /var/lib/elmer
doctor on 1 eadmin doctor
like 'no room for the store' "$(found bad - store)" '/var/lib/elmer has 4 MiB free of 4: free some'
on 1 umount /var/lib/elmer
on 1 systemd-run -q --collect --unit other nc -lk 7110
other_listens() { on 1 ss -Hltn | grep -q :7110; }
wait_for 10 'another program has its port' other_listens
on 1 systemctl start elmer
doctor as alice 1 eadmin doctor --no-jobs
is 'that is bad' $? 1
like 'and the line' "$(found bad - listen)" 'another program has .*:7110, so other hosts cannot link: ss -ltnp says which; stop it'
like 'so says the check' "$(on 1 eadmin config check 2>&1)" 'Address already in use; another program has it'
on 1 systemctl stop other
wait_for 20 'all is well again' eval 'as alice 1 eadmin doctor >/dev/null'
done_testing
