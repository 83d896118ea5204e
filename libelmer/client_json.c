/* client_json.c - jobs as JSON, and why they wait. A file of its own: who does not call it does not load the library
 * that it is made with, which would show in a command that takes 2 ms. */
#include "config.h"

#include <stdlib.h>

#include "libelmer/client.h"
#include "lib/wire/json_out.h"

char *elmer_jobs_json(const struct elmer_jobs *jobs)
{
    const struct wire_job_view *const *views = client_views(jobs);

    return views ? json_out_jobs(views, jobs->count) : NULL;
}

char *client_explained_json(const struct elmer_explained *const *explained, size_t count)
{
    struct json_out_pages *jobs = calloc(count + 1, sizeof(*jobs));
    char *text;

    if (!jobs)
        return NULL;
    for (size_t i = 0; i < count; i++)
        jobs[i].items = client_explained_pages(explained[i], &jobs[i].count);
    text = json_out_why(jobs, count);
    free(jobs);
    return text;
}

char *elmer_explained_json(const struct elmer_explained *explained)
{
    return client_explained_json(&explained, 1);
}
