# shellcheck shell=bash
# Sourced after lib.sh and jobs.sh: the commands of the README under "Install it", taken from the README itself.
#
#   readme_commands     lines "K root|user COMMAND", in their order: "    ws2# rsd ..." is for root on machine 2, with a $ for a user
#   follow_readme FUNCTION      each becomes a point of the test; FUNCTION K COMMAND says how one of root's is run, and prints what it
#                               prints. TOKEN is the last line that eadmin token has printed.
# shellcheck disable=SC2154 # variables of lib.sh
readme_commands() {
    sed -n '/^## Install it/,/^## Use it/ s/^    ws\([0-9]*\)\([#$]\) \(.*\)$/\1 \2 \3/p' "$top/README.md" | sed 's/^\([0-9]*\) # /\1 root /; s/^\([0-9]*\) \$ /\1 user /'
}

follow_readme() { # FUNCTION
    local k who command token='' out rc
    while read -r -u 3 k who command; do
        rc=0
        command=${command//TOKEN/$token}
        if [ "$who" = root ]; then
            out=$("$1" "$k" "$command" 2>"$tmp/said" </dev/null) || rc=$?
        else
            wait_for 60 "all $nodes hosts are up" all_up
            out=$(as alice "$k" sh -c "$command" 2>"$tmp/said" </dev/null) || rc=$?
        fi
        point $rc "ws$k: ${command/"${token:-TOKEN}"/TOKEN}" || diag "ended with $rc" "$out" "$(cat "$tmp/said")"
        [[ $command != 'eadmin token'* ]] || token=$(tail -n 1 <<<"$out")
        printf '%s\n' "$out" >"$tmp/out"
    done 3< <(readme_commands)
}
all_up() { [ "$(on 1 eadmin hosts | grep -cE '^ws[0-9]+ +up ')" = "$nodes" ]; }
