# shellcheck shell=bash
# Sourced by tests/lab/lab and tests/vm/vm: what a set of nodes and a set of machines have in common, which is their groups, their
# network namespace, the product as `make install` leaves it, and how a cluster is made of them.
#
# The script has set $name (lab or vm), $id, $net and $build, and defines enter() (run a command in node K) and await_units(). All that runs
# belongs to $group, a cgroup2 group: hub/ with a sleeper that owns the network namespace, n1/../nN/ with the nodes. Files are in $state.
# shellcheck disable=SC2034,SC2154 # variables shared with the scripts

cg2='' cg1=''
while read -r _ mount type options _; do
    case $type:$options in
    cgroup2:*) cg2=${cg2:-$mount} ;;
    cgroup:*name=systemd*) cg1=$mount ;;
    esac
done </proc/mounts
state=/var/tmp/elmer-$name-$id
group=$cg2/elmer-$name-$id
group1=${cg1:+$cg1/elmer-$name-$id} # only where the machine still has systemd's v1 hierarchy

die() {
    echo "$name: $*" >&2
    exit 125
}

exec {never}<> <(:) # nothing ever comes: to pause without a process
wait_until() { # SECONDS CMD.. - poll CMD until it succeeds
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -le $deadline ] || return 1
        read -rt 0.05 -u "$never" || true
    done
}

node() { # check that node K is part of this set
    case ${1:-} in '' | *[!0-9]*) die "'${1:-}' is not the number of a node" ;; esac
    [ -d "$state/n$1" ] || die "there is no node $1: '$name up N' boots nodes 1 to N"
}

# ---- groups ----------------------------------------------------------------------------------------------------

first_pid() { # GROUP
    local pid=''
    { read -r pid <"$1/cgroup.procs"; } 2>/dev/null
    echo "$pid"
}

vacant() { [ ! -e "$1/cgroup.events" ] || grep -q '^populated 0' "$1/cgroup.events"; }

join() { # GROUP: from here on this process belongs to the set and holds nothing of its caller
    local fd
    echo $$ >"$group/$1/cgroup.procs"
    [ -z "$group1" ] || echo $$ >"$group1/$1/cgroup.procs"
    for fd in "/proc/$$/fd"/*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || [ "$fd" -eq 255 ] || eval "exec $fd>&-"
    done
}

left_in() { # GROUP: the first processes in it and below, each with where in the kernel it waits
    local pid comm how
    find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | head -n 5 | while read -r pid; do
        { comm=$(<"/proc/$pid/comm") how=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$pid/status"); } 2>/dev/null || continue
        echo "$comm, $how, in $(sed -E 's/^\[<[0-9a-f]*>\] //; s/\+.*//' "/proc/$pid/stack" 2>/dev/null | head -n 6 | xargs)"
    done
}

remove_group() { # DIR - empty it if need be, then remove it with its children
    [ -d "$1" ] || return 0
    wait_until 120 vacant "$1" || die "processes in $1 do not end: $(left_in "$1")"
    wait_until 10 rmdir_tree "$1" || die "cannot remove $1"
}

rmdir_tree() {
    [ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} + 2>/dev/null
}

remove_all() { # what `down` does
    trap '' INT TERM HUP # half a removal is worse than a late answer
    trap - EXIT
    if [ -d "$group" ]; then
        echo 1 >"$group/cgroup.kill"
        remove_group "$group"
    fi
    [ -z "$group1" ] || wait_until 10 rmdir_tree "$group1" || die "cannot remove $group1"
    [ ! -O "$state" ] || rm -rf "${state:?}"
}

# ---- a set that comes up ---------------------------------------------------------------------------------------

make_set() { # `down` removes it again unless `set_stands` says that it is complete
    local signalled='' u
    [ -n "$cg2" ] || die "this machine has no cgroup2 mount: booted nodes need one"
    # a signal that comes between the making of our directory and the trap that removes it must wait
    trap 'signalled=130' INT
    trap 'signalled=143' TERM HUP
    mkdir "$state" 2>/dev/null || die "$name '$id' is up: '$name down' removes it, another LAB_ID makes a second one"
    trap 'down' EXIT # until all nodes run
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    [ -z "$signalled" ] || exit "$signalled"
    mkdir -p "$state/home" "$group/hub" ${group1:+"$group1/hub"}
    for u in alice:2001 bob:2002 carol:2003; do
        install -d -m 0700 -o "${u#*:}" -g "${u#*:}" "$state/home/${u%:*}"
    done
}

start_hub() {
    setsid unshare --net --mount --propagation private "$self" --hub </dev/null >"$state/hub.log" 2>&1 &
    disown
}

set_stands() { trap - EXIT INT TERM HUP; }

# ---- the network -----------------------------------------------------------------------------------------------

hub() { first_pid "$group/hub"; }
has_hub() { [ -n "$(hub)" ]; }

make_bridge() { # NAME ADDRESS: in the hub's namespace
    ip link add "$1" type bridge
    ip addr add "$2/24" dev "$1"
    ip link set "$1" up
}

bridge_up() { has_hub && nsenter -t "$(hub)" -n ip link show br0 up 2>/dev/null | grep -q LOWER_UP; }

# ---- the product -----------------------------------------------------------------------------------------------

make_install() { # DIR LOG
    [ -e "$build/Makefile" ] || die "nothing is built in $build: build there, or set LAB_BUILD"
    grep -q '^S\["sysconfdir"\]="/etc"' "$build/config.status" ||
        die "$build is not configured for the nodes: configure with --prefix=/usr --sysconfdir=/etc"
    ( # nodes and machines are made beside each other
        flock -w 600 7 || die "another lab has been installing from $build for ten minutes"
        make -C "$build" -j2 install DESTDIR="$1" >"$2" 2>&1 7>&- && exit
        tail -n 20 "$2" >&2
        die "make install failed: see above and $2"
    ) 7>>"$build/install.lock" || exit 125
}

has_unit() { # UNIT: only what make install really put there
    [ -e "$state/layer/usr/lib/systemd/system/$1" ] && [ -x "$state/layer/usr/sbin/${1%.service}" ]
}

elmer_conf() { # N LINES
    printf '[elmer]\nlisten = %s.1:7110\nhosts =%s\n%s' "$net" "$(seq -f ' ws%g' -s '' "$1")" "$2"
}

start_units() { # K UNIT..: now, and at each boot from now on
    local k=$1 unit units=()
    shift
    for unit; do ! has_unit "$unit" || units+=("$unit"); done
    [ ${#units[@]} -eq 0 ] || enter "$k" systemctl -q enable --now "${units[@]}" || true # what does not start, await_units says
}

# As an administrator sets up a cluster: the CA on node 1, a token for each of the others.
form_cluster() { # N
    local k
    if has_unit elmer.service; then
        enter 1 eadmin init >"$state/join.log" 2>&1 || die "eadmin init: $(tail -n 30 "$state/join.log")"
        start_units 1 elmer.service
        for ((k = 2; k <= $1; k++)); do
            enter 1 eadmin token --hosts "ws$k" 2>>"$state/join.log" | enter "$k" rsd --join ws1:7110 - >>"$state/join.log" 2>&1 ||
                die "node $k has not joined: $(tail -n 30 "$state/join.log")"
        done
    fi
    for ((k = 1; k <= $1; k++)); do start_units "$k" rsd.service; done
    for ((k = 1; k <= $1; k++)); do await_units "$k"; done
}

complain_of_units() { # K
    enter "$1" systemctl list-units --state=failed,activating --no-legend --no-pager --plain </dev/null | cut -d' ' -f1 | while read -r unit; do
        enter "$1" systemctl status --no-pager --full -n 20 "$unit" </dev/null >&2 || true
    done
}
