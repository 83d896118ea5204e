# host.c: a drained host gets jobs
s/return host->info.state == CORE_HOST_UP \s/return host->info.up && !host->info.drained && !host->info.silent/return host->info.up \&\& !host->info.silent/\s/return host->info.up && !host->info.drained && !host->info.silent/return host->info.up \&\& !host->info.silent/ !host->info.drained/return host->info.state == CORE_HOST_UP/
