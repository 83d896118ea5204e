# queue.c: those that were before a job that is moved change their order
s/^        jobs\[i\]->info.place = places\[i\];$/        jobs[i]->info.place = places[i == 0 ? 0 : count - i];/
