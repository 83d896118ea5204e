#!/bin/bash
# Three workstations of a plain Debian 12 and the repository of ./package: what the README says, word by word, with apt.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/jobs.sh"
. "$(dirname "$0")/../system/readme.sh"
. "$(dirname "$0")/packages.sh"

ok './package' packages one "$top"
plain_debian 3 one
if [ "$LAB" = lab ]; then # nodes share their processors with all that this machine does
    on 1 sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf'
fi
follow_readme as_typed
like 'it can be backed up' "$(on 1 eadmin backup /root/backup 2>&1)" 'has the queue, the configuration and the CA'
[ "$LAB" = lab ] || is 'without an elmer.conf, which nothing has made' "$(on 1 tar tf /root/backup | grep /etc/)" elmer-backup/etc/elmer.conf.d/50-init.conf
for k in 1 2 3; do
    is "ws$k: nothing has failed" "$(on $k systemctl list-units --failed --no-legend)" ''
done
done_testing
