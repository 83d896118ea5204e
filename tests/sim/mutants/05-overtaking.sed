# queue.c: a refused head lets the others pass
s/^            queue->refused = true;$/            queue->cursor = next_of(job);/
