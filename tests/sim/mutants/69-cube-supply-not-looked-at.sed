# queue.c: a job waits as the first for a cube of which a host is drained
s/has_supply(core, job) && topology_has_supply(core, job);/has_supply(core, job);/
