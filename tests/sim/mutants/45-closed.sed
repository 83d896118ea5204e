# host.c: a host whose processors are not those of the configuration gets new jobs
s/ && !host->info.closed && !host->info.retired;/ \&\& !host->info.retired;/
