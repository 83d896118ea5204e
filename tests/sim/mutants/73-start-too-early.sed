# job.c: a job counts as started before its processes are
s/^    if (state == JOB_RUNNING)$/    if (state == JOB_STARTING)/
