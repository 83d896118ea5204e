# elmer/engine/commit.c: users are answered before the commit
s/if (!engine->waiting \&\& store_committed(engine->store) >= number)/if (wait->urgency == ENGINE_ANSWER || (!engine->waiting \&\& store_committed(engine->store) >= number))/
