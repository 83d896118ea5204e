/* show.c - jobs as tables for people. */
#include "config.h"

#include "client/show.h"

#include <stdlib.h>
#include <string.h>

#include "client/colour.h"
#include "client/common.h"
#include "client/table.h"
#include "client/words.h"

static const struct table_column running_columns[] = {
    {"JOB", true, false},   {"NAME", false, true},   {"USER", false, false}, {"STATE", false, false},
    {"LEVEL", true, false}, {"NPROCS", true, false}, {"TIME", true, false},  {"HOSTS", false, false},
};
static const struct table_column queued_columns[] = {
    {"JOB", true, false},    {"NAME", false, true},  {"USER", false, false},      {"STATE", false, false},
    {"NPROCS", true, false}, {"AHEAD", true, false}, {"SUBMITTED", false, false}, {"REASON", false, false},
};
static const struct table_column ended_columns[] = {
    {"JOB", true, false},     {"NAME", false, true},    {"USER", false, false}, {"STATE", false, false},
    {"NPROCS", true, false},  {"TIME", true, false},    {"HOSTS", false, true}, {"ENDED", false, false},
    {"RESULT", false, false}, {"REASON", false, false},
};

static const struct table_column history_columns[] = {
    {"JOB", true, false},    {"NAME", false, true},    {"USER", false, false},   {"NPROCS", true, false},
    {"TIME", true, false},   {"CPU", true, false},     {"LEVELS", false, false}, {"HOSTS", false, true},
    {"ENDED", false, false}, {"RESULT", false, false}, {"REASON", false, false},
};

enum { CELLS_MAX = 11, SMALL = WORDS_MAX, LEVELS_MAX = 16 * 24 };

static const struct {
    const struct table_column *columns;
    size_t count;
    const char *heading, *none;
    size_t painted; /* column: state, or result */
} lists[SHOW_COUNT] = {
    [SHOW_RUNNING] = {running_columns, sizeof(running_columns) / sizeof(running_columns[0]),
                      "Running jobs:", "No running jobs.", 3},
    [SHOW_QUEUED] = {queued_columns, sizeof(queued_columns) / sizeof(queued_columns[0]),
                     "Queued jobs:", "No queued jobs.", 3},
    [SHOW_ENDED] = {ended_columns, sizeof(ended_columns) / sizeof(ended_columns[0]), "Ended jobs:", "No ended jobs.",
                    3},
    [SHOW_HISTORY] = {history_columns, sizeof(history_columns) / sizeof(history_columns[0]),
                      "Ended jobs:", "No ended jobs.", 9},
};

enum show_list show_list_of(const struct elmer_job *job)
{
    if (elmer_job_ended(job))
        return SHOW_ENDED;
    return strcmp(job->state, "queued") == 0 || strcmp(job->state, "held") == 0 ? SHOW_QUEUED : SHOW_RUNNING;
}

static const char *number(char *text, long long value)
{
    snprintf(text, SMALL, "%lld", value);
    return text;
}

/* "4x6" for a mesh. */
static const char *processors(char *text, const struct elmer_job *job)
{
    if (!job->mesh_rows)
        return number(text, job->nprocs);
    snprintf(text, SMALL, "%ux%u", job->mesh_rows, job->nprocs / job->mesh_rows);
    return text;
}

static const char *level(char *text, int value)
{
    return value >= 0 ? number(text, value) : "";
}

/* "running (2)": the second attempt. */
static const char *state(char *text, const struct elmer_job *job)
{
    if (job->attempt < 2)
        return job->state;
    snprintf(text, SMALL, "%.20s (%u)", job->state, job->attempt);
    return text;
}

static const char *why(const struct elmer_job *job)
{
    return job->reason[0] ? job->reason : job->reason_code;
}

static const char *name(const struct elmer_job *job)
{
    return job->hidden ? "-" : job->name;
}

static void add_running(struct table *table, const struct elmer_job *job, int64_t now_ms)
{
    char id[SMALL], now[SMALL], lev[SMALL], nprocs[SMALL], time[SMALL];
    char *where = words_hosts(job);

    table_add(table, (const char *[CELLS_MAX]){words_id(id, job), name(job), job->user, state(now, job),
                                               level(lev, job->level), processors(nprocs, job),
                                               words_duration(time, job->started_ms, job->ended_ms, now_ms), where});
    free(where);
}

static void add_queued(struct table *table, const struct elmer_job *job)
{
    char id[SMALL], nprocs[SMALL], ahead[SMALL], time[SMALL];

    table_add(table, (const char *[CELLS_MAX]){words_id(id, job), name(job), job->user, job->state,
                                               processors(nprocs, job), number(ahead, job->ahead),
                                               words_local_time(time, job->submitted_ms), why(job)});
}

static void add_ended(struct table *table, const struct elmer_job *job, int64_t now_ms)
{
    char id[SMALL], now[SMALL], nprocs[SMALL], time[SMALL], ended[SMALL], result[SMALL];
    char *where = words_hosts(job);

    table_add(table, (const char *[CELLS_MAX]){
                         words_id(id, job), name(job), job->user, state(now, job), processors(nprocs, job),
                         words_duration(time, job->started_ms, job->ended_ms, now_ms), where,
                         words_local_time(ended, job->ended_ms), words_outcome(result, job), why(job)});
    free(where);
}

/* CPU time on all hosts, in seconds; "" when no host has said it. */
static const char *cpu_time(char *text, const struct elmer_job *job)
{
    double sum = 0;
    bool known = false;

    for (size_t i = 0; i < job->nusage; i++) {
        if (job->usage[i].cpu_seconds < 0)
            continue;
        known = true;
        sum += job->usage[i].cpu_seconds;
    }
    if (!known)
        return "";
    snprintf(text, SMALL, "%.2fs", sum);
    return text;
}

/* "L0 0.0s  L1 20.0s": the time at each level, down to the last where it has been. */
static const char *levels(char *text, const struct elmer_job *job)
{
    size_t at = 0, count = job->nlevels;

    while (count > 0 && job->level_seconds[count - 1] <= 0)
        count--;
    text[0] = '\0';
    for (size_t i = 0; i < count && at < LEVELS_MAX; i++)
        at += (size_t)snprintf(text + at, LEVELS_MAX - at, "%sL%zu %.1fs", i ? "  " : "", i, job->level_seconds[i]);
    return text;
}

static void add_history(struct table *table, const struct elmer_job *job, int64_t now_ms)
{
    char id[SMALL], nprocs[SMALL], time[SMALL], cpu[SMALL], at[LEVELS_MAX], ended[SMALL], result[SMALL];
    char *where = words_hosts(job);

    table_add(table,
              (const char *[CELLS_MAX]){words_id(id, job), job->name, job->user, processors(nprocs, job),
                                        words_duration(time, job->started_ms, job->ended_ms, now_ms),
                                        cpu_time(cpu, job), levels(at, job), where,
                                        words_local_time(ended, job->ended_ms), words_outcome(result, job), why(job)});
    free(where);
}

/* Below the table of jobs that were asked for one by one: too long for a column, and few have one. */
static void show_comments(FILE *out, const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];
        char *comment;

        if (!job->comment[0] || show_list_of(job) != list)
            continue;
        comment = printable(job->comment);
        fprintf(out, "Comment of job %llu: %s\n", (unsigned long long)job->id, comment);
        free(comment);
    }
}

static void show_limits(FILE *out, const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];

        char *text = words_limits(job);

        if (*text && show_list_of(job) == list)
            fprintf(out, "Limits of job %llu: %s\n", (unsigned long long)job->id, text);
        free(text);
    }
}

/* "Tasks of array 57: 1000, 12 ended well, 3 failed, 38-1000 wait" */
static void show_tasks(FILE *out, const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];

        if (!job->ntasks || show_list_of(job) != list)
            continue;
        fprintf(out, "Tasks of array %llu: %s, %lu ended well, %lu failed", (unsigned long long)job->id, job->tasks,
                (unsigned long)job->tasks_ok, (unsigned long)job->tasks_failed);
        if (job->tasks_waiting[0])
            fprintf(out, ", waiting %s", job->tasks_waiting);
        fprintf(out, "\n");
    }
}

static void show_polls(FILE *out, const struct elmer_jobs *jobs, enum show_list list)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];
        char *text;

        if (!job->polls[0] || show_list_of(job) != list)
            continue;
        text = words_polls(job);
        fprintf(out, "Job %llu: %s\n", (unsigned long long)job->id, text);
        free(text);
    }
}

void show_jobs(FILE *out, const struct elmer_jobs *jobs, enum show_list list, bool heading, size_t width,
               int64_t now_ms)
{
    struct table table;

    table_init(&table, lists[list].columns, lists[list].count);
    for (size_t i = 0; i < jobs->count; i++) {
        if (show_list_of(&jobs->items[i]) != (list == SHOW_HISTORY ? SHOW_ENDED : list))
            continue;
        if (list == SHOW_RUNNING)
            add_running(&table, &jobs->items[i], now_ms);
        else if (list == SHOW_QUEUED)
            add_queued(&table, &jobs->items[i]);
        else if (list == SHOW_HISTORY)
            add_history(&table, &jobs->items[i], now_ms);
        else
            add_ended(&table, &jobs->items[i], now_ms);
        table_paint(&table, lists[list].painted, colour_of(&jobs->items[i]));
    }
    if (heading)
        fprintf(out, "%s\n", table.nrows > 0 ? lists[list].heading : lists[list].none);
    if (table.nrows > 0)
        table_print(&table, out, width);
    table_fini(&table);
    if (!heading) {
        show_comments(out, jobs, list);
        show_limits(out, jobs, list);
        show_tasks(out, jobs, list);
        show_polls(out, jobs, list);
    }
}
