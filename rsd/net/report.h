/* report.h - what is told of the utilisation of this host. */
#ifndef RSD_REPORT_H
#define RSD_REPORT_H

#include "lib/base/log.h"
#include "rsd/net/uplink.h"
#include "rsd/net/usage.h"

/* Which processors jobs have by it. */
void report_order(struct usage *usage, const struct wire_order *order);
/* To elmer, of the time since the last one. */
void report_send(struct usage *usage, struct uplink *uplink, struct log_limit *limit);

#endif
