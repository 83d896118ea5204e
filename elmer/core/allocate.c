/* allocate.c - gives the head of the queue its cluster: asks the allocator, checks what it says, and starts the job. */
#include "elmer/core/alloc/alloc.h"
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <stdlib.h>

/* The hosts that a job may use, one by one in order. */
static struct host *allowed_host(const struct core *core, const struct job *job, int i)
{
    if (!job->hosts)
        return i < core->nhosts ? core->hosts[i] : NULL;
    return i < job->info.nhosts ? core->hosts[job->hosts[i]] : NULL;
}

static const struct allocator *allocator_of(const struct core *core)
{
    return alloc_by_number(core->options.allocator);
}

/* Without hosts: enough for a verdict. */
static struct alloc_view view_of(const struct core *core)
{
    return (struct alloc_view){.options = &core->options, .now_ms = core->now_ms};
}

static struct alloc_view view_for(struct core *core, const struct job *job, const struct alloc_request *request)
{
    struct alloc_view view = view_of(core);
    int nhosts = host_gather(core, job->hosts, job->info.nhosts);

    if (room_is_asked(&request->demand)) {
        for (int i = 0; i < nhosts; i++)
            if (alloc_room(request, core->view[i]) > 0)
                core->view[view.nhosts++] = core->view[i];
        core->nview = -1;
    } else {
        view.nhosts = nhosts;
    }
    view.hosts = core->view;
    view.notes = core->notes;
    view.cube = topology_cube(core);
    return view;
}

uint32_t alloc_count_host(const struct core *core, const struct host *host)
{
    struct alloc_view view = view_of(core);
    uint32_t count = 0;

    if (!allocator_of(core)->reports_admit || !host_allocatable(host))
        return 0;
    for (int i = 0; i < host->info.ncpus; i++)
        count += allocator_of(core)->judge(&view, &host->seen, host->cpus[i]) == ALLOC_FREE;
    return count;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return (x->host->index > y->host->index) - (x->host->index < y->host->index);
}

int compare_ints(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

bool alloc_together(const struct core_processor *processors, uint32_t n)
{
    int *hosts, count = 0;
    bool sorted = true, together = true;

    for (uint32_t i = 1; i < n; i++)
        sorted = sorted && processors[i].host >= processors[i - 1].host;
    if (sorted)
        return true;
    hosts = mem_array(n, sizeof(*hosts));
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || processors[i].host != processors[i - 1].host)
            hosts[count++] = processors[i].host;
    qsort(hosts, (size_t)count, sizeof(*hosts), compare_ints);
    for (int i = 1; i < count; i++)
        together = together && hosts[i] != hosts[i - 1];
    free(hosts);
    return together;
}

int alloc_make_parts(struct core *core, const struct core_processor *processors, uint32_t n, struct part **parts)
{
    int count = 0;

    assert(n > 0);
    for (uint32_t i = 0; i < n; i++)
        count += i == 0 || processors[i].host != processors[i - 1].host;
    *parts = mem_array((size_t)count, sizeof(**parts));
    count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || processors[i].host != processors[i - 1].host)
            (*parts)[count++] = (struct part){.host = core->hosts[processors[i].host], .first = (int)i};
        (*parts)[count - 1].ncpus++;
    }
    for (int i = 1; i < count; i++)
        if ((*parts)[i].host->index < (*parts)[i - 1].host->index) {
            qsort(*parts, (size_t)count, sizeof(**parts), compare_parts);
            break;
        }
    return count;
}

/* What every allocator has promised, whatever its rule is: the order here, of hosts that may take jobs in take(), and
 * present with a level left in life_start(), which looks at each processor anyway. */
static bool in_order(const struct core_processor *processors, uint32_t n, bool by_rank)
{
    for (uint32_t i = 1; i < n; i++)
        if ((processors[i].host < processors[i - 1].host && !by_rank) ||
            (processors[i].host == processors[i - 1].host && processors[i].cpu <= processors[i - 1].cpu))
            return false;
    return alloc_together(processors, n);
}

/* Processors are copied. */
static void take(struct core *core, struct job *job, const struct core_processor *choice)
{
    struct core_processor *processors = mem_copy(choice, job->info.nprocs, sizeof(*processors));
    uint8_t *exited = mem_array((job_ranks(job) + 7) / 8, 1);
    struct part *parts;
    int nparts = alloc_make_parts(core, processors, job->info.nprocs, &parts);

    for (int i = 0; i < nparts; i++)
        assert(host_allocatable(parts[i].host));
    life_start(core, job, processors, parts, nparts, exited);
}

struct alloc_request alloc_request_of(const struct job *job)
{
    return (struct alloc_request){
        .nprocs = job->info.nprocs, .mesh_rows = job->info.mesh_rows, .demand = room_demand(job)};
}

uint32_t alloc_try(struct core *core, struct job *job)
{
    const struct alloc_request request = alloc_request_of(job);
    uint64_t random = core->random;
    struct alloc_view view;
    uint32_t missing;

    core->choice = mem_grow(core->choice, &core->choice_capacity, request.nprocs, sizeof(*core->choice));
    view = view_for(core, job, &request);
    missing = allocator_of(core)->choose(&view, &request, &random, core->choice);
    if (missing > 0)
        return missing;
    assert(in_order(core->choice, request.nprocs, allocator_of(core)->by_rank));
    take(core, job->array ? array_take_task(core, job) : job, core->choice);
    core->random = random;
    return 0;
}

/* ---- why not ---- */

static void survey_host(const struct core *core, const struct job *job, const struct host *host,
                        struct core_survey *survey)
{
    const struct alloc_request request = alloc_request_of(job);
    struct alloc_view view = view_of(core);
    uint32_t left = 0, room = (uint32_t)alloc_room(&request, &host->seen);

    for (int i = 0; i < host->info.ncpus; i++) {
        enum alloc_verdict verdict = allocator_of(core)->judge(&view, &host->seen, host->cpus[i]);
        survey->up++;
        survey->full += verdict == ALLOC_FULL;
        survey->busy += verdict == ALLOC_BUSY;
        survey->unmeasured += verdict == ALLOC_UNMEASURED;
        left += verdict == ALLOC_FREE;
    }
    survey->beyond += left > room ? left - room : 0;
}

uint64_t core_refused(const struct core *core)
{
    return core->queue.cursor && core->queue.refused ? core->queue.cursor->info.id : 0;
}

bool core_survey(const struct core *core, uint64_t id, struct core_survey *survey)
{
    const struct job *job = index_find(core, id);
    const struct host *host;

    *survey = (struct core_survey){0};
    if (!job || job != core->queue.cursor || !core->queue.refused)
        return false;
    for (int i = 0; (host = allowed_host(core, job, i)); i++) {
        if (host_allocatable(host))
            survey_host(core, job, host, survey);
        if (!host_usable(host))
            survey->unheard += (uint32_t)host_supply(host);
    }
    survey->up += survey->unheard;
    survey->allocator = core->options.allocator;
    return true;
}
