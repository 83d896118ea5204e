#!/bin/bash
# test_options.sh - esim's options together: what makes no sense is refused in words, and nothing is taken and ignored.
# In the build directory.
set -u
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/expect.sh
. "${srcdir:-..}/tests/expect.sh"
trace=${srcdir:-..}/tests/unit/esim/traces/small.swf

says() { # STATUS TEXT OPTIONS.. - the exit status, and what the output must have
    local status=$1 text=$2
    shift 2
    expect "esim $*" "$status" "$text" timeout 120 esim/esim "$@"
}
jobs=(--hosts 4 --workload 'procs [1,4]' --jobs 50)

# a trace is what it is
says 0 "$trace " --trace "$trace"
for option in --load --share --mean-service; do
    says 2 "${option#--}: that is for jobs that are drawn, not for a trace" --trace "$trace" $option 0.5
done
says 2 'arrivals: that is for jobs that are drawn' --arrivals constant --trace "$trace"
says 2 'workload: that is for jobs that are drawn' --workload constant --trace "$trace"
says 2 'workload: that is for jobs that are drawn' --trace "$trace" --workload constant
says 2 'load: that is for jobs that are drawn' --trace "$trace" --sweep load=1,2
says 0 '"jobs":50,' --trace "$trace" --jobs 50 --json
says 0 '"jobs":50,' --jobs 50 --trace "$trace" --json
# a trace that cannot be read is no mistake in the options, whether the machine is its own or not
says 1 'No such file' --trace "$dir/none.swf" --hosts 1
says 1 'No such file' --trace "$dir/none.swf"
head -c 1000 "$trace.gz" >"$dir/cut.swf.gz"
says 1 'cannot be read beyond line ' --trace "$dir/cut.swf.gz"
says 1 'cannot be read beyond line ' --trace "$dir/cut.swf.gz" --hosts 256
echo >"$dir/headless.swf"
says 2 'does not say how large its machine is (MaxProcs): say --hosts' --trace "$dir/headless.swf"
says 2 '--since and --until: of --history' --since 2026-01-01 "${jobs[@]}"

says 2 'precision: a trace or a history is as long as it is' --trace "$trace" --precision 5%
says 2 'cpus: 256 processors of the trace (MaxProcs) are no hosts of 7' --trace "$trace" --cpus 7
says 0 '"utilisation":0.738' --trace "$trace" --cpus 8 --json

# one with fields that are not known, and with room for all of its jobs: each then takes its own time
days=${srcdir:-..}/tests/unit/esim/traces/days.swf
mean=$(awk '!/^;/ && $4 >= 0 { sum += $4; n++ } END { printf "%.12g", sum / n }' "$days")
says 0 'On 16 hosts with 64 processors.' --trace "$days"
says 0 'esim: 5 jobs were left out: their run time or processors are not known' --trace "$days"
says 0 '"jobs":105,"warmup":0,"refused":0,"unknown":5,"bad_lines":0,' --trace "$days" --json
says 0 "\"turnaround\":$mean," --trace "$days" --hosts 64 --cpus 16 --json
says 0 '"wait":0.0,' --trace "$days" --hosts 64 --cpus 16 --json
# what is said of those that were left out does not go into the records where there is no standard error
# shellcheck disable=SC2016 # sh expands it
expect 'records without a standard error' 0 '"submitted":' \
    sh -c 'esim/esim --trace "$0" --records "$1" >"$1.table" 2>&- && ! grep -v "^{" "$1" && head -n 1 "$1"' "$days" "$dir/records"

# what would make no difference
says 2 'saturated: the next job comes when nobody waits' --saturated --load 2 "${jobs[@]}"
says 2 'saturated: the next job comes when nobody waits' --saturated --sweep load=1,2 "${jobs[@]}"
says 2 'saturated: the next job comes when nobody waits' --arrivals constant --saturated "${jobs[@]}"
says 2 'steps: that is for the model shared' --steps each "${jobs[@]}"
says 2 'period: that is for the model shared' --period 1 "${jobs[@]}"
says 0 'model=shared' --period 1 --compare model=space,shared "${jobs[@]}"
says 2 'threshold: that is for the allocator v2' --threshold 50% "${jobs[@]}"
says 0 'allocator=v2' --threshold 50% --compare allocator=v1,v2 "${jobs[@]}"
says 2 'jobs and jobs-max: one of them' --jobs-max 100 "${jobs[@]}"
says 2 'records and explain are of one run' --precision 5% --explain 3 "${jobs[@]}"
says 2 'records and explain are of one run' --precision 5% --records "$dir/records" "${jobs[@]}"
says 1 '/dev/full: No space left on device' --records /dev/full "${jobs[@]}"

says 2 "mean-service: '0.001' cannot be understood, or is out of range" --mean-service 0.001 "${jobs[@]}"

# a cube has its hosts
says 2 'cube: its hosts are 2^4' --cube 4 --hosts 10
says 2 'cube: its hosts are 2^4' --cpus 2 --cube 4
says 2 'levels: in a cube a processor has one job' --cube 4 --levels 2
says 2 'allocator: cube-afl places meshes in a hypercube: say cube' --allocator cube-afl "${jobs[@]}"
says 2 'add-hosts: not to a cube' --cube 4 --add-hosts 1
says 0 'cube=4 ' --workload 'rect [1,4]' --jobs 50 --compare cube=4,5
says 1 'no job has ended: the machine is too small for them' --cube 2 --workload 'square [4,4]' --jobs 50

says 2 'allocator: cube-fl places meshes in a hypercube: say cube, its size' --compare allocator=cube-fl,cube-afl --jobs 50
says 0 '"refused":0,' --jobs 50 --json
says 0 'On 16 hosts with 16 processors.' --jobs 50
says 0 'rect [1,16] ' --cube 8 --jobs 50
says 0 '"policy":"fcfs","levels":1,"model":"space","hosts":256,"processors":256,"seed":3,' --cube 8 --jobs 50 --seed 3 --json

# the machine of a trace: MaxNodes hosts, if that divides MaxProcs
says 0 'On 1 host with 256 processors.' --trace "$trace"
says 0 'On 32 hosts with 256 processors.' --trace "$trace" --cpus 8
for nodes in 32 33; do
    { echo "; MaxNodes: $nodes" && cat "$trace"; } >"$dir/nodes$nodes.swf"
done
says 0 'On 32 hosts with 256 processors.' --trace "$dir/nodes32.swf"
says 0 'On 1 host with 256 processors.' --trace "$dir/nodes33.swf"

# numbers are decimal
for option in 'load 0x10' 'load inf' 'load nan' 'jobs 0x10' 'speeds 0x8' 'speeds 1x0x8' 'workload P[1,8]=0x1p-1 P[9,16]=0.5'; do
    says 2 "${option%% *}: '${option#* }' cannot be understood" "--${option%% *}" "${option#* }" --hosts 4
done
says 2 'want KEY=A,B' --sweep load=0x1..0x7 "${jobs[@]}"
# .. and have the unit of their key, or none
for option in 'hosts 400%' 'hosts 4s' 'jobs 3s' 'seed 5s' 'load 2s' 'share 1s' 'precision 1s' 'mean-service 4%' 'load 50%%'; do
    says 2 "${option%% *}: '${option#* }' cannot be understood" "--${option%% *}" "${option#* }" --hosts 4
done
says 2 "hosts: '400%' cannot be understood" --sweep hosts=400%..800%:2 "${jobs[@]}"
says 0 'load=50% ' --compare load=50%,0.5 --mean-service 4s "${jobs[@]}"
says 0 'procs [1,4] ' --model shared --share 50% --period 1s "${jobs[@]}"
says 0 'load=1e-1 ' --compare load=1e-1,+.5 "${jobs[@]}"

# speeds: by commas, or by spaces where commas separate values
says 0 'procs [1,4] ' --speeds 1x2,0.5 "${jobs[@]}"
says 0 'speeds=1x2 0.5 ' --compare 'speeds=1,1x2 0.5' "${jobs[@]}"
says 2 "speeds: 'fast' cannot be understood" --speeds fast "${jobs[@]}"

# several simulations
says 2 "'=1,2': want KEY=A,B" --sweep =1,2 "${jobs[@]}"
says 2 "'=': want KEY=A,B" --compare = "${jobs[@]}"
says 2 'load: it is swept or compared, not both' --sweep load=1,2 --compare load=3,4 "${jobs[@]}"
says 2 'at most 64 values' --sweep load=0.1..7:65 "${jobs[@]}"
says 2 'want KEY=A,B' --sweep load=0.1.. "${jobs[@]}"
says 2 "there is no 'e'; known are: " --compare e=1 "${jobs[@]}"
says 2 "there is no 'jobs jobs-max'" --compare 'jobs jobs-max=1' "${jobs[@]}"
says 2 "there is no 'colour'" --compare colour=red,green "${jobs[@]}"
says 0 'load=7 ' --sweep load=0.1..7 "${jobs[@]}"
wide=(--workload 'procs [1,64]' --load 0.3 --jobs 500)
says 0 'esim: hosts=16: 1506 jobs were refused: the machine is too small for them (75.1 % of all)' \
    "${wide[@]}" --compare hosts=64,16
says 0 'hosts=16: jobs that both can run take ' "${wide[@]}" --compare hosts=64,16
says 0 'esim: 1506 jobs were refused: the machine is too small for them (75.1 % of all)' \
    "${wide[@]}" --hosts 16 --compare allocator=v1,pack
says 0 'allocator=pack: jobs take ' "${wide[@]}" --hosts 16 --compare allocator=v1,pack
says 0 "trace=$trace " --compare "trace=$trace,$trace"
# other jobs: the first of one is not the first of the other
says 0 'jobs take 0.000 +- 5891.226 s more' --compare "trace=$trace,$trace"
says 0 'jobs take 0.000 +- 0.000 s more' --trace "$trace" --compare seed=1,2
says 0 'seed=2: jobs take ' --compare seed=1,2 --hosts 4 --workload 'procs [1,4]' --jobs 200
mkdir -p "$dir/a-long-name-of-a-directory/and-another-one-that-has-more-than-eighty-letters/in-all"
cp "$trace" "$dir/a-long-name-of-a-directory/and-another-one-that-has-more-than-eighty-letters/in-all/x.swf"
says 0 'no difference is seen' --compare \
    "trace=$trace,$dir/a-long-name-of-a-directory/and-another-one-that-has-more-than-eighty-letters/in-all/x.swf"
says 0 'hosts=11 ' --sweep hosts=4..16 --workload 'procs [1,2]' --jobs 50
says 0 'levels=2 ' --sweep levels=1..3 --model shared "${jobs[@]}"
says 0 'share=50% ' --sweep share=10%..90%:3 --model shared "${jobs[@]}"
says 2 'want KEY=A,B' --sweep share=10%..90 "${jobs[@]}"
says 2 'want KEY=A,B' --sweep load=0.1..inf "${jobs[@]}"
n=$((n + 1))
if [ "$(esim/esim --json --sweep levels=1..3 --model shared "${jobs[@]}" | wc -l)" -eq 3 ]; then
    echo "ok $n - each whole number once"
else
    echo "not ok $n - a whole number comes twice"
    bad=1
fi
says 2 '--sweep: it is there twice' --sweep load=1,2 --sweep levels=1,2 "${jobs[@]}"
says 2 '--compare: it is there twice' --compare load=1,2 --compare levels=1,2 "${jobs[@]}"
says 2 '--records is for one simulation' --records "$dir/records" --compare levels=1,2 "${jobs[@]}"
says 2 '--plot needs --sweep with numbers' --plot "$dir/picture" --compare levels=1,2 "${jobs[@]}"
says 1 "$dir/none/picture: No such file" --plot "$dir/none/picture" --sweep load=1,2 "${jobs[@]}"

# files are opened when all options are known to be good, and before anything is computed
echo kept >"$dir/kept"
says 2 'steps: that is for the model shared' --records "$dir/kept" --steps each "${jobs[@]}"
says 2 'levels: in a cube' --records "$dir/kept" --cube 4 --levels 2
expect 'what was there stays' 0 kept cat "$dir/kept"
says 0 'hosts=3 ' --plot "$dir/hosts.svg" --sweep hosts=1..4:4 --workload 'procs [1,2]' --jobs 50
n=$((n + 1))
if grep -q '>procs \[1,2\]<' "$dir/hosts.svg"; then
    echo "ok $n - a picture of several machines names none"
else
    echo "not ok $n - a picture of several machines names one: $(grep -m1 'procs \[' "$dir/hosts.svg")"
    bad=1
fi

says 0 'load=1 ' --plot "$dir/many.svg" --sweep load=1,2 --compare 'workload=procs [1,2],procs [1,3]' --hosts 4 --jobs 50
expect 'a picture of several workloads is not of the first' 0 '>several workloads, on 4 hosts with 4 processors<' \
    cat "$dir/many.svg"

says 0 'load=1 ' --plot "$dir/cube.svg" --sweep load=1,2 --cube 4 --workload 'rect [1,4]' --jobs 50
expect 'a picture of a cube has its allocator' 0 '>rect [1,4], placed by cube-afl, on 16 hosts' cat "$dir/cube.svg"

# the table: what cannot be known is a dash
says 0 ' WAIT s        +-  STRETCH      +- ' "${jobs[@]}"
says 0 'procs [1,1]         1        0     3.167         -     3.167     3.17     0.000         -     1.00       -' \
    --hosts 1 --workload 'procs [1,1]' --jobs 1
says 0 'points against allocator=v1: no difference is seen' --saturated --compare allocator=v1,pack "${jobs[@]}"
n=$((n + 1))
if esim/esim --jobs 1 --compare allocator=v1,pack | grep -qi nan; then
    echo "not ok $n - there is a nan"
    bad=1
else
    echo "ok $n - there is no nan"
fi

says 0 'not steady, it depends on the length of the run: compare LOAD OUT' --hosts 4 --workload 'procs [1,4]' \
    --load 3 --jobs 2000 --compare levels=1,2

# in words: a difference that is no chance, and one job, which says nothing
printf '; MaxProcs: 1\n' >"$dir/two.swf"
printf '%s -1 %s 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n' '1 0' 100 '2 50' 10 >>"$dir/two.swf"
head -n 2 "$dir/two.swf" >"$dir/one.swf"
says 0 "speeds=0.5: jobs take $(printf %.3f "$mean") +- " --trace "$days" --hosts 64 --cpus 16 --compare speeds=1,0.5
says 0 's more (+100.0 %) than with speeds=1: the difference is real, as far as so few jobs can say' \
    --trace "$days" --hosts 64 --cpus 16 --compare speeds=1,0.5
says 0 'speeds=0.5: jobs take 100.000 +- - s more (+100.0 %) than with speeds=1: too few jobs to say' \
    --trace "$dir/one.swf" --compare speeds=1,0.5

# why a job started
says 0 '398.000 s: job 8 is submitted' --trace "$trace" --explain 8
says 1 'job 999, which was to be explained, has not come' --trace "$trace" --explain 999
says 0 '100.000 s: job 1 ends and leaves 1 processor' --trace "$dir/two.swf" --explain 2
says 0 '100.000 s: job 2 starts on 1 processor, the first is h0:0, at level 0' --trace "$dir/two.swf" --explain 2
# it is the first, so each end may be the one that it waits for
says 0 '587.000 s: job 6 ends and leaves 11 processors' --trace "$trace" --explain 8
says 0 '794.000 s: job 3 ends and leaves 128 processors' --trace "$trace" --explain 8
says 0 '794.000 s: job 8 starts on 114 processors, the first is h0:' --trace "$trace" --explain 8
says 2 '--explain is for one simulation' --trace "$trace" --explain 8 --compare allocator=v1,pack
says 2 '--explain is for one simulation' --trace "$trace" --sweep explain=1..3
says 2 'cannot be understood' --workload 'procs [1,4294967300]' # it was 4
says 2 'job-memory: this needs memory' --job-memory 1G "${jobs[@]}"
says 2 'memory: jobs that are drawn ask for none' --memory 8G "${jobs[@]}"
says 0 'on hosts without room for it (memory' --hosts 4 --cpus 2 --memory 8G --job-memory 5G --workload 'procs [1,4]' --load 4 --jobs 60 --explain 20
n=$((n + 1))
if esim/esim --trace "$trace" --explain 8 --json 2>/dev/null | python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]'; then
    echo "ok $n - what is explained is not among the lines of JSON"
else
    echo "not ok $n - what is explained is among the lines of JSON"
    bad=1
fi
printf '; MaxProcs: 8\n' >"$dir/refused.swf"
printf '%s -1 100 %s -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n' '1 0' 4 '2 1' 99 '3 2' 8 >>"$dir/refused.swf"
says 0 'job 2 is refused: the machine is too small for it' --trace "$dir/refused.swf" --explain 2
n=$((n + 1))
if esim/esim --trace "$dir/refused.swf" --explain 2 2>/dev/null | grep -q 'job 2 starts'; then
    echo "not ok $n - a job that was refused starts"
    bad=1
else
    echo "ok $n - a job that was refused does not start"
fi

says 0 'job 7 is the first; cube-afl has no place for a mesh of 1x4, which needs a cube of 4 hosts: of 8 up 5 are full' \
    --cube 3 --workload 'rect [1,5]' --load 3 --jobs 60 --explain 7
says 0 'job 30 still waits when the simulation ends' --hosts 4 --workload 'procs [1,4]' --load 5 --jobs 20 --explain 30

queue=(--hosts 4 --workload 'procs [1,4]' --load 5 --jobs 200 --explain 60)
says 0 'job 60 waits (waiting), 33 jobs ahead' "${queue[@]}"
n=$((n + 1))
if esim/esim "${queue[@]}" | awk '/ ends and leaves / { some = 1; twice += before } { before = / ends and leaves / }
    END { exit !some || twice > 0 }'; then
    echo "ok $n - an end is told if it changes something for a job"
else
    echo "not ok $n - an end is told that changes nothing for a job"
    bad=1
fi

# parts of jobs are no jobs
printf '; MaxProcs: 8\n' >"$dir/parts.swf"
printf '%s -1 100 8 -1 -1 -1 -1 -1 %s 1 1 -1 1 -1 -1 -1\n' '1 0' 1 '1 0' 2 '1 0' 3 '2 0' 2 >>"$dir/parts.swf"
says 0 'esim: 3 lines are no jobs, but parts of one (status 2, 3 or 4), and were left out' --trace "$dir/parts.swf"
says 0 'esim: 1 jobs were left out: there are lines of their parts only' --trace "$dir/parts.swf"
says 0 '"jobs":1,"warmup":0,"refused":0,"unknown":0,"bad_lines":0,"parts":3,"parts_alone":1,"never_ran":0,' --trace "$dir/parts.swf" --json

# jobs of unknown users are no user's; those of user 0 are
for user in -1 0; do
    printf '; MaxProcs: 8\n' >"$dir/user$user.swf"
    printf "%s 0 -1 100 1 -1 -1 -1 -1 -1 1 $user 1 -1 1 -1 -1 -1\n" 1 2 3 4 >>"$dir/user$user.swf"
done
says 0 '"turnaround":100.0,' --trace "$dir/user-1.swf" --user-running 1 --json
says 0 '"turnaround":250.0,' --trace "$dir/user0.swf" --user-running 1 --json
says 0 '' --trace "$dir/user-1.swf" --records "$dir/records"
expect 'an unknown user has no number' 0 '"uid":null,' cat "$dir/records"

# without memory it says so in its own words; where the program itself has no room, as with sanitizers, nothing is tried
little() { (ulimit -v 400000 && exec esim/esim "$@"); }
if little --version >/dev/null 2>&1; then
    expect 'there is no memory' 1 'esim: out of memory: simulate a smaller machine' little --hosts 65536 --cpus 240
    expect '.. in one of several simulations' 1 'its process has ended before it had' little --cpus 240 --compare hosts=4,65536
fi

# utilisation: of the time of processors what jobs compute, so never more than there is
says 0 '"utilisation":1.0,' --trace "$dir/user0.swf" --hosts 1 --cpus 1 --model shared --levels 4 --json
printf '; MaxProcs: 1\n1 0 -1 100 1 50 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n' >"$dir/half.swf"
says 0 '"utilisation":0.5,' --trace "$dir/half.swf" --model shared --json
says 0 '"utilisation":1.0,' --trace "$dir/half.swf" --json

# what is wrong in a trace is told once
faults=${srcdir:-..}/tests/unit/esim/traces/faults.swf
n=$((n + 1))
once=$(esim/esim --trace "$faults" 2>&1 | grep -c "^$faults:")
if [ "$once" -gt 0 ] && [ "$(esim/esim --trace "$faults" --compare policy=fcfs,fcfs 2>&1 | grep -c "^$faults:")" -eq "$once" ]; then
    echo "ok $n - two simulations tell it once"
else
    echo "not ok $n - two simulations tell it twice, or $once is no number of lines"
    bad=1
fi

# jobs that follow others: on a faster machine a job comes before those above it
printf '; MaxProcs: 4\n' >"$dir/follow.swf"
while read -r job submit run procs preceding think; do
    echo "$job $submit -1 $run $procs -1 -1 -1 -1 -1 1 1 1 1 1 1 $preceding $think"
done >>"$dir/follow.swf" <<'JOBS'
1 0 100 4 -1 -1
2 50 10 4 1 30
3 60.5 10.25 1 2 -1
4 200 10 4 1 5
5 201 10 4 99 5
6 500 10 1 3 -1
7 600 10 9 -1 -1
8 601 10 1 7 50
JOBS
records() { # NAME WANTED OPTIONS..: jobs with their times of submission
    local name=$1 want=$2 got
    shift 2
    n=$((n + 1))
    esim/esim --trace "$dir/follow.swf" --records "$dir/records" "$@" >/dev/null 2>"$dir/told"
    got=$(sed -E 's/.*"job":([0-9]+),"submitted":([0-9.]+),.*/\1:\2/' "$dir/records" | tr '\n' ' ')
    if [ "$got" = "$want" ]; then
        echo "ok $n - $name"
    else
        echo "not ok $n - $name: $got"
        bad=1
    fi
}
records 'jobs follow those that precede them' \
    '1:0.000 4:105.000 2:130.000 3:140.000 5:201.000 6:500.000 8:601.000 '
records '.. as --feedback says' '1:0.000 4:105.000 2:130.000 3:140.000 5:201.000 6:500.000 8:601.000 ' --feedback
records '.. or not' '1:0.000 2:50.000 3:60.500 4:200.000 5:201.000 6:500.000 8:601.000 ' --feedback=no
says 0 '5 jobs came when the job that precedes them had ended' --trace "$dir/follow.swf"
says 0 '1 jobs name a preceding job that is not above them in the trace' --trace "$dir/follow.swf"
says 0 'feedback=no: jobs take' --trace "$dir/follow.swf" --compare feedback=yes,no
says 2 'feedback: jobs that follow others are those of a trace' --feedback "${jobs[@]}"
says 2 "feedback: 'maybe' cannot be understood" --feedback=maybe --trace "$trace"

# a trace is read twice, so a pipe is refused; jobs that are not in the order of their submission are put into it
says 1 'is no file: a trace is read more than once' --hosts 4 --trace <(cat "$dir/follow.swf")
says 1 'is no file: a trace is read more than once' --trace /dev/null
says 1 'is no file: a trace is read more than once' --trace /dev/null --hosts 4
printf '; MaxProcs: 4\n1 9 -1 5 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n2 1 -1 5 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n' >"$dir/moved.swf"
says 0 '1 jobs are in the trace behind one that was submitted later' --trace "$dir/moved.swf"
says 0 '"jobs":2,"warmup":0,"refused":0,"unknown":0,"bad_lines":0,' --trace "$dir/moved.swf" --feedback=no --json

# a job that takes no time has no stretch
for i in 1 2 3; do
    echo "$i 0 -1 $((i * 10 - 10)) 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1"
done | sort -k4,4nr >"$dir/nothing.swf"
says 0 '"stretch":2.0,' --hosts 4 --trace "$dir/nothing.swf" --json
says 0 '' --hosts 4 --trace "$dir/nothing.swf" --records "$dir/records"
expect 'its stretch is null' 0 '"turnaround":30.000,"wait":30.000,"stretch":null,' cat "$dir/records"

# years, to the millisecond
printf '; MaxProcs: 4\n1 0 -1 12345678.125 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n' >"$dir/years.swf"
says 0 '"turnaround":12345678.125,' --trace "$dir/years.swf" --json

# periods without end
printf '; MaxProcs: 4\n1 0 -1 1000000000000 4 500000000000 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n' >"$dir/periods.swf"
says 1 'job 1 has more than 10^7 periods: say a longer --period' --model shared --period 1 --trace "$dir/periods.swf"
says 0 ' 1000000000000.000 ' --model shared --period 1000000 --trace "$dir/periods.swf"
says 2 "period: '0.0001' cannot be understood" --model shared --period 0.0001 --trace "$dir/periods.swf"

# an end of time
printf '; MaxProcs: 8\n' >"$dir/long.swf"
for ((i = 1; i < 1300; i++)); do
    echo "$i 0 -1 1000000000000 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1"
done >>"$dir/long.swf"
says 1 'the jobs take longer than 36 million years' --trace "$dir/long.swf"
echo "1..$n"
exit $bad
