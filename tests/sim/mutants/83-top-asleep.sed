# queue.c: nobody looks who is first then
s/^        queue_changed_job(core, jobs\[i\]);$/        core->queue.refused = core->queue.refused;/
