# step.c: a job that was to go again cannot be killed
s/job->info.reason = REASON_KILLED;$/;/
