# shellcheck shell=bash
# Sourced by ./check: what a test program's log says. Tested by test_count.sh.

# The cases of one test program, from its output (cmocka's, TAP or neither) and its exit status (77: all of it is skipped), as
# "PASSED FAILED SKIPPED". A program that fails without saying which case, or that has run other cases than it said, counts as
# one failure.
count_cases() { # LOG STATUS
    awk -v status="$2" '
        /^ok [0-9]+/ { seen++; if ($0 ~ /# *SKIP/) skip++; else ok++ }
        /^not ok [0-9]+/ { seen++; if ($0 !~ /# *(TODO|SKIP)/) bad++ }
        /^1\.\.[0-9]+/ { plan += substr($1, 4); planned = 1 }
        /^Bail out!/ { bailed = 1 }
        /\[==========\] Running [0-9]+ test\(s\)/ { sub(/.*Running /, ""); plan += $1; planned = 1; summary = 0 }
        /\[==========\] [0-9]+ test\(s\) run/ { summary = 1 }
        /\[       OK \]/ { ok++; seen++ }
        /\[  FAILED  \] [a-z_]/ && !summary { bad++; seen++ }
        /\[  SKIPPED \] [a-z_]/ && !summary { skip++; seen++ }
        END {
            if (!bad && (bailed || plan != seen || (seen && !planned))) bad++
            if (!bad && status != 0 && status != 77) bad++
            if (!seen && !planned && !bad && status == 0) ok++
            if (!seen && !planned && !bad && status == 77) skip++
            print ok + 0, bad + 0, skip + 0
        }' "$1"
}

reasons() { # LOG - of what was skipped, one a line
    sed -nE -e 's/^ok [0-9]+ - (.*) # SKIP (.*)/\1: \2/p' -e 's/^skipped: //p' "$1"
}
