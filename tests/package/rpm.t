#!/bin/bash
# rpm/elmer.spec, as far as Debian's rpmbuild can say: it builds what `make dist` makes, and each file is in a package.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/packages.sh"

version=$(sed -n 's/^AC_INIT(\[elmer\], \[\([^]]*\)\].*/\1/p' "$top/configure.ac")
rpm=(--define "_topdir $tmp/rpm" --define "_dbpath $tmp/db" --define "_libdir /usr/lib")
is 'the version is that of configure.ac' "$(rpmspec "${rpm[@]}" -q --srpm --qf '%{version}' "$top/rpm/elmer.spec")" "$version"
ok 'make dist' make -C "$build" dist TESTS= # check is a file of the tree, and so of what dist depends on
mkdir "$tmp/db" # of packages installed: none are
build_all() { # the log is long, and its end is what counts
    rpmbuild -ta --nodeps "${rpm[@]}" "$build/elmer-$version.tar.xz" >"$tmp/rpm.log" 2>&1 || { tail -n 20 "$tmp/rpm.log"; return 1; }
}
ok 'rpmbuild -ta' build_all
is 'the packages' "$(cd "$tmp/rpm/RPMS" && find . -name '*.rpm' -printf '%f\n' | grep -v debug | sed 's/-[0-9].*//' | sort | xargs)" \
    'elmer elmer-client elmer-doc elmer-rsd libelmer-devel libelmer1'
like 'examples are packed without PVM, too' "$(rpmspec "${rpm[@]}" --define "_without_pvm 1" -P "$top/rpm/elmer.spec" | grep elmer/examples)" '/elmer/examples$'
files_of() { rpm "${rpm[@]}" -qp --qf '[%{filemodes:perms} %{filenames}\n]' "$tmp"/rpm/RPMS/*/"$1"-[0-9]*.rpm; }
is 'the examples are there, as sources' "$(files_of elmer-doc | sed -n 's|^-.*/examples/|./|p' | sort)" "$(examples_of_tree)"
like 'users of the supervisor cannot read it' "$(files_of elmer-rsd | grep elmer-supervisor)" '^-rwx--x--x '
of_etc() { sed -n 's|^d[^ ]* /etc/elmer/||p'; }
is 'directories of fragments' "elmer: $(files_of elmer | of_etc); rsd: $(files_of elmer-rsd | of_etc)" 'elmer: elmer.conf.d; rsd: rsd.conf.d'
# What is stopped and removed with rsd is what Debian's package stops and removes.
stopped() { grep -oE '(rsd-[a-z-]+\.(socket|service|target)|rsd\.service|elmer-jobs\.scope)' | sort -u; }
removed() { grep -oE '(umount -l|rm -rf --one-file-system) /run/[^ ]*'; }
scripts=$(rpm "${rpm[@]}" -qp --scripts "$tmp"/rpm/RPMS/*/elmer-rsd-[0-9]*.rpm)
is 'what is stopped before rsd is removed' "$(sed -n '/^preuninstall/,/^postuninstall/p' <<<"$scripts" | stopped)" "$(stopped <"$top/debian/elmer-rsd.prerm")"
is 'what is removed with it' "$(sed -n '/^postuninstall/,$p' <<<"$scripts" | removed)" "$(removed <"$top/debian/elmer-rsd.postrm")"
programs() { grep -E '^-.* /usr/(s?bin|libexec)/' | sed 's/.* //' | sort; }
debian=${TEST_PACKAGES:-}/one
if [ -e "$debian/Packages" ]; then
    for p in elmer elmer-rsd elmer-client; do
        is "$p has the programs that Debian's has" "$(files_of $p | programs)" "$(dpkg-deb -c "$debian/${p}_"*_[!s]*.deb | sed 's| \./| /|' | programs)"
    done
fi
done_testing
