# queue.c: a user may have any number of jobs running
s/ && !user_at_limit(core, job->user) && / \&\& /
