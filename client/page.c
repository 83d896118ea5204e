/* page.c - the page of one job: a line that says how it is, and below it a line for each thing that is known. */
#include "config.h"

#include "client/page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/common.h"
#include "client/machine.h"
#include "client/words.h"

enum { LABEL_WIDTH = 10, RANKS_SHOWN = 16, HOSTS_SHOWN = 64 };

/* A line; label "": of the same thing as the one before. Control characters are written out. */
static void put(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(FILE *out, const char *label, const char *format, ...)
{
    va_list args;
    char *clean;

    va_start(args, format);
    clean = printable_format(format, args);
    va_end(args);
    fprintf(out, "  %-*s  %s\n", LABEL_WIDTH, label, clean);
    free(clean);
}

static bool is_queued(const struct elmer_job *job)
{
    return strcmp(job->state, "queued") == 0 || strcmp(job->state, "held") == 0;
}

/* ---- the first line ---- */

static void put_heading(FILE *out, const struct elmer_job *job)
{
    char result[WORDS_MAX];
    char *name = printable(job->hidden ? "" : job->name), *user = printable(job->user);

    fprintf(out, "Job %" PRIu64 "%s%s, %s's: %s", job->id, *name ? " " : "", name, user, job->state);
    if (!elmer_job_ended(job) && job->level >= 0)
        fprintf(out, " at level %d", job->level);
    if (is_queued(job))
        fprintf(out, ", %" PRIu32 " ahead", job->ahead);
    if (elmer_job_ended(job) && *words_outcome(result, job))
        fprintf(out, ", %s", result);
    if (job->attempt > 1)
        fprintf(out, " (attempt %" PRIu32 ")", job->attempt);
    fputs("\n", out);
    free(name);
    free(user);
}

/* ---- what it is ---- */

static void put_command(FILE *out, const struct elmer_job *job)
{
    char *command = words_command(job), use[MACHINE_USE];

    if (job->ncommand > 0)
        put(out, "command", "%s", command);
    if (*job->line)
        put(out, "line", "%s", job->line);
    if (*job->dir)
        put(out, "directory", "%s", job->dir);
    if (*job->comment)
        put(out, "comment", "%s", job->comment);
    if (*machine_use(use, sizeof(use), job))
        put(out, "machine", "%s", use);
    free(command);
}

/* Of an array its tasks, of a task which one it is. */
static void put_tasks(FILE *out, const struct elmer_job *job)
{
    if (job->array)
        put(out, "task", "%" PRIu64 "[%d]", job->array, job->index);
    if (job->ntasks)
        put(out, "tasks", "%s: %" PRIu32 " ended well, %" PRIu32 " failed%s%s", job->tasks, job->tasks_ok,
            job->tasks_failed, *job->tasks_waiting ? ", waiting " : "", job->tasks_waiting);
}

/* The host is among the processors: the first. */
static void put_terminal(FILE *out, const struct elmer_job *job)
{
    bool keeps = strcmp(job->terminal, "keep") == 0, runs = strcmp(job->state, "running") == 0;

    if (!*job->terminal)
        return;
    if (runs)
        put(out, "terminal", "%s: eattach %" PRIu64, keeps ? "stays while nobody looks" : "shown", job->id);
    else
        put(out, "terminal", "%s", keeps ? "stays while nobody looks" : "yes");
}

static void put_limits(FILE *out, const struct elmer_job *job)
{
    char *text = words_limits(job);

    if (*text)
        put(out, "limits", "%s", text);
    free(text);
}

/* ---- where it is ---- */

/* "ws1 (0 3), ws2 (1)": hosts with the numbers of their processors. */
static void put_processors(FILE *out, const struct elmer_job *job)
{
    char *text = NULL;
    size_t size;
    FILE *words = must(open_memstream(&text, &size));
    const char *last = "";
    char mesh[48] = "";

    for (size_t i = 0; i < job->nprocessors; i++) {
        const struct elmer_processor *p = &job->processors[i];

        if (strcmp(last, p->host) == 0)
            fprintf(words, " %u", p->cpu);
        else
            fprintf(words, "%s%s (%u", i > 0 ? "), " : "", p->host, p->cpu);
        last = p->host;
    }
    if (fclose(words) != 0)
        must(NULL);
    if (job->mesh_rows)
        snprintf(mesh, sizeof(mesh), ", a mesh of %" PRIu32 "x%" PRIu32, job->mesh_rows, job->nprocs / job->mesh_rows);
    put(out, "processors", "%" PRIu32 "%s%s%s%s", job->nprocs, mesh, job->nprocessors > 0 ? ": " : "", text,
        job->nprocessors > 0 ? ")" : "");
    free(text);
}

static void put_path(FILE *out, const struct elmer_job *job, const char *label, size_t rank, bool errors)
{
    char *path = elmer_job_output(job, (uint32_t)rank, errors);

    if (path && job->nprocessors > 0)
        put(out, label, "%s:%s", job->processors[rank].host, path);
    else if (path)
        put(out, label, "%s", path);
    free(path);
}

/* A line for each rank; of many only the first ones. */
static void put_files(FILE *out, const struct elmer_job *job, const char *label, bool errors)
{
    size_t ranks = job->each && job->nprocessors > 0 ? job->nprocessors : 1;

    for (size_t i = 0; i < ranks && i < RANKS_SHOWN; i++)
        put_path(out, job, i == 0 ? label : "", i, errors);
    if (ranks > RANKS_SHOWN)
        put(out, "", "and so on, to rank %zu: equery --json has all", ranks - 1);
}

/* ---- how it went ---- */

static void put_times(FILE *out, const struct elmer_job *job, int64_t now_ms)
{
    char text[WORDS_MAX], length[WORDS_MAX];
    bool queued = is_queued(job);

    put(out, "submitted", "%s", words_local_time(text, job->submitted_ms));
    if (queued)
        put(out, "waiting", "%s", words_duration(length, job->submitted_ms, -1, now_ms));
    if (!queued && job->started_ms >= 0)
        put(out, "started", "%s, after %s", words_local_time(text, job->started_ms),
            words_duration(length, job->submitted_ms, job->started_ms, now_ms));
    if (job->ended_ms >= 0)
        put(out, "ended", "%s", words_local_time(text, job->ended_ms));
    if (!queued && job->started_ms >= 0)
        put(out, "run time", "%s", words_duration(length, job->started_ms, job->ended_ms, now_ms));
}

/* "L0 1.5s  L1 20.0s" */
static void put_levels(FILE *out, const struct elmer_job *job)
{
    char text[16 * 24 + 1] = "";
    size_t at = 0, count = job->nlevels < 16 ? job->nlevels : 16;

    for (size_t i = 0; i < count && at < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%sL%zu %.1fs", i ? "  " : "", i, job->level_seconds[i]);
    if (count > 0 && job->attempt > 0)
        put(out, "levels", "%s", text);
}

static void put_usage(FILE *out, const struct elmer_job *job)
{
    const char *label = "CPU time";

    for (size_t i = 0; i < job->nusage && i < HOSTS_SHOWN; i++) {
        const struct elmer_usage *usage = &job->usage[i];

        if (usage->cpu_seconds < 0)
            continue;
        if (usage->memory_peak_bytes >= 0)
            put(out, label, "%s %.1fs, at most %.1f MiB of memory", usage->host, usage->cpu_seconds,
                (double)usage->memory_peak_bytes / (1 << 20));
        else
            put(out, label, "%s %.1fs", usage->host, usage->cpu_seconds);
        label = "";
    }
    if (job->nusage > HOSTS_SHOWN)
        put(out, "", "and on %zu host%s more: equery --json has all", job->nusage - HOSTS_SHOWN,
            job->nusage == HOSTS_SHOWN + 1 ? "" : "s");
}

static void put_polls(FILE *out, const struct elmer_job *job)
{
    char *text = job->polls[0] ? words_polls(job) : NULL;

    if (text)
        put(out, "polling", "%s", text);
    free(text);
}

static void put_reason(FILE *out, const struct elmer_job *job)
{
    const char *reason = job->reason[0] ? job->reason : job->reason_code;

    if (*reason)
        put(out, elmer_job_ended(job) ? "reason" : "waits", "%s", reason);
}

void page_show(FILE *out, const struct elmer_job *job, int64_t now_ms)
{
    put_heading(out, job);
    put_tasks(out, job);
    put_command(out, job);
    put_processors(out, job);
    put_terminal(out, job);
    if (*job->output) {
        put_files(out, job, "output", false);
        if (*job->errors && strcmp(job->errors, job->output) != 0)
            put_files(out, job, "errors", true);
    }
    put_limits(out, job);
    put_times(out, job, now_ms);
    put_levels(out, job);
    put_usage(out, job);
    put_polls(out, job);
    put_reason(out, job);
}

/* ---- who is told ---- */

static const char *told_how(const struct elmer_job *notice)
{
    if (!elmer_job_ended(notice))
        return strcmp(notice->state, "queued") == 0 || strcmp(notice->state, "held") == 0 ? "not yet" : "now";
    if (strcmp(notice->reason_code, "never") == 0)
        return "not needed";
    if (strcmp(notice->state, "done") == 0 && strcmp(notice->reason_code, "exited") == 0 && notice->exit_status == 0)
        return "done";
    return "failed";
}

/* "told       of its end: failed (job 58): the command ended with status 69" */
static void put_told(FILE *out, const char *what, uint64_t id, const struct elmer_jobs *notices)
{
    const struct elmer_job *notice = NULL;
    char at[WORDS_MAX];
    const char *how;

    for (size_t i = 0; notices && i < notices->count; i++)
        if (notices->items[i].id == id)
            notice = &notices->items[i];
    if (id == 0)
        return;
    if (!notice) {
        put(out, "told", "of its %s: by job %" PRIu64, what, id);
        return;
    }
    how = told_how(notice);
    if (strcmp(how, "done") == 0)
        put(out, "told", "of its %s: %s (job %" PRIu64 ")", what, words_local_time(at, notice->ended_ms), id);
    else if (strcmp(how, "not needed") == 0)
        put(out, "told", "of its %s: not needed (job %" PRIu64 ")", what, id);
    else
        put(out, "told", "of its %s: %s (job %" PRIu64 ")%s%s", what, how, id, *notice->reason ? ": " : "",
            notice->reason);
}

void page_show_notices(FILE *out, const struct elmer_job *job, const struct elmer_jobs *notices)
{
    if (*job->mail_at)
        put(out, "mail at", "%s", job->mail_at);
    if (*job->notify)
        put(out, "notify", "%s", job->notify);
    put_told(out, "begin", job->begin_notice, notices);
    put_told(out, "end", job->end_notice, notices);
}
