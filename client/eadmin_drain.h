/* eadmin_drain.h - hosts that get no new jobs, and waiting until they have none. */
#ifndef CLIENT_EADMIN_DRAIN_H
#define CLIENT_EADMIN_DRAIN_H

#include "client/eadmin.h"

struct drain {
    const char *reason;
    bool wait, kills;
    uint64_t kill_after_ms;
    char **hosts; /* [nhosts] */
    int nhosts;
};

/* The options and the hosts; --wait is one of them unless wait is set already. -1, or the exit code of the command. */
int eadmin_parse_drain(struct drain *drain, int argc, char **argv);
/* Do so. The exit code. */
int eadmin_drain_hosts(struct drain *drain);

#endif
