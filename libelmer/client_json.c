/* client_json.c - jobs as JSON. A file of its own: who does not call it does not load the library that it is made with,
 * which would show in a command that takes 2 ms. */
#include "config.h"

#include "libelmer/client.h"
#include "lib/wire/json_out.h"

char *elmer_jobs_json(const struct elmer_jobs *jobs)
{
    const struct wire_job_view *const *views = client_views(jobs);

    return views ? json_out_jobs(views, jobs->count) : NULL;
}
