# shellcheck shell=bash
# Sourced by ./check and ./demo: packages, builds, and children that end when the script does.
# The script sets $top; it runs children with `run`, and defines finish(), which is called once however the script ends.
# shellcheck disable=SC2034,SC2154 # variables shared with the scripts

lab=$top/tests/lab/lab
configure_args=(--prefix=/usr --sysconfdir=/etc --localstatedir=/var)
child=
build_goal='' build_flags='' # what build_tree makes, if not all, and a variable for make

say() { printf '%s\n' "$*" >&2; }

give_up() {
    say "$(basename "$0"): $*"
    exit 2
}

# Run CMD with its own session, so that a signal to us is seen at once and all that it started can be ended.
run() {
    local rc=0
    setsid env --default-signal=INT,QUIT "$@" & # bash makes its background ignore them
    child=$!
    wait "$child" || rc=$?
    child=
    return $rc
}

end_session() { # PID of its first process: TERM, also to what is stopped, and after 60 s KILL, to all of it
    local i
    [ -n "$1" ] || return 0
    kill -TERM -- "-$1" 2>/dev/null || return 0
    kill -CONT -- "-$1" 2>/dev/null || true
    for ((i = 0; i < 600; i++)); do
        kill -0 -- "-$1" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL -- "-$1" 2>/dev/null || true
}

end_child() {
    local pid=$child
    child=
    end_session "$pid"
}

on_exit() {
    local rc=$?
    trap '' INT TERM HUP
    trap - EXIT
    end_child
    finish
    exit $rc
}

catch_signals() {
    trap on_exit EXIT
    trap 'exit 130' INT
    trap 'exit 129' HUP
    trap 'exit 143' TERM
}

packages() { # SECTION.. -> names
    awk -v want=" $* " '!/^#/ && index(want, " " $1 " ") { print $2 }' "$top/tests/lab/packages" | sort -u
}

missing_packages() { # SECTION..
    local p
    for p in $(packages "$@"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
    done
}

apt_install() {
    run env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        --no-install-recommends install "$@" </dev/null
}

need_packages() { # LOGFILE SECTION.. - install with apt what is not there
    local log=$1 missing
    shift
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || give_up "these packages are missing and only root can install them: ${missing[*]}"
    say "apt: installing ${#missing[@]} packages"
    apt_install "${missing[@]}" >"$log" 2>&1 && return 0
    run apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null >>"$log" 2>&1 || true
    apt_install "${missing[@]}" >>"$log" 2>&1 && return 0
    tail -n 20 "$log" >&2
    give_up "apt cannot install ${missing[*]}: see above and $log"
}

# build_tree DIR LOGFILE [CONFIGURE-ARG..]: autoreconf where needed, configure where the arguments changed, make.
build_tree() {
    local dir=$1 log=$2
    shift 2
    mkdir -p "$dir"
    : >"$log"
    [ ! -e "$top/config.status" ] ||
        give_up "the source tree itself is configured, which hinders builds beside it: run 'make distclean' in $top"
    if [ ! -x "$top/configure" ] ||
        [ -n "$(find "$top" -path "$top/build*" -prune -o \( -name configure.ac -o -name '*.am' \) \
            -newer "$top/configure" -print -quit)" ]; then
        run autoreconf -fi "$top" >>"$log" 2>&1 || build_failed "$log"
    fi
    if [ ! -e "$dir/config.status" ] || [ "$(cat "$dir/.configured" 2>/dev/null)" != "$*" ]; then
        run env -C "$dir" "$top/configure" -q "$@" >>"$log" 2>&1 || build_failed "$log"
        echo "$*" >"$dir/.configured"
    fi
    run make -C "$dir" -j"$(nproc)" ${build_flags:+"$build_flags"} ${build_goal:+"$build_goal"} >>"$log" 2>&1 || build_failed "$log"
}

build_failed() {
    tail -n 40 "$1" >&2
    say "the build failed: see above and $1"
    return 1
}
