# queue.c: who needs more memory than the hosts have that are up waits as the first
s/cpus += room_supply(core->hosts\[job->hosts ? job->hosts\[i\] : i\], &demand);/cpus += host_supply(core->hosts[job->hosts ? job->hosts[i] : i]);/
