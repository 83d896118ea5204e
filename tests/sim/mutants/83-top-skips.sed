# queue.c: the search goes on behind a job that was moved to the end, not where that was
s/^        if (queue->cursor == jobs\[i\]) .*$/        if (false)/
