# emit.c: a job counts as lowest though others are below it
s/^            entry->lowest = false;$/            entry->lowest = true;/
