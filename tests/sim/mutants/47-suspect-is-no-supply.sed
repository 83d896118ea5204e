# host.c: who needs a host whose link is cut loses his turn
s/^    if (host->info.drained || host->info.closed)$/    if (host->info.drained || host->info.closed || host->info.state == CORE_HOST_SILENT)/
