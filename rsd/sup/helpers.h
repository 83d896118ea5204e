/* helpers.h - what helpers of a job need, the daemons and the agent of its virtual machine, and what its command needs
 * because of them. Its .c file is the one place of the supervisor that knows which virtual
 * machine that is. */
#ifndef RSD_SUP_HELPERS_H
#define RSD_SUP_HELPERS_H

#include "lib/wire/wire.h"
#include "rsd/sup/environment.h"
#include "rsd/sup/sup.h"

/* Where the programs of helpers are: as rsd has said in our own environment, of which nothing reaches the job; else the
 * build's. */
void helpers_find(struct sup *sup);

enum { HELPERS_SETTINGS = 2 };
/* What a process of that role gets over what came with the job, at most HELPERS_SETTINGS of them: their number, 0 in a
 * job without helpers; -ENOMEM. *made is freed after use. */
int helpers_settings(const struct sup *sup, enum job_role role, const struct wire_strs *given, struct setting *settings,
                     char **made);

#endif
