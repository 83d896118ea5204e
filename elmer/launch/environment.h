/* environment.h - what a job's processes find in their environment. */
#ifndef ELMER_LAUNCH_ENVIRONMENT_H
#define ELMER_LAUNCH_ENVIRONMENT_H

#include <stdbool.h>

#include "lib/memory/mem.h"
#include "lib/wire/wire.h"

struct environment_facts {
    const struct wire_submit *submit;
    uint64_t job;
    uint32_t rank;
    const char *const *ranks; /* [nprocs] host of each processor */
    const char *tmpdir;       /* of the job, on the host of the process */
    const char *pvmsock;      /* NULL: not known, or no PVM */
};

/* The user's own variables, but for those that are Elmer's, and then Elmer's. */
struct wire_strs environment_build(const struct environment_facts *facts, struct arena *memory);

#endif
