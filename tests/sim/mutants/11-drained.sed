# host.c: a drained host gets jobs
s/return host->info.state == CORE_HOST_UP && !host->info.drained/return host->info.state == CORE_HOST_UP/
