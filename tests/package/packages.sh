# shellcheck shell=bash
# Sourced after tests/system/lib.sh by tests/package/*.t: packages that were built already, in $TEST_PACKAGES, are not built again.
#
#   $earlier, $version, $next                       of an earlier commit, of the tree, and the one after it
#   plain_debian N NAME..                           workstations without Elmer, whose apt knows these repositories and nothing else
#   as_typed K COMMAND                              as root on node K; apt asks nobody
#   examples_of_tree                                what a package has of examples/: sources
#   leftovers K                                     files there that are Elmer's by their names
#   packages NAME [VARIABLE=VALUE..] TREE [ARG..]   TREE/package with ARG.. makes the repository $made/NAME; its log is $made/NAME.log
#   packages_of_commit NAME COMMIT [ARG..]          the same of a tree out of the repository's own history
#
# shellcheck disable=SC2034,SC2154 # variables shared with the scripts
made=${TEST_PACKAGES:-$tmp/packages}
mkdir -p "$made"

version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
next=${version%[0-9]}$((${version##*[!0-9]} + 1)) # ..~1 becomes ..~2
earlier=$version~earlier # before it, as apt sorts

packages() {
    local name=$1 variables=()
    shift
    [ ! -e "$made/$name/Packages" ] || return 0
    while [[ $1 == [A-Z]*=* ]]; do
        variables+=("$1")
        shift
    done
    env "${variables[@]}" "$1/package" --output "$made/$name" "${@:2}" || { tail -n 20 "$made/$name.log"; return 1; }
}

packages_of_commit() {
    [ ! -e "$made/$1/Packages" ] || return 0
    mkdir -p "$tmp/$1" && git -C "$top" archive "$2" | tar -x -C "$tmp/$1" && packages "$1" "$tmp/$1" "${@:3}"
}

examples_of_tree() { (cd "$top/examples" && find . -name README.md -o -name '*.[ch]' -o -name '*.py' -o -name '*.sh') | sort; }

plain_debian() { # N NAME..
    local n=$1 k
    shift
    lab_up "$n" --plain
    for ((k = 1; k <= n; k++)); do
        is "ws$k: nothing of Elmer is there" "$(leftovers "$k")" ''
        is "ws$k: nor a compiler" "$(on "$k" sh -c 'command -v cc gcc clang make')" ''
        tar -C "$made" -c "$@" | on "$k" sh -c 'mkdir -p /srv && tar -C /srv -x && rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* &&
            printf "deb [trusted=yes] file:/srv/%s ./\n" "$@" >/etc/apt/sources.list.d/elmer.list' - "$@"
        ok "ws$k: apt update" as_typed "$k" 'apt update'
    done
}
as_typed() { # K COMMAND
    on "$1" env DEBIAN_FRONTEND=noninteractive sh -c "${2/#apt /apt-get -qq -y -o APT::Sandbox::User=root }" </dev/null
}
leftovers() { # K: on the node, by name
    on "$1" find / /run -xdev \( -path /proc -o -path /sys -o -path /home -o -path /srv \) -prune -o \( -name '*elmer*' -o -name 'rsd*' \) -print |
        grep -vxE '/etc/apt/sources.list.d/elmer.list' | sort
}
