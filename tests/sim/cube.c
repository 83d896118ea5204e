/* cube.c - random walks of a core whose hosts are a hypercube. The hosts obey at once; a walk submits meshes, ends
 * jobs, drains hosts, sets another allocator, and restarts the core from what was stored. core_check() looks at each
 * step by brute force; here the ranks are looked at, and that the whole cube is back when all jobs have ended. */
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/core/cube/mesh.h"

enum { DIMENSION = 4, HOSTS = 1 << DIMENSION, STEPS = 120, UID = 2001 };

struct row { /* of a running job, as stored */
    struct core_job job;
    struct core_processor processors[HOSTS];
    uint8_t exited[HOSTS];
};

struct walk {
    struct core *core;
    struct core_options options;
    int64_t now_ms;
    uint64_t random;
    bool drained[HOSTS];
    uint64_t steps;
    char fault[500];
    uint64_t *placed; /* in all walks: jobs with a cluster, and of these beside others' ranks */
};

static uint32_t draw(struct walk *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static void fail(struct walk *w, const char *what, uint64_t job)
{
    if (w->fault[0] == '\0')
        snprintf(w->fault, sizeof(w->fault), "job %llu: %s", (unsigned long long)job, what);
}

static void step(struct walk *w, struct event event);

/* What hosts and shell do, at once. */
static void obey(struct walk *w, const struct action *action)
{
    struct event event = {.host = action->host, .job = action->job, .attempt = action->attempt};

    if (action->type == ACTION_ORDER) {
        event.type = EVENT_ORDERED;
        event.u.generation = action->generation;
    } else if (action->type == ACTION_OPEN) {
        event.type = EVENT_OPENED;
    } else if (action->type == ACTION_END) {
        event.type = EVENT_EMPTY;
    } else if (action->type == ACTION_LAUNCH) {
        event.type = EVENT_LAUNCHED;
    } else {
        return;
    }
    step(w, event);
}

/* Every few steps a copy goes on instead, whose lists are judged as those of the original. */
static void step(struct walk *w, struct event event)
{
    struct actions actions;
    char text[400];

    actions_init(&actions);
    event.now_ms = w->now_ms;
    if (++w->steps % 16 == 0) {
        struct core *copy = core_copy(w->core);

        core_destroy(w->core);
        w->core = copy;
    }
    if (core_step(w->core, &event, &actions) != 0)
        fail(w, "the core refuses an event", event.job);
    if (w->fault[0] == '\0' && core_check(w->core, text, sizeof(text)) != 0)
        snprintf(w->fault, sizeof(w->fault), "%s", text);
    for (size_t i = 0; i < actions.count; i++)
        obey(w, &actions.items[i]);
    actions_fini(&actions);
}

static void host_up(struct walk *w, int host, const struct row *rows, size_t count)
{
    static const int cpus[] = {0, 1};
    struct core_holding holdings[HOSTS];
    struct event event = {.type = EVENT_HOST_UP, .host = host, .u.up = {.cpus = cpus, .ncpus = 1 + host % 2}};

    for (size_t i = 0; i < count; i++)
        for (uint32_t rank = 0; rank < rows[i].job.nprocs; rank++)
            if (rows[i].processors[rank].host == host)
                holdings[event.u.up.nholdings++] = (struct core_holding){rows[i].job.id, rows[i].job.attempt};
    event.u.up.holdings = holdings;
    step(w, event);
}

static void make_core(struct walk *w)
{
    char name[20];

    w->core = core_create(&w->options);
    for (int i = 0; w->core && i < HOSTS; i++) {
        snprintf(name, sizeof(name), "ws%d", i);
        core_add_host(w->core, name);
    }
}

/* ---- what is looked at ---- */

/* Which node of its host cube each rank has: the Gray code of its row before that of its column. */
static void check_places(struct walk *w, const struct core_job *job)
{
    uint32_t columns = job->nprocs / job->mesh_rows, all = UINT32_MAX, any = 0;

    for (uint32_t i = 0; i < job->nprocs; i++) {
        all &= (uint32_t)job->processors[i].host;
        any |= (uint32_t)job->processors[i].host;
    }
    for (uint32_t i = 0; i < job->nprocs; i++) {
        uint32_t row = i / columns, column = i % columns, place = 0, bit = 1;
        for (uint32_t stars = any & ~all; stars != 0; stars &= stars - 1, bit <<= 1)
            place |= ((uint32_t)job->processors[i].host & stars & -stars) != 0 ? bit : 0;
        if (place != ((row ^ row >> 1) << mesh_bits(columns) | (column ^ column >> 1)))
            fail(w, "a rank is not where its row and column are", job->id);
    }
}

/* By rank: neighbours in the mesh are neighbours in the cube. */
static void check_ranks(struct walk *w, const struct core_job *job)
{
    uint32_t columns = job->nprocs / job->mesh_rows;

    for (uint32_t i = 0; i < job->nprocs; i++) {
        uint32_t node = (uint32_t)job->processors[i].host;
        if (i % columns != 0 && __builtin_popcount(node ^ (uint32_t)job->processors[i - 1].host) != 1)
            fail(w, "ranks of a row are not neighbours", job->id);
        if (i >= columns && __builtin_popcount(node ^ (uint32_t)job->processors[i - columns].host) != 1)
            fail(w, "ranks of a column are not neighbours", job->id);
    }
    check_places(w, job);
}

static bool runs(const struct core_job *job)
{
    return job->state == JOB_RUNNING;
}

static size_t count_running(struct walk *w, uint64_t *ids)
{
    uint64_t cursor = 0;
    size_t count = 0;

    for (const struct core_job *job; (job = core_next_job(w->core, &cursor));) {
        if (!runs(job))
            continue;
        if (core_allocator_in_cube((enum core_allocator)core_setting_value(w->core, SETTING_ALLOCATOR)))
            check_ranks(w, job);
        ids[count++] = job->id;
    }
    return count;
}

/* ---- what happens ---- */

static void submit(struct walk *w, uint32_t rows, uint32_t columns)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};

    event.u.submit.uid = UID;
    event.u.submit.nprocs = rows * columns;
    event.u.submit.mesh_rows = draw(w, 4) == 0 ? 0 : rows;
    step(w, event);
    ++*w->placed;
}

static void end_one(struct walk *w)
{
    uint64_t ids[HOSTS];
    size_t count = count_running(w, ids);
    struct event event = {.type = EVENT_EXITED};
    const struct core_job *job;

    if (count == 0)
        return;
    event.job = ids[draw(w, (uint32_t)count)];
    job = core_job(w->core, event.job);
    event.attempt = job->attempt;
    event.host = job->processors[0].host;
    step(w, event);
    core_forget(w->core, event.job);
}

static void drain(struct walk *w, int host, bool drained)
{
    w->drained[host] = drained;
    step(w, (struct event){.type = drained ? EVENT_DRAIN : EVENT_UNDRAIN, .host = host});
}

static int by_allocation(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->job.allocation > y->job.allocation) - (x->job.allocation < y->job.allocation);
}

static size_t store(struct walk *w, struct row *rows)
{
    uint64_t cursor = 0;
    size_t count = 0;

    for (const struct core_job *job; (job = core_next_job(w->core, &cursor));) {
        if (!runs(job))
            continue;
        rows[count].job = *job;
        memcpy(rows[count].processors, job->processors, job->nprocs * sizeof(*job->processors));
        rows[count].exited[0] = 0;
        rows[count].job.text = "";
        count++;
    }
    qsort(rows, count, sizeof(*rows), by_allocation);
    return count;
}

/* Queued jobs are left behind: what runs decides what the cube is. A job for each dimension then finds a place in the
 * new core if it would have in the old one, which its own core_check() has just said. */
static void restart(struct walk *w)
{
    static struct row rows[HOSTS];
    size_t count = store(w, rows);

    core_destroy(w->core);
    make_core(w);
    for (size_t i = 0; i < count; i++) {
        rows[i].job.processors = rows[i].processors;
        rows[i].job.exited = rows[i].exited;
        if (core_restore_job(w->core, &rows[i].job, w->now_ms) != 0)
            fail(w, "is not restored", rows[i].job.id);
    }
    for (int i = 0; i < HOSTS; i++)
        host_up(w, i, rows, count);
    for (int i = 0; i < HOSTS; i++)
        if (w->drained[i])
            drain(w, i, true);
}

/* When all jobs have ended there is room for all of the cube. */
static void finish(struct walk *w)
{
    uint64_t cursor = 0, ids[HOSTS];
    const struct core_job *job;

    while ((job = core_next_job(w->core, &cursor)))
        if (job->state == JOB_QUEUED)
            step(w, (struct event){.type = EVENT_CANCEL, .host = -1, .job = job->id, .u.by = {.uid = UID}});
    for (int i = 0; i < HOSTS; i++)
        drain(w, i, false);
    step(w, (struct event){.type = EVENT_SET, .host = -1, .u.set = {SETTING_ALLOCATOR, SETTING_UNSET}});
    for (size_t left = count_running(w, ids), now; left > 0 && w->fault[0] == '\0'; left = now) {
        end_one(w);
        now = count_running(w, ids);
        if (now >= left)
            fail(w, "no job ends", ids[0]);
    }
    submit(w, 1u << (DIMENSION / 2), 1u << (DIMENSION / 2));
    if (count_running(w, ids) != 1)
        fail(w, "the whole cube is free, and has no room for it", 0);
}

static void disturb(struct walk *w)
{
    uint32_t what = draw(w, 100);

    w->now_ms += 10;
    if (what < 50)
        submit(w, 1 + draw(w, 4), 1 + draw(w, 4));
    else if (what < 90)
        end_one(w);
    else if (what < 94)
        drain(w, (int)draw(w, HOSTS), draw(w, 3) == 0);
    else if (what < 97)
        step(w, (struct event){
                    .type = EVENT_SET,
                    .host = -1,
                    .u.set = {SETTING_ALLOCATOR, draw(w, 2) == 0 ? (int)ALLOCATOR_CUBE_FL : (int)ALLOCATOR_CUBE_AFL}});
    else
        restart(w);
}

bool cube_tests(uint64_t walks, int number)
{
    uint64_t placed = 0;
    struct walk w = {.fault = ""};

    for (uint64_t seed = 1; seed <= walks && w.fault[0] == '\0'; seed++) {
        w = (struct walk){.now_ms = 1000, .random = seed, .placed = &placed};
        core_options_default(&w.options);
        w.options.topology = TOPOLOGY_CUBE;
        w.options.levels = 1;
        w.options.allocator = seed % 2 == 0 ? ALLOCATOR_CUBE_FL : ALLOCATOR_CUBE_AFL;
        make_core(&w);
        for (int i = 0; i < HOSTS; i++)
            host_up(&w, i, NULL, 0);
        for (int i = 0; i < STEPS && w.fault[0] == '\0'; i++)
            disturb(&w);
        if (w.fault[0] == '\0')
            finish(&w);
        core_destroy(w.core);
        if (w.fault[0] != '\0')
            printf("# seed %llu: %s\n", (unsigned long long)seed, w.fault);
    }
    printf("%s %d - walks in a hypercube: %llu meshes\n", w.fault[0] == '\0' ? "ok" : "not ok", number,
           (unsigned long long)placed);
    return w.fault[0] == '\0';
}
