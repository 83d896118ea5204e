/* client_jobs.c - asking for jobs: query, wait, and their answers as public structs. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/client.h"
#include "lib/job/fields.h"
#include "lib/job/output.h"
#include "lib/wire/queued_lines.h"

/* The answers as they came; the strings of the public view stay in them. */
struct answers {
    struct elmer_jobs jobs; /* first: what the caller sees */
    struct elmer_job *items;
    struct wire_message *messages;
    size_t nmessages;
    const struct wire_job_view **views;
    void **lists; /* arrays that the public view needs */
    size_t nlists;
    char *text; /* the rest of the last array for small texts */
    size_t room;
    bool any, running, queued; /* which states are wanted */
    int64_t since_ms;          /* not ended before */
    bool latest_first;         /* as they come; the caller sees them in the order of ids */
    bool lines;                /* asked for; messages are `lines`, and there are no views */
};

static struct answers *answers_of(const struct elmer_jobs *jobs)
{
    return (struct answers *)(uintptr_t)jobs;
}

static void answers_clear(struct answers *answers)
{
    for (size_t i = 0; i < answers->nmessages; i++)
        wire_message_fini(&answers->messages[i]);
    answers->nmessages = 0;
}

static void view_clear(struct answers *answers)
{
    for (size_t i = 0; i < answers->nlists; i++)
        free(answers->lists[i]);
    free(answers->lists);
    free(answers->views);
    free(answers->items);
    answers->lists = NULL;
    answers->views = NULL;
    answers->items = NULL;
    answers->text = NULL;
    answers->nlists = answers->room = 0;
    answers->jobs = (struct elmer_jobs){NULL, 0};
}

void elmer_jobs_free(struct elmer_jobs *jobs)
{
    struct answers *answers = answers_of(jobs);

    if (!answers)
        return;
    answers_clear(answers);
    view_clear(answers);
    free(answers->messages);
    free(answers);
}

static int take_jobs(struct wire_message *answer, void *data)
{
    struct answers *answers = data;
    struct wire_message *grown;

    if (answer->type != (answers->lines ? WIRE_lines : WIRE_jobs))
        return -EPROTO;
    if (answers->lines && !queued_lines_fit(&answer->u.lines))
        return -EPROTO;
    grown = reallocarray(answers->messages, answers->nmessages + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    answers->messages = grown;
    grown[answers->nmessages++] = *answer;
    answer->memory = NULL;
    return answers->lines ? grown[answers->nmessages - 1].u.lines.more : grown[answers->nmessages - 1].u.jobs.more;
}

/* An array that lives as long as the answers; NULL when out of memory. */
static void *keep(struct answers *answers, size_t count, size_t size)
{
    void **grown = reallocarray(answers->lists, answers->nlists + 1, sizeof(*grown));
    void *list;

    if (!grown)
        return NULL;
    answers->lists = grown;
    list = calloc(count ? count : 1, size);
    if (list)
        grown[answers->nlists++] = list;
    return list;
}

enum { WAITS_MAX = 40, TEXTS_BLOCK = 16 << 10 };

/* Many small texts share an array. */
static char *keep_text(struct answers *answers, size_t size)
{
    if (answers->room < size) {
        answers->text = keep(answers, TEXTS_BLOCK, 1);
        answers->room = answers->text ? TEXTS_BLOCK : 0;
    }
    if (!answers->text)
        return NULL;
    answers->text += size;
    answers->room -= size;
    return answers->text - size;
}

static int fill_processors(struct answers *answers, struct elmer_job *job, const struct wire_processor *from,
                           size_t count)
{
    struct elmer_processor *processors = keep(answers, count, sizeof(*processors));
    const char **hosts = keep(answers, count, sizeof(*hosts));

    if (!processors || !hosts)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        processors[i].host = from[i].host;
        processors[i].cpu = (unsigned)from[i].cpu;
        if (i == 0 || strcmp(processors[i - 1].host, processors[i].host) != 0)
            hosts[job->nhosts++] = processors[i].host;
    }
    job->processors = processors;
    job->nprocessors = count;
    job->hosts = hosts;
    return 0;
}

static int fill_usage(struct answers *answers, struct elmer_job *job, const struct wire_job_view *view)
{
    struct elmer_usage *usage = keep(answers, view->usage.count, sizeof(*usage));

    if (!usage)
        return -ENOMEM;
    for (size_t i = 0; i < view->usage.count; i++) {
        usage[i].host = view->usage.items[i].host;
        usage[i].cpu_seconds = view->usage.items[i].cpu_seconds;
        usage[i].memory_peak_bytes = view->usage.items[i].memory_peak_bytes;
    }
    job->usage = usage;
    job->nusage = view->usage.count;
    return 0;
}

/* A job of which nothing has been said. */
#define UNKNOWN(member, name, type)                                                     JOB_IF(PLAIN, member, .name = JOB_EMPTY(type), )
#define UNKNOWN_ASKED(name, type, core, since, shown, line, seen, json, option, member) UNKNOWN(member, name, type)
#define UNKNOWN_KEPT(name, type, cell, core, column, shown, line, seen, json, member)   UNKNOWN(member, name, type)
#define UNKNOWN_MADE(name, type, shown, line, seen, json, member)                       UNKNOWN(member, name, type)
static const struct elmer_job unknown = {JOB_FIELDS(UNKNOWN_ASKED, UNKNOWN_KEPT, UNKNOWN_MADE)};

/* The single values of a message. */
#define TAKE(sent, member, from, name)                                                                                 \
    JOB_IF(PLAIN, member, JOB_IF_AGAIN(SENT, sent, job->name = JOB_CAST(member, from->name);))
#define VIEW_ASKED(name, type, core, since, shown, line, seen, json, option, member) TAKE(shown, member, view, name)
#define VIEW_KEPT(name, type, cell, core, column, shown, line, seen, json, member)   TAKE(shown, member, view, name)
#define VIEW_MADE(name, type, shown, line, seen, json, member)                       TAKE(shown, member, view, name)
#define LINE_ASKED(name, type, core, since, shown, at, seen, json, option, member)   TAKE(at, member, line, name)
#define LINE_KEPT(name, type, cell, core, column, shown, at, seen, json, member)     TAKE(at, member, line, name)
#define LINE_MADE(name, type, shown, at, seen, json, member)                         TAKE(at, member, line, name)

static int fill_job(struct answers *answers, struct elmer_job *job, const struct wire_job_view *view)
{
    *job = unknown;
    job->id = view->job;
    JOB_FIELDS(VIEW_ASKED, VIEW_KEPT, VIEW_MADE)
    job->command = view->command.items;
    job->ncommand = view->command.count;
    job->after = view->after.items;
    job->nafter = view->after.count;
    job->waits_for = view->waits_for.items;
    job->nwaits_for = view->waits_for.count;
    job->level_seconds = view->level_seconds.items;
    job->nlevels = view->level_seconds.count;
    return fill_processors(answers, job, view->processors.items, view->processors.count) < 0 ||
                   fill_usage(answers, job, view) < 0
               ? -ENOMEM
               : 0;
}

static int fill_running(struct answers *answers, struct elmer_job *job, const struct wire_running_line *line)
{
    *job = unknown;
    job->id = line->job;
    JOB_FIELDS(LINE_ASKED, LINE_KEPT, LINE_MADE)
    return fill_processors(answers, job, line->processors.items, line->processors.count);
}

static const char *waits(struct answers *answers, uint64_t ahead)
{
    char *text = keep_text(answers, WAITS_MAX);

    if (text)
        snprintf(text, WAITS_MAX, QUEUED_WAITS, ahead);
    return text;
}

static int fill_queued(struct answers *answers, struct elmer_job *job, const struct queued_line *line)
{
    const char *reason = line->reason[0] || line->held || !line->ahead ? line->reason : waits(answers, line->ahead);

    if (!reason)
        return -ENOMEM;
    *job = unknown;
    job->id = line->job;
    job->nprocs = (uint32_t)line->nprocs;
    job->name = line->name;
    job->user = line->user;
    job->state = line->held ? "held" : "queued";
    job->submitted_ms = (int64_t)line->submitted_ms;
    job->reason = reason;
    job->ahead = (uint32_t)line->ahead;
    job->hidden = line->hidden;
    return 0;
}

static bool wanted(const struct answers *answers, const struct wire_job_view *view)
{
    bool ended = strcmp(view->state, "done") == 0 || strcmp(view->state, "cancelled") == 0;
    bool queued = strcmp(view->state, "queued") == 0 || strcmp(view->state, "held") == 0;

    if (ended && answers->since_ms > 0 && view->ended_ms < answers->since_ms) /* an older elmer does not know that */
        return false;
    return answers->any || (!ended && (queued ? answers->queued : answers->running));
}

static void turn_round(struct answers *answers)
{
    for (size_t i = 0, j = answers->jobs.count; i + 1 < j; i++) {
        struct elmer_job item = answers->items[i];
        const struct wire_job_view *view = answers->views[i];

        j--;
        answers->items[i] = answers->items[j];
        answers->items[j] = item;
        answers->views[i] = answers->views[j];
        answers->views[j] = view;
    }
}

/* The public view of what has come. */
static int present(struct answers *answers)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < answers->nmessages; i++)
        count += answers->messages[i].u.jobs.jobs.count;
    answers->views = calloc(count ? count : 1, sizeof(struct wire_job_view *));
    answers->items = calloc(count ? count : 1, sizeof(*answers->items));
    answers->jobs.items = answers->items;
    if (!answers->views || !answers->items)
        return -ENOMEM;
    for (size_t i = 0; i < answers->nmessages; i++) {
        const struct wire_jobs *page = &answers->messages[i].u.jobs;

        for (size_t j = 0; j < page->jobs.count; j++) {
            if (!wanted(answers, &page->jobs.items[j]))
                continue;
            answers->views[at] = &page->jobs.items[j];
            if (fill_job(answers, &answers->items[at], answers->views[at]) < 0)
                return -ENOMEM;
            at++;
        }
    }
    answers->jobs.count = at;
    if (answers->latest_first)
        turn_round(answers);
    return 0;
}

/* The same of lines, which need no list of views. */
static int present_lines(struct answers *answers)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < answers->nmessages; i++)
        count += answers->messages[i].u.lines.running.count + queued_lines_count(&answers->messages[i].u.lines);
    answers->jobs.items = answers->items = calloc(count ? count : 1, sizeof(*answers->items));
    if (!answers->items)
        return -ENOMEM;
    for (size_t i = 0; i < answers->nmessages; i++) {
        const struct wire_lines *page = &answers->messages[i].u.lines;

        for (size_t j = 0; j < page->running.count; j++)
            if (fill_running(answers, &answers->items[at++], &page->running.items[j]) < 0)
                return -ENOMEM;
        for (size_t j = 0; j < queued_lines_count(page); j++) {
            const struct queued_line line = queued_lines_at(page, j);

            if (fill_queued(answers, &answers->items[at++], &line) < 0)
                return -ENOMEM;
        }
    }
    answers->jobs.count = at;
    return 0;
}

void *client_jobs_create(struct client_filter filter)
{
    struct answers *answers = calloc(1, sizeof(*answers));

    if (answers) {
        answers->running = filter.running;
        answers->queued = filter.queued;
        answers->any = filter.any;
        answers->since_ms = filter.since_ms;
        answers->latest_first = filter.latest_first;
        answers->lines = filter.lines;
    }
    return answers;
}

void client_jobs_free(void *jobs)
{
    elmer_jobs_free(jobs);
}

int client_jobs_take(struct wire_message *answer, void *jobs)
{
    return take_jobs(answer, jobs);
}

void client_jobs_restart(void *jobs)
{
    answers_clear(jobs);
    view_clear(jobs);
}

int client_jobs_present(void *jobs)
{
    struct answers *answers = jobs;

    return answers->lines ? present_lines(answers) : present(answers);
}

bool client_jobs_whole(void *jobs)
{
    struct answers *answers = jobs;
    bool lines = answers->lines;

    answers_clear(answers);
    answers->lines = false;
    return lines;
}

bool elmer_job_ended(const struct elmer_job *job)
{
    return strcmp(job->state, "done") == 0 || strcmp(job->state, "cancelled") == 0;
}

char *elmer_job_output(const struct elmer_job *job, uint32_t rank, bool errors)
{
    const char *name = errors && *job->errors ? job->errors : job->output;

    if (*name && *job->dir && (rank == 0 || (job->each && rank < job->nprocs)))
        return output_path(job->dir, name, rank);
    errno = ENOENT;
    return NULL;
}

static void take_over(struct answers *answers, size_t to, size_t from)
{
    answers->items[to] = answers->items[from];
    if (!answers->lines)
        answers->views[to] = answers->views[from];
}

void elmer_jobs_keep(struct elmer_jobs *jobs, bool (*passes)(const struct elmer_job *job, void *data), void *data)
{
    struct answers *answers = answers_of(jobs);
    size_t kept = 0;

    for (size_t i = 0; i < jobs->count; i++)
        if (passes(&answers->items[i], data))
            take_over(answers, kept++, i);
    jobs->count = kept;
}

void elmer_jobs_last(struct elmer_jobs *jobs, size_t count)
{
    struct answers *answers = answers_of(jobs);
    size_t first = jobs->count > count ? jobs->count - count : 0;

    for (size_t i = first; i < jobs->count; i++)
        take_over(answers, i - first, i);
    jobs->count -= first;
}

const struct wire_job_view *const *client_views(const struct elmer_jobs *jobs)
{
    return answers_of(jobs)->lines ? NULL : answers_of(jobs)->views;
}
