#!/bin/bash
# The most likely mistakes of a first installation, each of them made: the one line that says what to do is that of the table in
# doc/07-operations.md.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

only_on_nodes 'it takes names, addresses and disks away'
here=$(dirname "$0")
lab_up 3 --bare
for k in 1 2 3; do on $k systemd-sysusers; done

row() { sed -n "s/^| $1 | .* | \`\(.*\)\` | .*$/\1/p" "$top/doc/07-operations.md"; }
pattern() { row "$1" | sed 's/[][()?.*+^$\\|{}]/\\&/g; s/<[^>]*>/.+/g'; } # NUMBER
made=0
# Each says what to do, or what to look at.
advice='(write|stop|set|correct|run (this|rsd|eadmin)|look|copy|make|check|leave|say|free|ask|start|take|submit|eadmin token) |\?$'
mistake() { # NUMBER TEXT: what was said
    local lines
    made=$((made + 1))
    if [ -z "$(row "$1")" ]; then
        point 1 "mistake $1 is in the table"
        return
    fi
    lines=$(grep -cE -- "$(pattern "$1")" <<<"$2")
    [ "$lines" = 1 ]
    point $? "mistake $1 gives one line: $(row "$1" | cut -c 1-70)" || diag "said: $2"
    like '... and it says what to do' "$(row "$1")" "$advice"
}
of_log() { on "$1" journalctl -q -o cat --no-pager -u "$2" | grep -E -- "$(pattern "$3")" | tail -n 1; } # K UNIT NUMBER
in_log() { [ -n "$(of_log "$@")" ]; }
join() { on 3 rsd --join "$@" 2>&1; }
token() { on 1 eadmin token "$@" 2>/dev/null; }

# ---- on the queue host, before anything is there ----
mistake 5 "$(on 1 eadmin token 2>&1)"
on 1 cp /etc/hosts /etc/hosts.good
on 1 sh -c "printf '127.0.0.1 localhost\n127.0.1.1 ws1\n' >/etc/hosts; grep -v ws1 /etc/hosts.good | grep ws >>/etc/hosts"
mistake 1 "$(on 1 eadmin init --hosts ws1,ws2 --now 2>&1)"
on 1 cp /etc/hosts.good /etc/hosts
mistake 2 "$(on 1 eadmin init --hosts ws1,ghost --now 2>&1)"
on 1 sh -c 'printf "%s ws1.lab\n" "$(getent ahostsv4 ws1 | cut -d " " -f 1 | head -n 1)" >>/etc/hosts'
mistake 26 "$(on 1 eadmin init --hosts ws1.lab,ws2 --now 2>&1)"
on 1 cp /etc/hosts.good /etc/hosts
on 1 sh -c 'mkdir -p /etc/elmer/elmer.conf.d; printf "[elmer]\nallocator = v1\nlevls = 3\n" >/etc/elmer/elmer.conf'
mistake 3 "$(on 1 eadmin init --hosts ws1,ws2 --now 2>&1)"
on 1 sed -i /levls/d /etc/elmer/elmer.conf
on 1 systemd-run -q --collect --unit other nc -lk 7110
listens() { on 1 ss -Hltn | grep -q :7110; }
until_ok 10 listens
mistake 4 "$(on 1 eadmin init --hosts ws1,ws2 --now 2>&1)"
on 1 systemctl start elmer # for this host alone, which takes no port
like '... also where elmer runs' "$(on 1 eadmin init --hosts ws1,ws2 --now 2>&1)" "$(pattern 4)"
on 1 systemctl stop elmer other
ok 'without these it begins' on 1 eadmin init --hosts ws1,ws2 --now

# ---- a queue host that does not know its own name: who sits at a terminal is asked ----
on 2 sh -c 'cat >/home/sit.py' <"$here/programs/sit.py"
asks='The name ws2 is not known here\. By which address do the other hosts reach this one\? \[[0-9.]+\] $'
answer() { on 2 env TERM=dumb python3 /home/sit.py 24x200 "see:$asks" "type:$1\r" end -- eadmin init --hosts ws3 >"$tmp/sat" 2>&1; }
on 2 sh -c 'cp /etc/hosts /etc/hosts.good; grep -vw ws2 /etc/hosts.good >/etc/hosts'
answer 127.0.0.1
is 'an address of the loopback is refused' "$(tail -n 1 "$tmp/sat")" 'status 1 modes same'
like '... with the reason' "$(cat "$tmp/sat")" '127\.0\.0\.1 on this host, which no other host reaches'
is '... and has made nothing' "$(on 2 sh -c 'ls -d /var/lib/elmer-ca /etc/elmer/elmer.conf.d' 2>/dev/null)" ''
answer ''
is 'without an answer it is the one that is offered' "$(tail -n 1 "$tmp/sat")" 'status 0 modes same'
like '... which is written down' "$(on 2 cat /etc/elmer/elmer.conf.d/50-init.conf)" \
    "listen = $(sed -n 's/.*reach this one? \[\([0-9.]*\)\].*/\1/p' "$tmp/sat"):7110"
on 2 sh -c 'cp /etc/hosts.good /etc/hosts; rm -r /etc/elmer/elmer.conf.d'

# ---- joining ----
good=$(token --hosts ws3)
mistake 6 "$(as alice 3 /usr/sbin/rsd --join ws1 "$good" 2>&1)"
mistake 7 "$(join nowhere "$good")"
mistake 8 "$(join ws1:7199 "$good")"
address=$(on 3 getent ahostsv4 ws1 | awk '{ print $1; exit }')
on 3 ip neigh replace "$address" lladdr 02:00:00:00:00:99 dev e0 nud permanent # packets go, and nothing comes
mistake 9 "$(join ws1 "$good")"
on 3 ip neigh del "$address" dev e0
mistake 10 "$(join "${address%.*}.99" "$good")"
mistake 11 "$(join ws1 "${good:0:40}$([ "${good:40:1}" = a ] && echo b || echo a)${good:41}")"
short=$(token --hosts ws3 --valid 1s) end=$(($(now_ms) + 1500))
is_over() { [ "$(now_ms)" -ge "$end" ]; }
until_ok 10 is_over
mistake 13 "$(join ws1 "$short")"
on 2 eadmin init >/dev/null 2>&1
mistake 14 "$(join ws1 "$(on 2 eadmin token 2>/dev/null)")"
mistake 15 "$(join ws1 "$(token --hosts ws2)")"
mistake 16 "$(join ws1 "$(token)")"
mistake 17 "$(join ws1 "$(token)" --name ws1)"
ok 'without these it joins' on 3 rsd --join ws1 "$good" --now
mistake 25 "$(on 3 eadmin init --hosts ws3,ws2 --now 2>&1)"
is '... and has made no CA' "$(on 3 sh -c 'ls -d /var/lib/elmer-ca /etc/elmer/elmer.conf.d' 2>/dev/null)" ''
mistake 12 "$(join ws1 "$good")"
mistake 18 "$(join ws2 "$good")"
ok 'ws2 joins as well' on 2 rsd --join ws1 "$(token)" --now
all_up() { [ "$(on 1 eadmin hosts | grep -cE '^ws[123] +up ')" = 3 ]; }
wait_for 40 'all three are up' all_up
gcc -shared -fPIC -O2 -DSHIFT=31536000 -o "$tmp/shift.so" "$here/programs/shift_clock.c"
on 3 sh -c 'cat >/usr/local/lib/shift.so' <"$tmp/shift.so"
on 3 env ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=/usr/local/lib/shift.so rsd --join ws1 "$(token --hosts ws3)" >/dev/null 2>&1
mistake 19 "$(of_log 1 elmer 19)"
on 3 systemctl restart rsd
wait_for 40 'it works all the same' all_up

# ---- users and jobs ----
for k in 1 2; do on $k useradd -m -u 4711 dave; done
why() { field "$1" 'j["reason"]'; }
id=$(as dave 1 esubmit -o /dev/null --hosts ws3 1 true 2>/dev/null)
wait_for 20 'a job of a user who is not known on its host ends' over "$id"
mistake 21 "$(why "$id")"
on 3 useradd -m -u 4712 dave
id=$(as dave 1 esubmit -o /dev/null --hosts ws3 1 true 2>/dev/null)
wait_for 20 'so does one of a user with another uid there' over "$id"
mistake 22 "$(why "$id")"
for k in 1 2 3; do on $k useradd -m -u 4713 -G sudo erin; done
id=$(as erin 1 esubmit -o /dev/null --hosts ws3 1 true 2>/dev/null)
wait_for 20 'one of a user in group sudo ends on another host' over "$id"
mistake 27 "$(why "$id")"
like 'so does the trial of doctor for whoever has called sudo' "$(on 1 env SUDO_USER=erin eadmin doctor ws3 2>&1)" 'jobs of group sudo from other hosts are refused'
said=$(on 1 env SUDO_USER=erin eadmin doctor --user alice ws3 2>&1)
ok 'not with --user' grep -qE 'good +ws3 +job' <<<"$said"
is 'nothing is refused then' "$(grep -c 'are refused' <<<"$said")" 0
mistake 23 "$(as alice 2 esubmit 5000 true 2>&1)"
on 2 systemctl stop rsd
mistake 24 "$(as alice 2 esubmit 1 true 2>&1 | tail -n 1)" # it has waited, and said so
on 2 systemctl start rsd

# ---- the disk ----
on 1 systemctl stop elmer
on 1 sh -c 'cp -a /var/lib/elmer /var/lib/elmer.kept && mount -t tmpfs -o size=16m,mode=700 small /var/lib/elmer &&
    cp -a /var/lib/elmer.kept/. /var/lib/elmer/ && chown elmer: /var/lib/elmer'
on 1 systemctl start elmer
wait_for 40 'all are up' all_up
on 1 sh -c 'cat /dev/zero >/var/lib/elmer/full' 2>/dev/null
# shellcheck disable=SC2317 # called by wait_for
fills() { timeout 5 "$lab" login 1 alice esubmit -o /dev/null 1 true >/dev/null 2>&1; in_log 1 elmer 20; }
wait_for 40 'elmer notices that its disk is full' fills
mistake 20 "$(of_log 1 elmer 20)"
on 1 rm /var/lib/elmer/full

is 'all of the table were made' "$made" "$(grep -cE '^\| [0-9]+ \|' "$top/doc/07-operations.md")"
done_testing
