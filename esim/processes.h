/* processes.h - simulations side by side, each in a process of its own. */
#ifndef ESIM_PROCESSES_H
#define ESIM_PROCESSES_H

#include "esim/run.h"

/* work() writes results[i], which these processes share, for each i < count; at most so many at a time. A result that
 * is not done has a fault in the end. progress: how many have begun, on a terminal, or NULL. */
void processes_run(struct result *results, size_t count, int at_a_time, void (*work)(size_t i, void *data), void *data,
                   FILE *progress);
/* Memory that processes share with those that they make; NULL: there is none, and errno. munmap() gives it back. */
void *processes_memory(size_t size);

#endif
