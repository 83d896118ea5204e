# host.c: who needs a host whose link is cut loses his turn
s@^    if (host->info.drained || host->info.closed || host->info.retired)$@    if (host->info.drained || host->info.closed || host->info.retired || host->info.state == CORE_HOST_SILENT)@
