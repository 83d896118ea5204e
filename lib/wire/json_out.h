/* json_out.h - jobs (schema elmer.jobs/1), and why they wait (elmer.why/1), as JSON for people's scripts, not for the
 * wire. */
#ifndef LIB_WIRE_JSON_OUT_H
#define LIB_WIRE_JSON_OUT_H

#include <stddef.h>

#include "lib/wire/wire.h"

/* {"schema":"elmer.jobs/1","jobs":[..]}, malloc'd, NUL-terminated, without a newline at its end; NULL when out of
 * memory. What is not known is null. */
char *json_out_jobs(const struct wire_job_view *const *views, size_t count);

/* What came of one job: messages `explained`, at least one. */
struct json_out_pages {
    const struct wire_message *items;
    size_t count;
};
/* {"schema":"elmer.why/1","jobs":[..]}, likewise. */
char *json_out_why(const struct json_out_pages *jobs, size_t count);

#endif
