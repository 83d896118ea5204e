# level.c: what others leave that move up does not wake the queue
s/^        changed += job->info.nprocs;$//
