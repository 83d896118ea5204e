# host.c: a drained host gets jobs
s/return host->info.up && !host->info.drained && !host->info.silent/return host->info.up \&\& !host->info.silent/
