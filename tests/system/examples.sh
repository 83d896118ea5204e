# shellcheck shell=bash
# Sourced after lib.sh and jobs.sh: the examples of the manual's pages, run step by step (programs/examples.py says what a step is).
#
#   run_page PAGE      each step becomes a point of the test: it ends well, and prints what the page shows
#   ids[WORD]=..       what stands for a WORD of the page here: the id of a job, a token
#   world_NAME         the caller's: what is there before an example with the hint `world NAME` (others: `inside a job`, a block that
#                      is run in one of two hosts; `type STEPS`, at a terminal: programs/sit.py)
#   other_text FILE    the caller's: looks at literal text of a page that is no command; its lines are in FILE
#   not_run[PAGE: FIRST LINE]=REASON    the caller's: examples that are not run as they are shown. What looks at them instead says so with
#                      `otherwise`; one that is run and listed fails, and so does one that is not run and not listed
#   listed_are_there   at the end: all that are listed are shown in a page
#   by_root K FILE, by_user USER K FILE   the caller's, where something else is done than the page says; FILE on the node, or
#                      $tmp/command, has the command
# Commands of users are run in ~/run. EXAMPLES_SHOW=1 tells what each has printed.
# shellcheck disable=SC2154 # variables of lib.sh
examples=$top/tests/system/programs/examples.py
declare -A ids=() met=()
otherwise() { touch "$tmp/otherwise"; }

# With the words of here.
here() { # FILE
    local word
    local -a edits=()
    for word in "${!ids[@]}"; do edits+=(-e "s/(^|[^0-9A-Za-z.])$word(\$|[^0-9A-Za-z.%])/\\1${ids[$word]}\\2/g"); done
    sed -E "${edits[@]}" -e '' "$1"
}
# A line of a number alone is the id of a new job, as is that of "job N allocated"; the word of eadmin token the token.
learn() { # STEP PRINTED
    local was
    was=$(id_in "$1.shown") && ids[$was]=$(id_in "$2")
    ! grep -q '^eadmin token' "$1.command" || ids[TOKEN]=$(grep -m 1 '^elmer1' "$2")
}
id_in() { tr -d '\0' <"$1" | sed -nE 's/^(job )?([0-9]+)( allocated.*)?\r?$/\2/p' | grep -m 1 .; }
# The user and the node of a prompt; root is where the queue is, if it does not say where.
who_is() { case $1 in *'$') echo "alice ${1//[^0-9]/}" ;; *) echo "root ${1//[^0-9]/}" ;; esac }
by_root() { on "$1" bash "$2"; }
by_user() { as "$1" "$2" bash -c 'cd run && . "$1"' - "$3"; }

perform() { # STEP TYPED: what is printed goes to $tmp/printed
    local user k
    local -a steps
    read -r user k <<<"$(who_is "$(cat "$1.who")")"
    k=${k:-1}
    here "$1.command" >"$tmp/command"
    on "$k" sh -c 'cat >/tmp/command' <"$tmp/command"
    if [ "$2" = inside ]; then
        as "$user" "$k" sh -c 'cd run && esubmit -w -o inside --hosts ws1,ws2 --per-host 1 2 bash /tmp/command; rc=$?; cat inside; exit $rc'
    elif [ -n "$2" ]; then
        read -r -a steps <<<"$2"
        as "$user" "$k" sh -c 'cd run && exec env TERM=vt100 python3 /home/sit.py 24x100 "$@"' - "${steps[@]//\\x20/ }" -- bash -l /tmp/command | tee "$tmp/seat"
        tail -n 1 "$tmp/seat" | grep -q '^status 0 modes same$'
    elif [ "$user" = root ]; then
        by_root "$k" /tmp/command
    else
        by_user "$user" "$k" /tmp/command
    fi </dev/null >"$tmp/printed" 2>&1
}

run_page() { # PAGE
    local name=${1##*/} step hint keys
    rm -rf "$tmp/steps" && mkdir "$tmp/steps"
    python3 "$examples" list "$1" "$tmp/steps" || bail_out "$name cannot be read"
    for step in "$tmp"/steps/*.line; do
        [ -e "$step" ] || continue
        step=${step%.line} keys=''
        while read -r hint; do
            case $hint in
            'world '*) "world_${hint#* }" >"$tmp/world" 2>&1 || { point 1 "$name:$(cat "$step.line"): $hint"; diag "$(cat "$tmp/world")"; } ;;
            'inside a job') keys=inside ;;
            'type '*) keys=${hint#* } ;;
            *) point 1 "$name:$(cat "$step.line"): a hint that is none: $hint" ;;
            esac
        done <"$step.hint"
        rm -f "$tmp/otherwise"
        if [ -s "$step.command" ]; then run_step "$name" "$step" "$keys"; else other_step "$name" "$step"; fi
        look_at_list "$name: $({ cat "$step.command" && echo && cat "$step.shown"; } | grep -m 1 .)"
    done
}
look_at_list() { # PAGE: FIRST LINE
    if [ -z "${not_run[$1]:-}" ]; then
        [ ! -e "$tmp/otherwise" ] || point 1 "$1: is not run as it is shown, and not listed"
    else
        met[$1]=1
        [ -e "$tmp/otherwise" ] || point 1 "$1: is listed, but run"
    fi
}
listed_are_there() {
    local listed
    for listed in "${!not_run[@]}"; do [ -n "${met[$listed]:-}" ] || echo "$listed"; done >"$tmp/gone"
    is 'each example that is listed as not run is shown in a page' "$(cat "$tmp/gone")" ''
}
run_step() { # NAME STEP TYPED
    local title word rc=0
    title="$1:$(cat "$2.line"): $(head -n 1 "$2.command")"
    perform "$2" "$3" || rc=$?
    learn "$2" "$tmp/printed"
    { for word in "${!ids[@]}"; do echo "$word ${ids[$word]}"; done; } >"$tmp/ids"
    if [ $rc -ne 0 ]; then
        point 1 "$title"
        diag "ended with $rc" "$(cat "$tmp/printed")"
    elif [ -s "$2.shown" ] && ! python3 "$examples" same "$2.shown" "$tmp/printed" "$tmp/ids" >"$tmp/difference"; then
        point 1 "$title"
        diag "$(cat "$tmp/difference")" 'printed is:' "$(cat "$tmp/printed")"
    elif [[ $(cat "$2.command") = *'; echo $?' ]] && [ "$(tail -n 1 "$tmp/printed")" != "$(tail -n 1 "$2.shown")" ]; then
        point 1 "$title"
        diag "the page shows another exit status: $(tail -n 1 "$2.shown")" "$(cat "$tmp/printed")"
    else
        point 0 "$title"
        [ -z "${EXAMPLES_SHOW:-}" ] || diag "$(cat "$tmp/printed")"
    fi
}
other_step() { # NAME STEP: text without a command
    ok "$1:$(cat "$2.line"): $(head -n 1 "$2.shown")" other_text "$2.shown"
}
