#!/bin/bash
# An upgrade with jobs running, in either order: the daemons of an earlier build, older than TLS, and of this one work
# together; and an older elmer leaves a newer store alone. 65-versions-tls.t has one with TLS.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/versions.sh"
earlier_build "$here/previous-commit"

lab_up 1 --elmer 'allocator = v1'
install_programs

# One host, so that both daemons can do without anything that came later: TLS, or keys of the configuration.
on 1 sh -c 'printf "[elmer]\nhosts = ws1\nallocator = v1\nlevels = 6\n" >/etc/elmer/elmer.conf; printf "[rsd]\n" >/etc/elmer/rsd.conf'
keep_new
accept_all 1

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

on 1 systemctl stop rsd elmer
on 1 sh -c 'rm -f /var/lib/elmer/elmer.db*' # an older elmer does not read the store of a newer one
use previous elmer
use previous rsd
ready 'both of the earlier build'
a=$(waiting_job a)
wait_for 20 'a job of the earlier build runs' running "$a"
a_pid=$(pids_of "$a")

use new rsd
ready 'this rsd, the earlier elmer'
same a "$a" "$a_pid"
b=$(waiting_job b)
wait_for 20 'a job of the newer rsd runs' running "$b"
b_pid=$(pids_of "$b")
is 'the earlier elmer is asked by this equery' "$(state "$b")" running
as alice 1 equery --history >"$tmp/out" 2>&1
like 'what it does not know is refused with a sentence' "$?:$(cat "$tmp/out")" '^1:.*version 1\.0'
as alice 1 esubmit --comment 'for bob' 1 true >"$tmp/out" 2>&1
like 'a comment that it could not keep is refused too' "$?:$(cat "$tmp/out")" '^1:.*--comment: .*version 1\.0.* came with 1\.[1-9]'

use new elmer
ready 'both of this build'
same a "$a" "$a_pid"
same b "$b" "$b_pid"
c=$(waiting_job c)
wait_for 20 'a job of this build runs' running "$c"
c_pid=$(pids_of "$c")

use previous rsd
ready 'the earlier rsd, this elmer'
same a "$a" "$a_pid"
same b "$b" "$b_pid"
same c "$c" "$c_pid"
as bob 1 equery -r >"$tmp/out" 2>&1
is 'what the earlier rsd does not know is hidden all the same' "$(grep -cE ' - +alice +running' "$tmp/out") $(grep -c ' sh ' "$tmp/out")" '3 0'
ends_well a "$a"
ends_well b "$b" only_result_left

use new rsd
ready 'both of this build again'
commented=$(as alice 1 esubmit -o /dev/null --comment 'for bob' 1 true 2>/dev/null)
like 'a comment is kept by both' "$(as alice 1 equery "$commented") $(as bob 1 equery --json "$commented")" "comment +for bob.*\"comment\":null"
wait_for 20 'job b: nothing is left of it' nothing_left "$b"
same c "$c" "$c_pid"
ends_well c "$c"
is 'no version was refused' "$(no_version_refused)" ''
done_testing
