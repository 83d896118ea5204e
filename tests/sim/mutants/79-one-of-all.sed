# after.c: one of the things that it waits for is enough
s/ || (job->nopen == 0 \&\& job->nnever == 0);/ || (job->nopen < job->info.nafter \&\& job->nnever == 0);/
