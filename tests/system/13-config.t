#!/bin/bash
# The configuration: eadmin config says what is good and what is not, fragments count, and a daemon that lacks what may
# come waits for it inside, without being started again and again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes "it takes ports and files away"
lab_up 2 --elmer 'allocator = v1'
wait_for 20 'all hosts are linked' hosts_up 2
status() { on "$1" systemctl show -P StatusText "$2"; }
says() { status "$1" "$2" | grep -q -- "$3"; }
restarts() { on "$1" systemctl show -P NRestarts "$2"; }
lines() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -c -- "$3"; }

# --- check and show
good=$(on 1 eadmin config check 2>&1)
like 'what is good is one line for each daemon' "$good" 'OK: 2 hosts, listen .*:7110, TLS until 2'
like 'of rsd too' "$(on 2 eadmin config check 2>&1)" 'OK: host ws2, elmer ws1:7110, TLS until 2'
like 'rsd --join has written a fragment' "$(on 2 eadmin config show)" 'elmer = ws1:7110 +; /etc/elmer/rsd.conf.d/50-join.conf:3'
is 'and left rsd.conf alone' "$(on 2 grep -c 'elmer =' /etc/elmer/rsd.conf)" 0
on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d; printf "[elmer]\nlevels = 17\nhosts = ws1 ghost\n" >/etc/elmer/elmer.conf.d/10-wrong.conf'
bad=$(on 1 eadmin config check 2>&1)
like 'a fragment and its line' "$bad" '/etc/elmer/elmer.conf.d/10-wrong.conf:2: levels = 17: must be'
like 'and what the name service does not know' "$bad" '/etc/elmer/elmer.conf.d/10-wrong.conf:3: hosts = ghost: this name is not known'
ok 'with a status' on 1 sh -c '! eadmin config check /etc/elmer/elmer.conf'
on 1 sh -c 'printf "[elmer]\nlevels = 2\n" >/etc/elmer/elmer.conf.d/10-wrong.conf; mv /etc/elmer/elmer.conf.d/10-wrong.conf /etc/elmer/elmer.conf.d/10-levels.conf; chown root: /var/lib/elmer/pki/host.key; chmod 600 /var/lib/elmer/pki/host.key'
like 'root finds what elmer may not read' "$(on 1 eadmin config check 2>&1)" 'the user elmer cannot read /var/lib/elmer/pki/host.key: Permission denied; chown elmer'

# --- elmer waits, and serves its own host meanwhile
before=$(restarts 1 elmer)
on 1 systemctl restart elmer
wait_for 10 'elmer says in its STATUS what it lacks' says 1 elmer 'OTHER HOSTS CANNOT LINK.*host.key: Permission denied'
ok 'commands of its own host work' on 1 equery
on 1 chown elmer: /var/lib/elmer/pki/host.key
wait_for 20 'it goes on by itself' hosts_up 2
is 'it has said it once' "$(lines 1 elmer 'other hosts cannot link: ')" 1
is 'and was not started again' "$(restarts 1 elmer)" "$before"
says_no_more() { ! says "$@"; }
wait_for 10 'the status has it no more' says_no_more 1 elmer CANNOT
like 'the fragment counts' "$(on 1 journalctl -q -o cat --no-pager -u elmer | grep ready: | tail -n 1)" '2 levels'

# --- a store where elmer's unit does not let it write
on 1 sh -c 'install -d -m 700 -o elmer -g elmer /srv/q; printf "[elmer]\nstore = /srv/q/elmer.db\n" >/etc/elmer/elmer.conf.d/20-store.conf'
advice='systemctl edit elmer, \[Service\], ReadWritePaths=/srv/q'
like 'the check warns of it' "$(on 1 eadmin config check 2>&1)" "eadmin: warning: store is in /srv/q, where elmer may not write: $advice"
on 1 systemctl --no-block restart elmer
wait_for 20 'elmer says what to do' says 1 elmer "$advice"
on 1 sh -c 'mkdir -p /run/systemd/system/elmer.service.d; printf "[Service]\nReadWritePaths=/srv/q\n" >/run/systemd/system/elmer.service.d/store.conf
    systemctl daemon-reload; systemctl restart elmer'
here_up() { on 1 eadmin hosts | grep -qE '^ws1 +up '; }
wait_for 20 'with that it works, with a store that is new' here_up
is 'and the check has no warning' "$(on 1 eadmin config check 2>&1 | grep -c warning)" 0
on 1 sh -c 'rm -r /etc/elmer/elmer.conf.d/20-store.conf /run/systemd/system/elmer.service.d/store.conf; systemctl daemon-reload; systemctl restart elmer'
wait_for 20 'and so it does on the old one' hosts_up 2

# --- rsd waits
before=$(restarts 2 rsd)
on 2 mv /usr/libexec/elmer/elmer-rsd-net /usr/libexec/elmer/away
on 2 systemctl restart rsd
wait_for 10 'rsd says what it lacks' says 2 rsd 'rsd cannot begin: cannot execute .*elmer-rsd-net: No such file'
on 2 mv /usr/libexec/elmer/away /usr/libexec/elmer/elmer-rsd-net
wait_for 20 'it goes on by itself' hosts_up 2
is 'it has said it once' "$(lines 2 rsd 'rsd cannot begin: ')" 1
is 'and was not started again' "$(restarts 2 rsd)" "$before"

# --- what does not pass
on 2 sh -c 'printf "[rsd]\nmode = fast\n" >/etc/elmer/rsd.conf.d/90-wrong.conf; systemctl restart rsd' 2>/dev/null
wait_for 10 'a wrong configuration ends it' on 2 systemctl is-failed -q rsd
is 'for good' "$(restarts 2 rsd)" "$before"
like 'with the fragment and its line' "$(on 2 journalctl -q -o cat --no-pager -u rsd | tail -n 20)" '90-wrong.conf:2: mode = fast: auto, rt, idle or none'
done_testing
