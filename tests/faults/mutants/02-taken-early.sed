# elmer/engine/commit.c: the hosts are told that an exit is taken before it is on disk
s/if (!d->deferred && store_committed(d->store) >= number)/if (wait->kind == WAIT_TAKEN || wait->kind == WAIT_FORGET || (!d->deferred \&\& store_committed(d->store) >= number))/
