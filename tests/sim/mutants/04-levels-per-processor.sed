# level.c: a job goes by one of its processors alone
s/if (above && above->info.level >= level)/if (above \&\& i == 0)/
