/* judge.h - what the files of the judge share: what it remembers of jobs. */
#ifndef ELMER_SIM_JUDGE_H
#define ELMER_SIM_JUDGE_H

#include "tests/sim/world.h"

#define ID(job) ((unsigned long long)(job)->id)

bool judge_has_cluster(enum job_state state);
struct seen_job *judge_seen(struct world *world, uint64_t job); /* NULL: there is none */
/* The attempt has processors of that host. */
bool judge_belongs(struct world *world, uint64_t job, uint32_t attempt, int host);

#endif
