# queue.c: who goes again waits behind all
s/ && QUEUED(before)->info.id < job->info.id)/)/
