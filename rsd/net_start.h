/* net_start.h - start the program of the network half as a user without rights. */
#ifndef RSD_NET_START_H
#define RSD_NET_START_H

#include <sys/types.h>

#include "lib/base/err.h"
#include "rsd/net/plan.h"

/* A child that ends with us. The descriptors, -1 for none, stay ours; size and version of the plan are put in. Its pid,
 * or -errno; what fails in the child is in the log. */
pid_t net_start(struct net_plan *plan, uid_t uid, gid_t gid, int root_fd, int listen_fd, struct err *err);

#endif
