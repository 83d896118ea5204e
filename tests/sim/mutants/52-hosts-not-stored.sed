# host.c: that a host is up is not stored
s/\.up = host->info.state != CORE_HOST_DOWN,$/.up = false,/
