# elmer/engine/commit.c: a job is started before its cluster is on disk
s/if (!engine->waiting \&\& store_committed(engine->store) >= number)/if (wait->urgency == ENGINE_WORK || (!engine->waiting \&\& store_committed(engine->store) >= number))/
