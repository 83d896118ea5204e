# queue.c: a job is moved before those of other users
s/^        if (QUEUED(at)->user != job->user)$/        if (QUEUED(at) == NULL)/
