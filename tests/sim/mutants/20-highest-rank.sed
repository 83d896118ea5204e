# life.c: the status is that of the highest rank that failed
s/if (failed && rank < job->info.failed_rank) {/if (failed \&\& rank + 1 > job->info.failed_rank + 1) {/
