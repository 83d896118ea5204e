# core.c: a restart forgets how long the lease was
s/job->info.lease_ms = saved->lease_ms;/;/
