# life.c: a job is done when the first of its hosts is empty
s/if (--job->unempty == 0)/if (--job->unempty >= 0)/
