# life.c: the end of a job does not wake the queue
s/^    queue_changed_space(core, UINT32_MAX);$//
