# queue.c: the first one gets the place of the job that is moved
s/ = place == last ? first : own\[next\]->info.place;/ = place == last ? first : i == 0 ? last : place;/
