# host.c: that a host is up is not stored
s/row = {.drained = host->info.drained, .up = host->info.state != CORE_HOST_DOWN};/row = {.drained = host->info.drained};/
