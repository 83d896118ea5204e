#!/bin/bash
# rsync -e erun between two hosts of a job, and GNU parallel --ssh erun: what they make is compared byte by byte, also where who reads is
# slow, where daemons are killed in the middle, and where the cable is cut for good. With ELMER_TEST_FULL=1 a tree of 1 GB and 1,000 tasks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
only_on_nodes 'the homes are of one file server'

# With the large tree no job is above other files' daemons for seconds.
mib=20 tasks=40 mode=()
[ -z "${ELMER_TEST_FULL:-}" ] || mib=1000 tasks=1000 mode=(--rsd 'mode = idle')
lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require' "${mode[@]}"
install_programs
printed() { as alice 1 cat "$1"; }
marked() { as alice 1 test -e "$1"; }
shell() { as alice "$1" sh -c "$2"; } # NODE TEXT

# ---- a tree: one file is half of it, names of all kinds, links, nothing at all ----
as alice 1 python3 - "$mib" <<'END'
import os, random, sys
size = int(sys.argv[1]) << 20
random.seed(size)
top = b'/var/tmp/tree'
os.makedirs(top + b'/deep/' + b'/'.join(b'%d' % i for i in range(30)))
os.makedirs(top + b'/empty')
def file(name, size):
    with open(os.path.join(top, name), 'wb') as f:
        for at in range(0, size, 1 << 20):
            f.write(random.randbytes(min(1 << 20, size - at)))
file(b'half', size // 2)
file(b'nothing', 0)
for name in (b'a blank', b'a\nline', b'"quotes\' $HOME `id` \\', b'-n', b'\xff\xfe', 'ä'.encode()):
    file(name, 5000)
left = size // 2
for number in range(10**9):
    piece = min(left, random.randrange(size // 500))
    if number % 50 == 0:
        os.mkdir(top + b'/%d' % (number // 50))
    file(b'%d/%d' % (number // 50, number), piece)
    left -= piece
    if left == 0:
        break
os.symlink(b'half', top + b'/symbolic')
os.symlink(b'nowhere', top + b'/broken')
os.link(top + b'/half', top + b'/hard')
os.chmod(top + b'/0/0', 0o400)
for path, directories, files in os.walk(top, topdown=False): # of the past: rsync leaves a time that is of the same second
    for name in [path] + [os.path.join(path, file) for file in files]:
        os.utime(name, ns=(10**18, random.randrange(10**18)), follow_symlinks=False)
END
ok "a tree of $mib MiB" shell 1 "[ \$(find /var/tmp/tree -type f | wc -l) -gt 200 ] && [ \$(du -sm /var/tmp/tree | cut -f 1) -ge $mib ]"
# All that is in it: bytes, names, modes, owners, times, links.
packed() { on "$1" tar --sort=name --numeric-owner --format=posix --pax-option=exthdr.name=%d/x/%f,delete=atime,delete=ctime -C "$2" -c .; }
packed 1 /var/tmp/tree >"$tmp/tree.tar"
ok 'to compare with' test "$(stat -c %s "$tmp/tree.tar")" -gt $((mib << 20))
same() { packed "$1" "$2" | cmp "$tmp/tree.tar" -; } # NODE DIRECTORY

as alice 1 sh -c 'cat >pace && chmod 755 pace' <"$here/programs/pace.py"
all=$((mib << 20)) third=$((mib * 300000))
push=(rsync -aH /var/tmp/tree/ ws2:/var/tmp/copy/) pull=(rsync -aH ws2:/var/tmp/there/ /var/tmp/back/)
forget() {
    local k
    for k in 1 2; do on "$k" rm -rf /var/tmp/copy /var/tmp/back; done
    as alice 1 sh -c 'rm -f half.* go.*'
}
job() { # COMMAND..: its output is in said
    as alice 1 rm -f said
    as alice 1 esubmit -t 20m -w -o /home/alice/said 4 "$@" 2>"$tmp/job" || { cat "$tmp/job"; printed said; return 1; }
}

# ---- as it is, and with a slow reader on either side ----
ok 'rsync -e erun to the other host' job rsync -aH -e erun /var/tmp/tree/ ws2:/var/tmp/there/
ok 'is the same there' same 2 /var/tmp/there
ok 'from the other host' job "${pull[@]}" -e erun
ok 'is the same here' same 1 /var/tmp/back
ok 'a second time' job rsync -aH -e erun --stats /var/tmp/tree/ ws2:/var/tmp/there/
like 'nothing is sent' "$(printed said)" 'files transferred: 0'
forget
ok 'who reads slowly there' job "${push[@]}" -e erun --rsync-path="/home/alice/pace slow $all in rsync"
ok 'reads the same' same 2 /var/tmp/copy
ok 'and here' job "${pull[@]}" -e "/home/alice/pace slow $all out erun"
ok 'reads the same' same 1 /var/tmp/back

# ---- daemons that are killed in the middle ----
# To the other host and from it at once; both stand still with more underway than fits.
as alice 1 sh -c 'cat >both' <<END
${push[*]} -e erun --rsync-path="\$HOME/pace still $third in rsync" & push=\$!
${pull[*]} -e "\$HOME/pace still $third out erun"
pull=\$?
wait \$push
echo \$? \$pull
END
begin_both() {
    forget
    as alice 1 rm -f said
    id=$(submit alice -t 20m -o /home/alice/said 4 sh both)
    wait_for 10 'to the other host and from it' eval 'marked half.in && marked half.out'
}
for unit in rsd rsd-net rsd-spawn rsd-tickets; do
    begin_both
    for k in 1 2; do ok "$unit is killed on ws$k in the middle" on $k systemctl kill -s KILL $unit; done
    as alice 1 touch go.in go.out
    wait_for 20 'both end' over "$id"
    is 'well' "$(printed said)" '0 0'
    ok 'and are the same' eval 'same 2 /var/tmp/copy && same 1 /var/tmp/back'
    wait_for 20 'all is up again' up_again
done
ok 'nothing is left' nothing_left "$id"

# ---- many tasks, with GNU parallel ----
as alice 1 sh -c 'cat >task && chmod 755 task' <<END
#!/bin/sh
# One of them waits until it may go on.
echo "\$1" >>~/ran
[ "\$1" != $((tasks / 2)) ] || { touch ~/half.task; until test -e ~/go.task; do sleep 0.05; done; }
echo "\$1"
echo "\$1" >&2
END
each_once() { cmp <(printed "$1" | sort -n) <(seq "$tasks"); }
begin_tasks() {
    as alice 1 sh -c 'rm -f half.* go.* ran numbers errors'
    id=$(submit alice -t 20m -o /home/alice/numbers -e /home/alice/errors 4 \
        sh -c "seq $tasks | parallel --will-cite --ssh erun -S 2/ws1,2/ws2 --workdir . ./task")
    wait_for $((10 + tasks / 10)) "$tasks tasks by erun: half of them" marked half.task
}
judge_tasks() {
    as alice 1 touch go.task
    wait_for $((10 + tasks / 10)) 'all end' over "$id"
    is 'well' "$(field "$id" 'j["exit_status"]')" 0
    ok 'each has run once' each_once ran
    ok 'and its output came once' each_once numbers
    ok 'and its errors' each_once errors
}
begin_tasks
judge_tasks
begin_tasks
for k in 1 2; do ok "rsd is killed on ws$k" on $k systemctl kill -s KILL rsd rsd-net; done
judge_tasks
wait_for 20 'all is up again' up_again

# ---- a cable that is cut for good ----
begin_both
ok 'the cable is cut in the middle' "$lab" link 2 down
cut=$(now_ms)
as alice 1 touch go.in go.out
within 25 'both copies end' eval 'printed said | grep -q "^[0-9]* [0-9]*$"'
diag "$(($(now_ms) - cut)) ms after the cut"
# 255 is erun's, which rsync passes on if it has ended before rsync looks; 12 and 10 are its own words that the connection
# failed, where it read and where it wrote.
like 'with a status that says so' "$(printed said | tail -n 1)" '^(255|12|10) (255|12|10)$'
is 'and both say why' "$(printed said | grep -c '^erun: the connection to ws2 is lost (\(Connection timed out\|No route to host\)): what runs there ends within 12 s$')" 2
idle() { ! on "$1" pgrep -u alice -x 'rsync|erun|python3|pace'; } # NODE
wait_for 5 'nothing of it runs here' idle 1
within 15 'nor there' idle 2
within 60 'the job is over, without its other host' over "$id"
diag "of the job there: $(on 2 pgrep -u alice -l | cut -d ' ' -f 2 | xargs), until elmer can tell the host that it is over"
ok 'the cable is there again' "$lab" link 2 up
wait_for 40 'and the host' up_again
ok 'nothing is left' until_ok 10 nothing_left "$id"

done_testing
