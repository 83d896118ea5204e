# shellcheck shell=bash
# Sourced after jobs.sh by the files that run an earlier build's daemons beside this one's.
#
#   in_history COMMIT FILE  whether the repository has the commit named in FILE; a copy without history skips a point, which says so
#   earlier_build FILE      make the build of the commit named in FILE, out of the repository's own history; LAB_PREVIOUS
#                           (a directory) keeps it for the next time. Ends the test, skipped, in a copy without history.
#   accept_all K..          what the packages do on a host whose version has no tickets yet: jobs without are let run
#   use new|previous DAEMON [K..]     put it on these nodes (1) and restart it
#
# shellcheck disable=SC2154 # variables of lib.sh
in_history() {
    git -C "$top" cat-file -e "$1^{commit}" 2>/dev/null && return
    # Only a copy without the history may do without: a whole one that has lost the commit would never test it again.
    [ "$(git -C "$top" rev-parse --is-shallow-repository 2>/dev/null)" != false ] || bail_out "the commit $1 of $2 is not in the history"
    skip 'an earlier build' "its commit $1 is not in the history of this copy"
    return 1
}
earlier_build() {
    commit=$(cat "$1")
    previous=${LAB_PREVIOUS:-$tmp/previous}/$commit
    if ! in_history "$commit" "$1"; then
        done_testing
        exit 0
    fi
    "$here/earlier" "$commit" "${LAB_PREVIOUS:-$tmp/previous}" >"$tmp/previous.log" 2>&1 && return
    diag "$(tail -n 20 "$tmp/previous.log")"
    bail_out 'the earlier build fails'
}

programs() { # DAEMON: what belongs to it
    case $1 in
    rsd) echo libexec/elmer/elmer-supervisor sbin/rsd ;;
    elmer) echo sbin/elmer ;;
    esac
}
keep_new() {
    local program
    mkdir -p "$tmp/new/usr/sbin" "$tmp/new/usr/libexec/elmer"
    for program in $(programs rsd) $(programs elmer); do
        on 1 cat "/usr/$program" >"$tmp/new/usr/$program"
    done
}
# An rsd of before has its own unit, and those who are units now as children, if it has them: these must not run.
parts='rsd-spawn.socket rsd-spawn.service rsd-net-join.socket rsd-tickets-join.socket rsd-tickets-grants.socket rsd-net.socket rsd-tickets.socket rsd-net.service rsd-tickets.service'
put() { # new|previous DAEMON K
    local from=$tmp/new program
    [ "$1" = new ] || from=$previous/root
    if [ "$2" = rsd ] && [ "$1" = new ]; then
        on "$3" sh -c "systemctl -q unmask --runtime $parts; rm -f /run/systemd/system/rsd.service; systemctl daemon-reload"
    elif [ "$2" = rsd ]; then
        on "$3" systemctl stop rsd # by its own unit
        git -C "$top" show "$commit:systemd/rsd.service.in" | sed 's|@sbindir@|/usr/sbin|; s|@pkglibexecdir@|/usr/libexec/elmer|' |
            on "$3" sh -c "systemctl -q mask --runtime $parts; cat >/run/systemd/system/rsd.service; systemctl daemon-reload"
    fi
    for program in $(programs "$2"); do
        on "$3" sh -c 'cat >"$1.new" && chmod 755 "$1.new" && mv -f "$1.new" "$1"' - "/usr/$program" <"$from/usr/$program"
    done
}
accept_all() {
    local k
    for k in "$@"; do
        on "$k" sh -c 'mkdir -p /etc/elmer/rsd.conf.d; printf "[rsd]\ntickets = accept\n" >/etc/elmer/rsd.conf.d/40-tickets.conf'
    done
}
use() {
    local which=$1 daemon=$2 k
    shift 2
    for k in "${@:-1}"; do
        put "$which" "$daemon" "$k"
        on "$k" systemctl restart "$daemon"
        # Only now: rsd is to be stopped in peace, and not to begin again because they have gone.
        [ "$which $daemon" != 'previous rsd' ] || on "$k" sh -c "systemctl stop $parts"
    done
}
ready() { wait_for 30 "$1: a new job runs to its end" hosts_up "$nodes"; }

# A job that ends, with a status of its own, when its file is there; after 4,000 looks in any case. Each starts a program, which in an
# emulated machine takes so much of its processor that several such jobs would leave nothing to what is done beside them.
[ "$LAB" = lab ] && look_again=0.05 || look_again=1
waiting_job() { # NAME [ARG..]
    local name=$1
    shift
    submit alice -o /dev/null "${@:-1}" sh -c "i=0; while [ ! -e end-$name ] && [ \$i -lt 4000 ]; do sleep $look_again; i=\$((i + 1)); done; exit 7"
}
pids_of() { # JOB: of the oldest process on each node
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" cat "/sys/fs/cgroup/$jobs_scope/$1.1/job/cgroup.procs" 2>/dev/null | sort -n | head -n 1
    done | xargs
}
ends_well() { # NAME ID [nothing_left|only_result_left]
    local what=${3:-nothing_left} k
    for ((k = 1; k <= nodes; k++)); do as alice "$k" touch "end-$1"; done # homes may be local
    wait_for 20 "job $1 ends" over "$2"
    is "job $1: its result is recorded" "$(field "$2" '[j["state"], j["exit_status"], j["reason_code"]]')" "['done', 7, 'exited']"
    wait_for 20 "job $1: ${what//_/ }" "$what" "$2"
}
# An rsd of before does not know the file that this one keeps for a job's result; the next one of this build removes it.
only_result_left() { ! left_of "$1" | grep -qv "/sup/$1\.[0-9]*\.ended\$"; }
same() { # NAME ID PIDS
    ok "job $1 goes on" running "$2"
    is "job $1: its processes are the same" "$(pids_of "$2")" "$3"
}
no_version_refused() {
    local k
    for ((k = 1; k <= nodes; k++)); do
        on "$k" journalctl -q -o cat --no-pager -u elmer -u "rsd*" | grep -i 'install the same version' | head -n 3
    done
}
