/* launchers.h - which launchers this host can run: the other side of elmer/engine/launchers.h. */
#ifndef RSD_NET_LAUNCHERS_H
#define RSD_NET_LAUNCHERS_H

#include "lib/wire/wire.h"
#include "rsd/config.h"

/* Fill in what elmer is told of that. */
void launchers_offer(const struct rsd_config *config, struct wire_host_hello *hello);

#endif
