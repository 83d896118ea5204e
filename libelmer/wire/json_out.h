/* json_out.h - jobs as JSON for people's scripts (schema elmer.jobs/1), not for the wire. */
#ifndef ELMER_JSON_OUT_H
#define ELMER_JSON_OUT_H

#include <stddef.h>

#include "libelmer/wire/wire.h"

/* {"schema":"elmer.jobs/1","jobs":[..]}, malloc'd, NUL-terminated, without a newline at its end; NULL when out of
 * memory. What is not known is null. */
char *json_out_jobs(const struct wire_job_view *const *views, size_t count);

#endif
