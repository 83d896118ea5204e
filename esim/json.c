/* json.c - the results of simulations for programs. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "esim/json.h"
#include "esim/swf.h"
#include "lib/base/str.h"
#include "lib/memory/mem.h"

/* jansson's *_new functions take a NULL value for an error, so that one check at the end of an object is enough. */
static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

/* The names of files need not be UTF-8, JSON is. */
static json_t *text(const char *text)
{
    return str_valid_utf8(text, strlen(text)) ? json_string(text) : json_string("not UTF-8");
}

static json_t *count(uint64_t number)
{
    return json_integer((json_int_t)number);
}

/* What is not known is left out. */
static int set_real(json_t *object, const char *key, double value)
{
    return isfinite(value) ? set(object, key, json_real(value)) : 0;
}

static int set_estimate(json_t *object, const char *name, struct estimate estimate)
{
    char key[40];

    snprintf(key, sizeof(key), "%s_half_width", name);
    return set_real(object, name, estimate.mean) | set_real(object, key, estimate.half);
}

static int set_result(json_t *object, const struct result *r)
{
    return set(object, "jobs", count(r->jobs)) | set(object, "warmup", count(r->warmup)) |
           set(object, "refused", count(r->refused)) | set(object, "unknown", count(r->lines.unknown)) |
           set(object, "bad_lines", count(r->lines.bad_lines)) | set(object, "parts", count(r->lines.parts)) |
           set(object, "parts_alone", count(r->lines.parts_alone)) |
           set(object, "never_ran", count(r->lines.never_ran)) | set(object, "waiting", count(r->waiting)) |
           set(object, "steady", json_boolean(r->steady)) | set(object, "replications", count(r->replications)) |
           set(object, "following", count(r->trace.following)) | set(object, "nameless", count(r->trace.nameless)) |
           set(object, "moved", count(r->trace.moved)) | set(object, "jobs_judged", count(r->judged)) |
           set(object, "too_short", json_boolean(r->too_short)) | set_real(object, "seconds", r->seconds) |
           set_estimate(object, "turnaround", r->turnaround) | set_estimate(object, "wait", r->wait) |
           set_estimate(object, "stretch", r->stretch) | set_estimate(object, "utilisation", r->utilisation) |
           set_estimate(object, "turnaround_median", r->median) | set_estimate(object, "turnaround_p95", r->p95) |
           set_estimate(object, "load_out", r->load_out);
}

/* What the store does not know; failures and drains but for those that --away has told, and in a cube which host is
 * which node. */
static json_t *not_simulated(const struct config *c)
{
    static const char *const what[] = {"foreign-load", "failures", "drains", "holds", "moves", "hosts"};
    bool hosts = c->history->bound > 0 && c->world.core.topology == TOPOLOGY_CUBE;
    json_t *array = json_array();

    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]) - !hosts; i++)
        if (json_array_append_new(array, json_string(what[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* As it was, beside what is simulated. */
static json_t *recorded(const struct config *c)
{
    const struct history *h = c->history;
    json_t *object = json_object();
    int bad = set(object, "jobs", count(h->measured)) | set_real(object, "turnaround", h->turnaround.mean) |
              set_real(object, "wait", h->wait) | set_real(object, "turnaround_median", h->median) |
              set_real(object, "turnaround_p95", h->p95) | set(object, "unfinished", count(h->unfinished)) |
              set(object, "cancelled", count(h->cancelled)) | set(object, "never_started", count(h->never_started)) |
              set(object, "backwards", count(h->backwards)) | set(object, "killed", count(h->killed)) |
              set(object, "lost", count(h->lost)) | set(object, "again", count(h->again)) |
              set(object, "unknown_use", count(h->unknown_use)) | set(object, "drained", json_integer(h->drained)) |
              set(object, "away", json_integer(c->world.naway)) | set(object, "not_simulated", not_simulated(c));

    if (bad == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* The header of a trace: who has made it, where and when. A name that comes again has its values in lines. */
static json_t *header(const char *path)
{
    json_t *object = json_object();
    struct swf *swf = swf_open(path, true);
    const char *name, *value;
    int bad = !object;

    for (size_t i = 0; swf && bad == 0 && swf_comment(swf, i, &name, &value); i++) {
        const char *before = json_string_value(json_object_get(object, name));
        char *both = before ? mem_format("%s\n%s", before, value) : NULL;
        bad = set(object, name, text(both ? both : value));
        free(both);
    }
    if (swf)
        swf_source(swf)->destroy(swf_source(swf));
    if (bad == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *simulation(const struct config *c, const struct result *r)
{
    json_t *object = json_object();
    int bad = set(object, "label", text(c->label)) | set(object, "workload", text(c->workload_name)) |
              set(object, "allocator", text(core_allocator_name(c->world.core.allocator))) |
              set(object, "policy", text(core_policy_name(c->world.core.policy))) |
              set(object, "levels", json_integer(c->world.core.levels)) |
              set(object, "model", text(c->world.model == MODEL_SHARED ? "shared" : "space")) |
              set(object, "hosts", json_integer(c->world.nhosts)) |
              set(object, "processors", count(world_processors(&c->world))) |
              set(object, "seed", count(c->world.core.seed));

    if (!c->trace && !c->history)
        bad |= set_real(object, "load", c->workload.load);
    if (c->trace)
        bad |= set(object, "trace", header(c->trace));
    if (c->history)
        bad |= set(object, "recorded", recorded(c));
    bad |= r->done ? set_result(object, r) : set(object, "fault", text(r->fault));
    if (bad != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

bool json_print(FILE *out, const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        json_t *object = simulation(&plan->configs[i], &plan->results[i]);
        bool done;

        if (!object) {
            errno = ENOMEM;
            return false;
        }
        done = json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0 && putc('\n', out) != EOF;
        json_decref(object);
        if (!done)
            return false;
    }
    return true;
}

void json_record(FILE *out, const struct sim_job *job)
{
    double turnaround = (double)(job->end_ms - job->submit_ms) / 1000, work = (double)job->work_ms / 1000;
    int nlevels = CORE_MAX_LEVELS;
    char stretch[40] = "null", uid[20] = "null";

    while (nlevels > 1 && job->level_ms[nlevels - 1] == 0)
        nlevels--;
    if (work > 0)
        snprintf(stretch, sizeof(stretch), "%.4f", turnaround / work);
    if (!job->nobody)
        snprintf(uid, sizeof(uid), "%u", job->uid);
    fprintf(out,
            "{\"job\":%" PRIu64 ",\"submitted\":%.3f,\"started\":%.3f,\"ended\":%.3f,\"nprocs\":%u,\"mesh_rows\":%u,"
            "\"uid\":%s,\"work\":%.3f,\"turnaround\":%.3f,\"wait\":%.3f,\"stretch\":%s,\"level_seconds\":[",
            job->number, (double)job->submit_ms / 1000, (double)job->start_ms / 1000, (double)job->end_ms / 1000,
            job->nprocs, job->mesh_rows, uid, work, turnaround, (double)(job->start_ms - job->submit_ms) / 1000,
            stretch);
    for (int i = 0; i < nlevels; i++)
        fprintf(out, "%s%.3f", i > 0 ? "," : "", (double)job->level_ms[i] / 1000);
    fprintf(out, "]}\n");
}
