# life.c: the end of a job does not wake the queue
s/^    queue_changed_rows(core, changed);$//
