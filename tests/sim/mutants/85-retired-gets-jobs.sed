# host.c: a host that is none of the cluster any more gets new jobs
s/^    return host->info.state == CORE_HOST_UP \&\& !host->info.drained \&\& !host->info.closed \&\& !host->info.retired;$/    return host->info.state == CORE_HOST_UP \&\& !host->info.drained \&\& !host->info.closed;/
