# life.c: a job is launched when the first of its hosts has opened
s/if (--job->unopened > 0 || job->launched)/if (job->unopened-- <= 0 || job->launched)/
