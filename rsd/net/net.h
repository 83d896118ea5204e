/* net.h - the network half of rsd: links to elmer and to local users, utilisation; no privilege, decides nothing. */
#ifndef RSD_NET_H
#define RSD_NET_H

#include "rsd/config.h"

/* Run until SIGTERM or until the root half is gone. root_fd: socketpair to the root half (channel.h on its side, no
 * hello); listen_fd: bound unix socket for local users, -1: none. Both are taken over. Returns 0 after SIGTERM, or
 * -errno after having logged why. */
int rsd_net_main(int root_fd, int listen_fd, const struct rsd_config *config);

#endif
