/* again.h - which jobs and tasks eretry is to run again. */
#ifndef CLIENT_AGAIN_H
#define CLIENT_AGAIN_H

#include "client/common.h"
#include "client/refs.h"
#include "lib/job/tasks.h"

/* One job, or tasks of one array, that are to run again. */
struct again {
    uint64_t id; /* of the job, or the array */
    struct tasks all, wanted;
    bool is_array, some; /* some: of the tasks */
    bool *chosen;        /* [all.count] */
    uint32_t nchosen;
    uint32_t nfailed, nforgotten; /* of the array so far; of those looked at: of which elmer says nothing */
};

/* What is named there, or of that what has failed. -1: again has it (chosen is the caller's then, as in any case); else
 * the exit code: it has said why not. */
int again_look_up(struct elmer *elmer, bool failed, const struct ref *ref, struct again *again);

#endif
