/* output.h - where the output of a job's processes goes, made of what is shown of the job: a name in which %r stands
 * for the rank and %% for a percent sign. */
#ifndef LIB_JOB_OUTPUT_H
#define LIB_JOB_OUTPUT_H

#include <stdint.h>

/* The path of this rank, absolute if dir is; to be freed. NULL: no memory. */
char *output_path(const char *dir, const char *name, uint32_t rank);

/* All that may run as a job whose supervisor reads for its user what another one has left (requests/notice.c). */
#define OUTPUT_HOLDER         "/bin/sleep"
#define OUTPUT_HOLDER_SECONDS "60"

#endif
