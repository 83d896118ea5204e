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
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${1##*/}
    COMPREPLY=()
    case $command:$before in
    esubmit:--hosts | eadmin:--hosts | equery:--host | erun:--host) _elmer_list "$(_elmer_hosts)" ;;
    equery:-u | equery:--user | ekill:-u | ekill:--user | ecancel:-u | ecancel:--user | eadmin:--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
    equery:--state) _elmer_list starting running ending queued held 'done' cancelled ;;
    esubmit:--if-never) _elmer_reply cancel keep ;;
    esubmit:--mail-at) _elmer_reply begin end fail end,fail ;;
    esubmit:-D | esubmit:--dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    esubmit:-o | esubmit:--output | esubmit:-e | esubmit:--error | *:-c | *:--config | *:--script | *:--array-file | eadmin:--restore) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *)
        if [[ $cur == -* ]]; then
            _elmer_reply "$(_elmer_options "$1")"
        else
            _elmer_argument "$1"
        fi
        ;;
    esac
}

complete -F _elmer -o filenames esubmit
complete -F _elmer equery ekill ecancel ewait ehold erelease etop etail eretry eattach erun eadmin esim elmer rsd
