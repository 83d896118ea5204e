# elmer/engine/commit.c: a job is started before its cluster is on disk
s/if (!d->deferred && store_committed(d->store) >= number)/if (wait->kind == WAIT_OPEN || wait->kind == WAIT_LAUNCH || (!d->deferred \&\& store_committed(d->store) >= number))/
