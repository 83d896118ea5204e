# elmer/engine/commit.c: the hosts are told that an exit is taken before it is on disk
s/if (!engine->waiting \&\& store_committed(engine->store) >= number)/if (wait->urgency == ENGINE_LINGER || (!engine->waiting \&\& store_committed(engine->store) >= number))/
