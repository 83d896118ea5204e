/* root.h - the root half of rsd: makes jobs' groups, ranks what runs in them, ends them. Verbs come from the network
 * half; see root.c. */
#ifndef RSD_ROOT_H
#define RSD_ROOT_H

#include <sys/types.h>

#include "rsd/config.h"

/* Run until SIGTERM (0) or until the network half is gone or talks garbage (1; a restart adopts what lives). fd_net:
 * socketpair to the network half (taken over); net_pid: its process, 0 in tests. Jobs and their supervisors live on in
 * every case. */
int rsd_root_main(int fd_net, pid_t net_pid, const struct rsd_config *config);

#endif
