# queue.c: who goes again waits behind all
s/ && before(core, QUEUED(at), job))/)/
