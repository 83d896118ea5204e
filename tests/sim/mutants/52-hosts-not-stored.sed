# host.c: that a host is up is not stored
s/row = {.drained = host->info.drained, .up = host->info.up || host->info.awaited};/row = {.drained = host->info.drained};/
