# room.c: a job's memory is promised once for each host, not for each processor
s/part->job->info.memory_bytes \* (uint64_t)part->ncpus/part->job->info.memory_bytes/
