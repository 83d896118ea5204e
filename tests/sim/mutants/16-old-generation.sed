# emit.c: a changed order goes out under the old generation
s/^        host->info.generation++;$/        host->info.generation += host->info.generation == 0;/
