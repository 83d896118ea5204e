/* telling.h - a scenario that is played, and how its timeline is told. */
#ifndef ELMER_SIM_TELLING_H
#define ELMER_SIM_TELLING_H

#include <stdio.h>

#include "tests/sim/world.h"

enum { MAX_WORDS = 24, MAX_JOBS = 32, STEP_MS = 10 };

struct play {
    struct world world;
    struct core_options options;
    struct sim_coverage coverage;
    bool begun, verbose;
    char names[MAX_JOBS][16]; /* of job i + 1 */
    FILE *out;
    char *words[MAX_WORDS];
    int nwords;
    const char *error;
};

const char *telling_job(const struct play *play, uint64_t job); /* its name in the script */
/* For the world's callbacks; world->user is the play. */
void telling_change(struct world *world, const struct seen_job *before, const struct core_job *now);
void telling_action(struct world *world, const struct action *action);
void telling_lapse(struct world *world, int host, const struct sim_group *group);
/* Levels of all processors, and the queue. */
void telling_table(struct play *play);

/* The whole file, malloc'd, or NULL; prints the first line that differs. */
char *telling_file(const char *path);
void telling_difference(const char *expected, const char *got);

#endif
