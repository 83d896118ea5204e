# queue.c: who waits for others has his turn
s/ == JOB_QUEUED \&\& after_met(job);/ == JOB_QUEUED;/
