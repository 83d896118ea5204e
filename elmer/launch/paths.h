/* paths.h - file names by pattern: %j job id, %u user, %x name of the job, %r rank, %% a percent sign. */
#ifndef ELMER_LAUNCH_PATHS_H
#define ELMER_LAUNCH_PATHS_H

#include <stdint.h>

#include "lib/memory/mem.h"
#include "lib/base/err.h"

#define PATH_DEFAULT      "elmer-%j.out"
#define PATH_DEFAULT_EACH "elmer-%j.%r.out"

/* 0, or negative with what is wrong with the pattern of what ("output"). */
int path_check(const char *pattern, const char *what, struct err *err);
/* A checked pattern with everything filled in; NULL when it gets longer than a path may be. */
const char *path_expand(struct arena *memory, const char *pattern, uint64_t job, const char *user, const char *name,
                        uint32_t rank);
/* The same for all ranks: %r and %% stay. */
const char *path_expand_job(struct arena *memory, const char *pattern, uint64_t job, const char *user,
                            const char *name);

#endif
