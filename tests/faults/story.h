/* story.h - what a user does in each world, and how it came out. */
#ifndef TESTS_FAULTS_STORY_H
#define TESTS_FAULTS_STORY_H

#include <stdatomic.h>

#include "tests/faults/world.h"

enum story_job {
    JOB_GANG,
    JOB_STATUS,
    JOB_ENDLESS,
    JOB_LIMITED,
    JOB_AGAIN,
    JOB_LATE,
    JOB_AFTER,
    JOB_THEN,
    JOB_NEVER,
    JOB_TASKS,
    JOB_LINES,
    JOB_ANY,
    JOB_INDEX,
    JOB_KEPT,
    JOB_PARTS,
    JOB_HELD,
    JOB_COMPUTES,
    STORY_JOBS
};
enum { RANKS_MAX = 4 };

struct outcome {
    uint64_t id; /* 0: never accepted */
    char state[16], reason[32], text[200];
    int exit_status, signal;
    unsigned tasks_ok, tasks_failed; /* of an array */
    uint64_t time_limit_ms, cpu_limit_ms, memory_bytes;
    double cpu_ms;
    unsigned runs[RANKS_MAX]; /* marker lines; of an array, by index; of a job with requeue, by attempt */
};

struct story {
    struct outcome jobs[STORY_JOBS];
    atomic_int turn; /* whose: the user's (even) or the administrator's (odd) */
    char problem[400];
};

/* Play it in a started world: the user submits, cancels and ends jobs and waits for all of them; in the middle the
 * administrator restarts elmer and rsd. Then elmer is killed once more, and what it says of the jobs must be what
 * the user was told. Returns false with world->err. The story is in shared memory. */
bool story_play(struct world *world, struct story *story);
struct story *story_create(void);

/* The first job that did not come out as it does undisturbed, as a text in out; NULL: none.
 * died: who was ended, KIND_NONE for nobody. The job of a supervisor that died may have ended with another reason, and
 * what waited for it may have run, or may not; where elmer died together with the answer to ekill, the job has ended by
 * a signal.
 */
const char *story_wrong(const struct story *story, enum kind died, char *out, size_t size);
/* Accepted jobs, those without a result, and ranks that ran twice. */
void story_count(const struct story *story, unsigned *jobs, unsigned *lost, unsigned *doubled);

#endif
