# shellcheck shell=bash
# Sourced by tests/lab/base and tests/vm/image: Debian trees, made with mmdebstrap from the sources of this machine's own apt.
# Nothing is installed on the machine except mmdebstrap. The script defines die(). Its own path, with --customize TREE, is called
# back when the packages are in place.

apt_sources() { # the Debian entries that apt has fetched here, in one-line format
    local key=/usr/share/keyrings/debian-archive-keyring.gpg opt=
    [ ! -r $key ] || opt="[signed-by=$key] "
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v opt="$opt" '$1 == "Debian" { print "deb " opt $2, $3, $4 }' | sort -u
}

acquire_options() { # proxies, retries and date checks of this machine
    apt-config dump Acquire | grep -E '^Acquire::(http|https|Retries|Check-)[^ ]* "[^"]+";$' || true
}

packages_for() { # PURPOSE -> names, with those of LAB_PACKAGES
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    awk -v want="$1" '$1 == want { print $2 }' "$here/packages"
    tr -s ' ,' '\n' <<<"${LAB_PACKAGES:-}"
}

# debian_tree SCRIPT TREE VARIANT PACKAGE..: a PACKAGE may be NAME/RELEASE, and the release's archive is a source then, too.
debian_tree() {
    local script=$1 tree=$2 variant=$3 src release opts rc=0
    shift 3
    src=$(apt_sources)
    if [ -z "$src" ]; then
        apt-get -qq update
        src=$(apt_sources)
    fi
    [ -n "$src" ] || die "apt knows no Debian package lists: run apt-get update and look at /etc/apt/sources.list*"
    command -v mmdebstrap >/dev/null ||
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install mmdebstrap >/dev/null ||
        die "cannot install mmdebstrap, which builds the tree: see apt's message above"
    for release in $(printf '%s\n' "$@" | sed -n 's|.*/||p' | sort -u); do
        src+=$'\n'$(sed -n "s| ${release%%-*} main\$| $release main|p" <<<"$src")
    done
    opts=$(mktemp)
    acquire_options >"$opts"
    # shellcheck disable=SC2016 # $1 is the hook's
    mmdebstrap --quiet --mode=root --variant="$variant" --aptopt="$opts" --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --include="$(IFS=,; echo "$*")" \
        --setup-hook='mkdir -p "$1/etc/apt"; for f in /etc/apt/auth.conf*; do [ ! -e "$f" ] || cp -r "$f" "$1/etc/apt/"; done' \
        --customize-hook="'$script' --customize \"\$1\"" '' "$tree" - <<<"$src" || rc=$?
    rm -f "$opts"
    return $rc
}
