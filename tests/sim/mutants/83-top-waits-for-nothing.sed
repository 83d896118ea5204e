# top.c: tasks leave an array that waits for others
s/^    return !job->array || !after_met(job);$/    return !job->array;/
