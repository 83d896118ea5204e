/* history_source.c - jobs of a history, one after the other; times and users as they are said on the command line. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esim/history.h"
#include "lib/base/str.h"

struct replay {
    struct source source;
    const struct history *history;
    const char *without;
    size_t at;
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
                                .unmeasured = !was->measured,
                                .start_ms = -1,
                                .end_ms = -1};
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

bool history_time(const char *text, int64_t *ms)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"};
    uint64_t seconds;

    if (text[0] == '@' && str_to_u64(text + 1, &seconds) && seconds < INT64_MAX / 1000) {
        *ms = (int64_t)seconds * 1000;
        return true;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &tm);
        if (end && *end == '\0') {
            *ms = (int64_t)mktime(&tm) * 1000;
            return true;
        }
    }
    return false;
}
