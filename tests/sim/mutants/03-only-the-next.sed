# level.c: only the jobs right below the one that leaves move up
s/^        push_below(core, job);$//
