# level.c: a job goes by one of its processors alone
s/if (above != NULL && above->info.level >= level)/if (above != NULL \&\& i == 0)/
