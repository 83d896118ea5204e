/* probe.h - does the kernel let jobs into the real-time class here? Tried, not guessed. */
#ifndef RSD_PROBE_H
#define RSD_PROBE_H

#include <stddef.h>

#include "rsd/config.h"
#include "rsd/root/order.h"

/* The mode that holds. leaf_fd: a group where a process may be put for the trial. why: a sentence why it is not rt, or
 * "". -EPERM with a sentence: mode = rt was demanded and is refused. */
int probe_mode(enum rsd_mode wanted, int leaf_fd, enum order_mode *mode, char *why, size_t size, struct err *err);

#endif
