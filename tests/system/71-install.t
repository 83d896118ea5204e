#!/bin/bash
# After `make install`: one workstation alone, then a cluster of two with configuration by hand. 70-readme.t follows the README.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --bare
for k in 1 2; do
    is "machine $k has come up without a failed unit" "$(on $k systemctl is-system-running; on $k systemctl list-units --failed --no-legend)" running
done

# Nodes share their processors with all that this machine does, and the default allocator lets jobs wait while they are busy.
also=
if [ "$LAB" = lab ]; then
    also='allocator = v1'
    on 1 sh -c 'mkdir -p /etc/elmer && printf "[elmer]\nallocator = v1\n" >/etc/elmer/elmer.conf'
fi

# ---- one workstation alone ----
ok 'systemd-sysusers && systemctl daemon-reload' on 1 sh -c 'systemd-sysusers && systemctl daemon-reload'
ok 'systemctl enable --now elmer rsd' on 1 systemctl enable --now elmer rsd
ok 'esubmit -w 1 true, by a user who has just logged in' on 1 su -l alice -c 'esubmit -w 1 true'
is 'the history says that it has ended well' "$(field 1 '(j["state"], j["exit_status"])')" "('done', 0)"
like 'the workstation ranks in real time' "$(on 1 eadmin hosts)" 'ws1 +up +[0-9]+ +rt '
missing() { # the controllers that rsd uses and this kernel does not offer
    local c
    for c in cpu cpuset memory; do on 1 grep -qw $c /sys/fs/cgroup/cgroup.controllers || echo "no controller $c"; done
}
is 'and says what it lacks' "$(on 1 eadmin hosts | grep -o 'no controller [a-z]*' | sort)" "$(missing)"
ok 'what a job prints is in its file' on 1 su -l bob -c 'esubmit -w -o out 1 sh -c "echo said; echo more >&2" && [ "$(xargs <out)" = "said more" ]'
on 1 su -l bob -c 'esubmit -w 1 sh -c "exit 7"' >/dev/null 2>&1
is 'esubmit -w ends as the job has' $? 7
is 'no unit has failed by then' "$(on 1 systemctl list-units --failed --no-legend)" ''

# ---- a cluster of two ----
on 1 sh -c 'mkdir -p /etc/elmer && cat >/etc/elmer/elmer.conf' <<CONF
[elmer]
listen = ws1:7110
hosts = ws1 ws2
$also
CONF
ok 'eadmin init' on 1 eadmin init
ok 'systemctl restart elmer' on 1 systemctl restart elmer
token=$(on 1 eadmin token --hosts ws2 2>/dev/null)
ok 'ws2: systemd-sysusers && systemctl daemon-reload' on 2 sh -c 'systemd-sysusers && systemctl daemon-reload'
ok 'ws2: rsd --join ws1:7110 TOKEN' on 2 rsd --join ws1:7110 "$token"
is 'rsd does not run before somebody says so' "$(on 2 systemctl is-active rsd)" inactive
ok 'ws2: systemctl enable --now rsd' on 2 systemctl enable --now rsd
both_up() { [ "$(on 1 eadmin hosts | grep -cE '^ws[12] +up ')" = 2 ]; }
wait_for 20 'both are up' both_up || diag "$(on 1 eadmin hosts)"
as alice 1 esubmit -w -o ran --each 2 hostname >/dev/null 2>&1
is 'a job of two runs on both' "$(field "$(on 1 equery --history --json | python3 -c 'import json, sys; print(max(j["id"] for j in json.load(sys.stdin)["jobs"]))')" \
    '(j["exit_status"], sorted(u["host"] for u in j["usage"]))')" "(0, ['ws1', 'ws2'])"
is 'a token is good once' "$(on 2 rsd --join ws1:7110 "$token" >/dev/null 2>&1 && echo joined again)" ''
for k in 1 2; do
    is "nothing has failed on ws$k" "$(on $k systemctl list-units --failed --no-legend)" ''
done
done_testing
