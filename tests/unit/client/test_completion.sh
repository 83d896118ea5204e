#!/bin/bash
# test_completion.sh - what a command's --help lists is what its page lists, and what a shell completes. In the build directory.
# Jobs and hosts are those of a cluster that is not there: equery is a script here.
set -u
src=${srcdir:-.}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
n=0 bad=0
is() { # NAME GOT WANTED
    n=$((n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf '%s\n' "$2" | sed 's/^/# got      /'
        printf '%s\n' "$3" | sed 's/^/# expected /'
        bad=1
    fi
}

# ---- the page and --help ----
of_help() { "$1" --help | sed -nE 's/^ +(-[A-Za-z0-9], )?--([a-z-]+).*/\2/p' | grep -vxE 'help|version' | sort -u; }
of_page() { grep -E '^\.It' "$src/man/$1" | grep -oE '(Fl |, )-[a-z][-a-z]+' | sed 's/^[^-]*-//' | grep -vxE 'help|version' | sort -u; }
# What a page is of, in the build directory.
program_of() {
    case $1 in
    esim.1) echo esim/esim ;;
    elmer.8) echo elmer/elmer ;;
    rsd.8) echo rsd/rsd ;;
    elmer-signer.8) echo signer/elmer-signer ;;
    *) echo "client/${1%.*}" ;;
    esac
}
pages='esubmit.1 equery.1 ekill.1 ecancel.1 ewait.1 ehold.1 erelease.1 etop.1 etail.1 eretry.1 eattach.1 erun.1 esim.1 elmer.8 rsd.8 elmer-signer.8'
for page in $pages eadmin.8; do
    is "options of $page are those of --help" "$(of_page "$page")" "$(of_help "$(program_of "$page")")"
done
# Of a command whose options are a table: letters, names, and whether there is a value, which may be left out.
rows_of_help() {
    "$1" --help | awk '/^ +-/ { sub(/^ +/, ""); sub(/  .*/, ""); kind = /\[=/ && !/ [A-Za-z]+\[=/ ? "maybe" : / [^-]/ ? "value" : "alone"
        letter = /^-[A-Za-z0-9]/ ? substr($0, 2, 1) : ""; name = match($0, /--[a-z-]+/) ? substr($0, RSTART, RLENGTH) : ""
        print letter, name, kind }' | sort
}
rows_of_page() {
    awk '/^\.It Fl / { sub(/^\.It Fl /, ""); kind = / Ns Op = / && !/ Ar .* Ns Op = / ? "maybe" : / Ar / ? "value" : "alone"
        letter = /^[A-Za-z0-9]( |$)/ ? substr($0, 1, 1) : ""; name = match($0, /-[a-z-]+/) ? "-" substr($0, RSTART, RLENGTH) : ""
        print letter, name, kind }' "$src/man/$1" | sort
}
for page in $pages; do
    is "the table of $page is that of the command" "$(rows_of_page "$page")" "$(rows_of_help "$(program_of "$page")")"
done
# eadmin: each verb takes, says and has on its page the same ones. What it takes is tried with --help behind, so that nothing is done.
verbs_of_help() { client/eadmin --help | sed -nE 's/^(Usage:)? +eadmin ([a-z|]+)/\2/p'; }
verbs_of_page() { # a line for each, as in --help
    sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$src/man/eadmin.8" | awk '/^\.Nm/ { if (line) print line; line = "" }
        /^\.Cm/ { gsub(/ \| /, "|"); line = $2 } /^\.(Op )?Fl / { sub(/^\.(Op )?Fl /, ""); line = line " [-" $1 }' | grep -vE '^( |$)'
}
options_of_verb() { # NAME, of lines "A|B .. [--option .."
    awk -v name="$1" '{ n = split($1, names, "|"); for (i = 1; i <= n; i++) if (names[i] == name) print }' |
        grep -oE '(\[| )-(-[a-z-]+|c)' | tr -d '[ ' | sort -u | xargs
}
taken_by() { # VERB
    local option value
    client/eadmin --help | sed -nE 's/^ +(-[A-Za-z0-9], )?(--[a-z-]+)( [^ ]+)?.*/\2 \3/p' | grep -vE '^--(help|version)' | while read -r option value; do
        case $value in '') ;; N) value=1 ;; TIME) value=1h ;; *) value=x ;; esac
        # shellcheck disable=SC2086 # a value or none
        if client/eadmin "$1" $option $value --help >/dev/null 2>&1; then echo "$option"; fi
    done | sed 's/^--config$/-c/' | sort -u | xargs
}
for verb in $(verbs_of_help | cut -d ' ' -f 1 | tr '|' '\n' | sort -u); do
    said=$(verbs_of_help | options_of_verb "$verb")
    is "eadmin $verb takes what --help says" "$(taken_by "$verb")" "$said"
    is "... and so says its page" "$(verbs_of_page | options_of_verb "$verb")" "$said"
done
# Nothing reads options without a table: getopt is called in one place.
is 'getopt is called by the table alone' "$(cd "$src" && grep -rlE --include='*.c' '\bgetopt(_long)?\(' lib libelmer client elmer rsd signer esim)" lib/options/options.c

# ---- bash ----
mkdir "$dir/bin"
for command in esubmit ekill ecancel ewait ehold erelease etop etail eretry eattach erun eadmin; do printf '#!/bin/sh\nexec "%s/client/%s" "$@"\n' "$PWD" $command >"$dir/bin/$command"; done
cat >"$dir/bin/equery" <<'SCRIPT'
#!/bin/sh
case "$*" in
-r) printf 'id  user\n 11  alice\n 12  bob\n' ;;
-q) printf 'id  user\n 21  alice\n' ;;
'') printf 'id  user\n 11  alice\n 12  bob\n 21  alice\n' ;;
'--hosts --json') printf '{"hosts": [{"host": "ws1"}, {"host": "ws2", "cpus": [{"host": "ws2"}]}]}\n' ;;
*) exec "$ELMER_BUILD/client/equery" "$@" ;;
esac
SCRIPT
chmod +x "$dir"/bin/*
export PATH=$dir/bin:$PATH ELMER_BUILD=$PWD
# shellcheck source=completion/elmer.bash
. "$src/completion/elmer.bash"
completes() { # WORD..: the last one is being typed
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _elmer "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
    echo "${COMPREPLY[*]}"
}
for command in esubmit ekill ecancel ewait etail eretry eattach erun eadmin; do
    is "$command --: all long options of --help" "$(completes $command -- | tr ' ' '\n' | sed 's/^--//' | grep -vxE 'help|version' | sort -u)" "$(of_help "client/$command")"
done
for program in esim/esim elmer/elmer rsd/rsd; do
    printf '#!/bin/sh\nexec "%s/%s" "$@"\n' "$PWD" $program >"$dir/bin/${program#*/}" && chmod +x "$dir/bin/${program#*/}"
    is "${program#*/} --: all long options of --help" "$(completes "${program#*/}" -- | tr ' ' '\n' | sed 's/^--//' | grep -vxE 'help|version' | sort -u)" "$(of_help "$program")"
done
is 'a short one has its long one' "$(completes esubmit -J)" '-J'
is 'ekill: jobs that run' "$(completes ekill '')" '11 12'
is 'eattach: jobs that run' "$(completes eattach '')" '11 12'
is 'ekill: further ids' "$(completes ekill 11 1)" '11 12'
is 'ecancel: jobs that wait' "$(completes ecancel '')" '21'
is 'eretry: all' "$(completes eretry '')" '11 12 21'
is 'ewait: all' "$(completes ewait '')" '11 12 21'
is 'esubmit --hosts: hosts' "$(completes esubmit --hosts '')" 'ws1 ws2'
is 'a list of them' "$(completes esubmit --hosts ws1,)" 'ws1,ws1 ws1,ws2'
is 'esubmit --after: kinds and jobs' "$(completes esubmit --after '')" 'ok: fail: any: start: 11 12 21'
is '... behind a kind' "$(completes esubmit --after ok : 1)" '11 12'
is '... right behind it' "$(completes esubmit --after ok :)" '11 12 21'
is '... a list' "$(completes esubmit --after ok : 11,)" '11,ok: 11,fail: 11,any: 11,start: 11,11 11,12 11,21'
is '... of two kinds' "$(completes esubmit --after ok : 11,any : 2)" '21'
is '... where a colon is no word of its own' "$(completes esubmit --after ok:11,any:2)" 'ok:11,any:21'
is 'esubmit --signal: signals' "$(completes esubmit --signal US)" 'USR1@ USR2@'
is '... and nothing behind one' "$(completes esubmit --signal USR1 @ '')" ''
is 'ekill --signal: signals' "$(completes ekill --signal US)" 'USR1 USR2'
is 'esubmit -t: nothing' "$(completes esubmit -t '')" ''
is '... nor for -J behind other options' "$(completes esubmit --each -n 4 --after ok : 11 -J '')" ''
is '... but for the command of a job' "$(completes esubmit ./prog -t "$dir/bin/equ" | xargs -n 1 | sort -u)" "$dir/bin/equery"
is 'esubmit -p: files' "$(completes esubmit -p "$dir/bin/equ")" "$dir/bin/equery"
is 'esim --trace: files' "$(completes esim --trace "$dir/bin/equ")" "$dir/bin/equery"
is 'ewait -t: nothing' "$(completes ewait -t '')" ''
columns=$(sed -nE 's/^    \{"([a-z]+)", \{"[A-Z]+".*/\1/p' "$src/client/columns.c" | sort | xargs)
is 'equery --format: columns' "$(completes equery --format '' | tr ' ' '\n' | sort | xargs)" "$columns"
is '... a list' "$(completes equery --format id,le)" 'id,level id,levels'
is 'eadmin: verbs' "$(completes eadmin re)" 'resume remove reboot release'
is 'eadmin drain: hosts' "$(completes eadmin drain ws)" 'ws1 ws2'
is 'eadmin hold: jobs' "$(completes eadmin hold '')" '21'
is 'eadmin config' "$(completes eadmin config '')" 'check show'
values() { { echo default; sed -n "s/^$1(\(.*, \)*\"*\([a-z0-9-]*\)\"*)\$/\2/p" "$src/elmer/core/$2"; } | sort | xargs; }
is 'eadmin set allocator: all of them' "$(completes eadmin set allocator '' | tr ' ' '\n' | sort | xargs)" "$(values ALLOCATOR alloc/alloc.def)"
is 'eadmin set policy: all of them' "$(completes eadmin set policy '' | tr ' ' '\n' | sort | xargs)" "$(values POLICY policy/policy.def)"
: >"$dir/backup-1"
is 'eadmin backup: files' "$(completes eadmin backup "$dir/back")" "$dir/backup-1"
is 'eadmin init --restore: files' "$(completes eadmin init --restore "$dir/back")" "$dir/backup-1"

# ---- zsh and fish ----
# What each offers where a line like this was typed, as it does it for somebody at a terminal: in words, sorted.
cat >"$dir/ask.zsh" <<'SCRIPT'
# DIR LINE FILE: compadd writes what fits into FILE
zmodload zsh/zpty && zpty terminal zsh -f -i || exit
zpty -w terminal "PS1=; fpath=(${1:A} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w terminal "compadd() { local -a fit; [[ \$* == *-[OAD]\ * ]] || { builtin compadd -O fit \"\$@\"; print -rl -- \$fit >>$3 }; builtin compadd \"\$@\" }"
zpty -w terminal 'leave() { exit }; zle -N leave; bindkey "^I" complete-word "^X" leave'
zpty -w -n terminal "$2"$'\t\x18'
while zpty -r terminal line; do :; done
SCRIPT
zsh_offers() { # LINE
    : >"$dir/offered"
    timeout 60 zsh -f "$dir/ask.zsh" "$src/completion" "$1" "$dir/offered" </dev/null
    sort -u "$dir/offered" | xargs
}
fish_offers() { # LINE
    HOME=$dir timeout 60 fish --no-config -c 'source $argv[1]; complete -C $argv[2]' -- "$src/completion/elmer.fish" "$1" 2>&1 | cut -f1 | sort -u | xargs
}
for shell in zsh fish; do
    command -v $shell >/dev/null || { echo "# there is no $shell here"; continue; }
    while IFS='|' read -r line offers; do
        is "$shell: $line" "$("${shell}_offers" "$line")" "$offers"
    done <<'LINES'
ekill |11 12
ekill 11 1|11 12
eattach |11 12
ecancel |21
eretry |11 12 21
ewait |11 12 21
esubmit --hosts |ws1 ws2
equery --host w|ws1 ws2
esubmit --if-never |cancel keep
esubmit --after |11 12 21 any: fail: ok: start:
ekill --signal US|USR1 USR2
esubmit -t |
esubmit --each -J |
ewait -t |
equery --format lev|level levels
eadmin re|reboot release remove resume
eadmin drain ws|ws1 ws2
eadmin hold |21
eadmin config |check show
eadmin set |allocator policy
eadmin set allocator |cube-afl cube-fl default pack spread v1 v2
eadmin set policy |default fcfs
LINES
    for command in esubmit equery ekill eretry erun eadmin esim rsd; do
        case $command in esim | rsd) program=$command/$command ;; *) program=client/$command ;; esac
        is "$shell: $command --: all long options of --help" "$("${shell}_offers" "$command --" | tr ' ' '\n' | sed 's/^--//' | grep -vxE 'help|version')" "$(of_help "$program")"
    done
done
if command -v zsh >/dev/null; then
    is 'zsh: a list of hosts' "$(zsh_offers 'esubmit --hosts ws1,')" 'ws1 ws2'
    is 'zsh: a job behind its kind' "$(zsh_offers 'esubmit --after ok:11,any:2')" '21'
    is 'zsh: signals, and an @ behind them' "$(zsh_offers 'esubmit --signal US')" 'USR1 USR2'
    is 'zsh: the value of an option of the command' "$(zsh_offers "esubmit ./prog -t $dir/bin/equ")" 'equery'
fi
if command -v fish >/dev/null; then
    is 'fish: a list of hosts' "$(fish_offers 'esubmit --hosts ws1,')" 'ws1,ws1 ws1,ws2'
    is 'fish: a job behind its kind' "$(fish_offers 'esubmit --after ok:11,any:2')" 'ok:11,any:21'
    is 'fish: signals, and an @ behind them' "$(fish_offers 'esubmit --signal US')" 'USR1@ USR2@'
    is 'fish: esim --trace: files' "$(fish_offers "esim --trace $dir/bin/equ")" "$dir/bin/equery"
    is 'fish: the value of an option of the command' "$(fish_offers "esubmit ./prog -t $dir/bin/equ")" "$dir/bin/equery"
fi

# ---- without an answer ----
printf '#!/bin/sh\nsleep 60\n' >"$dir/bin/equery"
begin=$SECONDS
is 'an elmer that does not answer is not waited for' "$(completes ekill '')" ''
is 'for longer than some seconds' "$((SECONDS - begin < 20))" 1

echo "1..$n"
exit $bad
