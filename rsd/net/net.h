/* net.h - the network half of rsd: links to elmer and to local users, utilisation; no privilege, decides nothing. */
#ifndef RSD_NET_H
#define RSD_NET_H

#include "rsd/config.h"

struct door;
/* Run until SIGTERM or until the root half is gone. root_fd: socket to the root half (channel.h on its side, no hello);
 * listen_fd: bound unix socket for local users, -1: none. Both are taken over. door: where the root half joins again
 * when it has gone, and then it is waited for; NULL: nowhere. Returns 0 after SIGTERM, SERVICE_AGAIN: to be started
 * anew, as the door says, or -errno after having logged why. */
int rsd_net_main(int root_fd, int listen_fd, struct door *door, const struct rsd_config *config);

#endif
