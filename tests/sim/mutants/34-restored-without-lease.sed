# restore.c: a restart forgets how long the lease was
s/^    memcpy(job->info.level_ms, saved->level_ms, .*/&\n    job->info.lease_ms = 0;/
