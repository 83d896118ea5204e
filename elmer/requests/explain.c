/* explain.c - why a job waits, in words: what keeps all of it, and of each host the first rule that it fails. Of one
 * that runs, below which jobs it does. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/launch/launch.h"
#include "elmer/requests/internal.h"
#include "elmer/requests/view.h"
#include "lib/base/bytes.h"

enum { PAGE = 128, NAMED = 4 /* hosts in a sentence */, ABOVE = 64 };

/* ---- one host ---- */

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static int percent(double share)
{
    return (int)(share * 100 + 0.5);
}

/* Of its processors, those that take nothing, rule by rule. */
static const char *processors_text(const struct core_host_why *why, struct arena *memory)
{
    char *text = NULL;
    size_t size;
    FILE *out = mem_stream(&text, &size);
    const char *between = "";
    char left[BYTES_TEXT], all[BYTES_TEXT], asked[BYTES_TEXT];
    if (why->full) {
        fprintf(out, "%" PRIu32 " of %" PRIu32 " processor%s full: jobs on ", why->full, why->cpus, plural(why->cpus));
        fprintf(out, why->levels == 1 ? "the only level" : "all %d levels", why->levels);
        between = "; ";
    }
    if (why->busy > why->foreign) {
        fprintf(out, "%s%" PRIu32 " of %" PRIu32 " busy below the jobs there (up to %d %%, threshold %d %%)", between,
                why->busy - why->foreign, why->cpus, percent(why->busy_share), percent(why->threshold));
        between = "; ";
    }
    if (why->foreign) {
        fprintf(out, "%s%" PRIu32 " of %" PRIu32 " up to %d %% busy with programs outside Elmer (threshold %d %%)",
                between, why->foreign, why->cpus, percent(why->foreign_share), percent(why->threshold));
        between = "; ";
    }
    if (why->beyond && why->per_host && why->usable == why->per_host) {
        fprintf(out, "%sit gets %" PRIu32 " of one host at most", between, why->per_host);
        between = "; ";
    } else if (why->beyond) {
        fprintf(out, "%s%" PRIu32 " of %" PRIu32 " without memory for it: %s left of %s, %s asked for each", between,
                why->beyond, why->cpus, bytes_text(left, why->left_bytes), bytes_text(all, why->memory_bytes),
                bytes_text(asked, why->asked_bytes));
        between = "; ";
    }
    if (why->unmeasured)
        fprintf(out, "%s%" PRIu32 " of %" PRIu32 " not measured since the last change there", between, why->unmeasured,
                why->cpus);
    mem_stream_end(out);
    const char *kept = arena_strdup(memory, *text ? text : "all of its processors would take it");
    free(text);
    return kept;
}

static const char *processors_help(const struct core_host_why *why)
{
    if (why->usable || !why->cpus)
        return "";
    if (why->bar == CORE_BAR_FULL)
        return "a job there has to end";
    if (why->bar == CORE_BAR_UNMEASURED)
        return "nothing is wrong: the next reports, within seconds, say how busy it is";
    if (why->foreign)
        return "the programs outside Elmer have to end or to pause";
    return "the jobs there have to compute less, or to end; allocator v1 does not look at it (eadmin set allocator v1, "
           "for administrators)";
}

static void tell_host(const struct request *request, const struct wire_submit *submit, int host,
                      const struct core_host_why *why, struct arena *memory, struct wire_host_why *view)
{
    struct wire_host_view facts;
    char left[BYTES_TEXT], all[BYTES_TEXT], asked[BYTES_TEXT];
    hosts_view(request->requests->hosts, host, &facts);
    *view = (struct wire_host_why){.host = engine_host_name(request->requests->room.engine, host),
                                   .rule = core_bar_name(why->bar),
                                   .processors = why->cpus,
                                   .usable = why->usable,
                                   .text = "",
                                   .help = ""};
    switch (why->bar) {
    case CORE_BAR_NOT_ALLOWED:
        view->text = submit->hosts.count
                         ? "the job may not use it: --hosts names others, or it lacks what the job needs"
                         : "the job may not use it: it lacks what the job needs";
        break;
    case CORE_BAR_DOWN:
        view->text = "it is not there: its rsd has no link to elmer";
        view->help = "start it, or its rsd (systemctl start rsd), or see why that does not link (journalctl -u 'rsd*')";
        break;
    case CORE_BAR_AWAITED:
    case CORE_BAR_SILENT:
        view->text = *facts.reason ? facts.reason : "it is not heard";
        view->help = "it is waited for, and given up if it stays away";
        break;
    case CORE_BAR_CLOSED:
        view->text = *facts.reason ? facts.reason : "it takes no jobs";
        view->help = "an administrator has to mend that";
        break;
    case CORE_BAR_DRAINED:
        view->text = facts.drained_by && *facts.drained_by
                         ? arena_format(memory, "drained by %s%s%s: it takes no new jobs", facts.drained_by,
                                        *facts.drained_for ? ": " : "", facts.drained_for)
                         : "drained: it takes no new jobs";
        view->help = arena_format(memory, "an administrator lets it take jobs again: eadmin resume %s", view->host);
        break;
    case CORE_BAR_LEFTOVERS:
        view->text = "processes of a past job are still being ended there";
        view->help = "nothing is wrong, if it takes seconds only";
        break;
    case CORE_BAR_MEMORY:
        view->text = arena_format(memory, "%s has %s left of %s: %s asked for each processor", view->host,
                                  bytes_text(left, why->left_bytes), bytes_text(all, why->memory_bytes),
                                  bytes_text(asked, why->asked_bytes));
        view->help = why->asked_bytes > why->memory_bytes ? "it never has so much: ask for less"
                                                          : "a job there that has asked for memory has to end";
        break;
    case CORE_BAR_NONE:
    case CORE_BAR_FULL:
    case CORE_BAR_UNMEASURED:
    case CORE_BAR_BUSY:
    case CORE_BAR_COUNT:
        view->text = processors_text(why, memory);
        view->help = processors_help(why);
        break;
    }
    if (submit->memory_bytes && why->bar != CORE_BAR_NOT_ALLOWED && why->bar != CORE_BAR_DOWN &&
        why->bar != CORE_BAR_AWAITED && !hosts_facts(request->requests->hosts, host).limits_memory)
        view->text =
            arena_format(memory, "%s (without the controller memory nothing holds the job to its memory)", view->text);
}

/* ---- the job ---- */

/* Of its processors, those that the job could ever get there at a time. */
static uint32_t most_there(const struct core_host_why *why)
{
    uint64_t most = why->cpus;
    if (why->asked_bytes && most > why->memory_bytes / why->asked_bytes)
        most = why->memory_bytes / why->asked_bytes;
    return why->per_host && most > why->per_host ? why->per_host : (uint32_t)most;
}

static void name_missing(const struct request *request, int host, const struct core_host_why *why, unsigned count,
                         FILE *out)
{
    struct wire_host_view facts;
    hosts_view(request->requests->hosts, host, &facts);
    bool by = why->bar == CORE_BAR_DRAINED && facts.drained_by && *facts.drained_by;
    fprintf(out, "%s%s (%s%s%s)", count > 1 ? ", " : "waits for ", facts.host, core_bar_name(why->bar),
            by ? " by " : "", by ? facts.drained_by : "");
}

/* "waits for ws2 (drained by carol), ws3 (down): 3 processors asked, 2 usable" */
static const char *too_few_text(struct request *request, uint64_t nprocs, struct arena *memory)
{
    const struct core *core = engine_core(request->requests->room.engine);
    uint32_t usable = 0;
    unsigned missing = 0;
    char *text = NULL;
    size_t size;
    FILE *out = mem_stream(&text, &size);
    for (int i = 0; i < engine_host_count(request->requests->room.engine); i++) {
        struct core_host_why why;
        if (!core_why(core, request->job, i, &why) || why.bar == CORE_BAR_NOT_ALLOWED)
            continue;
        bool small = why.bar == CORE_BAR_MEMORY && most_there(&why) == 0;
        if (((why.bar >= CORE_BAR_DOWN && why.bar <= CORE_BAR_DRAINED) || small) && ++missing <= NAMED)
            name_missing(request, i, &why, missing, out);
        else if (!small && (why.bar == CORE_BAR_NONE || why.bar > CORE_BAR_DRAINED))
            usable += most_there(&why);
    }
    if (missing > NAMED)
        fprintf(out, " and %u host%s more", missing - NAMED, plural(missing - NAMED));
    fprintf(out, "%s%" PRIu64 " processor%s asked, %" PRIu32 " usable",
            missing ? ": " : "waits for processors: ", nprocs, plural((uint32_t)nprocs), usable);
    mem_stream_end(out);
    const char *kept = arena_strdup(memory, text);
    free(text);
    return kept;
}

static const char *help_of(const struct record *r, struct arena *memory)
{
    switch (r->reason) {
    case REASON_HELD:
        return arena_format(memory, "erelease %" PRIu64 " gives it its turn", r->id);
    case REASON_AFTER:
        return "it has its turn when these jobs have done what it waits for";
    case REASON_NEVER:
        return arena_format(memory, "ecancel %" PRIu64 " removes it", r->id);
    case REASON_AT_LIMIT:
        return "one of this user's running jobs has to end";
    case REASON_TASK_LIMIT:
        return "one of the array's running tasks has to end";
    case REASON_TOO_FEW_UP:
        return "these hosts have to come back; a job that asks for less need not wait for them";
    case REASON_WAITING:
        return r->ahead && !r->refused ? arena_format(memory,
                                                      "the jobs ahead have to start; etop %" PRIu64
                                                      " moves it before other jobs of its owner",
                                                      r->id)
                                       : "";
    case REASON_NONE:
    case REASON_AWAITING_HOSTS:
    case REASON_LEASE:
    case REASON_EXITED:
    case REASON_KILLED:
    case REASON_CANCELLED:
    case REASON_HOST_LOST:
    case REASON_START_FAILED:
    case REASON_START_TIMEOUT:
    case REASON_HELPER_FAILED:
    case REASON_LOST:
    case REASON_TIME_LIMIT:
    case REASON_CPU_LIMIT:
    case REASON_TASKS_FAILED:
    case REASON_MEMORY_LIMIT:
    case REASON_COUNT:
        break;
    }
    return "";
}

/* As this user may see it. */
static const char *reason_for(const struct request *request, const struct record *r, struct arena *memory)
{
    struct wire_job_view view;
    view_of(r, request->requests->settings->levels, request_sees(request, r->uid), memory, &view);
    return view.reason;
}

static void tell_first(const struct request *request, struct wire_explained *e, struct arena *memory)
{
    struct engine *engine = request->requests->room.engine;
    uint64_t id = core_refused(engine_core(engine));
    const struct engine_job *job = id && id != request->job ? engine_job(engine, id) : NULL;
    if (!job || !e->ahead)
        return;
    struct record *record = engine_record(engine, job);
    e->first = id;
    e->first_reason = reason_for(request, record, memory);
    record_destroy(record);
}

static void tell_above(const struct request *request, struct wire_explained *e, struct arena *memory)
{
    const struct core *core = engine_core(request->requests->room.engine);
    e->above.items = arena_array(memory, ABOVE, sizeof(uint64_t));
    for (uint32_t rank = 0; rank < e->nprocs && e->above.count < ABOVE; rank++) {
        uint64_t above = core_above(core, request->job, rank);
        bool known = !above;
        for (size_t i = 0; i < e->above.count && !known; i++)
            known = e->above.items[i] == above;
        if (!known)
            e->above.items[e->above.count++] = above;
    }
}

static void tell_job(struct request *request, const struct engine_job *job, struct wire_explained *e,
                     struct arena *memory)
{
    struct record *r = engine_record(request->requests->room.engine, job);
    bool waits = r->state == JOB_QUEUED || r->state == JOB_HELD;
    *e = (struct wire_explained){.job = r->id,
                                 .state = view_state(r->state),
                                 .nprocs = r->submit->nprocs,
                                 .level = r->level,
                                 .reason_code = reason_name(r->reason),
                                 .reason = reason_for(request, r, memory),
                                 .help = waits ? help_of(r, memory) : "",
                                 .ahead = waits ? r->ahead : 0,
                                 .first_reason = ""};
    if (waits && r->reason == REASON_TOO_FEW_UP)
        e->reason = too_few_text(request, e->nprocs, memory);
    if (waits)
        tell_first(request, e, memory);
    else
        tell_above(request, e, memory);
    record_destroy(r);
}

/* ---- the answer ---- */

static void send_pages(struct request *request, const struct wire_submit *submit, struct wire_message *message,
                       struct arena *memory)
{
    struct engine *engine = request->requests->room.engine;
    struct wire_explained *e = &message->u.explained;
    struct wire_host_why views[PAGE];
    struct core_host_why why;
    int count = engine_host_count(engine), host = submit->notice ? count : 0; /* that has no use for processors */
    e->hosts.items = views;
    do {
        e->hosts.count = 0;
        for (; host < count && e->hosts.count < PAGE; host++)
            if (core_why(engine_core(engine), request->job, host, &why))
                tell_host(request, submit, host, &why, memory, &views[e->hosts.count++]);
        e->more = host < count;
        request_send(request, message);
    } while (host < count);
    e->hosts.items = NULL; /* they end with us, the message does not */
    e->hosts.count = 0;
}

/* The job, or the array in which it waits as a task: that stands in the queue for all its tasks. */
static const struct engine_job *find_job(struct engine *engine, uint64_t id)
{
    const struct engine_job *job = engine_job(engine, id);
    const struct core_job *array = job ? NULL : core_array_of(engine_core(engine), id);
    uint32_t ordinal = array ? (uint32_t)(id - array->id) - 1 : 0;
    bool waits = array && core_range_next(array->gone, array->ngone, array->next_task, ordinal) == ordinal;
    return waits ? engine_job(engine, array->id) : job;
}

void explain_begin(struct request *request)
{
    struct engine *engine = request->requests->room.engine;
    const struct engine_job *job = find_job(engine, request->job);
    uint64_t asked = request->job;
    struct wire_message message = {.type = WIRE_explained, .id = request->id};
    struct arena memory = {0};
    if (!job || job->refused) {
        bool never = !request->job || request->job >= core_next_id(engine_core(engine));
        request_error(request, WIRE_CODE_NO_SUCH_JOB,
                      never ? "there is no job %" PRIu64 : "job %" PRIu64 " has ended: equery shows how", request->job);
        return;
    }
    request->job = job->id;
    tell_job(request, job, &message.u.explained, &memory);
    message.u.explained.job = asked;
    send_pages(request, job_submit(job), &message, &memory);
    arena_fini(&memory);
    request_end(request);
}
