#!/bin/bash
# test_replay.sh - a fuzz target runs every input of a pack, and fails if the pack is bad, missing or empty. In the build directory.
set -u
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/expect.sh
. "${srcdir:-.}/tests/expect.sh"
pack=tests/fuzz/pack target=tests/fuzz/fuzz_token

printf one >"$dir/one" && printf two >"$dir/two" && : >"$dir/empty"
expect 'a pack is made' 0 "$dir/a.pack: 2 added, 2 inputs" $pack add "$dir/a.pack" "$dir/one" "$dir/empty"
expect 'inputs are added once' 0 "$dir/a.pack: 1 added, 3 inputs" $pack add "$dir/a.pack" "$dir/one" "$dir/two"
expect 'each input is run' 0 '3 inputs' $target "$dir/a.pack"
expect 'the line before a crash names the input' 0 "$dir/a.pack: input 0002" $target "$dir/a.pack"
expect 'packs and files in a folder' 0 '6 inputs' $target "$dir"
mkdir "$dir/out"
expect 'a pack is unpacked' 0 '3 inputs' $pack unpack "$dir/a.pack" "$dir/out"
expect 'with every byte' 0 'a-0001' sh -c "ls '$dir/out'; cmp '$dir/one' '$dir/out/a-0001' && cmp '$dir/two' '$dir/out/a-0002' && [ ! -s '$dir/out/a-0000' ]"
expect 'no folder to unpack into' 1 'No such file' $pack unpack "$dir/a.pack" "$dir/none"
head -c -5 "$dir/a.pack" >"$dir/cut.pack"
expect 'a cut pack fails' 1 'cut.pack: byte' $target "$dir/cut.pack"
expect 'a cut pack is not added to' 1 'cut.pack: byte' $pack add "$dir/cut.pack" "$dir/one"
printf 'elmer fuzz pack 1\nend 0\n' >"$dir/none.pack"
expect 'a pack without inputs proves nothing' 1 '0 inputs' $target "$dir/none.pack"
expect 'a pack that is not there' 1 'No such file' $target "$dir/missing.pack"
expect 'a file that cannot be read leaves the pack as it was' 1 'No such file' $pack add "$dir/a.pack" "$dir/one" "$dir/missing"
expect 'it has what it had' 0 "$dir/a.pack: 3 inputs, 6 bytes" $pack count "$dir/a.pack"
head -c 65537 /dev/zero >"$dir/large"
expect 'an input too large' 1 'more than 65536 bytes' $pack add "$dir/a.pack" "$dir/large"
expect 'a pack has the name of one' 1 'ends with .pack' $pack add "$dir/b" "$dir/one"
expect 'the corpora of the tree' 0 'token.pack: ' $pack count "${srcdir:-.}"/tests/fuzz/corpus/*.pack
echo "1..$n"
exit $bad
