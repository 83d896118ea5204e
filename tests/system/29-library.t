#!/bin/bash
# The installed library as a programmer has it: the example of its manual page, and the one in Python.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/jobs.sh"

lab_up 2 --elmer 'allocator = v1'
install_programs

# ---- the program of the page, as it is printed there ----
mandoc -T ascii -O width=200 "$top/man/elmer_open.3" | sed 's/.\x08//g' |
    sed -n '/^EXAMPLES/,/^ *The same in/ { /#include/,/^ *The same in/ { /^ *The same in/!p } }' >"$tmp/example.c"
ok 'the example of elmer_open(3) compiles as printed' \
    gcc -Wall -Wextra -Werror ${sanitized:+-fsanitize=address,undefined} -I"$top/libelmer" -o "$tmp/example" "$tmp/example.c" -L"$build/libelmer/.libs" -lelmer
on 1 sh -c 'cat >/home/example && chmod 755 /home/example' <"$tmp/example"
is 'and says how its job has ended' "$(as alice 1 /home/example)" 'done, exit status 3'
is 'each function has its page' "$(on 1 sh -c 'cd /usr/share/man/man3 && ls elmer_close.3* elmer_jobs_json.3* elmer_top.3* elmer_hosts.3* | wc -l')" 4

# ---- in an event loop ----
out=$(as alice 1 /usr/libexec/elmer/examples/loop sleep 1)
is 'three jobs in a loop of its own: all end well' $? 0
is 'it says of each how it has ended' "$(grep -c 'is done, exit status 0$' <<<"$out")" 3
like 'and its clock goes on ticking meanwhile' "$out" '([4-9]|[1-9][0-9]+) ticks meanwhile$'

# ---- from Python ----
script=(/usr/libexec/elmer/examples/elmer.py)
[ -z "$sanitized" ] || # Python is built without
    script=(env LD_PRELOAD="$(readelf -d "$build/elmer/elmer" | grep -o 'libasan[^]]*')" ASAN_OPTIONS=detect_leaks=0 "${script[@]}")
out=$(as alice 2 "${script[@]}" sh -c 'exit 7')
is 'its exit status is that of the job' $? 7
like 'it names the job and its end' "$out" $'^job ([0-9]+)\njob [0-9]+ is done, exit status 7$'
out=$(as alice 2 "${script[@]}" -a sh -c 'sleep 1; exit 5' 2>&1)
is 'in the loop of asyncio too' $? 5
like 'which goes on meanwhile' "$out" $'^job ([0-9]+)\n[.]{3,}\njob [0-9]+ is done, exit status 5$'
out=$(as alice 2 "${script[@]}" -n 2 -o /home/alice/out sh -c 'echo $ELMER_NPROCS; kill -9 $$')
like 'a signal too' "$out" 'is done, signal 9$'
id=$(sed -n '1s/job //p' <<<"$out")
is 'its output is where it was asked for' "$(on "$(field "$id" 'j["hosts"][0][2:]')" cat /home/alice/out)" 2
out=$(as alice 2 "${script[@]}" --notify 'echo "$(id -un) $ELMER_JOB_ID $ELMER_EXIT." >/tmp/told' sh -c 'exit 6')
is 'one whose end is told is no other job' $? 6
id=$(sed -n '1s/job //p' <<<"$out")
told() { on 2 grep -qx "alice $id 6[.]" /tmp/told; }
wait_for 20 'and it is told, where it was submitted' told
out=$(as alice 2 "${script[@]}" -n 99 true 2>&1)
is 'what elmer refuses is refused' $? 125
like 'with a sentence' "$out" '^elmer.py: .*2'
on 2 systemctl stop rsd
out=$(as alice 2 "${script[@]}" true 2>&1)
is 'without a daemon it gives up' $? 125
like 'and says what to do' "$out" 'systemctl start rsd'
done_testing
