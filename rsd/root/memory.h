/* memory.h - the last order, kept for the next root half: until elmer speaks to that, jobs keep the ranks they had. */
#ifndef RSD_MEMORY_H
#define RSD_MEMORY_H

#include "rsd/config.h"
#include "rsd/root/order.h"

/* In rundir, which is in memory. An order that cannot be kept is only logged. */
void memory_keep(const struct rsd_config *config, const struct wire_order *message);
/* Its jobs, with generation 0, so that every order from elmer is newer. */
void memory_recall(const struct rsd_config *config, struct order *order);

#endif
