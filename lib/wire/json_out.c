/* json_out.c - jobs as JSON for people's scripts. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/job/output.h"
#include "lib/wire/json_out.h"

/* jansson's *_new functions take a NULL value for an error, so that one check at the end of an object is enough. */
static json_t *number_or_null(int64_t value, int64_t from)
{
    return value >= from ? json_integer((json_int_t)value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static json_t *seconds_or_null(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
    char text[40];

    if (ms < 0)
        return json_null();
    wall_format((struct wall){.ms = ms}, text, sizeof(text));
    return json_string(text);
}

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

/* Each host once, in the order of the ranks; the processors of a host stand together. */
static json_t *json_cluster(const struct wire_job_view *view)
{
    json_t *array = json_array();
    const char *last = NULL;
    int bad = 0;

    for (size_t i = 0; array && i < view->processors.count; i++) {
        const char *host = view->processors.items[i].host;

        if (!last || strcmp(last, host) != 0)
            bad |= json_array_append_new(array, json_string(host));
        last = host;
    }
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *json_processors(const struct wire_job_view *view)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < view->processors.count; i++) {
        json_t *item = json_object();

        bad |= set(item, "host", json_string(view->processors.items[i].host));
        bad |= set(item, "cpu", json_integer((json_int_t)view->processors.items[i].cpu));
        bad |= json_array_append_new(array, item);
    }
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *json_usage(const struct wire_job_view *view)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < view->usage.count; i++) {
        const struct wire_usage *usage = &view->usage.items[i];
        json_t *item = json_object();

        bad |= set(item, "host", json_string(usage->host));
        bad |= set(item, "cpu_seconds", seconds_or_null(usage->cpu_seconds));
        bad |= set(item, "memory_peak_bytes", number_or_null(usage->memory_peak_bytes, 0));
        bad |= json_array_append_new(array, item);
    }
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *json_strings(const struct wire_strs *list)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < list->count; i++)
        bad |= json_array_append_new(array, json_string(list->items[i]));
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *json_command(const struct wire_job_view *view)
{
    return json_strings(&view->command);
}

static json_t *json_after(const struct wire_job_view *view)
{
    return json_strings(&view->after);
}

static json_t *json_waits_for(const struct wire_job_view *view)
{
    return json_strings(&view->waits_for);
}

static json_t *path_or_null(const struct wire_job_view *view, const char *name, uint32_t rank)
{
    char *path = *name ? output_path(view->dir, name, rank) : NULL;
    json_t *text = path ? json_string(path) : json_null();

    free(path);
    return text;
}

/* One for each process of the command; empty as long as it has no processors. */
static json_t *json_output(const struct wire_job_view *view)
{
    size_t ranks = view->each || view->processors.count == 0 ? view->processors.count : 1;
    const char *errors = *view->errors ? view->errors : view->output;
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < ranks; i++) {
        json_t *item = json_object();

        bad |= set(item, "rank", json_integer((json_int_t)i));
        bad |= set(item, "host", json_string(view->processors.items[i].host));
        bad |= set(item, "path", path_or_null(view, view->output, (uint32_t)i));
        bad |= set(item, "errors", path_or_null(view, errors, (uint32_t)i));
        bad |= json_array_append_new(array, item);
    }
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

/* An elmer of before says nothing of either. */
static json_t *json_index(const struct wire_job_view *view)
{
    return view->array ? json_integer((json_int_t)view->index) : json_null();
}

static json_t *json_notice(const struct wire_job_view *view)
{
    return json_boolean(view->notice);
}

static json_t *json_level_seconds(const struct wire_job_view *view)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < view->level_seconds.count; i++)
        bad |= json_array_append_new(array, json_real(view->level_seconds.items[i]));
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

/* The forms of job.def, each an expression with the view; OWN: json_NAME(view), above. */
#define JSON_NUMBER(name)   json_integer((json_int_t)view->name)
#define JSON_KNOWN(name)    number_or_null(view->name, 0)
#define JSON_POSITIVE(name) number_or_null((int64_t)view->name, 1)
#define JSON_STRING(name)   json_string(view->name)
#define JSON_TEXT(name)     text_or_null(view->name)
#define JSON_TIME(name)     time_or_null(view->name)
#define JSON_OWN(name)      json_##name(view)

/* What only the owner sees is null for others. */
#define PUT_JSON(form, key) YES, form, #key
#define PUT_NO              NO, NUMBER, ""
#define PUT(...)            PUT_(__VA_ARGS__)
#define PUT_(answer, form, key, name, seen)                                                                            \
    JOB_CODE(answer, bad |= set(job, key, JOB_SEEN_##seen(!view->hidden, JSON_##form(name), json_null()));)
#define PUT_ASKED(name, type, core, since, shown, line, seen, json, ...)       PUT(PUT_##json, name, seen)
#define PUT_KEPT(name, type, cell, core, column, shown, line, seen, json, ...) PUT(PUT_##json, name, seen)
#define PUT_MADE(name, type, shown, line, seen, json, ...)                     PUT(PUT_##json, name, seen)

static json_t *job_object(const struct wire_job_view *view)
{
    json_t *job = json_object();
    int bad = 0;

    if (!job)
        return NULL;
    bad |= set(job, "id", json_integer((json_int_t)view->job));
    JOB_FIELDS(PUT_ASKED, PUT_KEPT, PUT_MADE)
    if (bad) {
        json_decref(job);
        return NULL;
    }
    return job;
}

/* The list becomes a part of it. bad: something could not be put in. */
static char *text_of_jobs(const char *schema, json_t *jobs, int bad)
{
    json_t *root = json_object();
    char *text = NULL;

    bad |= set(root, "schema", json_string(schema));
    bad |= set(root, "jobs", jobs);
    if (!bad)
        text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(root);
    return text;
}

char *json_out_jobs(const struct wire_job_view *const *views, size_t count)
{
    json_t *jobs = json_array();
    int bad = 0;

    for (size_t i = 0; i < count && !bad; i++)
        bad = json_array_append_new(jobs, job_object(views[i]));
    return text_of_jobs("elmer.jobs/1", jobs, bad);
}

/* ---- why they wait ---- */

static json_t *host_why(const struct wire_host_why *host)
{
    json_t *item = json_object();
    int bad = 0;

    bad |= set(item, "host", json_string(host->host));
    bad |= set(item, "rule", json_string(host->rule));
    bad |= set(item, "processors", json_integer((json_int_t)host->processors));
    bad |= set(item, "usable", json_integer((json_int_t)host->usable));
    bad |= set(item, "text", json_string(host->text));
    bad |= set(item, "help", text_or_null(host->help));
    if (bad) {
        json_decref(item);
        return NULL;
    }
    return item;
}

static json_t *hosts_why(const struct json_out_pages *pages)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < pages->count; i++)
        for (size_t k = 0; k < pages->items[i].u.explained.hosts.count; k++)
            bad |= json_array_append_new(array, host_why(&pages->items[i].u.explained.hosts.items[k]));
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

static json_t *json_ids(const struct wire_uints *ids)
{
    json_t *array = json_array();
    int bad = 0;

    for (size_t i = 0; array && i < ids->count; i++)
        bad |= json_array_append_new(array, json_integer((json_int_t)ids->items[i]));
    if (bad) {
        json_decref(array);
        return NULL;
    }
    return array;
}

/* The job's own values are the same in each of the messages. */
static json_t *job_why(const struct json_out_pages *pages)
{
    const struct wire_explained *why = &pages->items[0].u.explained;
    json_t *job = json_object();
    int bad = 0;

    bad |= set(job, "id", json_integer((json_int_t)why->job));
    bad |= set(job, "state", json_string(why->state));
    bad |= set(job, "nprocs", json_integer((json_int_t)why->nprocs));
    bad |= set(job, "level", number_or_null(why->level, 0));
    bad |= set(job, "reason_code", json_string(why->reason_code));
    bad |= set(job, "reason", text_or_null(why->reason));
    bad |= set(job, "help", text_or_null(why->help));
    bad |= set(job, "ahead", json_integer((json_int_t)why->ahead));
    bad |= set(job, "first", number_or_null((int64_t)why->first, 1));
    bad |= set(job, "first_reason", text_or_null(why->first_reason));
    bad |= set(job, "above", json_ids(&why->above));
    bad |= set(job, "hosts", hosts_why(pages));
    if (bad) {
        json_decref(job);
        return NULL;
    }
    return job;
}

char *json_out_why(const struct json_out_pages *jobs, size_t count)
{
    json_t *list = json_array();
    int bad = 0;

    for (size_t i = 0; i < count && !bad; i++)
        bad = json_array_append_new(list, job_why(&jobs[i]));
    return text_of_jobs("elmer.why/1", list, bad);
}
