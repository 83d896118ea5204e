# restore.c: after a restart places are those of the ids
s/^    if (job->info.place == 0)$/    if (true)/
