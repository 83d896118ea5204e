/* client_hosts_json.c - hosts as JSON. A file of its own, as client_json.c. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>

#include "libelmer/client.h"

/* jansson takes NULL in place of a value for an error, and json_pack() too: one check at the end is enough. */
static json_t *jobs_array(const struct elmer_jobs *jobs, const char *host)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; jobs && i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];
        size_t count = client_share(job, host);

        if (count > 0)
            bad |= json_array_append_new(list,
                                         json_pack("{s:I, s:s, s:o, s:I}", "id", (json_int_t)job->id, "user", job->user,
                                                   "level", job->level >= 0 ? json_integer(job->level) : json_null(),
                                                   "processors", (json_int_t)count));
    }
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *lacks_array(const struct elmer_host *host)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < host->nlacks; i++)
        bad |= json_array_append_new(list, json_string(host->lacks[i]));
    if (bad) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *bytes_or_null(int64_t bytes)
{
    return bytes > 0 ? json_integer(bytes) : json_null();
}

static json_t *asked_or_null(const struct elmer_host *host)
{
    return host->memory_for_jobs_bytes > 0 ? json_integer((json_int_t)host->memory_asked_bytes) : json_null();
}

static json_t *share_or_null(double share)
{
    return share >= 0 ? json_real(share) : json_null();
}

static json_t *host_object(const struct elmer_host *host, const struct elmer_jobs *jobs)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "host", host->host, "state",
                     host->state, "processors", (json_int_t)host->processors, "mode", host->mode, "reason",
                     host->reason, "lacks", lacks_array(host), "busy", share_or_null(host->busy), "busy_jobs",
                     share_or_null(host->busy_jobs), "memory_bytes", bytes_or_null(host->memory_bytes),
                     "memory_free_bytes", bytes_or_null(host->memory_free_bytes), "memory_for_jobs_bytes",
                     bytes_or_null((int64_t)host->memory_for_jobs_bytes), "memory_asked_bytes", asked_or_null(host),
                     "jobs", jobs_array(jobs, host->host));
}

static char *text_of(json_t *list, bool bad)
{
    json_t *root = bad ? NULL : json_pack("{s:s, s:O}", "schema", "elmer.hosts/1", "hosts", list);
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;

    json_decref(root);
    json_decref(list);
    return text;
}

char *client_hosts_json(const struct elmer_host *const *hosts, size_t count, const struct elmer_jobs *jobs)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < count && !bad; i++)
        bad = json_array_append_new(list, host_object(hosts[i], jobs));
    return text_of(list, bad || !list);
}

char *elmer_host_list_json(const struct elmer_host_list *hosts, const struct elmer_jobs *jobs)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < hosts->count && !bad; i++)
        bad = json_array_append_new(list, host_object(&hosts->items[i], jobs));
    return text_of(list, bad || !list);
}
