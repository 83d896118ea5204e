# host.c: who needs a host that was up before a restart loses his turn
s/host->info.state == CORE_HOST_AWAITED && host->expected_cpus > 0 ?/false ?/
