# host.c: who needs a host that was up before a restart loses his turn
s/host->info.state == CORE_HOST_AWAITED \s/host->info.awaited && host->expected_cpus > 0 ?/false ?/\s/host->info.awaited && host->expected_cpus > 0 ?/false ?/ host->expected_cpus > 0 ?/false ?/
