# top.c: tasks leave an array that waits for others
s/^    return !job->array || !after_met(job) || !core_at_own_place(&job->info);$/    return !job->array;/
