/* json_out.h - jobs as JSON for people's scripts (schema elmer.jobs/1), not for the wire. */
#ifndef LIB_WIRE_JSON_OUT_H
#define LIB_WIRE_JSON_OUT_H

#include <stddef.h>

#include "lib/wire/wire.h"

/* {"schema":"elmer.jobs/1","jobs":[..]}, malloc'd, NUL-terminated, without a newline at its end; NULL when out of
 * memory. What is not known is null. */
char *json_out_jobs(const struct wire_job_view *const *views, size_t count);

#endif
