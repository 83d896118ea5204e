#include "config.h"

#include "elmer/requests/internal.h"
#include "elmer/requests/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elmer/launch/launch.h"
#include "lib/base/str.h"
#include "lib/job/tasks.h"
#include "lib/job/variables.h"

enum { LOST_SHOWN = 3, AFTER_SHOWN = 3 };

/* ---- reasons ---- */

bool submit_is_machine(const struct wire_submit *submit)
{
    const char *command = submit->command.count == 1 ? submit->command.items[0] : "", *slash = strrchr(command, '/');
    return slash && strcmp(slash, strrchr(JOB_MACHINE, '/')) == 0;
}

static const char *exit_text(const struct record *r, char *text, size_t size)
{
    char rank[40] = "";
    if (r->submit && submit_is_machine(r->submit) && !r->signal && !r->exit_status)
        return "its virtual machine was halted";
    if (r->submit && r->submit->each && r->failed_rank != UINT32_MAX)
        snprintf(rank, sizeof(rank), " in rank %" PRIu32, r->failed_rank);
    if (r->signal)
        snprintf(text, size, "the command was ended by signal %d (%s)%s", r->signal, strsignal(r->signal), rank);
    else
        snprintf(text, size, "the command ended with status %d%s", r->exit_status, rank);
    return text;
}

static const char *waiting_text(const struct record *r, char *text, size_t size)
{
    const struct core_survey *s = &r->survey;
    FILE *out;
    if (r->submit->notice)
        return "waits until its host is up, and runs fewer notices than it may at a time";
    if (!r->refused && r->ahead) {
        snprintf(text, size, QUEUED_WAITS, (uint64_t)r->ahead);
        return text;
    }
    out = r->refused ? fmemopen(text, size, "w") : NULL;
    if (!out)
        return "waits for processors";
    fprintf(out, "%swaits for %" PRIu64 " processor%s: of %" PRIu32 " that it may use",
            r->next_task ? "the next task " : "", r->submit->nprocs, r->submit->nprocs > 1 ? "s" : "", s->up);
    if (s->full)
        fprintf(out, ", %" PRIu32 " full", s->full);
    if (s->beyond)
        fprintf(out,
                r->submit->memory_bytes ? ", %" PRIu32 " without memory for it" : ", %" PRIu32 " beyond --per-host",
                s->beyond);
    if (s->busy)
        fprintf(out, ", %" PRIu32 " too busy", s->busy);
    if (s->unheard)
        fprintf(out, ", %" PRIu32 " on hosts that are not heard now and not yet given up", s->unheard);
    if (s->unmeasured)
        fprintf(out, ", %" PRIu32 " not measured since the last change there", s->unmeasured);
    fprintf(out, " (allocator %s)", core_allocator_name(s->allocator));
    fclose(out);
    return text;
}

static const char *lease_text(const struct record *r, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    if (!out)
        return "";
    fprintf(out, "attempt %" PRIu32 " may still run on ", r->attempt);
    for (uint32_t i = 0; i < r->nlost && i < LOST_SHOWN; i++)
        fprintf(out, "%s%s", i ? " " : "",
                strcmp(r->lost[i], RECORD_UNKNOWN_HOST) != 0 ? r->lost[i] : "a removed host");
    if (r->nlost > LOST_SHOWN)
        fprintf(out, " and %" PRIu32 " more", r->nlost - LOST_SHOWN);
    if (r->lost_ms >= 0)
        fprintf(out, ", until its lease is over: the next one waits, at most %" PRId64 " s", (r->lost_ms + 999) / 1000);
    else
        fprintf(out, ", where it is being ended: the next one waits for that");
    fclose(out);
    return text;
}

static const char *const wanted[AFTER_KIND_COUNT] = {
    [AFTER_OK] = "to end well", [AFTER_FAIL] = "to fail", [AFTER_ANY] = "to end", [AFTER_START] = "to start"};

/* "waits for 41 to end well, 42 to end and 7 more". */
static const char *after_list(const struct record *r, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    unsigned count = 0;
    if (!out)
        return "";
    for (uint32_t i = 0; i < r->nafter; i++) {
        const struct core_after *after = &r->after[i];
        if (after->verdict != CORE_MET && ++count <= AFTER_SHOWN)
            fprintf(out, "%s%" PRIu64 " %s", count > 1 ? ", " : "waits for ", after->job, wanted[after->kind]);
    }
    if (count > AFTER_SHOWN)
        fprintf(out, " and %u more", count - AFTER_SHOWN);
    fclose(out);
    return text;
}

static const char *never_text(const struct record *r, char *text, size_t size)
{
    for (uint32_t i = 0; i < r->nafter; i++)
        if (r->after[i].verdict == CORE_NEVER) {
            snprintf(text, size, "it can never run: it waits for %" PRIu64 " %s, and that cannot happen any more",
                     r->after[i].job, wanted[r->after[i].kind]);
            return text;
        }
    return "it can never run: what it waits for cannot happen any more";
}

/* What others may not see. */
static const char *own_reason(const struct record *r, char *text, size_t size)
{
    if (r->reason == REASON_AFTER)
        return after_list(r, text, size);
    return r->reason == REASON_NEVER && r->nafter ? never_text(r, text, size) : NULL;
}

static const char *task_limit_text(const struct record *r, char *text, size_t size)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (tasks_parse(r->submit->tasks, true, &tasks, why))
        return "as many tasks of the array run as may at a time";
    snprintf(text, size,
             "%" PRIu32 " task%s of the array run%s at a time (%%%" PRIu32 "): the next starts when %s ends",
             tasks.limit, tasks.limit == 1 ? "" : "s", tasks.limit == 1 ? "s" : "", tasks.limit,
             tasks.limit == 1 ? "it" : "one");
    return text;
}

static const char *failed_text(const struct record *r, char *text, size_t size)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (tasks_parse(r->submit->tasks, true, &tasks, why) || r->failed_rank >= tasks.count)
        return "some of its tasks have failed";
    snprintf(text, size, "%" PRIu32 " of %" PRIu32 " task%s failed, the first of them is %" PRIu64 "[%" PRIu32 "]",
             r->tasks_failed, r->ntasks, r->ntasks == 1 ? "" : "s", r->id, tasks_index(&tasks, r->failed_rank));
    return text;
}

/* Without what is known of this one case, which may quote the command, its directory or its files. */
static const char *common_reason(const struct record *r, char *text, size_t size)
{
    switch (r->reason) {
    case REASON_WAITING:
        return waiting_text(r, text, size);
    case REASON_HELD:
        return "held: it stays in the queue until it is released";
    case REASON_AT_LIMIT:
        return "its user has as many jobs running as he may (user_running): it keeps its place";
    case REASON_TOO_FEW_UP:
        return r->submit->per_host ? "asks for more processors, with so few of one host, than are up and not drained "
                                     "now (or than --hosts "
                                     "leaves): it waits for them"
               : r->submit->memory_bytes
                   ? "asks for more processors with so much memory than are up and not drained now (or "
                     "than --hosts leaves): it waits for them"
                   : "asks for more processors than are up and not drained now (or than --hosts "
                     "leaves): it waits for them";
    case REASON_AWAITING_HOSTS:
        return "waiting for hosts that were up before the restart of elmer (for at most ten seconds)";
    case REASON_LEASE:
        return lease_text(r, text, size);
    case REASON_EXITED:
        return exit_text(r, text, size);
    case REASON_KILLED:
        return "ended by ekill";
    case REASON_CANCELLED:
        return "removed from the queue by ecancel";
    case REASON_HOST_LOST:
        return "a host of the job went down";
    case REASON_START_FAILED:
        return "it could not be started";
    case REASON_START_TIMEOUT:
        return "not all of its hosts were ready in time";
    case REASON_HELPER_FAILED:
        return "its virtual machine failed";
    case REASON_AFTER:
        return "waits for other jobs";
    case REASON_NEVER:
        return "it can never run: what it waits for cannot happen any more";
    case REASON_LOST:
        return "a host has lost the job's processes";
    case REASON_TIME_LIMIT:
        return "it has run for as long as it may (--time)";
    case REASON_CPU_LIMIT:
        return "it has used the CPU time that it may (--cpu-time)";
    case REASON_MEMORY_LIMIT:
        return "its processes on a host needed more memory than was asked for (-m)";
    case REASON_TASK_LIMIT:
        return task_limit_text(r, text, size);
    case REASON_TASKS_FAILED:
        return failed_text(r, text, size);
    case REASON_NONE:
    case REASON_COUNT:
        break;
    }
    return "";
}

const char *view_reason(const struct record *r, char *text, size_t size)
{
    bool waits = r->state == JOB_QUEUED || r->state == JOB_HELD; /* then it tells how an attempt was lost */

    if (*r->text && (!waits || r->reason == REASON_HELD))
        return r->text;
    const char *own = own_reason(r, text, size);
    return own ? own : common_reason(r, text, size);
}

/* ---- the view ---- */

static size_t shown_levels(const struct record *r, int levels)
{
    size_t count = (size_t)levels;
    for (size_t i = count; i < CORE_MAX_LEVELS; i++)
        if (r->level_ms[i])
            count = i + 1;
    return r->attempt ? count : 0;
}

static struct wire_strs waits_for(const struct record *r, bool all, struct arena *memory)
{
    bool waits = r->state == JOB_QUEUED || r->state == JOB_HELD;
    struct wire_strs list = {arena_array(memory, r->nafter, sizeof(char *)), 0};
    char text[AFTER_TEXT];
    for (uint32_t i = 0; all && waits && i < r->nafter; i++)
        if (r->after[i].verdict != CORE_MET) {
            after_text(&(struct after){.kind = r->after[i].kind, .job = r->after[i].job}, text);
            list.items[list.count++] = arena_strdup(memory, text);
        }
    return list;
}

/* ---- tasks ---- */

int64_t view_index(const struct record *r)
{
    struct tasks tasks;
    char why[TASKS_WHY];
    if (!r->task || tasks_parse(r->submit->tasks, true, &tasks, why) || r->task > tasks.count)
        return -1;
    return tasks_index(&tasks, r->task - 1);
}

/* Indices, as far as there is room. */
static const char *waiting_tasks(const struct record *r, struct arena *memory)
{
    int ngone = (int)r->ngone;
    struct tasks tasks;
    char text[TASKS_TEXT_MAX + 1] = "", why[TASKS_WHY];
    size_t used = 0;
    if (!r->ntasks || record_ended(r) || tasks_parse(r->submit->tasks, true, &tasks, why) || tasks.count != r->ntasks)
        return "";
    for (uint32_t from = core_range_next(r->gone, ngone, r->next_task, 0), to; from < r->ntasks;
         from = core_range_next(r->gone, ngone, r->next_task, to)) {
        to = r->ntasks;
        for (int i = ngone - 1; i >= 0; i--)
            if (r->gone[i].from > from)
                to = r->gone[i].from;
        used = tasks_text(&tasks, from, to, text, used, sizeof(text));
    }
    return arena_strdup(memory, text);
}

const char *view_state(enum job_state state)
{
    return job_state_name(state == JOB_STARTED ? JOB_RUNNING : state);
}

/* The name of a file of the job, for all its ranks; "": none, or too long, and then the job has not started. */
static const char *file_of(const struct record *r, const char *pattern, struct arena *memory)
{
    struct path_facts facts = {.job = r->id,
                               .array = r->array ? r->array : r->id,
                               .index = r->array ? view_index(r) : 0,
                               .user = r->user,
                               .name = r->submit->name,
                               .ranks = true};
    const char *path = path_expand(memory, pattern, &facts);
    return path ? path : "";
}

static void add_files(const struct record *r, struct arena *memory, struct wire_job_view *view)
{
    const struct wire_submit *submit = r->submit;
    const char *unnamed = r->array && submit->each ? PATH_DEFAULT_TASK_EACH
                          : r->array               ? PATH_DEFAULT_TASK
                          : submit->each           ? PATH_DEFAULT_EACH
                                                   : PATH_DEFAULT;
    view->output = file_of(r, *submit->output ? submit->output : unnamed, memory);
    view->errors = file_of(r, submit->errors, memory);
}

/* host NULL: of any. Each once. */
static void add_usage_of(const struct record *r, const char *host, struct wire_job_view *view)
{
    for (size_t i = 0; i < r->nusage; i++) {
        const struct record_usage *usage = &r->usage[i];
        bool fits = usage->attempt == r->attempt && (!host || strcmp(usage->host, host) == 0);
        for (size_t k = 0; fits && k < view->usage.count; k++)
            fits = strcmp(view->usage.items[k].host, usage->host) != 0;
        if (fits)
            view->usage.items[view->usage.count++] =
                (struct wire_usage){usage->host, usage->cpu_seconds, usage->memory_peak_bytes};
    }
}

/* In the order of the job's hosts, not in that in which they have told it. */
static void add_usage(const struct record *r, struct arena *memory, struct wire_job_view *view)
{
    view->usage.items = arena_array(memory, r->nusage, sizeof(*view->usage.items));
    for (uint32_t i = 0; i < r->nprocessors && r->nusage > 1; i++)
        if (!i || strcmp(r->processors[i].host, r->processors[i - 1].host) != 0)
            add_usage_of(r, r->processors[i].host, view);
    add_usage_of(r, NULL, view);
}

static struct wire_processor *processors_of(const struct record *r, struct arena *memory)
{
    struct wire_processor *processors = arena_array(memory, r->nprocessors, sizeof(*processors));
    for (uint32_t i = 0; i < r->nprocessors; i++)
        processors[i] = (struct wire_processor){r->processors[i].host, (uint64_t)r->processors[i].cpu};
    return processors;
}

static const char *shown_reason(const struct record *r, bool all, struct arena *memory)
{
    char text[VIEW_TEXT], printable[VIEW_TEXT];
    const char *reason = all ? view_reason(r, text, sizeof(text)) : common_reason(r, text, sizeof(text));
    return arena_strdup(memory, str_printable(printable, sizeof(printable), reason, strlen(reason)));
}

/* Values that are shown as they were asked or kept: of each field of the table that the message has so. */
#define FILL(message, out, from, name, type, seen)                                                                     \
    JOB_IF(VALUE, message, out->name = JOB_SEEN_##seen(all, from->name, JOB_EMPTY(type));)
#define VIEW_ASKED(name, type, core, since, shown, line, seen, ...)       FILL(shown, view, submit, name, type, seen)
#define VIEW_KEPT(name, type, cell, core, column, shown, line, seen, ...) FILL(shown, view, r, name, type, seen)
#define LINE_ASKED(name, type, core, since, shown, at, seen, ...)         FILL(at, line, r->submit, name, type, seen)
#define LINE_KEPT(name, type, cell, core, column, shown, at, seen, ...)   FILL(at, line, r, name, type, seen)

void view_of(const struct record *r, int levels, bool all, struct arena *memory, struct wire_job_view *view)
{
    const struct wire_submit *submit = r->submit;
    bool exited = r->exits > 0 || (r->ntasks && record_ended(r));
    *view = (struct wire_job_view){
        .job = r->id,
        .state = view_state(r->state),
        .exit_status = exited ? r->exit_status : -1,
        .signal = exited && r->signal ? r->signal : -1,
        .reason_code = reason_name(r->reason),
        .reason = shown_reason(r, all, memory),
        .processors = {processors_of(r, memory), r->nprocessors},
        .mesh_rows = r->mesh_rows ? r->mesh_rows : submit->mesh_rows,
        .hidden = !all,
        .waits_for = waits_for(r, all, memory),
        .index = view_index(r),
        .tasks_waiting = waiting_tasks(r, memory),
    };
    JOB_FIELDS(VIEW_ASKED, VIEW_KEPT, JOB_NONE)
    view->output = view->errors = "";
    if (all)
        add_files(r, memory, view);
    add_usage(r, memory, view);
    view->level_seconds.count = shown_levels(r, levels);
    view->level_seconds.items = arena_array(memory, view->level_seconds.count, sizeof(double));
    for (size_t i = 0; i < view->level_seconds.count; i++)
        view->level_seconds.items[i] = (double)r->level_ms[i] / 1000;
    /* So large that no frame could carry it: better less of it than no answer. */
    if (view_cost(view) <= VIEW_PAGE_COST)
        return;
    view->usage.count = 0;
    if (view_cost(view) > VIEW_PAGE_COST)
        view->processors.count = 0;
}

void view_running(const struct record *r, bool all, struct arena *memory, struct wire_running_line *line)
{
    *line = (struct wire_running_line){.job = r->id,
                                       .state = job_state_name(r->state),
                                       .index = view_index(r),
                                       .processors = {processors_of(r, memory), r->nprocessors},
                                       .mesh_rows = r->mesh_rows ? r->mesh_rows : r->submit->mesh_rows,
                                       .hidden = !all};
    JOB_FIELDS(LINE_ASKED, LINE_KEPT, JOB_NONE)
    if (view_cost_running(line) > VIEW_PAGE_COST)
        line->processors.count = 0;
}

/* Of a mesh that was asked for, the shape before the reason: the columns of a list have numbers of processors only. */
static const char *queued_reason(const struct record *r, bool all, struct arena *memory)
{
    uint64_t rows = r->submit->mesh_rows;
    const char *waiting = waiting_tasks(r, memory);
    int64_t index = view_index(r);
    bool usual = r->reason == REASON_WAITING && !r->refused && r->ahead;
    if (rows)
        return arena_format(memory, "mesh %" PRIu64 "x%" PRIu64 ", %s", rows, r->submit->nprocs / rows,
                            shown_reason(r, all, memory));
    if (*waiting)
        return arena_format(memory, "tasks %.60s%s, %s", waiting, strlen(waiting) > 60 ? ".." : "",
                            shown_reason(r, all, memory));
    if (index >= 0)
        return arena_format(memory, "task %" PRIu64 "[%" PRId64 "], %s", r->array, index, shown_reason(r, all, memory));
    return usual ? "" : shown_reason(r, all, memory);
}

void view_queued(const struct record *r, bool all, struct arena *memory, struct queued_line *line)
{
    *line = (struct queued_line){.job = r->id,
                                 .name = all ? r->submit->name : "",
                                 .user = r->user,
                                 .held = r->state == JOB_HELD,
                                 .nprocs = r->submit->nprocs,
                                 .ahead = r->ahead,
                                 .submitted_ms = r->submitted_ms > 0 ? (uint64_t)r->submitted_ms : 0,
                                 .reason = queued_reason(r, all, memory),
                                 .hidden = !all};
}

/* ---- sizes ---- */

size_t view_cost_of_text(const char *text)
{
    size_t cost = 10;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        cost += *c < 0x20 || *c == 0x7f ? 7 : *c == '"' || *c == '\\' ? 4 : *c >= 0x80 ? 4 : 1;
    return cost;
}

static size_t cost_of_str(const void *at)
{
    return view_cost_of_text(*(const char *const *)at);
}

static size_t cost_of_strs(const void *at)
{
    const struct wire_strs *words = at;
    size_t cost = 0;
    for (size_t i = 0; i < words->count; i++)
        cost += view_cost_of_text(words->items[i]);
    return cost;
}

static size_t cost_of_other(const void *at)
{
    (void)at; /* counted below: by item, or with the keys */
    return 0;
}

#define COST(at)                                                                                                       \
    _Generic(at, const char *const *: cost_of_str, const struct wire_strs *: cost_of_strs, default: cost_of_other)(at)
#define COST_ASKED(name, type, core, since, shown, ...)       JOB_IF(SENT, shown, cost += COST(&view->name);)
#define COST_KEPT(name, type, cell, core, column, shown, ...) JOB_IF(SENT, shown, cost += COST(&view->name);)
#define COST_MADE(name, type, shown, ...)                     JOB_IF(SENT, shown, cost += COST(&view->name);)

size_t view_cost(const struct wire_job_view *view)
{
    size_t cost = 800; /* keys and numbers */
    JOB_FIELDS(COST_ASKED, COST_KEPT, COST_MADE)
    for (size_t i = 0; i < view->processors.count; i++)
        cost += 40 + view_cost_of_text(view->processors.items[i].host);
    for (size_t i = 0; i < view->usage.count; i++)
        cost += 110 + view_cost_of_text(view->usage.items[i].host);
    return cost + view->level_seconds.count * 25;
}

/* Short texts: seven times their length is bound enough. */
size_t view_cost_running(const struct wire_running_line *line)
{
    size_t cost = 400 + 7 * (strlen(line->name) + strlen(line->user));
    for (size_t i = 0; i < line->processors.count; i++)
        cost += 40 + view_cost_of_text(line->processors.items[i].host);
    return cost;
}

size_t view_cost_queued(const struct queued_line *line)
{
    return 400 + 7 * (strlen(line->name) + strlen(line->user) + strlen(line->reason));
}
