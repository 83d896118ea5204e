# queue.c: the first one gets the place of the job that is moved
s/ = i + 1 < count ? own\[i + 1\]->info.place : last;/ = i > 0 ? own[i]->info.place : last;/
