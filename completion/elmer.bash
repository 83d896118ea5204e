# bash completion for the commands of Elmer; installed under the name of each.
#
# Options and verbs are those that the command itself prints with --help, so there is no second list of them. Jobs and hosts are
# asked for while one types, for two seconds at most: without an answer nothing is offered.

_elmer_options() { # COMMAND: from the lines of its help that begin with an option
    "$1" --help 2>/dev/null | sed -nE 's/^ +(-[A-Za-z0-9]), (--[a-z-]+).*/\1 \2/p; t; s/^ +(--?[A-Za-z][a-z-]*).*/\1/p'
}

_elmer_verbs() { # of eadmin: the words that its usage begins with
    "$1" --help 2>/dev/null | sed -nE 's/^(Usage:)? +eadmin ([a-z|]+).*/\2/p' | tr '|' ' '
}

_elmer_jobs() { # -r or -q, or nothing: ids
    timeout 2 equery "$@" 2>/dev/null </dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }'
}

_elmer_hosts() {
    timeout 2 equery --hosts --json 2>/dev/null </dev/null | grep -oE '"host": *"[^"]*"' | sed -E 's/.*"([^"]*)"$/\1/' | sort -u
}

_elmer_reply() { # WORD..: those that fit to what was typed
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_elmer_list() { # WORD..: the last part of a list with commas
    local head=''
    [[ $cur != *,* ]] || head=${cur%,*},
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$*" -- "${cur##*,}")
    compopt -o nospace 2>/dev/null
}

_elmer_columns() { # of equery, as it says them of a wrong one
    equery --format '?' 2>&1 </dev/null | sed -nE 's/.*there are ([a-z, ]+).*/\1/p' | tr ',' ' '
}

_elmer_waits_for() { # jobs, behind what of them is waited for; bash takes a colon for a word of its own
    local head='' kinds='' last=$cur
    [[ $cur != *[,:]* ]] || last=${cur##*[,:]} head=${cur%"${cur##*[,:]}"}
    case $joined$head in '' | *,) kinds='ok: fail: any: start:' ;; esac
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$kinds $(_elmer_jobs)" -- "$last")
    compopt -o nospace 2>/dev/null
}

_elmer_value() { # COMMAND: is it the value of an option, no file, and not a word of a job's command?
    local valued i
    [[ $before == -* ]] || return 1
    valued=" $("$1" --help 2>/dev/null | sed -nE '/^ +-[^ ]*( --[^ ]*)? FILE/d; s/^ +(-[A-Za-z0-9]), (--[a-z-]+) [A-Z].*/\1 \2/p; t; s/^ +(--?[A-Za-z][a-z-]*) [A-Z].*/\1/p' | tr '\n' ' ')"
    [[ $valued == *" $before "* ]] || return 1
    case $command in esubmit | erun) ;; *) return 0 ;; esac
    for ((i = 1; i < at - 1; i++)); do
        [[ ${COMP_WORDS[i]} == [-:@=]* || ${COMP_WORDS[i - 1]} == [:@=] || $valued == *" ${COMP_WORDS[i - 1]} "* ]] || return 1
    done
}

_elmer_argument() { # of a command, no option
    case $command in
    ekill | eattach) _elmer_reply "$(_elmer_jobs -r)" ;;
    ecancel | ehold | erelease | etop) _elmer_reply "$(_elmer_jobs -q)" ;;
    equery | ewait | etail | eretry) _elmer_reply "$(_elmer_jobs)" ;;
    eadmin)
        case ${COMP_WORDS[1]} in
        "$cur") _elmer_reply "$(_elmer_verbs "$1")" ;;
        drain | resume | remove | shutdown | reboot | doctor) _elmer_reply "$(_elmer_hosts)" ;;
        hold | release) _elmer_reply "$(_elmer_jobs -q)" ;;
        config) [ "$COMP_CWORD" -gt 2 ] && mapfile -t COMPREPLY < <(compgen -f -- "$cur") || _elmer_reply check show ;;
        backup) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        set)
            case $COMP_CWORD:${COMP_WORDS[2]} in
            2:*) _elmer_reply allocator policy ;;
            3:allocator) _elmer_reply default v1 v2 spread pack cube-fl cube-afl ;;
            3:policy) _elmer_reply default fcfs ;;
            esac
            ;;
        esac
        ;;
    esubmit | erun) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    esac
}

_elmer() {
    local cur=${COMP_WORDS[COMP_CWORD]} before command=${1##*/} at=$COMP_CWORD joined=''
    COMPREPLY=()
    while ((at > 1)) && [[ ${COMP_WORDS[at]} == [:@] || ${COMP_WORDS[at - 1]} == [:@] ]]; do
        at=$((at - 1)) joined=:
    done
    before=${COMP_WORDS[at - 1]}
    [[ $cur != [:@] ]] || cur=''
    case $command:$before in
    esubmit:--hosts | eadmin:--hosts | equery:--host | erun:--host) _elmer_list "$(_elmer_hosts)" ;;
    equery:-u | equery:--user | ekill:-u | ekill:--user | ecancel:-u | ecancel:--user | eadmin:--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
    equery:--state) _elmer_list starting running ending queued held 'done' cancelled ;;
    equery:--format) _elmer_list "$(_elmer_columns)" ;;
    esubmit:--after) _elmer_waits_for ;;
    esubmit:--signal) [ -n "$joined" ] || { _elmer_reply 'USR1@ USR2@ TERM@ INT@ HUP@' && compopt -o nospace 2>/dev/null; } ;;
    ekill:-s | ekill:--signal) _elmer_reply USR1 USR2 TERM INT HUP QUIT KILL STOP CONT ;;
    esubmit:--if-never) _elmer_reply cancel keep ;;
    esubmit:--mail-at) _elmer_reply begin end fail end,fail ;;
    esubmit:-D | esubmit:--dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esubmit:-o | esubmit:--output | esubmit:-e | esubmit:--error | esubmit:-p | esubmit:--machine-hosts | *:-c | *:--config | *:--script | *:--array-file | eadmin:--restore) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *)
        if _elmer_value "$1"; then
            : # nothing that is known here
        elif [[ $cur == -* ]]; then
            _elmer_reply "$(_elmer_options "$1")"
        else
            _elmer_argument "$1"
        fi
        ;;
    esac
}

complete -F _elmer -o filenames esubmit
complete -F _elmer equery ekill ecancel ewait ehold erelease etop etail eretry eattach erun eadmin esim elmer rsd
