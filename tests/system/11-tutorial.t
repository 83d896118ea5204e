#!/bin/bash
# The tutorial, elmer(7), from its first command to its last, on two bare workstations; then what eadmin(8) shows, with a third, and
# elmer-signer(8). What is installed with apt is here already, as after `make install`; tests/package/readme.t is the same with packages.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/examples.sh"

only_on_nodes 'tests/system/71-install.t does the same on machines'
# shellcheck disable=SC2034 # for examples.sh
declare -A not_run=(
    ['elmer.7: apt install elmer']='it is here'
    ['elmer.7: apt install elmer-rsd']='the same'
)
by_root() { # K FILE
    case $(cat "$tmp/command") in
    'apt install'*) otherwise && on "$1" sh -c 'systemd-sysusers && systemctl daemon-reload' ;;
    *) on "$1" bash "$2" ;;
    esac
}
world_up() { until_ok 60 eval '[ "$(on 1 eadmin hosts | grep -cE "^ws[0-9]+ +up ")" = 2 ]'; }
world_shared() { until_ok 5 levels_are 5=0 6=1; }
world_moved() { until_ok 5 levels_are 6=0; }
levels_are() { # ID=LEVEL..
    [ "$(on 1 equery --state running --json | python3 -c 'import json, sys
print(*("%d=%s" % (j["id"], j["level"]) for j in json.load(sys.stdin)["jobs"]))')" = "$*" ]
}

lab_up 3 --bare
outrank_jobs
if [ "$LAB" = lab ]; then on 1 sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf'; fi # nodes share their processors with all that this machine does
for k in 1 2 3; do as alice $k mkdir -p run; done
run_page "$top/man/elmer.7"
run_page "$top/man/eadmin.8"
run_page "$top/man/elmer-signer.8"
listed_are_there
done_testing
