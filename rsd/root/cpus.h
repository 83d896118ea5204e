/* cpus.h - sets of CPUs between messages and the kernel. */
#ifndef RSD_CPUS_H
#define RSD_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false: a number that does not fit. */
bool cpus_from_list(const uint64_t *list, size_t count, cpu_set_t *set);
/* Returns how many; list has room for CPU_SETSIZE. */
size_t cpus_to_list(const cpu_set_t *set, uint64_t *list);
bool cpus_within(const cpu_set_t *inner, const cpu_set_t *outer);

#endif
