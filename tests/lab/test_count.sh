#!/bin/bash
# test_count.sh - ./check believes no log that does not add up.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lab/count.sh
. "$here/count.sh"
log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
n=0 bad=0

counts() { # NAME STATUS EXPECTED < LOG
    local got
    cat >"$log"
    got=$(count_cases "$log" "$2")
    n=$((n + 1))
    if [ "$got" = "$3" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1: got $got, expected $3 (passed, failed, skipped)"
        bad=1
    fi
}

counts 'TAP that passes' 0 '2 0 0' <<<$'ok 1 - a\nok 2 - b\n1..2'
counts 'TAP with a failure' 1 '1 1 0' <<<$'ok 1 - a\nnot ok 2 - b\n1..2'
counts 'a skip is not a pass' 0 '1 0 1' <<<$'ok 1 - a\nok 2 - b # SKIP no history\n1..2'
counts 'a plan that is not kept' 0 '1 1 0' <<<$'1..2\nok 1 - a'
counts 'a plan of nothing' 0 '0 1 0' <<<$'1..3'
counts 'no plan' 0 '1 1 0' <<<$'ok 1 - a'
counts 'bailed out' 1 '1 1 0' <<<$'ok 1 - a\nBail out! no nodes\n1..1'
counts 'a status that no case explains' 1 '1 1 0' <<<$'ok 1 - a\n1..1'
counts 'cmocka' 0 '2 0 0' <<<$'[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n[       OK ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 2 test(s).'
counts 'cmocka with a failure' 1 '1 1 0' \
    <<<$'[==========] Running 2 test(s).\n[       OK ] a\n[  FAILED  ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] b'
counts 'cmocka with a skip' 0 '1 0 1' \
    <<<$'[==========] Running 2 test(s).\n[       OK ] a\n[  SKIPPED ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] b'
counts 'cmocka that has ended in the middle' 0 '1 1 0' <<<$'[==========] Running 2 test(s).\n[       OK ] a'
counts 'cmocka whose set-up fails' 1 '1 1 0' <<<$'[==========] Running 2 test(s).\n[       OK ] a\n[  ERROR   ] b\n[==========] 2 test(s) run.'
counts 'two groups of cmocka' 0 '2 0 0' \
    <<<$'[==========] Running 1 test(s).\n[       OK ] a\n[==========] 1 test(s) run.\n[==========] Running 1 test(s).\n[       OK ] b\n[==========] 1 test(s) run.'
counts 'a program without cases' 0 '1 0 0' <<<'all is well'
counts 'it fails' 3 '0 1 0' <<<'all is well'
counts 'it skips itself' 77 '0 0 1' <<<'skipped: only root can test the root half'

printf 'ok 1 - a # SKIP no history\nskipped: only root\nok 2 - b\n' >"$log"
n=$((n + 1))
if [ "$(reasons "$log")" = $'a: no history\nonly root' ]; then
    echo "ok $n - the reasons of skips"
else
    echo "not ok $n - the reasons of skips"
    bad=1
fi
echo "1..$n"
exit $bad
