# top.c: a job is moved before those of other users
s/^        if (job->user != any->user)$/        if (job == NULL)/
