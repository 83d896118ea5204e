# job.c: who waits for a cancelled job is not told
s/^    if (state == JOB_DONE || state == JOB_CANCELLED) {$/    if (state == JOB_DONE) {/
