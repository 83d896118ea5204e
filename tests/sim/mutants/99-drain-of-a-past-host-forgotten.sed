# restore.c: a restart forgets that a host was drained which is none of the cluster now
s/^    core->hosts\[index\]->info.drained = drained;$/    (void)drained;/
