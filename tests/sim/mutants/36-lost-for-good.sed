# lease.c: a job whose host is lost does not go again
s/return job->info.lease_ms > 0 \&\& job->info.attempt/return false \&\& job->info.attempt/
