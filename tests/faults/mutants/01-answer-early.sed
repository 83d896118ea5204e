# elmer/engine/commit.c: users are answered before the commit
s/if (!d->deferred && store_committed(d->store) >= number)/if (wait->kind == WAIT_ANSWER || wait->kind == WAIT_SUBMITTED || (!d->deferred \&\& store_committed(d->store) >= number))/
