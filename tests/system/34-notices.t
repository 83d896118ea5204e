#!/bin/bash
# Who is told: mail and commands at the begin and the end of jobs, where they were submitted and as their users, also of jobs
# that never ran, beside full processors, and when daemons and hosts go between.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 1' --rsd 'tickets = require'
install_programs
for k in 1 2; do
    on "$k" sh -c 'cat >/usr/sbin/sendmail; chmod 755 /usr/sbin/sendmail; mkdir -p /tmp/mail; chmod 1777 /tmp/mail' <<'END'
#!/bin/sh
# What it is given, and by whom, under the id of the job in the subject.
cat >"/tmp/mail/$$"
id=$(sed -n 's/^Subject: Elmer: job \([0-9]*\) .*/\1/p' "/tmp/mail/$$")
{ echo "by $(id -un) for $*"; cat "/tmp/mail/$$"; } >>"/tmp/mail/of.$id"
rm "/tmp/mail/$$"
END
done

mail() { on "$1" cat "/tmp/mail/of.$2" 2>/dev/null; }
mails() { mail "$1" "$2" | grep -c "^Subject: "; }
has_mails() { [ "$(mails "$1" "$2")" -ge "$3" ]; }
told() { on 1 equery "$1" | grep -q "told  *of its $2: 20"; }
lines() { on "$1" cat "$2" 2>/dev/null | wc -l; }
not_up() { ! on 1 eadmin hosts | grep "^ *$1 " | grep -q ' up '; }
has_line() { [ "$(lines "$1" "$2")" -ge 1 ]; }

# ---- mail at both, from a host on which the job does not run ----
id=$(submit alice --mail-at begin,end -J 'two words' --hosts ws2 -o /tmp/o sh -c 'exit 3')
wait_for 20 'it is told' has_mails 1 "$id" 2
like 'as the user' "$(mail 1 "$id")" 'by alice for -i -- alice'
like 'that it began' "$(mail 1 "$id")" "Subject: Elmer: job $id \\(two words\\) has begun"
like 'and how it ended' "$(mail 1 "$id")" "Subject: Elmer: job $id \\(two words\\) ended: exit 3"
like 'with its page' "$(mail 1 "$id")" "output      ws2:.*/o"
is 'and nowhere else' "$(mails 2 "$id")" 0
wait_for 10 'the page says that it was told of its begin' told "$id" begin
wait_for 10 'and of its end' told "$id" end
is 'what tells is in no list' "$(on 1 equery --history -n 0 | grep -c notice-of)" 0
notice=$(field "$id" 'j["end_notice"]')
like 'but a job' "$(on 1 equery "$notice")" "notice-of-$id, alice's: done, exit 0"

# ---- a command ----
id=$(submit alice --notify 'echo "$(id -un) $(hostname) $(pwd) $ELMER_JOB_ID $ELMER_STATE $ELMER_REASON $ELMER_EXIT." >/tmp/n.1' -D /tmp sh -c 'exit 4')
wait_for 20 'it has run' has_line 1 /tmp/n.1
like 'as the user, here, with what became of the job' "$(on 1 cat /tmp/n.1)" "^alice ws1 .* $id done exited 4\\."

# ---- beside full processors, and of one that never ran ----
cpus=$(on 1 equery --hosts --json | python3 -c 'import json,sys; print(sum(h["processors"] for h in json.load(sys.stdin)["hosts"]))')
full=$(submit bob -o /dev/null --each "$cpus" sleep 600)
wait_for 20 'all processors are taken' running "$full"
first=$(submit bob -o /dev/null true)
id=$(submit alice --mail-at begin,fail true)
ok 'it is cancelled while it waits' as alice 2 ecancel "$id"
wait_for 20 'its user is told all the same' has_mails 1 "$id" 1
like 'that it did not run' "$(mail 1 "$id")" 'did not run: cancelled'
is 'once' "$(mails 1 "$id")" 1
ok 'the full ones still run' running "$full"
ok 'and nobody has passed the one that waits' is_state "$first" queued
like 'the begin did not need telling' "$(on 1 equery "$id")" 'told  *of its begin: not needed'

# ---- one that ends well is no failure; an array once ----
ok 'the processors are free again' as bob 1 ekill "$full"
id=$(submit alice --mail-at fail true)
wait_for 20 'it ends' over "$id"
wait_for 20 'and its notice with it' over "$(field "$id" 'j["end_notice"]')"
is 'without mail' "$(mails 1 "$id")" 0
id=$(submit alice --mail-at end -a 1-20 -o /dev/null sh -c 'test {} != 7')
wait_for 60 'an array is told' has_mails 1 "$id" 1
like 'as a whole' "$(mail 1 "$id")" 'ended: 1 of 20 tasks failed'

# ---- elmer, rsd and the host go between ----
id=$(submit alice --mail-at end --notify 'echo x >>/tmp/n.2' --hosts ws2 -o /dev/null sh -c 'while [ ! -e /tmp/go.2 ]; do sleep 0.1; done')
wait_for 20 'it runs' running "$id"
on 1 systemctl kill -s KILL elmer
on 1 systemctl kill -s KILL rsd
on 2 touch /tmp/go.2
wait_for 60 'after a kill of both it is told' has_line 1 /tmp/n.2
wait_for 20 'by mail too' has_mails 1 "$id" 1
wait_for 20 'and that is known' told "$id" end
is 'once' "$(lines 1 /tmp/n.2)" 1
id=$(as alice 2 esubmit --notify 'echo x >>/tmp/n.3' --hosts ws1 -o /dev/null sleep 600 2>/dev/null)
wait_for 20 'one from the other host runs' running "$id"
on 2 systemctl stop rsd
wait_for 20 'elmer does not hear that host' not_up ws2
ok 'it is ended' as alice 1 ekill "$id"
wait_for 30 'and over' over "$id"
like 'its notice waits for its host' "$(on 1 equery "$id")" 'told  *of its end: not yet .* waits until its host is up'
is 'which nobody else does' "$(lines 1 /tmp/n.3)" 0
on 2 systemctl start rsd
wait_for 30 'and is there when that is back' has_line 2 /tmp/n.3

# ---- what cannot be told is said ----
on 2 rm /usr/sbin/sendmail
as alice 2 esubmit --mail-at end true >"$tmp/out" 2>"$tmp/said"
is 'a host without mail refuses it' $? 1
like 'and says so' "$(cat "$tmp/said")" 'this host cannot send mail, as it has no /usr/sbin/sendmail'
is 'nothing is submitted' "$(cat "$tmp/out")" ''
id=$(submit alice --notify 'exit 9' true)
wait_for 20 'it ends' over "$id"
wait_for 20 'its notice too' over "$(field "$id" 'j["end_notice"]')"
like 'how that failed is said' "$(on 1 equery "$id")" 'told  *of its end: failed .* the command ended with status 9'
id=$(submit alice --notify 'sleep 600' true)
wait_for 20 'it ends' over "$id"
notice=$(field "$id" 'j["end_notice"]')
wait_for 20 'one that hangs runs' running "$notice"
is 'for a minute' "$(field "$notice" 'j["time_limit_ms"]')" 60000
ok 'it can be ended' as alice 1 ekill "$notice"
wait_for 20 'and leaves nothing' nothing_left "$notice"
done_testing
