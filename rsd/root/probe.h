/* probe.h - does the kernel let jobs into the real-time class here? Tried, not guessed. */
#ifndef RSD_PROBE_H
#define RSD_PROBE_H

#include <stddef.h>

#include "rsd/config.h"
#include "rsd/root/order.h"

/* A trial process in a leaf of its own below root_fd: 0, or the errno with which real time is refused to it; negative
 * errno: no process can be born there. */
int probe_rt(int root_fd);
/* The mode that holds, given what probe_rt() has said. why: a sentence why it is not rt, or "". -EPERM with a sentence:
 * mode = rt was demanded and is refused. */
int probe_mode(enum rsd_mode wanted, int refusal, enum order_mode *mode, char *why, size_t size, struct err *err);

#endif
