# host.c: a restart forgets that a host was drained
s/^    host->info.drained = saved->drained;.*$/    host->info.drained = false;/
