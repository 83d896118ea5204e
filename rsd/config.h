/* config.h - what rsd.conf and the options of rsd say. */
#ifndef ELMER_RSD_CONFIG_H
#define ELMER_RSD_CONFIG_H

#include <stdint.h>

#include "libelmer/base/err.h"

enum rsd_mode { RSD_MODE_AUTO, RSD_MODE_RT, RSD_MODE_IDLE, RSD_MODE_NONE, RSD_MODE_COUNT };
enum rsd_transport { RSD_TRANSPORT_NONE, RSD_TRANSPORT_PLAIN };

struct rsd_config {
    char elmer[300];              /* HOST:PORT, or the path of a socket (begins with '/') */
    enum rsd_transport transport; /* must be PLAIN when elmer is HOST:PORT: checked here */
    char name[256];               /* of this host, as in elmer.conf */
    enum rsd_mode mode;
    uint32_t minimum_uid;         /* root half starts nothing for uids below it */
    char cgroup_root[1024];       /* directory for the groups of jobs; "": found */
    char user[64];                /* of the network half */
    char rundir[64];              /* rsd.sock, sup/, jobs/ are below it; short, so that the sockets' paths fit */
    char supervisor[1024];        /* the elmer-supervisor program */
};

void rsd_config_default(struct rsd_config *config);
/* Defaults, then the file. A missing file is fine unless must_exist. -EINVAL/-errno with file, line, value and what is allowed. */
int rsd_config_read(struct rsd_config *config, const char *path, int must_exist, struct err *err);
const char *rsd_mode_name(enum rsd_mode mode);

#endif
