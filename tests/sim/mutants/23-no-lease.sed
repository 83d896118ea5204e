# lease.c: the next attempt does not wait for the lease
s/part->host->contact_ms + core_lease_wait_ms(job->info.lease_ms));/core->now_ms);/
