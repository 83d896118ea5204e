/* polls.c - which ranks of a job poll while they wait, as its hosts say with each report. Not stored: it is about now.
 * A host whose link is cut has said it last; its next report replaces that. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/engine/internal.h"
#include "lib/memory/mem.h"

enum { TEXT_MAX = 1000, RANK_MAX = 1 << 24 };

struct range {
    uint32_t first, last;
};

static const char *number(const char *at, uint32_t *value)
{
    *value = 0;
    if (*at < '0' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++) {
        *value = *value * 10 + (uint32_t)(*at - '0');
        if (*value > RANK_MAX)
            return NULL;
    }
    return at;
}

/* The ranges of "0-3,5", at most as many as it has bytes; how many, 0: it is none. ranges may be NULL. */
static size_t parse(const char *text, struct range *ranges)
{
    size_t count = 0;
    for (const char *at = text; *at;) {
        struct range range;
        at = number(at, &range.first);
        range.last = range.first;
        if (at && *at == '-')
            at = number(at + 1, &range.last);
        if (!at || range.last < range.first || (*at && (*at != ',' || !at[1])))
            return 0;
        at += *at == ',';
        if (ranges)
            ranges[count] = range;
        count++;
    }
    return count;
}

static void forget(struct engine_job *job, size_t i)
{
    free(job->polls[i].text);
    job->polls[i] = job->polls[--job->npolls];
}

void polls_note(struct engine_job *job, int host, uint32_t attempt, const char *text)
{
    for (size_t i = job->npolls; i-- > 0;)
        if (job->polls[i].host == host || job->polls[i].attempt != attempt)
            forget(job, i);
    if (parse(text, NULL) == 0)
        return;
    job->polls = mem_grow(job->polls, &job->polls_capacity, job->npolls + 1, sizeof(*job->polls));
    job->polls[job->npolls++] = (struct engine_polls){host, attempt, mem_strdup(text)};
}

void polls_clear(struct engine_job *job)
{
    while (job->npolls > 0)
        forget(job, 0);
    free(job->polls);
    job->polls = NULL;
    job->polls_capacity = 0;
}

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* As far as there is room for whole ranges. */
static const char *print(const struct range *ranges, size_t count, struct arena *memory)
{
    char text[TEXT_MAX + 1] = "";
    size_t used = 0;
    for (size_t i = 0, next; i < count; i = next) {
        uint32_t last = ranges[i].last;
        char range[40];
        for (next = i + 1; next < count && ranges[next].first <= last + 1; next++)
            last = ranges[next].last > last ? ranges[next].last : last;
        int size = snprintf(range, sizeof(range), last > ranges[i].first ? "%s%u-%u" : "%s%u", i ? "," : "",
                            ranges[i].first, last);
        if (used + (size_t)size > TEXT_MAX)
            break;
        memcpy(text + used, range, (size_t)size + 1);
        used += (size_t)size;
    }
    return arena_strdup(memory, text);
}

const char *polls_text(const struct engine_job *job, uint32_t attempt, struct arena *memory)
{
    size_t count = 0, room = 0;
    for (size_t i = 0; i < job->npolls; i++)
        room += parse(job->polls[i].text, NULL);
    if (room == 0)
        return "";
    struct range *ranges = mem_array(room, sizeof(*ranges));
    for (size_t i = 0; i < job->npolls; i++)
        if (job->polls[i].attempt == attempt)
            count += parse(job->polls[i].text, ranges + count);
    if (count > 1)
        qsort(ranges, count, sizeof(*ranges), by_first);
    const char *text = print(ranges, count, memory);
    free(ranges);
    return text;
}
