# array.c: an array at its limit sleeps on when one of its tasks has ended
/if (array->in_queue.in)/{N;/queue_changed_job/d}
