# emit.c: hosts are not told that there is a lease
s/part->job->info.lease_ms;$/0;/
