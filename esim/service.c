/* service.c - the busy share f and the work W of jobs that have run.
 *
 * Known of a job are when it had its processors, which ones, and how much processor time it used on all of them. Known
 * of those that were allocated before it on the same processors is the same: they ran above it. So for each moment one
 * can say what they left of each processor. The model (world.h, `shared`) says that a job with the share f goes on at
 * the rate min(1, left / f), by its slowest processor, and uses min(f, left) of each. Its f is then the one with which
 * it would have used in its time just what it did use: the integral of min(f, left) grows with f, and is cut in half
 * until it fits. Its work, the time that it takes alone, is what it has advanced: the integral of min(1, left / f).
 *
 * - Nobody above it: left is 1, so W is how long it ran, and f = used / (processors * W).
 * - It waited for something else and slept: f = 0 if it used less than a thousandth, and it goes on below others as
 *   alone. W is again how long it ran.
 * - It used all that was left, within 2 %: any larger f explains that as well. It is taken to have computed all the
 * time: f = 1, and W is what it used on each processor.
 * - What it used is not known: the same.
 *
 * Its time is from its allocation to its end: in that time it had its processors. So the time that a start takes is
 * part of its work.
 *
 * Not seen is load that is not of jobs: a job that shared with the owner of a workstation is taken for one that
 * computed less. Time at each level
 * says that somebody was above, but not how much he left. */
#include "config.h"

#include "esim/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory/map.h"
#include "lib/memory/mem.h"

#define SHARE_LEAST 0.001
#define ALL         0.98

struct piece { /* of a job's time: what it used of each of its processors */
    int64_t begin_ms, end_ms;
    double left, use;
};

struct above { /* a job that has processors, or had them a short time ago */
    const struct history_job *job;
    struct piece *pieces;
    size_t npieces;
    uint32_t lines; /* that it is in */
};

struct line { /* those of one processor */
    struct above **items;
    size_t count, capacity;
};

static double use_at(const struct above *above, int64_t ms)
{
    for (size_t i = 0; i < above->npieces; i++)
        if (ms >= above->pieces[i].begin_ms && ms < above->pieces[i].end_ms)
            return above->pieces[i].use;
    return 0;
}

static struct line *line_of(struct map *lines, uint32_t processor)
{
    struct line *line = map_get(lines, processor);

    if (!line) {
        line = mem_zalloc(sizeof(*line));
        map_put(lines, processor, line);
    }
    return line;
}

static void drop(struct above *above)
{
    if (--above->lines > 0)
        return;
    free(above->pieces);
    free(above);
}

static void drop_ended(struct line *line, int64_t now_ms)
{
    size_t kept = 0;

    for (size_t i = 0; i < line->count; i++)
        if (line->items[i]->job->ended_ms > now_ms)
            line->items[kept++] = line->items[i];
        else
            drop(line->items[i]);
    line->count = kept;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Its time, cut where those above it change. */
static void cut(struct above *of, struct map *lines)
{
    const struct history_job *job = of->job;
    int64_t *marks = NULL;
    size_t capacity = 0, count = 2;

    marks = mem_grow(marks, &capacity, 2, sizeof(*marks));
    marks[0] = job->allocated_ms;
    marks[1] = job->ended_ms;
    for (uint32_t p = 0; p < job->nprocs; p++) {
        const struct line *line = line_of(lines, job->at[p]);
        for (size_t i = 0; i < line->count; i++)
            for (size_t k = 0; k < line->items[i]->npieces; k++) {
                int64_t end = line->items[i]->pieces[k].end_ms;
                if (end <= job->allocated_ms || end >= job->ended_ms)
                    continue;
                marks = mem_grow(marks, &capacity, count + 1, sizeof(*marks));
                marks[count++] = end;
            }
    }
    qsort(marks, count, sizeof(*marks), by_time);
    of->pieces = mem_array(count, sizeof(*of->pieces));
    for (size_t i = 1; i < count; i++)
        if (marks[i] > marks[i - 1])
            of->pieces[of->npieces++] = (struct piece){marks[i - 1], marks[i], 1, 0};
    free(marks);
}

static void find_left(struct above *of, struct map *lines)
{
    for (size_t k = 0; k < of->npieces; k++) {
        struct piece *piece = &of->pieces[k];
        for (uint32_t p = 0; p < of->job->nprocs; p++) {
            const struct line *line = line_of(lines, of->job->at[p]);
            double left = 1;
            for (size_t i = 0; i < line->count; i++)
                left -= use_at(line->items[i], piece->begin_ms);
            piece->left = fmin(piece->left, fmax(0, left));
        }
    }
}

/* In ms: what it would use of a processor with this share. */
static double used_with(const struct above *of, double share)
{
    double used = 0;

    for (size_t i = 0; i < of->npieces; i++)
        used += (double)(of->pieces[i].end_ms - of->pieces[i].begin_ms) * fmin(share, of->pieces[i].left);
    return used;
}

static double find_share(const struct above *of, double used_ms)
{
    double low = 0, high = 1;

    if (used_ms < 0 || used_ms >= ALL * used_with(of, 1))
        return 1;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        *(used_with(of, middle) < used_ms ? &low : &high) = middle;
    }
    return high < SHARE_LEAST ? 0 : high;
}

static void estimate(struct history_job *job, struct above *of)
{
    double used_ms = job->cpu_s < 0 ? -1 : job->cpu_s * 1000 / job->nprocs, work = 0;

    job->share = find_share(of, used_ms);
    for (size_t i = 0; i < of->npieces; i++) {
        struct piece *piece = &of->pieces[i];
        work += (double)(piece->end_ms - piece->begin_ms) * (job->share > 0 ? fmin(1, piece->left / job->share) : 1);
        piece->use = fmin(job->share, piece->left);
    }
    if (job->share >= 1 && used_ms > work) /* those above left more than was thought */
        work = fmin(used_ms, (double)(job->ended_ms - job->allocated_ms));
    job->work_ms = fmax(1, work);
}

static int by_start(const void *a, const void *b)
{
    const struct history_job *x = *(struct history_job *const *)a, *y = *(struct history_job *const *)b;

    if (x->allocated_ms != y->allocated_ms)
        return x->allocated_ms < y->allocated_ms ? -1 : 1;
    return (x->allocation > y->allocation) - (x->allocation < y->allocation);
}

static void pass(struct history_job *job, struct map *lines)
{
    struct above *of = mem_zalloc(sizeof(*of));

    of->job = job;
    of->lines = job->nprocs;
    for (uint32_t p = 0; p < job->nprocs; p++)
        drop_ended(line_of(lines, job->at[p]), job->allocated_ms);
    cut(of, lines);
    find_left(of, lines);
    estimate(job, of);
    for (uint32_t p = 0; p < job->nprocs; p++) {
        struct line *line = line_of(lines, job->at[p]);
        line->items = mem_grow(line->items, &line->capacity, line->count + 1, sizeof(struct above *));
        line->items[line->count++] = of;
    }
}

void service_estimate(struct history_job *jobs, size_t count)
{
    struct history_job **order = mem_array(count + 1, sizeof(struct history_job *));
    struct map lines = {.capacity = 0};
    struct line *line;
    size_t cursor = 0;

    for (size_t i = 0; i < count; i++)
        order[i] = &jobs[i];
    qsort(order, count, sizeof(struct history_job *), by_start);
    for (size_t i = 0; i < count; i++)
        pass(order[i], &lines);
    while ((line = map_next(&lines, &cursor))) {
        drop_ended(line, INT64_MAX);
        free(line->items);
        free(line);
    }
    map_fini(&lines);
    free(order);
}
