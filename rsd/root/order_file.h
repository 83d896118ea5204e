/* order_file.h - the last order, kept for the next root half: until elmer speaks to that, jobs keep the ranks they had.
 */
#ifndef RSD_ROOT_ORDER_FILE_H
#define RSD_ROOT_ORDER_FILE_H

#include "rsd/config.h"
#include "rsd/root/order.h"

/* In rundir, which is in memory. An order that cannot be kept is only logged. */
void order_file_keep(const struct rsd_config *config, const struct wire_order *message);
/* Its jobs, with generation 0, so that every order from elmer is newer. */
void order_file_recall(const struct rsd_config *config, struct order *order);

#endif
