#!/bin/bash
# The manual's examples: each command that a page shows is run on the nodes, as a user would type it, and prints what the page shows.
# Which they are, and what "the same" means: programs/examples.py. What is there before an example is a function world_NAME below. Those of
# elmer(7), eadmin(8) and elmer-signer(8) are run by 11-tutorial.t. `11-manual.t 'e*.1'` runs those of some pages.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"
. "$(dirname "$0")/examples.sh"

only_on_nodes 'the programs of the examples are put into the nodes'
# ---- what is there ----
program() { # NAME <<text
    local k text
    text=$(cat)
    for ((k = 1; k <= nodes; k++)); do as alice "$k" sh -c 'mkdir -p run/logs && cat >"run/$1" && chmod 755 "run/$1"' - "$1" <<<"$text"; done
}
world_fresh() { # nothing runs, nothing waits
    ids=()
    as alice 1 ecancel --me --yes
    as alice 1 ekill --me --yes
    as bob 1 ekill --me --yes
    until_ok 20 nothing_there
}
nothing_there() { [ "$(on 1 equery --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["jobs"]))')" = 0 ]; }
begin() { # NAME ARG..: alice's job, which the page calls so; it runs
    local name=$1
    shift
    ids[$name]=$(as alice 1 sh -c 'cd run && exec esubmit "$@"' - "$@") && until_ok 20 running "${ids[$name]}"
}
wait_in_queue() { # NAME ARG..
    local name=$1
    shift
    ids[$name]=$(as alice 1 sh -c 'cd run && exec esubmit "$@"' - "$@")
}
world_running() { world_fresh && begin 42 -o 'elmer-%j.out' ./solve forever; }
world_named() { world_fresh && begin 42 --name solve-1 ./solve forever && begin 43 --name solve-2 ./solve forever; }
world_usr1() { world_fresh && begin 42 -o elmer-42.out ./solve usr1 && until_ok 10 as alice 1 grep -q ready run/elmer-42.out; }
world_array() { world_fresh && wait_in_queue 57 -a '1-20%2' -o /dev/null ./simulate slowly; }
world_queued() { # 41 and 42 have all, 43 and 44 wait
    world_fresh && begin 41 --each -o /dev/null 8 ./solve forever && begin 42 --each -o /dev/null 8 ./solve forever &&
        wait_in_queue 43 --name second -o /dev/null 8 ./solve forever && wait_in_queue 44 --name third -o /dev/null 8 ./solve forever
}
world_ended() { # 42 fails, 43 does not
    world_fresh && wait_in_queue 42 -o /dev/null ./solve badly && wait_in_queue 43 -o /dev/null ./solve input.dat &&
        until_ok 20 over "${ids[42]}" && until_ok 20 over "${ids[43]}"
}
world_each() { world_fresh && begin 42 --each -o 'elmer-%j.%r.out' -e 'elmer-%j.%r.err' 4 ./worker; }
world_failed() {
    world_fresh && wait_in_queue 57 -a 1-20 -o /dev/null ./simulate 'odd{}' && until_ok 60 over "${ids[57]}"
}
world_tasks() { world_fresh && wait_in_queue 57 -a '1-20%2' -o /dev/null ./simulate; }
world_mail() { # the nodes have no mail system
    world_fresh && printf '#!/bin/sh\nexec cat >/dev/null\n' | on 1 sh -c 'cat >/usr/sbin/sendmail && chmod 755 /usr/sbin/sendmail'
}
world_history() { # jobs of two users that have ended
    world_fresh && for k in 1 2 3; do as alice 1 esubmit -w -o /dev/null 1 true && as bob 1 esubmit -w -o /dev/null 1 true || return; done
    on 1 python3 -c 'import sqlite3
sqlite3.connect("/var/lib/elmer/elmer.db").backup(sqlite3.connect("/home/alice/run/elmer.db"))' && on 1 chmod 644 /home/alice/run/elmer.db
}
world_trace() { # 5000 jobs of a machine with 512 processors
    awk 'BEGIN { print "; MaxProcs: 512"; for (k = 1; k <= 5000; k++) print k, k * 40, -1, 600 + k % 7 * 300, 1 + k * 37 % 64, -1, -1, 1 + k * 37 % 64, 7200, -1, 1, k % 9, 1, -1, 1, -1, -1, -1 }' |
        gzip | on 1 sh -c 'cat >/home/alice/run/CTC-SP2-1996-3.1-cln.swf.gz && chmod 644 /home/alice/run/CTC*'
}
world_data() { world_fresh && as alice 1 sh -c 'mkdir -p run/data && echo 1 >run/data/one && echo 2 >run/data/two && touch run/a.in run/b.in'; }
world_shared() { # 42 below a job of bob's
    world_fresh && ids[41]=$(as bob 1 esubmit -o /dev/null --hosts ws1,ws2 4 sleep 60) && until_ok 20 running "${ids[41]}" &&
        begin 42 --name solve -t 2h30m --hosts ws1,ws2 -o 'elmer-%j.out' 4 ./solve 'input 1.dat' && until_ok 20 eval 'as alice 1 equery "${ids[42]}" | grep -q "^ *ws2 .*s$"' # both hosts have told
}
world_drained() {
    world_fresh && as carol 1 eadmin drain ws2 --reason disk && wait_in_queue 43 8 ./solve input.dat
}

# ---- what is not run as it is shown ----
# shellcheck disable=SC2034 # for examples.sh
declare -A not_run=(
    ['elmer-mpi.7: sudo apt install openmpi-bin libopenmpi-dev      # on all hosts']='the nodes have no network: they have the package'
    ['elmer-mpi.7: sudo apt install mpich libmpich-dev              # on all hosts']='the same'
    ['elmer-mpi.7: mpicc.openmpi -O2 -o hello hello.c']='the nodes have no compiler: it is done here'
    ['elmer-mpi.7: mpicc.mpich -O2 -o hello hello.c']='the same'
    ['elmer-mpi.7: ranks 0-3 poll while they wait: nothing is left for others']='a line of equery, and when it says so: 29-mpi-waits.t'
    ['elmer_open.3: struct elmer_options {']='a type: as in elmer.h'
    ['elmer_query.3: struct elmer_jobs {']='the same'
    ['elmer_explain.3: struct elmer_host_why {']='the same'
    ['elmer_query_hosts.3: struct elmer_host_list {']='the same'
    ['elmer_query.3: struct elmer_ids {']='the same'
    ['elmer_submit.3: struct elmer_notices {']='the same'
    ['elmer_register.3: #include <elmer_reg.h>']='needs a task of PVM: compiled; 31-pvm-examples.t runs placed, which does so'
    ['equery.1: {"schema": "elmer.jobs/1",']='a record, of which more is looked at in its schema: a job that has ended has these keys'
)
by_user() { # USER K FILE
    case $(cat "$tmp/command") in
    'sudo apt install '*) otherwise && sed 's/#.*//; s/lib[a-z]*-dev//; s/sudo apt install/dpkg -s/' "$tmp/command" | on "$2" sh ;;
    'mpicc.'*) otherwise && compile "$(cat "$tmp/command")" ;;
    *) as "$1" "$2" bash -c 'cd run && . "$1"' - "$3" ;;
    esac
}
compile() { # COMMAND
    local k
    cat >"$tmp/hello.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("hello from rank %d of %d\n", rank, size);
    return MPI_Finalize();
}
C
    (cd "$tmp" && eval "$1") || return
    for ((k = 1; k <= nodes; k++)); do as alice "$k" sh -c 'cat >run/hello && chmod 755 run/hello' <"$tmp/hello"; done
}

# ---- text that is no command ----
c_text() { # FILE: a program, or statements about a job that runs
    if grep -q '^int main' "$1"; then
        cp "$1" "$tmp/example.c"
    else
        {
            printf '#include <%s>\n' stddef.h stdint.h stdio.h stdlib.h poll.h elmer.h
            sed -n '/^#include/p' "$1"
            echo 'static void something_else(void) {}'
            echo 'int main(int argc, char **argv) { struct elmer *elmer; struct elmer_error error; uint64_t job = strtoull(argv[argc - 1], NULL, 10);'
            echo 'something_else(); if (elmer_open(NULL, &elmer, &error) != ELMER_OK) { puts(error.text); return 1; }'
            sed '/^#include/d' "$1"
            echo 'elmer_close(elmer); (void)job; return 0; }'
        } >"$tmp/example.c"
    fi
    if grep -q pvm3.h "$1"; then
        otherwise && gcc -std=c17 -Wall -Werror -fsyntax-only -I"$top/libelmer" "$tmp/example.c"
        return
    fi
    # With sanitizers: what the linker says of their own library is nothing that the page shows.
    gcc -std=gnu17 -Wall -Werror ${sanitized:+-fsanitize=address -Wl,--no-warnings} -I"$top/libelmer" -o "$tmp/example" "$tmp/example.c" \
        -L"$build/libelmer/.libs" -lelmer || return
    world_fresh && wait_in_queue 42 -o example.out sh -c 'echo step 1; exec sleep 3' && until_ok 10 as alice 1 grep -q step run/example.out || return
    as alice 1 sh -c 'cat >run/example && chmod 755 run/example' <"$tmp/example"
    as alice 1 ${sanitized:+env ASAN_OPTIONS=detect_leaks=0} run/example "${ids[42]}" >"$tmp/printed" && { ! grep -q 'printf\|puts\|stdout' "$1" || [ -s "$tmp/printed" ]; }
}
same_struct() { # FILE: as in the header, but for comments and blanks
    otherwise && python3 - "$1" "$top/libelmer/elmer.h" <<'P'
import re, sys
shown, header = (re.sub(r"\s|/\*.*?\*/", "", open(path).read(), flags=re.S) for path in sys.argv[1:])
sys.exit(shown not in header)
P
}
same_keys() { # FILE of a record in JSON
    otherwise && world_ended && on 1 equery --json "${ids[42]}" | python3 -c 'import json, sys
def keys(value):
    if isinstance(value, dict):
        return {key: keys(of) for key, of in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None
shown, printed = keys(json.load(open(sys.argv[1]))), keys(json.load(sys.stdin))
if shown != printed:
    sys.exit(f"the page shows {shown}, printed is {printed}")' "$1"
}
config_text() { # FILE: of one daemon
    local k=1
    ! grep -q '^\[rsd' "$1" || k=2 # which has joined
    on $k sh -c 'cat >/tmp/example.conf && eadmin config check /tmp/example.conf' <"$1"
}
other_text() { # FILE
    case $(head -n 1 "$1") in
    'struct '*\{) same_struct "$1" ;;
    '#include'* | *\;) c_text "$1" ;;
    'const char '*) c_text "$1" ;;
    '{'*) same_keys "$1" ;;
    '['*) config_text "$1" ;;
    'vouch = '*) printf '[rsd]\nelmer = ws1:7110\n' | cat - "$1" >"$tmp/rsd.conf" && config_text "$tmp/rsd.conf" ;;
    'ranks 0-3 poll '*) otherwise && on 1 grep -q 'poll while they wait' /usr/bin/equery ;;
    *) echo 'nobody looks at what this text shows'; false ;;
    esac
}

lab_up 4 --cpus 2 --elmer 'allocator = pack' --elmer 'levels = 2'
install_programs
on 1 sh -c 'cat >/home/sit.py' <"$top/tests/system/programs/sit.py"
program solve <<'P'
#!/bin/sh
case $1 in
forever) exec sleep 600 ;;
usr1) trap 'echo 42 steps' USR1; echo ready; while :; do sleep 600 & wait; done ;;
badly) exit 3 ;;
'input 1.dat')
    erun --each sh -c 'k=0; while [ $k -lt 300000 ]; do k=$((k + 1)); done'
    exec sleep 60
    ;;
esac
echo solved "$@"
P
program worker <<'P'
#!/bin/sh
for k in 1 2 3; do echo "step $k"; echo "warning $k" >&2; sleep 1; done
P
program simulate <<'P'
#!/bin/sh
case $1 in
slowly) exec sleep 600 ;;
odd*[13579]) [ -n "${SOLVE_MEMORY:-}" ] ;;
esac
P
for name in collect convert check step; do
    program $name <<'P'
#!/bin/sh
echo "${0##*/}" "$@"
P
done
for ((k = 1; k <= nodes; k++)); do
    as alice "$k" sh -c 'cd run && echo input >input.dat && for k in $(seq 1000); do echo "case$k 0.1"; done >cases.txt &&
        printf "%s\n" "#!/bin/sh" "#ELMER --nprocs 4 --each" "#ELMER --output logs/%j.%r --comment \"first try\"" "./solve \"\$1\"" >job.sh &&
        chmod 755 job.sh'
done

for page in "$top"/man/${1:-*.[1-8]}; do
    case ${page##*/} in elmer.7 | eadmin.8 | elmer-signer.8) continue ;; esac # 11-tutorial.t
    world_fresh >/dev/null 2>&1
    on 1 eadmin resume ws2 >/dev/null 2>&1
    run_page "$page"
done
[ $# -gt 0 ] || listed_are_there
done_testing
