#!/bin/sh
# each_line.sh - runs a command once for each line of a file, with GNU parallel, as many at a time as the job has processors, on
# their hosts.
#
#   esubmit NPROCS ./each_line.sh FILE COMMAND [ARG..]    {} in COMMAND or ARG stands for the line, else it is the last argument
#
# What they print comes in the order of the lines. An array of Elmer (esubmit --array-file) is the other way: there each line is a
# task with a state and a status of its own, and takes what processors there are; here the job keeps its processors for all lines.
[ $# -ge 2 ] || { echo "usage: each_line.sh FILE COMMAND [ARG..]" >&2; exit 2; }
[ -n "$ELMER_HOSTFILE" ] || { echo "each_line.sh: only in a job: esubmit NPROCS ./each_line.sh .." >&2; exit 2; }
file=$1
shift
# A processor is a line of ELMER_HOSTFILE: GNU parallel wants "4/ws1,2/ws2".
slots=$(sort "$ELMER_HOSTFILE" | uniq -c | awk '{ printf "%s%d/%s", comma, $1, $2; comma = "," }')
exec parallel --will-cite --keep-order --ssh erun -S "$slots" --workdir . "$@" <"$file"
