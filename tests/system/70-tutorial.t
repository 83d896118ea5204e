#!/bin/bash
# The tutorial, elmer(7): each of its commands, in their order and word by word, does what the page says. What it installs with apt is here
# already, as after `make install`.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --bare
if [ "$LAB" = lab ]; then # nodes share their processors with all that this machine does
    on 1 sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf'
fi
commands() { sed -n '/^\.Bd/,/^\.Ed/ s/^\(ws[12]#\|\$\) /&/p' "$top/man/elmer.7"; }
all_up() { [ "$(on 1 eadmin hosts | grep -cE '^ws[12] +up ')" = 2 ]; }
token='' count=0
while read -r -u 3 who command; do
    count=$((count + 1)) rc=0
    command=${command//TOKEN/$token}
    case $who:$command in
    ws*:'apt install'*) on "${who//[!0-9]/}" sh -c 'systemd-sysusers && systemctl daemon-reload' >"$tmp/out" 2>&1 || rc=$? ;;
    ws*) on "${who//[!0-9]/}" sh -c "$command" >"$tmp/out" 2>"$tmp/said" </dev/null || rc=$? ;;
    *) as alice 1 sh -c "$command" >"$tmp/out" 2>"$tmp/said" </dev/null || rc=$? ;;
    esac
    point $rc "$who ${command/"${token:-TOKEN}"/TOKEN}" || diag "ended with $rc" "$(cat "$tmp/out" "$tmp/said")"
    case $command in
    'eadmin token') token=$(tail -n 1 "$tmp/out") ;;
    'rsd --join'*) wait_for 40 'both are up' all_up ;;
    'cat elmer-1.out') like '... it has run on one of them' "$(cat "$tmp/out")" '^ws[12]$' ;;
    'cat elmer-2.*.out') is '... once for each processor' "$(grep -cxE 'ws[12]' "$tmp/out")" 2 ;;
    'cat elmer-3.out') like '... it knows its processors' "$(cat "$tmp/out")" 'ELMER_HOSTS=ws[12]:ws[12]' ;;
    'cat elmer-4.out') like '... PVM has found all of its tasks' "$(cat "$tmp/out")" verified ;;
    equery) like '... one above the other' "$(cat "$tmp/out")" 'first.*second' || diag "$(cat "$tmp/out")" ;;
    ehold*) like '... it is held' "$(as alice 1 equery "${command#* }")" ': held' ;;
    erelease*) like '... it waits again' "$(as alice 1 equery "${command#* }")" ': queued' ;;
    ecancel*) like '... it will not run' "$(as alice 1 equery "${command#* }")" ': cancelled' ;;
    ekill*) wait_for 20 '... it ends' over "${command#* }" ;;
    'equery --history')
        is '... how jobs have ended' "$(sed -nE 's/^ *(4|7|8) .* (exit [0-9]+|signal [A-Z0-9]+|-) +(.*)/\1: \3/p' "$tmp/out" | xargs)" \
            '4: the command ended with status 0 7: ended by ekill of alice 8: removed from the queue by ecancel of alice' || diag "$(cat "$tmp/out")"
        ;;
    *drain*) like '... no new jobs' "$(on 1 eadmin hosts)" 'ws2 +drained' ;;
    *resume*) ok '... some again' all_up ;;
    usermod*) ok '... she may' as carol 1 eadmin log ;;
    esac
done 3< <(commands)
ok 'there were commands' test $count -ge 25
done_testing
