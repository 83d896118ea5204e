# shellcheck shell=bash
# Sourced after lib.sh by the files that run jobs: submitting, asking, waiting, what is left.
# shellcheck disable=SC2154 # variables of lib.sh
jobs_scope=elmer.slice/elmer-jobs.scope

# The programs of the tests go where every node sees them.
install_programs() {
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" sh -c 'cat >/home/testjob && chmod 755 /home/testjob' <"$build/tests/system/testjob"
    done
    wait_for 20 'all hosts are up' hosts_up "$nodes" || bail_out 'Elmer runs no job on these nodes'
}

# From here on this shell and what it runs on the nodes rank above every job and below the daemons, as a person at another machine
# would: a node whose CPU is spun away by a first job leaves 50 ms of each second to a shell in SCHED_OTHER. Not before a `lab
# start`: the node would inherit it.
outrank_jobs() {
    [ "$LAB" != lab ] || chrt -f -p 58 $$ # in a machine it is enough that the command has the rank
    export LAB_FIFO=58
}

hosts_up() { # a job on N processors is allocated at once
    local id
    id=$(as bob 1 esubmit -o /dev/null "$1" true 2>"$tmp/hosts_up") || return 1
    until_ok 10 over "$id" || { as bob 1 ecancel "$id"; return 1; }
}

# submit USER ARG..: id of the job; what esubmit says to people goes to $tmp/said
submit() {
    local user=$1
    shift
    as "$user" 1 esubmit "$@" 2>"$tmp/said"
}

field() { # ID PYTHON-EXPRESSION over j, the job's record
    on 1 equery --json "$1" | python3 -c 'import json,sys
j = json.load(sys.stdin)["jobs"][0]
v = '"$2"'
print("null" if v is None else v)'
}

# Asked again and again, so without python, which costs twice what all the rest does; the first state of the record is the job's own.
state() { # ID
    [[ $(on 1 equery --json "$1") =~ \"state\":\ *\"([a-z]+)\" ]] && echo "${BASH_REMATCH[1]}"
}
is_state() { [ "$(state "$1")" = "$2" ]; }
over() { case $(state "$1") in done | cancelled) ;; *) return 1 ;; esac; }
running() { is_state "$1" running; }

left_of() { # ID: processes, groups and directories of the job on all nodes
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" sh -c 'ls -d /sys/fs/cgroup/'"$jobs_scope"'/$1.* /sys/fs/cgroup/unified/'"$jobs_scope"'/$1.* /run/elmer-rsd/jobs/$1.* /run/elmer-rsd/sup/$1.* 2>/dev/null
            grep -lz "^ELMER_JOB_ID=$1\$" /proc/[0-9]*/environ 2>/dev/null' - "$1"
    done
}
nothing_left() { [ -z "$(left_of "$1")" ]; }
# The hosts where the ended job has used more than 0.1 s. For a program that deals itself out in equal shares: where `ep` finds a host slow, by
# what else a machine does, it gives it next to nothing.
computed_on() { field "$1" 'sorted(u["host"] for u in j["usage"] if u["cpu_seconds"] > 0.1)'; } # ID
job_group() { node_group "$1" "$jobs_scope/$2.1/job"; } # NODE ID

# ---- what the kernel says, asked inside the node or machine ----

# The group of the job has so many threads. Waited for by one program inside: where each command from here is at a rank above the job, and
# costs what it does in an emulated machine, asking again and again would take the CPU from what makes the threads.
has_threads_within() { # SECONDS ID COUNT
    on 1 bash -c 'exec {never}<> <(:)
        for ((i = 0; i < $3 * 10; i++)); do
            mapfile -t all <"$1" && [ ${#all[@]} -ge "$2" ] && exit
            read -rt 0.1 -u "$never"
        done
        echo "${#all[@]} threads"
        exit 1' - "/sys/fs/cgroup/$jobs_scope/$2.1/job/cgroup.threads" "$3" $(($1 * leniency)) 2>/dev/null
}

# ranks_of NODE ID..: job, process, thread, class, real-time priority and command of each thread
ranks_of() {
    local k=$1
    shift
    on "$k" sh -c 'for i; do
        procs=$(paste -sd, "/sys/fs/cgroup/'"$jobs_scope"'/$i.1/job/cgroup.procs" 2>/dev/null)
        [ -z "$procs" ] || ps -L -o pid=,tid=,cls=,rtprio=,comm= -p "$procs" | sed "s/^/$i /"
    done' - "$@" | tr -s ' ' | sort
}
rank_in() { ranks_of "$1" "$2" | awk '{ print $4, $5 }' | sort -u | xargs; } # NODE ID -> e.g. "FF 49", "TS -"

up_again() { [ "$(on 1 eadmin hosts | grep -cE '^ws[0-9]+ +up ')" = "$nodes" ]; }

# How much more CPU time it takes there to start a program than here: 1 on nodes, about 10 in an emulated machine. More than 20 is
# other work on this machine, which no bar may grow with.
slowness() { # NODE
    local loop='i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done; times'
    [ "$LAB" != lab ] || { echo 1 && return; }
    { sh -c "$loop"; on "$1" sh -c "$loop"; } | python3 -c 'import re, sys
seconds = [sum(int(m) * 60 + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", line)) for line in sys.stdin]
print(min(20, max(1, round((seconds[2] + seconds[3]) / (seconds[0] + seconds[1]), 1))))'
}

# Let v2 see the nodes' own work only, not what else this machine does: for nodes with one CPU and `--rsd 'proc_stat = /run/stat'`.
see_own_work() {
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" sh -c 'cat >/run/stat.py && systemd-run -q --collect -p CPUSchedulingPolicy=fifo -p CPUSchedulingPriority=57 python3 /run/stat.py' <<'END'
import os, time
cpu = min(os.sched_getaffinity(0))
stat = os.open("/run/stat", os.O_WRONLY | os.O_CREAT, 0o644)
while True:
    used = next(int(line.split()[1]) for line in open("/sys/fs/cgroup/cpu.stat") if line.startswith("usage_usec"))
    busy, ticks = used // 10000, time.monotonic_ns() // 10000000
    os.pwrite(stat, b"cpu%d %12d 0 0 %12d 0 0 0 0\n" % (cpu, busy, ticks - busy), 0)
    time.sleep(0.02)
END
    done
}
why_queued() { # ID: what equery -q says, without what is known from the submission
    on 1 equery -q | sed -n "s/^ *$1 .*waits for/waits for/p"
}
says_why() { [[ $(why_queued "$1") =~ ^$2$ ]]; } # ID REGEX

# Prints a ticket of alice on that node, signed while it is a host of another cluster, which calls its hosts the same. Then all is as before.
ticket_of_another_cluster() { # NODE
    on "$1" sh -c 'systemctl stop rsd && mv /var/lib/elmer-ticket /var/lib/elmer-ticket.own && systemctl start rsd &&
        mv /etc/elmer/rsd.conf.d/50-join.conf /etc/elmer/joined && # eadmin refuses to divide a cluster
        eadmin init --hosts ws1,ws2 --listen "$(hostname)" && mv /etc/elmer/joined /etc/elmer/rsd.conf.d/50-join.conf &&
        systemctl restart rsd' >"$tmp/another" 2>&1 || diag "$(cat "$tmp/another")"
    as alice "$1" /home/hostile-net ticket
    on "$1" sh -c 'systemctl stop rsd && rm -rf /var/lib/elmer-ticket /var/lib/elmer-ca /etc/elmer/elmer.conf.d/50-init.conf &&
        mv /var/lib/elmer-ticket.own /var/lib/elmer-ticket && systemctl start rsd' >"$tmp/another" 2>&1 || diag "$(cat "$tmp/another")"
}
