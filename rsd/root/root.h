/* root.h - the root half of rsd: makes jobs' groups, ranks what runs in them, ends them. Verbs come from the network
 * half; see root.c. */
#ifndef RSD_ROOT_H
#define RSD_ROOT_H

#include <sys/types.h>

#include "lib/ticket/program.h"
#include "rsd/config.h"

/* elmer-tickets beside the root half. */
struct rsd_tickets {
    int fd;     /* which it answers on */
    int grants; /* what elmer-spawn hears it on: see struct ticket_grant */
    pid_t pid;
    struct ticket_verdict opening; /* of the job that is being opened */
    bool gone;                     /* it has not answered: rsd starts again, and is asked again then */
};

enum { RSD_EXIT_AGAIN = 75 };

/* Run until SIGTERM (0), until the network half is gone or talks garbage (1), or until SIGHUP (RSD_EXIT_AGAIN: the
 * files are others, and nothing of them is read yet); a restart adopts what lives. -ECANCELED: it could not begin, and
 * has said why. fd_net: socketpair to the network half (taken over); net_pid: its process, 0 in tests. tickets: what
 * rsd_tickets_start() has made, or NULL: then none can be judged. Jobs and their supervisors live on in every case. */
int rsd_root_main(int fd_net, pid_t net_pid, const struct rsd_config *config, struct rsd_tickets *tickets);

#endif
