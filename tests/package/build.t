#!/bin/bash
# The Debian packages: what builds them twice gets the same bytes, lintian has nothing to say, and in a plain Debian 12 apt installs
# them, and takes them away again without a trace.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/packages.sh"

# ---- the same bytes, wherever and whenever ----
# A copy without a repository, whose files are of another year and nobody else's, built by somebody else at another place.
copy=$tmp/another/place
mkdir -p "$copy"
git -C "$top" ls-files -co --exclude-standard | (cd "$top" && while read -r f; do [ ! -e "$f" ] || echo "$f"; done) |
    tar -C "$top" -cf - -T - | tar -C "$copy" -xpf - || bail_out 'the tree cannot be copied'
find "$copy" -type f -exec touch -d 2001-02-03 {} +
chmod -R go= "$copy"
another() (
    umask 077
    packages two TZ=Pacific/Kiritimati LC_ALL=C HOME=/nonexistent LOGNAME=nobody DEB_BUILD_OPTIONS=parallel=3 "$copy"
)
ok './package' packages one "$top"
is 'the compiler has no warning' "$(grep -E 'warning:' "$made/one.log" | grep -vE '^(libtool|aclocal): warning:' | head -n 5)" ''
ok './package in a copy, at another place and time' another
sums() { # of what is installed or built from; .changes and .buildinfo say when and where
    (cd "$made/$1" && sha256sum -- *.deb *.dsc *.tar.xz Packages Sources)
}
is 'there are ten packages and their source' "$(sums one | grep -cE '(deb|dsc|xz)$')" 12
is 'the same bytes twice' "$(diff <(sums one) <(sums two))" ''

is 'the tutorial is in what both daemons recommend' "$(dpkg-deb -c "$made"/one/elmer-client_*.deb | grep -c ' \./usr/share/man/man7/elmer\.7\.gz$')" 1
is 'the examples are there, as sources' "$(dpkg-deb -c "$made"/one/elmer-doc_*.deb | sed -n 's|^-.* \./usr/share/doc/elmer/examples/|./|p' | sort)" "$(examples_of_tree)"

# ---- what Debian's own checks say ----
said=$(lintian --allow-root --fail-on none --tag-display-limit 0 "$made"/one/*.changes 2>&1)
is 'lintian has looked' $? 0 || diag "$(tail -n 5 <<<"$said")"
is 'lintian has no error and no warning' "$(grep '^[EW]:' <<<"$said")" ''
needs_reason() { # an override without a line of reason just above it
    awk 'FNR == 1 { reason = 0 } /^#/ { reason = 1; next } !reason { print FILENAME ": " $0 } { reason = 0 }' "$top"/debian/*.lintian-overrides
}
is 'each override has a reason' "$(needs_reason)" ''

# ---- a plain Debian 12 ----
# shellcheck source=tests/lab/debian.sh
. "$top/tests/lab/debian.sh"
die() { bail_out "$*"; }
root=$tmp/root
(debian_tree true "$root" minbase apt) >"$tmp/tree.log" 2>&1 || bail_out "no Debian 12: $(tail -n 5 "$tmp/tree.log")"
cp /etc/resolv.conf "$root/etc/"
acquire_options >"$root/etc/apt/apt.conf.d/90test"
inside() { unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && shift && exec chroot "$@"' - "$root" "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null; }
files() { # without what apt and dpkg keep for themselves
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o -path ./tmp \) \
        -prune -o -printf '%y %m %u %p %l\n' | sort)
}
cp -r "$made/one" "$root/repository"
echo 'deb [trusted=yes] file:/repository ./' >"$root/etc/apt/sources.list.d/elmer.list"
ok 'apt reads the repository' inside apt-get -qq update
ok 'what they need is in Debian 12' inside apt-get -qq -y --no-install-recommends install \
    libhogweed6 libinih1 libjansson4 libpam0g libpvm3 libsqlite3-0 libssl3 libsystemd0 libuv1 systemd init-system-helpers zlib1g
before=$(files)
users() { inside getent passwd elmer elmer-rsd elmer-jobs elmer-sup elmer-ticket | cut -d: -f1 | xargs; }
ok 'apt installs all' inside apt-get -qq -y --no-install-recommends install elmer elmer-rsd elmer-client libelmer1 libelmer-dev elmer-doc
is 'and nothing else' "$(inside dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' | awk '$3 == "'"$version"'" { print $2 }' | sort | xargs)" \
    'elmer elmer-client elmer-doc elmer-rsd libelmer-dev libelmer1'
is 'the daemons have their users' "$(users)" 'elmer elmer-rsd elmer-jobs elmer-sup elmer-ticket'
is 'administrators have a group' "$(inside getent group elmer-admin | cut -d: -f1)" elmer-admin
is 'nothing is enabled' "$(inside systemctl is-enabled elmer.service rsd.service elmer-signer.socket | sort | uniq -c | xargs)" '3 disabled'
is 'every program of theirs finds its libraries' "$(inside sh -c 'for f in $(dpkg -L elmer elmer-rsd elmer-client libelmer1); do [ ! -f "$f" ] || ldd "$f" 2>/dev/null; done | grep "not found"')" ''
ok 'esubmit can say its version' inside esubmit --version
ok 'elmer can read its configuration' inside elmer --check-config
is 'its users cannot read the supervisor' "$(inside stat -c %a /usr/libexec/elmer/elmer-supervisor)" 711
ok 'each file is as it was packed' inside dpkg --verify elmer elmer-rsd elmer-client libelmer1 libelmer-dev
ok 'apt installs them over themselves' inside apt-get -qq -y --reinstall install elmer elmer-rsd elmer-client

mkdir -p "$root/var/lib/elmer" "$root/var/lib/elmer-ca" "$root/var/lib/elmer-rsd" "$root/var/lib/elmer-ticket"
echo '[elmer]' >"$root/etc/elmer/elmer.conf"
echo '[rsd]' >"$root/etc/elmer/rsd.conf"
for f in elmer.conf.old ca.conf.old.1795000000; do echo >"$root/etc/elmer/$f"; done # of eadmin init --restore
for f in elmer rsd; do echo "[$f]" >"$root/etc/elmer/$f.conf.d/50-x.conf"; done
ok 'apt removes them' inside apt-get -qq -y remove elmer elmer-rsd elmer-client libelmer1 libelmer-dev elmer-doc
is 'configuration and state stay' "$(cd "$root" && echo etc/elmer/* etc/pam.d/elmer var/lib/elmer*)" \
    'etc/elmer/ca.conf.old.1795000000 etc/elmer/elmer.conf etc/elmer/elmer.conf.d etc/elmer/elmer.conf.old etc/elmer/rsd.conf etc/elmer/rsd.conf.d etc/pam.d/elmer var/lib/elmer var/lib/elmer-ca var/lib/elmer-rsd var/lib/elmer-ticket'
ok 'apt purges them' inside apt-get -qq -y purge elmer elmer-rsd elmer-client libelmer1 libelmer-dev elmer-doc
is 'and nothing of theirs is left' "$(diff <(echo "$before") <(files) | grep '^[<>]')" ''
is 'but for users, whose numbers nobody else gets' "$(users)" 'elmer elmer-rsd elmer-jobs elmer-sup elmer-ticket'
done_testing
