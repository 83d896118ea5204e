# alloc/pack.c: pack takes more hosts where that gives a better level
s/^    k = fewest_hosts(&by_level\[levels - 1\], request->nprocs, &total);/    while ((k = fewest_hosts(\&by_level[level], request->nprocs, \&total)) == NEVER \&\& level < levels - 1) level++;/
