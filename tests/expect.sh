# expect.sh - to be read by tests of commands: a case for each run. In the end: echo "1..$n"; exit $bad
# shellcheck shell=bash disable=SC2034
n=0 bad=0

expect() { # NAME STATUS TEXT CMD.. - the command's end, and a line that its output must have
    local name=$1 status=$2 text=$3 out rc=0
    shift 3
    out=$("$@" 2>&1) || rc=$?
    n=$((n + 1))
    if [ $rc -eq "$status" ] && grep -qF -- "$text" <<<"$out"; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name: exit status $rc instead of $status, or no \"$text\""
        tail -n 5 <<<"# ${out//$'\n'/$'\n# '}"
        bad=1
    fi
}
