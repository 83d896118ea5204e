# queue.c: a job waits as the first for a cube of which a host is drained
s/^           topology_has_supply(core, job) && !array_at_limit(job);$/           (topology_has_supply(core, job) || true) \&\& !array_at_limit(job);/
