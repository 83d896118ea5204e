#include "config.h"

#include "esim/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esim/random.h"
#include "lib/memory/mem.h"

void workload_default(struct workload *workload)
{
    *workload = (struct workload){.shape = SHAPE_RECT,
                                  .low = {1, 1},
                                  .high = {16, 16},
                                  .probability = 1,
                                  .mean_service_s = 4,
                                  .load = 1,
                                  .share = 1,
                                  .seed = 1};
}

static bool interval_valid(const struct workload *w, int i)
{
    return w->low[i] >= 1 && w->low[i] <= w->high[i] && w->high[i] <= 65536;
}

static bool parse_intervals(struct workload *w, const char *text)
{
    double rest;
    int end = -1;

    if (text[strspn(text, "P[],=. 0123456789")] != '\0' || /* no 0x1p-1 */
        sscanf(text, "P[%5u,%5u]=%lf P[%5u,%5u]=%lf%n", &w->low[0], &w->high[0], &w->probability, &w->low[1],
               &w->high[1], &rest, &end) != 6 ||
        end != (int)strlen(text))
        return false;
    w->shape = SHAPE_INTERVALS;
    return w->probability >= 0 && rest >= 0 && fabs(w->probability + rest - 1) < 1e-6;
}

bool workload_parse(struct workload *workload, const char *text)
{
    static const struct {
        const char *name;
        enum shape shape;
    } simple[] = {{"square", SHAPE_SQUARE}, {"rect", SHAPE_RECT}, {"procs", SHAPE_PROCS}};
    char name[16];
    int end = -1;

    if (strcmp(text, "constant") == 0) {
        workload->shape = SHAPE_CONSTANT;
        return true;
    }
    workload->low[1] = workload->high[1] = 1;
    if (text[0] == 'P')
        return parse_intervals(workload, text) && interval_valid(workload, 0) && interval_valid(workload, 1);
    if (sscanf(text, "%15[a-z] [%5u,%5u]%n", name, &workload->low[0], &workload->high[0], &end) != 3 ||
        end != (int)strlen(text))
        return false;
    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
        if (strcmp(name, simple[i].name) == 0) {
            workload->shape = simple[i].shape;
            return interval_valid(workload, 0);
        }
    return false;
}

struct generator {
    struct source source;
    struct workload workload;
    struct stream arrivals, service, rows, columns, interval;
    double now_ms;
    uint64_t count;
};

static void draw_shape(struct generator *g, struct sim_job *job)
{
    const struct workload *w = &g->workload;
    uint32_t rows, columns;
    int i = 0;

    if (w->shape == SHAPE_CONSTANT) { /* 4x6 and 4x2 in turn */
        job->mesh_rows = 4;
        job->nprocs = g->count % 2 == 1 ? 24 : 8;
        return;
    }
    if (w->shape == SHAPE_INTERVALS) /* once for both sides */
        i = stream_unit(&g->interval) > w->probability;
    rows = stream_between(&g->rows, w->low[i], w->high[i]);
    columns = w->shape == SHAPE_SQUARE ? rows : stream_between(&g->columns, w->low[i], w->high[i]);
    job->mesh_rows = w->shape == SHAPE_PROCS ? 0 : rows;
    job->nprocs = w->shape == SHAPE_PROCS ? rows : rows * columns;
}

static bool next(struct source *source, struct sim_job *job)
{
    struct generator *g = (struct generator *)source;
    const struct workload *w = &g->workload;
    double service_ms = 1000 * w->mean_service_s;

    if (w->jobs > 0 && g->count == w->jobs)
        return false;
    g->count++;
    *job = (struct sim_job){.number = g->count,
                            .index = g->count,
                            .uid = 1000,
                            .share = w->share,
                            .memory_bytes = w->memory_bytes,
                            .start_ms = -1,
                            .end_ms = -1};
    if (w->load > 0)
        g->now_ms +=
            w->constant_arrivals ? service_ms / w->load : stream_exponential(&g->arrivals, service_ms / w->load);
    job->submit_ms = (int64_t)(g->now_ms + 0.5);
    job->work_ms = (int64_t)((w->constant_service ? service_ms : stream_exponential(&g->service, service_ms)) + 0.5);
    draw_shape(g, job);
    return true;
}

static void destroy(struct source *source)
{
    free(source);
}

struct source *workload_source(const struct workload *workload)
{
    struct generator *g = mem_zalloc(sizeof(*g));

    g->source = (struct source){.next = next, .destroy = destroy};
    g->workload = *workload;
    stream_init(&g->arrivals, workload->seed, 1);
    stream_init(&g->service, workload->seed, 2);
    stream_init(&g->rows, workload->seed, 3);
    stream_init(&g->columns, workload->seed, 4);
    stream_init(&g->interval, workload->seed, 5);
    return &g->source;
}
