#!/bin/bash
# The tour of a new user: all commands of doc/09-user-tour.md, in their order, print what the document shows. With TOUR_RECORD=1 in the
# environment it writes what they print into the document instead, to be read before it is committed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --cpus 2 --elmer 'allocator = v1' --elmer 'levels = 1' --rsd 'tickets = require'
install_programs
tour=$top/doc/09-user-tour.md

# The user's files are those of the document.
sed -n '/^## The files/,/^## 1/ s/^    //p' "$tour" | as alice 1 bash -s >"$tmp/files" 2>&1
ok 'the files of the user' as alice 1 test -x collect || diag "$(cat "$tmp/files")"
for k in 1 2; do
    on "$k" sh -c 'cat >/usr/sbin/sendmail; chmod 755 /usr/sbin/sendmail' <<'END'
#!/bin/sh
cat >>"$HOME/mail"
END
done

ok 'right outputs are told from wrong ones' python3 "$here/programs/tour.py" self-test
mode=run
[ -z "${TOUR_RECORD:-}" ] || mode=record
python3 "$here/programs/tour.py" "$mode" "$tour" "$lab" login 1 >"$tmp/followed" 2>&1
followed=$?
while IFS= read -r line; do
    case $line in
    good\ *) point 0 "${line#good }" ;;
    bad\ *) point 1 "${line#bad }" ;;
    *) diag "$line" ;;
    esac
done <"$tmp/followed"
is 'the document was followed to its end' "$followed" 0
done_testing
