/* history_source.c - jobs of a history, one after the other; times and users as they are said on the command line. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esim/history.h"
#include "lib/base/moment.h"
#include "lib/base/str.h"

struct replay {
    struct source source;
    const struct history *history;
    const char *without;
    size_t at;
    uint64_t array; /* of the last one */
};

static bool is_user(const struct history_job *job, const char *user)
{
    uint64_t uid;

    return strcmp(job->user, user) == 0 || (str_to_u64(user, &uid) && job->uid == uid);
}

bool history_has_user(const struct history *history, const char *user)
{
    for (size_t i = 0; i < history->njobs; i++)
        if (is_user(&history->jobs[i], user))
            return true;
    return false;
}

/* The tasks of an array came together, so they are together. */
static uint32_t tasks_from(const struct replay *replay, size_t first)
{
    const struct history *h = replay->history;
    uint64_t array = h->jobs[first].array;
    size_t end = first + 1;

    if (array == 0 || array == replay->array)
        return 0;
    while (end < h->njobs && h->jobs[end].array == array)
        end++;
    return (uint32_t)(end - first);
}

static bool next(struct source *source, struct sim_job *job)
{
    struct replay *replay = (struct replay *)source;
    const struct history *h = replay->history;

    while (replay->at < h->njobs) {
        const struct history_job *was = &h->jobs[replay->at++];
        if (replay->without && is_user(was, replay->without))
            continue;
        *job = (struct sim_job){.number = was->id,
                                .index = replay->at,
                                .submit_ms = was->submitted_ms - h->jobs[0].submitted_ms,
                                .work_ms = (int64_t)(was->work_ms + 0.5),
                                .nprocs = was->nprocs,
                                .mesh_rows = was->mesh_rows,
                                .memory_bytes = was->memory_bytes,
                                .per_host = was->per_host,
                                .uid = was->uid,
                                .share = was->share,
                                .hosts = was->hosts,
                                .nhosts = was->nhosts,
                                .after = was->after,
                                .nafter = was->nafter,
                                .array = was->array,
                                .ntasks = tasks_from(replay, replay->at - 1),
                                .task_limit = was->task_limit,
                                .unmeasured = !was->measured,
                                .start_ms = -1,
                                .end_ms = -1};
        replay->array = was->array;
        return true;
    }
    return false;
}

static void destroy(struct source *source)
{
    free(source);
}

struct source *history_source(const struct history *history, const char *without)
{
    struct replay *replay = mem_zalloc(sizeof(*replay));

    *replay = (struct replay){
        .source = {.has_after = true, .next = next, .destroy = destroy}, .history = history, .without = without};
    return &replay->source;
}

static int host_of(const struct history *history, const char *name, size_t length)
{
    for (int i = 0; i < history->nhosts; i++)
        if (strlen(history->hosts[i]) == length && memcmp(history->hosts[i], name, length) == 0)
            return i;
    return -1;
}

bool history_away(const struct history *history, const char *text, struct away *away, char *fault, size_t size)
{
    const char *is = strchr(text, '='), *until = is ? strstr(is, "..") : NULL;
    const struct wall now = wall_now();
    struct wall begin, end;
    int64_t begin_ms = history->jobs[0].submitted_ms;
    char from[40] = "";

    if (until && (size_t)(until - is) <= sizeof(from))
        snprintf(from, sizeof(from), "%.*s", (int)(until - is - 1), is + 1);
    if (!until || !moment_parse(from, now, &begin) || !moment_parse(until + 2, now, &end) || begin.ms >= end.ms) {
        snprintf(fault, size, "--away: want 'HOST=FROM..UNTIL', times as for --since");
        return false;
    }
    away->host = host_of(history, text, (size_t)(is - text));
    if (away->host < 0)
        snprintf(fault, size, "--away: '%.*s' is no host of this history", (int)(is - text < 64 ? is - text : 64),
                 text);
    away->from_ms = begin.ms - begin_ms;
    away->until_ms = end.ms - begin_ms;
    return away->host >= 0;
}
