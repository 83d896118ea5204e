# top.c: a job is moved before those of other users
/^static void reach(/,/^}/s/^        if (job->user != user)$/        if (job == NULL)/
