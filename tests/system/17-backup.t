#!/bin/bash
# The queue host is lost for good while jobs run and wait: another host goes on from its backup. Running jobs are taken over, queued ones
# run in their order, what was accepted after the backup is ended and its id is not given again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'a host is lost for good'
lab_up 3 --elmer 'allocator = v1' --elmer 'levels = 3' --elmer 'host_timeout = 60s'
install_programs

up() { on "$1" eadmin hosts | grep -qE "^$2 +up "; } # ASKED HOST
submit_on() { # K ARG..: id, of a job of alice's
    local k=$1
    shift
    as alice "$k" esubmit -o /dev/null "$@" 2>"$tmp/said"
}
value() { # K ID EXPRESSION over j
    on "$1" equery --json "$2" | python3 -c 'import json, sys
j = json.load(sys.stdin)["jobs"][0]
print('"$3"')'
}
has_state() { [ "$(value "$1" "$2" 'j["state"]')" = "$3" ]; }
pid_of() { on "$1" pgrep -f "^sh -c .*; exit $2\$" | head -n 1; } # K STATUS

# ---- rsds know where elmer may be one day ----
for k in 2 3; do
    on $k sh -c 'printf "[rsd]\nelmer = ws1:7110 ws3:7110\n" >/etc/elmer/rsd.conf.d/60-elmer.conf; systemctl restart rsd'
done
wait_for 20 'workstations link where elmer is' up 1 ws2
wait_for 20 'all of them' up 1 ws3

# ---- a backup, while jobs run ----
wait_then() { echo "until [ -e /tmp/go ]; do sleep 0.1; done; exit $1"; }
one=$(submit_on 1 --hosts ws2 sh -c "$(wait_then 7)")
two=$(submit_on 1 -n 2 --each --hosts ws2,ws3 sh -c "$(wait_then 0)")
wait_for 20 'a job runs on ws2' has_state 1 "$one" running
wait_for 20 'and one on ws2 and ws3' has_state 1 "$two" running
queued=
for name in first second third; do
    id=$(submit_on 1 --hosts ws2 --after "any:$one,any:$two" sh -c "echo $name >>/tmp/order-of-alice")
    queued+=" $id"
done
wait_for 10 'their processes are there' pid_of 2 7
pid=$(pid_of 2 7)

backup() { on 1 eadmin backup "$@" 2>&1; }
like 'a user makes no backup' "$(as alice 1 eadmin backup /tmp/b 2>&1)" 'only root'
like 'a host that is not the queue host has none' "$(on 2 eadmin backup /root/b 2>&1)" 'there is no CA here'
on 1 sh -c 'mkdir /mnt/small; mount -t tmpfs -o size=64k none /mnt/small'
like 'a full disk is said' "$(backup /mnt/small/b)" 'the backup cannot be written: No space left on device; make room there'
is 'and leaves nothing' "$(on 1 ls -A /mnt/small)" ''
like 'a full disk for the copy of the store, too' "$(on 1 sh -c 'mkdir -m 1777 /mnt/small/tmp; dd if=/dev/zero of=/mnt/small/fill bs=4k 2>/dev/null; TMPDIR=/mnt/small/tmp eadmin backup /root/b' 2>&1)" 'no space left|No space left'
is 'and leaves nothing there' "$(on 1 sh -c 'ls -A /mnt/small/tmp; ls /root/b*' 2>/dev/null)" ''
like 'a directory that is not there' "$(backup /nowhere/b)" 'cannot make a file beside /nowhere/b: No such file'
like 'a backup is made while elmer runs' "$(backup /root/b)" '/root/b has the queue, the configuration and the CA'
is 'for root alone' "$(on 1 stat -c %a:%U /root/b)" 600:root
is 'nothing else is left of it' "$(on 1 sh -c 'ls -d /root/b?* /var/tmp/elmer* 2>/dev/null')" ''
ok "root's place for temporary files may be closed to elmer" on 1 sh -c 'mkdir -m 700 /mnt/small/root; TMPDIR=/mnt/small/root eadmin backup /root/b --force'
like 'it is not overwritten' "$(backup /root/b)" '/root/b is there already: name another file, or say --force'
ok 'unless one says so' on 1 eadmin backup /root/b --force
is 'eadmin log says who has made them, and where they are' "$(on 1 eadmin log --json | python3 -c 'import json, sys
print(*sorted({":".join([d["what"], d["by"], d["from"], d["text"]]) for d in json.load(sys.stdin)["decisions"] if d["what"] == "backed-up"}))')" \
    'backed-up:root:ws1:/root/b'
ok 'tar and sha256sum understand it' on 1 sh -c 'mkdir /root/look && cd /root/look && tar xf /root/b && cd elmer-backup && sha256sum -c --quiet SHA256SUMS'
like 'it has the CA and the configuration' "$(on 1 tar tf /root/b)" 'elmer-backup/etc/elmer.conf.*elmer-backup/ca/ca.key'
like 'one of a cluster without elmer.conf, as eadmin init makes it' "$(on 1 sh -c 'cd /etc/elmer && mkdir -p elmer.conf.d && mv elmer.conf elmer.conf.d/10-all.conf
    eadmin backup /root/without; mv elmer.conf.d/10-all.conf elmer.conf' 2>&1)" '/root/without has the queue, the configuration and the CA'
is 'it has what there is' "$(on 1 tar tf /root/without | grep -E 'etc/elmer\.conf(\.d/10-all\.conf)?$')" elmer-backup/etc/elmer.conf.d/10-all.conf
on 1 cat /root/b | on 3 sh -c 'cat >/root/b'

# ---- after the backup ----
late=$(submit_on 1 --hosts ws3 sh -c 'sleep 1000; exit 99')
wait_for 20 'a job is accepted and runs after the backup' has_state 1 "$late" running
like 'what is there is not replaced' "$(on 1 eadmin init --restore /root/b 2>&1)" 'there is a queue on this host already'
like 'a backup that is cut is refused' "$(on 3 sh -c 'head -c 20000 /root/b >/root/cut; eadmin init --restore /root/cut' 2>&1)" 'the backup /root/cut cannot be used: it is not whole'
on 3 sh -c 'mkdir /root/t && cd /root/t && tar xf ../b && cd elmer-backup && sed -i "s|^store .*|store /nowhere/elmer.db|" ABOUT &&
    sha256sum $(cut -c 67- SHA256SUMS) >/root/sums && cp /root/sums SHA256SUMS && cd .. && tar --format=ustar --owner=0 --group=0 -cf ../elsewhere $(tar tf ../b)'
like 'a store in a directory that is not there is said at once' "$(on 3 eadmin init --restore /root/elsewhere 2>&1)" 'is /nowhere/elmer\.db, and the directory /nowhere: No such file or directory; make it, and give it to the user elmer'
is 'and has changed nothing' "$(on 3 sh -c 'ls -d /var/lib/elmer-ca /var/lib/elmer/elmer.db' 2>/dev/null)" ''

# ---- the queue host is lost ----
"$lab" crash 1
said() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -qE "$3"; }
status_says() { on "$1" systemctl show -P StatusText rsd | grep -qE "$2"; }
wait_for 60 'the status of rsd says that others are tried' status_says 2 'no link to ws[13]:7110: .*; the other addresses are tried too'
on 3 sh -c 'umask 077; mkdir /var/lib/elmer-ca; cd /var/lib/elmer-ca; openssl genpkey -algorithm ed25519 -out ca.key' >/dev/null 2>&1
like "another CA's key is not replaced" "$(on 3 eadmin init --restore /root/b 2>&1)" '^eadmin: there is another CA on this host already'
on 3 sh -c 'cd /var/lib/elmer-ca; openssl req -x509 -new -key ca.key -subj /CN=other -days 9999 -out ca.crt; rm ca.key' >/dev/null 2>&1
like 'nor its certificate' "$(on 3 eadmin init --restore /root/b 2>&1)" '^eadmin: there is another CA on this host already'
on 3 rm -r /var/lib/elmer-ca
out=$(on 3 sh -c 'umask 077; eadmin init --restore /root/b --now' 2>&1)
like 'another host goes on from the backup' "$out" 'The backup is of .*, made on ws1'
like 'with its ids beyond those of the lost one' "$out" 'the next job gets the id 2[0-9]{9}\.'
like 'a certificate of its own' "$out" 'Elmer has a certificate for ws3'
like 'and its services' "$out" 'elmer runs, and will at each boot' || diag "$out"
wait_for 60 'the other workstation links by itself' up 3 ws2
wait_for 60 'and its own' up 3 ws3
is 'the CA is the same' "$(on 3 sha256sum /var/lib/elmer-ca/ca.crt | cut -d ' ' -f 1)" "$(on 2 sha256sum /var/lib/elmer-rsd/pki/ca.crt | cut -d ' ' -f 1)"
ok 'the counter of the new certificate is remembered on the workstations' on 3 sh -c 'grep -q "$(cut -d " " -f 2 /var/lib/elmer-ca/elmer.counter)" /var/lib/elmer-rsd/pki/elmer.counter'
is 'the running job runs on' "$(pid_of 2 7)" "$pid"
is 'as before' "$(value 3 "$one" 'j["state"], j["attempt"]')" 'running 1'
is 'the one on two hosts, too' "$(value 3 "$two" 'j["state"], j["attempt"]')" 'running 1'
is 'the others wait' "$(for id in $queued; do value 3 "$id" 'j["state"]'; done | xargs)" 'queued queued queued'
gone() { [ -z "$(on 3 sh -c "ls -d /run/elmer-rsd/jobs/$late.* /run/elmer-rsd/sup/$late.* 2>/dev/null; pgrep -f 'sleep 100[0]'")" ]; }
wait_for 30 'what was accepted after the backup is ended' gone
like 'and is not known' "$(on 3 equery "$late" 2>&1)" "$late"
new=$(submit_on 3 --hosts ws2,ws3 true)
[ "${new:-0}" -gt 2000000000 ]
point $? "a new job gets another id: $new"

# ---- results ----
for k in 2 3; do on $k touch /tmp/go; done
wait_for 20 'the running job ends' has_state 3 "$one" 'done'
is 'with its result' "$(value 3 "$one" 'j["exit_status"], j["reason"]')" '7 the command ended with status 7'
wait_for 20 'the one on two hosts ends' has_state 3 "$two" 'done'
is 'with both of its results' "$(value 3 "$two" 'j["exit_status"], j["signal"], sorted(u["host"] for u in j["usage"])')" "0 None ['ws2', 'ws3']"
for id in $queued; do wait_for 20 "job $id has run" has_state 3 "$id" 'done'; done
is 'the queued ones have run in their order' "$(on 2 cat /tmp/order-of-alice | xargs)" 'first second third'
wait_for 20 'and the new one' has_state 3 "$new" 'done'

# ---- the lost host comes back all the same ----
"$lab" start 1
old_elmer() { on 1 systemctl is-active -q elmer && on 1 eadmin hosts; }
wait_for 60 'the old elmer runs again' old_elmer
on 2 systemctl restart rsd
wait_for 60 'a workstation refuses it' said 2 'rsd*' 'elmer=ws1:7110 no link: .*certificate that was replaced'
wait_for 60 'and stays with the new one' up 3 ws2

# ---- the store is lost once more, and the CA was renewed since the backup: the same key, and another certificate ----
on 3 sh -c 'systemctl stop elmer; mkdir /root/lost; mv /var/lib/elmer/* /root/lost
    cd /var/lib/elmer-ca; openssl x509 -in ca.crt -signkey ca.key -days 9999 -out /root/renewed; cat /root/renewed >ca.crt' >/dev/null 2>&1
out=$(on 3 sh -c 'umask 077; eadmin init --restore /root/b --now' 2>&1)
like 'a CA that was renewed is no other one' "$out" 'elmer runs, and will at each boot' || diag "$out"
is 'and stays renewed' "$(on 3 cat /var/lib/elmer-ca/ca.crt)" "$(on 3 cat /root/renewed)"
wait_for 60 'the workstations link' up 3 ws2
done_testing
