#!/bin/bash
# Who has decided what: in the log, in the store, in the journal's fields, and in what users are told. What stops a host, in words.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 3 --elmer 'allocator = v1' --elmer 'kill_grace = 200ms' --elmer 'heartbeat = 1s' --elmer 'host_timeout = 4s' --elmer 'admin_hosts = ws3'
install_programs
wait_for 30 'all hosts link' hosts_up 3

log_of() { on "$1" journalctl -q -o cat --no-pager -u "$2"; }
logged() { log_of 1 elmer | grep -qE "$1"; }
schema() { python3 "$top/tests/schema" "$top/schemas"; }
reason_of() { on 1 eadmin hosts --json | python3 -c 'import json, sys
print(*[h["reason"] for h in json.load(sys.stdin)["hosts"] if h["host"] == sys.argv[1]])' "$1"; }
reason_is() { [[ $(reason_of "$1") =~ $2 ]]; }
status_is() { [[ $(on "$1" systemctl show -P StatusText "$2") =~ $3 ]]; }

# ---- a job: who has ended it, from where, and what its owner reads ----
id=$(submit alice -o /dev/null --hosts ws2 1 sleep 600)
wait_for 10 'a job runs' running "$id"
ok 'an administrator sends it a signal' as carol 1 ekill --signal CONT "$id"
ok 'so does its owner' as alice 1 ekill --signal CONT "$id"
wait_for 5 'the log says who has' logged "^job=$id user=alice signalled by=carol host=ws1 reason=\"signal $(kill -l CONT)\"\$"
ok 'an administrator on another host ends it' as carol 3 ekill "$id"
wait_for 10 'it ends' over "$id"
wait_for 5 'the log says who, and from where' logged "^job=$id user=alice ended by=carol host=ws3\$"
wait_for 5 'its end is one line' logged "^job=$id user=alice done signal=[0-9]+ reason=killed ran=[0-9]+s hosts=ws2\$"
like 'the owner reads who it was' "$(as alice 1 equery "$id")" 'ended by ekill of carol'
id=$(submit alice -w -o /dev/null --hosts ws2 1 sh -c 'sleep 1; exit 7')
wait_for 5 'the end of one that ended by itself' logged "^job=$id user=alice done exit=7 ran=[12]s hosts=ws2\$"
id=$(submit alice -w -o /dev/null --each 3 true)
wait_for 5 'and of one on several hosts' logged "^job=$id user=alice done exit=0 ran=[0-9]+s hosts=ws[1-3],ws[1-3],ws[1-3]\$"
array=$(submit alice -w -a 1-2 -o /dev/null --hosts ws1 true)
of_task() { on 1 journalctl -q -o cat --no-pager | grep -E "job=$((array + 2))[. ]"; }
wait_for 5 'and of a task of an array' logged "^job=$((array + 2)) user=alice done exit=0 ran=[0-9]+s hosts=ws1\$"
is 'which is its only line' "$(of_task | wc -l)" 1

# ---- fields of the journal ----
like 'by job' "$(on 1 journalctl -q -o cat --no-pager ELMER_JOB="$id")" "^job=$id user=alice .*done exit=0"
is 'by user, nobody else' "$(on 1 journalctl -q -o cat --no-pager ELMER_USER=alice | grep -cv user=alice)" 0
like 'by host, each of a job' "$(on 1 journalctl -q -o cat --no-pager ELMER_HOST=ws3)" "job=$id user=alice done"
is 'of the unit, with its name and level' "$(on 1 journalctl -q -o json --no-pager ELMER_JOB="$id" | tail -n 1 |
    python3 -c 'import json, sys; e = json.loads(sys.stdin.read()); print(e["_SYSTEMD_UNIT"], e["SYSLOG_IDENTIFIER"], e["PRIORITY"], e["_TRANSPORT"])')" \
    'elmer.service elmer 6 journal'

# ---- hosts ----
like 'the queue host is local' "$(reason_of ws1)" '^local$'
out=$(as carol 1 eadmin drain ws2 ws3 --reason 'new "disk"')
is 'what was done is said on standard output' "$out" "host ws2 takes no new jobs
host ws3 takes no new jobs"
wait_for 5 'the log says who and why' logged "^host=ws2 drained by=carol reason=\"new 'disk'\" from=ws1\$"
like 'so do the hosts' "$(reason_of ws2)" '^drained by carol [0-9]+ s ago: new "disk"'
is 'so is what resume has done' "$(as carol 1 eadmin resume ws2 ws3)" "host ws2 takes jobs again
host ws3 takes jobs again"
wait_for 5 'also a line' logged '^host=ws3 resumed by=carol from=ws1$'
id=$(submit alice -o /dev/null --hosts ws2 1 sleep 600)
wait_for 10 'a job runs on ws2' running "$id"
out=$(on 1 env SUDO_USER=carol eadmin drain ws2 --reason 'fan' --kill-after 1s)
is 'drain waits, and ends what is still there' "$out" "host ws2 takes no new jobs
waiting for 1 job: $id
job $id is being ended
host ws2 has no jobs"
like 'the owner reads by whom, and why' "$(as alice 1 equery "$id")" 'ended by root \(carol\): host ws2 is drained: fan'
wait_for 5 'so does the log, with who is root by sudo' logged "^job=$id user=alice ended by=root \\(carol\\) host=ws1 reason=\"host ws2 is drained: fan\"\$"
on 1 systemctl restart elmer
wait_for 20 'elmer is there again' hosts_up 2
like 'by whom a host is drained is known after a restart' "$(reason_of ws2)" '(^|; )drained by root \(carol\) [0-9]+ (s|min) ago: fan'
on 1 eadmin resume ws2 >/dev/null

# ---- the store ----
decisions() { on 1 eadmin log --json "$@" | python3 -c 'import json, sys
print(*[(d["what"] + ":" + str(d["host"] or d["user"]) + ":" + d["by"] + ":" + d["from"]) for d in json.load(sys.stdin)["decisions"]
    if d["what"] != "joined"])'; }
is 'eadmin log: all of it but the hosts that have joined' "$(decisions)" \
    'token-made:None:root:ws1 token-made:None:root:ws1 signalled:alice:carol:ws1 signalled:alice:alice:ws1 ended:alice:carol:ws3 drained:ws2:carol:ws1 drained:ws3:carol:ws1 resumed:ws2:carol:ws1 resumed:ws3:carol:ws1 drained:ws2:root (carol):ws1 ended:alice:root (carol):ws1 resumed:ws2:root:ws1'
like 'for people' "$(as carol 1 eadmin log | grep -v ' joined ' | sed -n 7p)" '^20[0-9-]+ [0-9:]+ +carol +ws1 +drained +host ws2 +new "disk"$'
is 'only what is later' "$(on 1 eadmin log --since 2099-01-01 | wc -l)" 1
is 'all of it, of the last hour' "$(decisions --since 1h)" "$(decisions)"
moment=$(on 1 eadmin log --json | python3 -c 'import datetime, json, sys
print(*[datetime.datetime.fromisoformat(d["time"].replace("Z", "+00:00")).timestamp() for d in json.load(sys.stdin)["decisions"]
    if (d["what"], d["host"], d["by"]) == ("drained", "ws2", "root (carol)")])')
is 'and a part, from the second drain of ws2 on' "$(decisions --since "@$moment")" \
    'drained:ws2:root (carol):ws1 ended:alice:root (carol):ws1 resumed:ws2:root:ws1'
is 'as the schema says' "$(on 1 eadmin log --json | schema)" ''
is 'the hosts, too' "$(on 1 eadmin hosts --json | schema)" ''
as alice 1 eadmin log >"$tmp/out" 2>&1
is 'it is not for users' "$? $(grep -c 'only administrators' "$tmp/out")" '5 1'
as alice 1 eadmin log --since lately >"$tmp/out" 2>&1
is 'a time that is none' "$? $(grep -c 'want a time' "$tmp/out")" '2 1'

# ---- hosts that join, and a reload ----
kept() { on 1 eadmin log --json | python3 -c 'import json, sys
for d in json.load(sys.stdin)["decisions"]: print(d["what"], d["host"] or "", d["by"], d["text"] or "", sep=":")'; }
has_kept() { kept | grep -qxF "$1"; }
is 'who has joined is told by the token that was made for it' \
    "$(kept | sed -n 's/^joined:\(ws.\):(token \([0-9a-f]*\)):$/\1 \2/p')" \
    "$(kept | sed -n 's/^token-made::root:\([0-9a-f]\{16\}\): 1 use until .*, for \(ws.\)$/\2 \1/p')"
ok 'the log says it, and from where' logged '^host=ws2 joined by=\(token [0-9a-f]{16}\) from=[0-9.:a-f]+$'
on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d; printf "[elmer]\nuser_running = 7\nhosts = ws1 ws2 ws3 ws4\n" >/etc/elmer/elmer.conf.d/80-audit.conf
    systemctl reload elmer'
wait_for 10 'a key that a reload has changed' has_kept 'configured::(reload):user_running = 7, was 0'
wait_for 10 'a host that it has added' has_kept 'added:ws4:(reload):'
on 1 sh -c 'rm /etc/elmer/elmer.conf.d/80-audit.conf; systemctl reload elmer'
wait_for 10 'and taken out' has_kept 'taken-out:ws4:(reload):of the configuration: removed when its jobs have ended'
is 'as the schema says, too' "$(on 1 eadmin log --json | schema)" ''

# ---- what stops a host, on both sides ----
on 3 systemctl stop rsd
wait_for 15 'a host that is not heard' reason_is ws3 '^not heard since [0-9:]+'
on 3 systemctl start rsd
wait_for 20 'is back' hosts_up 3
like 'what remove has done is said there, too' "$(on 1 eadmin remove ws3)" '^host ws3 is removed: its certificates are revoked'
wait_for 5 'who has removed it' logged '^host=ws3 removed by=root from=ws1$'
wait_for 20 'refused, how long ago and why' reason_is ws3 '^refused [0-9]+ s ago: .*revoked'
wait_for 20 'rsd says it in its status' status_is 3 rsd '^no link to ws1:7110: .*revoked.*; mode '
on 2 systemctl restart rsd
wait_for 20 'one that is linked says nothing of the kind' status_is 2 rsd '^mode '
like 'journalctl -x says what to do' "$(on 3 sh -c 'journalctl --update-catalog; journalctl -q -x --no-pager -u "rsd*"')" \
    'What to do:'

# ---- the cluster's own ----
ok 'elmer gets another certificate' on 1 eadmin init --address ws1.example.test
wait_for 10 'who has done so' has_kept 'initialised::root:elmer has a new certificate'
done_testing
