#!/bin/bash
# An upgrade of two hosts with TLS between them and a job on both: the daemons of an earlier build that has TLS and
# speaks another minor version, and of this one. And the way back: an older elmer leaves a newer store alone.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/versions.sh"
earlier_build "$here/previous-commit-tls"

lab_up 2 --elmer 'allocator = v1' --elmer 'levels = 6'
install_programs
keep_new

# --- an older elmer, the store of a newer one
store() { on 1 sh -c 'cd /var/lib/elmer && sha256sum elmer.db*'; }
said_by_elmer() { on 1 journalctl -q -o cat --no-pager -u elmer | grep -q "$1"; }
on 1 systemctl stop elmer
before=$(store)
put previous elmer 1
on 1 systemctl start elmer 2>/dev/null
wait_for 10 'an older elmer does not read the store of a newer one, and says what to do' \
    said_by_elmer 'has schema .* and this elmer knows schemas up to .*start the newer elmer that wrote it, or put back the backup'
is 'it does not run' "$(on 1 systemctl show -P MainPID elmer)" 0
is 'and has not touched it' "$(store)" "$before"
on 1 systemctl reset-failed elmer
use new elmer
ready 'the newer one goes on with it'

# --- a cluster of the earlier build
on 2 systemctl stop rsd
on 1 sh -c 'systemctl stop rsd elmer; rm -f /var/lib/elmer/elmer.db*'
use previous elmer
use previous rsd
put previous rsd 2
join() { on 2 rsd --join ws1:7110 - <<<"$(on 1 eadmin token 2>/dev/null)"; }
wait_for 10 'the other host joins that elmer' join
on 2 systemctl restart rsd
ready 'both of the earlier build'
minor() { git -C "$top" show "$1:libelmer/wire/wire.h" | sed -n 's/.*WIRE_MINOR = \([0-9]*\).*/\1/p'; }
here_minor=$(sed -n 's/.*WIRE_MINOR = \([0-9]*\).*/\1/p' "$top/libelmer/wire/wire.h")
ok 'it speaks another minor version than this one' test "$(minor "$commit")" -ne "$here_minor"
a=$(waiting_job a --each 2)
wait_for 20 'a job of the earlier build runs on both' running "$a"
a_pids=$(pids_of "$a")
like 'on both, indeed' "$a_pids" '^[0-9]+ [0-9]+$'

use new rsd 1 2
ready 'this rsd, the earlier elmer'
same a "$a" "$a_pids"
b=$(waiting_job b --each 2)
wait_for 20 'a job of the newer rsd runs' running "$b"
b_pids=$(pids_of "$b")
is 'the earlier elmer is asked from the other host' "$(as bob 2 equery --json "$b" | grep -c running)" 1

use new elmer
ready 'both of this build'
same a "$a" "$a_pids"
same b "$b" "$b_pids"
c=$(waiting_job c --each 2)
wait_for 20 'a job of this build runs' running "$c"
c_pids=$(pids_of "$c")

use previous rsd 2
ready 'the earlier rsd by TLS, this elmer'
use previous rsd 1
ready 'both rsds of the earlier build, this elmer'
same a "$a" "$a_pids"
same b "$b" "$b_pids"
same c "$c" "$c_pids"
ends_well a "$a"
ends_well b "$b"

use new rsd 1 2
ready 'both of this build again'
same c "$c" "$c_pids"
ends_well c "$c"
is 'no version was refused' "$(no_version_refused)" ''
like 'the hosts are linked by TLS' "$(on 1 eadmin hosts)" 'ws2 +up .*20[0-9-]+ [0-9:]+'
done_testing
