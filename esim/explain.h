/* explain.h - tells the way of one job: why it waits, and where it starts. */
#ifndef ESIM_EXPLAIN_H
#define ESIM_EXPLAIN_H

#include <stdio.h>

#include "elmer/core/core.h"

struct explain {
    FILE *told;      /* there */
    uint64_t number; /* of the job; 0: none */
    uint64_t id;     /* the core's, while it is told of; 0: not yet, or no more */
    bool seen;
    char last[200];
};

/* At ms of virtual time. */
void explain_say(const struct explain *explain, int64_t ms, const char *why);
/* If it waits for something else than before. */
void explain_wait(struct explain *explain, struct core *core, int64_t ms);
/* It is over for the one that is told of, as why says; NULL: as all know. */
void explain_end(struct explain *explain, int64_t ms, const char *why);

#endif
