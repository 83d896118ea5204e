# shellcheck shell=bash
# Sourced after tests/system/lib.sh by tests/package/*.t: packages that were built already, in $TEST_PACKAGES, are not built again.
#
#   $version, $next                                 of the tree, and the one after it
#   packages NAME [VARIABLE=VALUE..] TREE [ARG..]   TREE/package with ARG.. makes the repository $made/NAME; its log is $made/NAME.log
#
# shellcheck disable=SC2034,SC2154 # variables shared with the scripts
made=${TEST_PACKAGES:-$tmp/packages}
mkdir -p "$made"

version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
next=${version%[0-9]}$((${version##*[!0-9]} + 1)) # ..~1 becomes ..~2

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
