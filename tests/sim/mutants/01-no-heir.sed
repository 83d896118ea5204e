# level.c: nobody moves up when a job ends
s/if (level == job->info.level)$/if (level <= job->info.level)/
