/* paths.h - file names by pattern: %j job id, %u user, %x name of the job, %r rank, %A id of the array, %a index of the
 * task,
 * %% a percent sign. */
#ifndef ELMER_LAUNCH_PATHS_H
#define ELMER_LAUNCH_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/memory/mem.h"
#include "lib/base/err.h"

#define PATH_DEFAULT           "elmer-%j.out"
#define PATH_DEFAULT_EACH      "elmer-%j.%r.out"
#define PATH_DEFAULT_TASK      "elmer-%A.%a.out"
#define PATH_DEFAULT_TASK_EACH "elmer-%A.%a.%r.out"

/* 0, or negative with what is wrong with the pattern of what ("output"). */
int path_check(const char *pattern, const char *what, struct err *err);
/* A checked pattern with everything filled in; NULL when it gets longer than a path may be. */
struct path_facts {
    uint64_t job, array; /* array: of a job that is no task, its own id */
    int64_t index;       /* and 0 */
    const char *user, *name;
    uint32_t rank;
    bool ranks; /* for all of them: %r and %% stay, and a percent sign of a name is doubled */
};
const char *path_expand(struct arena *memory, const char *pattern, const struct path_facts *facts);

#endif
