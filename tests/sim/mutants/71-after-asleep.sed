# after.c: who waits for others is not looked at when it has happened
s/^            queue_changed_job(core, wait->job);$/            continue;/
