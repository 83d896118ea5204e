/* environment.h - what a job's processes find in their environment. */
#ifndef ELMER_LAUNCH_ENVIRONMENT_H
#define ELMER_LAUNCH_ENVIRONMENT_H

#include <stdbool.h>

#include "lib/memory/mem.h"
#include "lib/wire/wire.h"

struct environment_facts {
    const struct wire_submit *submit;
    uint64_t job;
    uint64_t array;   /* 0: it is no task of one */
    int64_t index;    /* of it */
    const char *line; /* of a task that has one; NULL: it has none */
    uint32_t rank;
    const char *const *ranks; /* [nprocs] host of each processor */
    uint32_t mesh_rows;       /* 0: it has no shape */
    const char *address; /* of its host as the others see it; "": not known, or the host does not know the variable */
    const char *tmpdir;  /* of the job, on the host of the process */
    /* Of its launcher: names that are not the user's, [..NULL], may be NULL; and what is set. */
    const char *const *reserved;
    struct wire_strs variables;
};

/* The user's own variables, but for those that are Elmer's or the launcher's, then Elmer's, then the launcher's. */
struct wire_strs environment_build(const struct environment_facts *facts, struct arena *memory);

#endif
