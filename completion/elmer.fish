# fish completion for the commands of Elmer; installed under the name of each. Options and verbs are those that the command itself
# prints with --help; jobs and hosts are asked for while one types, for two seconds at most.

function __elmer_options
    set -l command (commandline -opc)[1]
    $command --help 2>/dev/null | sed -nE '/^ +-/ { s/^ +(-[A-Za-z0-9], )?(--?[A-Za-z][a-z-]*)/\2\t/; s/\t.*   */\t/; t end; s/\t.*//; :end; p }'
end

function __elmer_verbs
    eadmin --help 2>/dev/null | sed -nE 's/^(Usage:)? +eadmin ([a-z|]+).*/\2/p' | tr '|' '\n'
end

function __elmer_jobs
    timeout 2 equery $argv 2>/dev/null </dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }'
end

function __elmer_hosts
    timeout 2 equery --hosts --json 2>/dev/null </dev/null | grep -oE '"host": *"[^"]*"' | sed -E 's/.*"([^"]*)"$/\1/' | sort -u
end

function __elmer_host_list # what was typed of a list stays before each host
    set -l head (commandline -ct | string match -r '^.*,')
    for host in (__elmer_hosts)
        echo "$head$host"
    end
end

function __elmer_waits_for # jobs, behind what of them is waited for
    set -l head (commandline -ct | string match -r '^.*[,:]')
    for job in (__elmer_jobs)
        echo "$head$job"
    end
    string match -q -- '*:' "$head"; and return
    for kind in ok: fail: any: start:
        echo "$head$kind"
    end
end

function __elmer_columns # of equery, as it says them of a wrong one
    set -l head (commandline -ct | string match -r '^.*,')
    for column in (equery --format '?' 2>&1 </dev/null | sed -nE 's/.*there are ([a-z, ]+).*/\1/p' | string split -n ', ')
        echo "$head$column"
    end
end

function __elmer_value # is it the value of an option, no file, of which nothing is known here, and not a word of a job's command?
    set -l words (commandline -opc)
    set -l valued ($words[1] --help 2>/dev/null | sed -nE '/^ +-[^ ]*( --[^ ]*)? FILE/d; s/^ +(-[A-Za-z0-9]), (--[a-z-]+) [A-Z].*/\1\n\2/p; t; s/^ +(--?[A-Za-z][a-z-]*) [A-Z].*/\1/p')
    contains -- $words[-1] $valued; or return 1
    contains -- (string replace -r '.*/' '' $words[1]) esubmit erun; or return 0
    set -l before ''
    for word in $words[2..-2]
        string match -q -- '-*' $word; or contains -- $before $valued; or return 1
        set before $word
    end
    return 0
end

function __elmer_after # WORD..: one of them was typed last
    contains -- (commandline -opc)[-1] $argv
end

for command in esubmit equery ekill ecancel ewait ehold erelease etop etail eretry eattach erun eadmin esim elmer rsd
    complete -c $command -n __elmer_value -f
    complete -c $command -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__elmer_options)'
end
for command in esubmit eadmin
    complete -c $command -n '__elmer_after --hosts' -x -a '(__elmer_host_list)'
end
for command in equery erun
    complete -c $command -n '__elmer_after --host' -x -a '(__elmer_host_list)'
end
for command in equery ekill ecancel eadmin
    complete -c $command -n '__elmer_after -u --user' -x -a '(__fish_complete_users)'
end
complete -c equery -n '__elmer_after --state' -x -a 'starting running ending queued held done cancelled'
complete -c equery -n '__elmer_after --format' -x -a '(__elmer_columns)'
complete -c esubmit -n '__elmer_after --after' -x -a '(__elmer_waits_for)'
complete -c esubmit -n '__elmer_after --signal' -x -a 'USR1@ USR2@ TERM@ INT@ HUP@'
complete -c ekill -n '__elmer_after -s --signal' -x -a 'USR1 USR2 TERM INT HUP QUIT KILL STOP CONT'
complete -c esubmit -n '__elmer_after --if-never' -x -a 'cancel keep'
complete -c esubmit -n '__elmer_after --mail-at' -x -a 'begin end fail end,fail'
complete -c esubmit -n '__elmer_after -D --dir' -x -a '(__fish_complete_directories)'
complete -c ekill -n 'not __elmer_value' -f -a '(__elmer_jobs -r)'
complete -c eattach -f -a '(__elmer_jobs -r)'
for command in ecancel ehold erelease etop
    complete -c $command -f -a '(__elmer_jobs -q)'
end
for command in equery ewait etail eretry
    complete -c $command -n 'not __elmer_value' -f -a '(__elmer_jobs)'
end
complete -c eadmin -n 'test (count (commandline -opc)) -eq 1' -f -a '(__elmer_verbs)'
complete -c eadmin -n 'contains -- (commandline -opc)[2] drain resume remove shutdown reboot doctor' -f -a '(__elmer_hosts)'
complete -c eadmin -n 'contains -- (commandline -opc)[2] hold release' -f -a '(__elmer_jobs -q)'
complete -c eadmin -n 'test (count (commandline -opc)) -eq 2; and contains -- (commandline -opc)[2] config' -x -a 'check show'
complete -c eadmin -n 'test (count (commandline -opc)) -eq 2; and contains -- (commandline -opc)[2] set' -x -a 'allocator policy'
complete -c eadmin -n 'test (count (commandline -opc)) -eq 3; and contains -- (commandline -opc)[3] allocator' -x -a 'default v1 v2 spread pack cube-fl cube-afl'
complete -c eadmin -n 'test (count (commandline -opc)) -eq 3; and contains -- (commandline -opc)[3] policy' -x -a 'default fcfs'
