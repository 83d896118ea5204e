#!/bin/bash
# Debian's Open MPI and MPICH as they come: they find the hosts of the job and start what they need by erun; and what becomes of a job
# however it ends. No ssh server runs on the nodes, and there is no key.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/mpi.sh"

build_mpi
lab_up 2 --cpus 2 --elmer 'allocator = v1' --rsd 'tickets = require'
install_programs
give_mpi
is 'no ssh server runs, and there is no key' "$(for k in 1 2; do on $k sh -c 'ss -Hltn sport = :22 or sport = :514; ls /home/alice/.ssh 2>/dev/null'; done)" ''

begin() { # COMMAND..: the same, in the background, on both hosts: its id, when its ranks wait
    as alice 1 rm -f out
    id=$(submit alice -t 120s -o /home/alice/out 4 "$@")
    until_ok 20 eval 'as alice 1 grep -q waiting out'
}
node_ms() { on 1 sh -c 'read -r up _ </proc/uptime; echo "${up}0" | tr -d .'; }
# From the moment at which rank 1 ends so to that at which `esubmit -w` has ended.
ends() { # HOW STATUS
    local rc ms
    run 4 mpirun.$m /home/mpi.$m "$1"
    rc=$?
    ms=$(($(node_ms) - $(as alice 1 cat cause)))
    like "$m: $1: the status" "$rc" "^$2$"
    ok "$m: $1: that ends the job within 2 s ($ms ms)" test "$ms" -le $((2000 * patience))
    ok "$m: $1: and nothing is left on any host" until_ok 4 nothing_left "$ran"
}
# From what the test has done just now, which kills something.
dies() { # NAME STATUS-SIGNAL-REASON: as a pattern
    within 2 "$m: $1: that ends the job" over "$id"
    like "$m: $1: what is said of it" "$(field "$id" '"%s %s %s" % (j["exit_status"], j["signal"], j["reason_code"])')" "^$2$"
    ok "$m: $1: and nothing is left on any host" until_ok 4 nothing_left "$id"
}
spread='rank 0 of 4 on ws1 with 2 rank 1 of 4 on ws1 with 2 rank 2 of 4 on ws2 with 2 rank 3 of 4 on ws2 with 2'

for m in openmpi mpich; do
    run 4 mpirun.$m /home/mpi.$m hello
    is "$m: hello ends well" $? 0
    is "$m: a rank for each processor of the job, each on all of its host" "$(sort "$tmp/out" | xargs)" "$spread"
    run 4 mpirun.$m --bind-to core /home/mpi.$m hello
    is "$m: each on one of its own, if one asks for it" "$(sort "$tmp/out" | xargs)" "${spread//with 2/with 1}"
    run 2 mpirun.$m -n 2 /home/mpi.$m hello
    is "$m: on one host alone" "$(grep -c 'of 2 on' "$tmp/out")" 2
    run 4 mpirun.$m /home/mpi.$m ring
    is "$m: a ring" "$(cat "$tmp/out")" '4 went around'
    run 4 timeout -s KILL 20 mpirun.$m /home/mpi.$m last
    is "$m: ends where one rank comes late to its end, and needs an answer there" "$? $(cat "$tmp/out")" '0 42 came'
    ends abort 7
    # mpiexec: whose end it hears of first, of those that it ends by TERM too
    ends segfault "$([ $m = openmpi ] && echo 139 || echo '(11|15|255)')"
    ends exit 5 # without MPI_Finalize()
    begin mpirun.$m /home/mpi.$m wait
    as alice 1 ekill "$id" >/dev/null
    dies ekill '.* killed'
    begin mpirun.$m /home/mpi.$m wait
    on 1 pkill -KILL -o -f "^mpirun.$m|^/usr/bin/mpirun.$m|mpiexec"
    dies 'a killed mpirun' 'None 9 exited'
    begin mpirun.$m /home/mpi.$m wait
    on 2 pkill -KILL -o -f /home/mpi.$m
    dies 'a rank elsewhere is killed' "$([ $m = openmpi ] && echo 137 || echo 255) None exited"
    begin mpirun.$m /home/mpi.$m wait
    on 2 pkill -KILL -x "$([ $m = openmpi ] && echo orted || echo hydra_pmi_proxy)"
    dies 'its daemon elsewhere is killed' "$([ $m = openmpi ] && echo '205 None' || echo 'None 9') exited"
    begin mpirun.$m /home/mpi.$m wait
    on 1 pkill -KILL -x erun
    # Open MPI's mpirun says what it hears of first: its launcher is killed (9), or the daemon that this has started is gone.
    dies 'its erun is killed' "$([ $m = openmpi ] && echo '(9|205)' || echo 255) None exited"
done
on 2 mv /usr/bin/hydra_pmi_proxy /usr/bin/hydra_pmi_proxy.away
run 4 timeout -s KILL 20 mpirun.mpich /home/mpi.mpich hello
is 'mpich: a host without it ends mpirun' $? 255
on 2 mv /usr/bin/hydra_pmi_proxy.away /usr/bin/hydra_pmi_proxy
run 4 timeout -s KILL 20 mpirun.mpich -hosts ws1,ws9 /home/mpi.mpich hello
is 'mpich: and so does one that is not of the job' $? 255
run 4 mpirun.mpich -hosts ws1:4 -n 4 /home/mpi.mpich exit
is 'mpich: one of which mpiexec knows nothing, because others on its host were started after it' $? 5
run 4 mpirun.openmpi -n 1 /home/mpi.openmpi spawn
is 'openmpi: MPI_Comm_spawn' "$? $(cat "$tmp/out")" '0 spawned says 42'
ok 'openmpi: and nothing is left of it on any host' until_ok 4 nothing_left "$ran"
run 4 mpirun.openmpi -n 2 --host ws1:2 /home/mpi.openmpi hello
is 'openmpi: what the user says counts' "$(grep -c 'of 2 on ws1' "$tmp/out")" 2
as alice 1 sh -c 'echo "#!/bin/sh
echo \$1 >>/home/alice/launched
exec erun \"\$@\"" >launcher && chmod 755 launcher'
launched() { # NAME ARG..: mpirun of MPICH has started its daemon by alice's launcher
    as alice 1 rm -f launched
    run "${@:2}"
    is "mpich: the launcher of the user counts: $1" "$(sort "$tmp/out" | xargs) by $(as alice 1 cat launched 2>&1)" "$spread by ws2"
}
launched 'HYDRA_BOOTSTRAP_EXEC' -v HYDRA_BOOTSTRAP=rsh -v HYDRA_BOOTSTRAP_EXEC=/home/alice/launcher 4 mpirun.mpich /home/mpi.mpich hello
launched 'HYDRA_LAUNCHER_EXEC' -v HYDRA_LAUNCHER=rsh -v HYDRA_LAUNCHER_EXEC=/home/alice/launcher 4 mpirun.mpich /home/mpi.mpich hello
launched 'in its script' 4 sh -c 'HYDRA_LAUNCHER_EXEC=/home/alice/launcher mpirun.mpich /home/mpi.mpich hello'
as alice 1 sh -c 'mkdir -p .openmpi && echo "btl_tcp_if_exclude = docker0,lo" >.openmpi/mca-params.conf'
run 4 sh -c 'env | grep -o "^OMPI_MCA_..._tcp_if[^=]*"; mpirun.openmpi -n 2 /home/mpi.openmpi hello 2>&1'
is 'nor does Elmer speak of a network of which a file of his speaks' "$(sed 's/ of 2.*//' "$tmp/out" | sort | xargs)" 'OMPI_MCA_oob_tcp_if_include rank 0 rank 1'
as alice 1 rm -r .openmpi

# ---- who takes an ssh ----
as alice 1 sh -c 'mkdir -p tree/a/b && head -c 3000000 /dev/urandom >tree/a/b/large && for i in 1 2 3 4 5 6 7 8 9; do echo $i >"tree/a/file $i"; done'
run 4 sh -c 'rsync -a -e erun tree/ ws2:/home/alice/copy/ && erun ws2 "cd copy && find . -type f -print0 | sort -z | xargs -0 sha256sum" >there && cd tree && find . -type f -print0 | sort -z | xargs -0 sha256sum | cmp - ../there && wc -l <../there'
is 'rsync -e erun' "$(cat "$tmp/out")" 10
run 4 sh -c 'seq 200 | parallel --ssh erun -S 2/ws1,2/ws2 "echo {} on \$(hostname)" 2>/dev/null | sort -n | awk "{ n += \$1; host[\$3]++ } END { print NR, n, (host[\"ws1\"] > 0), (host[\"ws2\"] > 0) }"'
is 'GNU parallel' "$(cat "$tmp/out")" '200 20100 1 1'

# ---- a host that is lost ----
# Whatever mpirun does: erun tells it, or elmer gives the host up.
downs() { on 1 journalctl -q --no-pager -o cat -u elmer | grep -c '^host=ws2 is down'; }
heard_of() { over "$id" || [ "$(downs)" -gt "$before" ]; }
lost() { # NAME
    wait_for 60 "$m: $1: mpirun hears of it, or elmer gives the host up" heard_of
    within 2 "$m: $1: that ends the job" over "$id"
    like "$m: $1: what is said of it" "$(field "$id" 'j["reason_code"]')" '^(exited|host-lost)$'
}
for m in openmpi ${ELMER_TEST_FULL:+mpich}; do
    begin mpirun."$m" /home/mpi."$m" wait
    before=$(downs)
    "$lab" link 2 down
    lost 'a cut cable'
    "$lab" link 2 up
    wait_for 60 'its host is up again' up_again
    ok "$m: and nothing is left on any host" until_ok 10 nothing_left "$id"
    [ -n "${ELMER_TEST_FULL:-}" ] || break
    begin mpirun."$m" /home/mpi."$m" wait
    before=$(downs)
    "$lab" crash 2
    lost 'a power cut'
    "$lab" start 2
    wait_for 60 'its host is up again' up_again
    ok "$m: and nothing is left on any host" until_ok 10 nothing_left "$id"
done

done_testing
