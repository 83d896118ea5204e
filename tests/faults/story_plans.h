/* story_plans.h - the jobs of the story, and what is to become of each. */
#ifndef TESTS_FAULTS_STORY_PLANS_H
#define TESTS_FAULTS_STORY_PLANS_H

#include "tests/faults/story.h"

struct plan {
    const char *name, *script;
    uint32_t nprocs;
    bool each;
    const char *state, *reason;
    int exit_status;
    unsigned ranks;    /* that run */
    const char *tasks; /* of an array; NULL: none */
    struct {
        const char *kind;
        enum story_job job;
        unsigned task; /* of an array, counted from 1; 0: all of the job */
    } after[2];        /* kind NULL: nothing */
    bool keep_never, requeue, limit_requeue;
    uint64_t time_limit_ms, cpu_limit_ms, memory_bytes;
    const char *lines; /* of the array */
};
extern const struct plan story_plans[STORY_JOBS];

#endif
