# host.c: who waits counts on hosts that are none of the cluster any more
s/^    if (host->info.drained || host->info.closed || host->info.retired)$/    if (host->info.drained || host->info.closed)/
