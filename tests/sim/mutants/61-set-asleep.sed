# setting.c: the head of the queue is not looked at again by another allocator
s/^    queue_changed_space(core, UINT32_MAX);$/    (void)core;/
