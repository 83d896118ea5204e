# after.c: who was to stay is cancelled
s/ \&\& !job->info.keep_never \&\& / \&\& /
