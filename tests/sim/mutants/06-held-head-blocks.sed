# queue.c: a job that is not eligible stops the search
s/^            queue->cursor = next_of(job);$/            queue->refused = true;/
