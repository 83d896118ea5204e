/* rsd.h - where the two halves of rsd meet: main.c forks, each half runs its function. */
#ifndef ELMER_RSD_H
#define ELMER_RSD_H

#include "rsd/config.h"

/* Network half: already the unprivileged user, in its own process. fd_root: a channel to the root half (we are WIRE_FROM_HOST, it is WIRE_FROM_ROOT); fd_listen: the bound
 * and listening rsd.sock. Owns both. Returns the exit status of the process; ends with 0 when fd_root is closed. */
int rsd_net_main(int fd_root, int fd_listen, const struct rsd_config *config);

/* Root half: the main process. fd_net: a channel to the network half; net_pid: its process (0: none, in tests). Owns fd_net. Returns the exit status; jobs and supervisors live on. */
int rsd_root_main(int fd_net, int net_pid, const struct rsd_config *config);

#endif
