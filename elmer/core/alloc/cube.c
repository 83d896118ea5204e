/* cube.c - meshes in a hypercube of hosts (Turner 1995, chapter 3): cube-fl takes a host cube from the free list,
 * cube-afl takes it first from what other clusters have left of theirs.
 *
 * The lists are in the view (elmer/core/cube), and the core keeps them up to date with each job that comes and goes,
 * whoever has chosen its processors. A node is the host of that index, with its first processor. Nodes that take no
 * job now, or not this one, are as if they were taken.
 */
#include "elmer/core/alloc/alloc.h"

#include <assert.h>
#include <stdlib.h>

#include "elmer/core/cube/cube.h"

/* A host that has come back with another CPU offers it, though the job that it had may be in its node still. */
static bool is_available(const struct alloc_view *view, const struct alloc_host *host)
{
    return cube_node_free(view->cube, (uint32_t)host->index) && host->ncpus > 0 &&
           host->processors[host->cpus[0]].next_level < view->options->levels;
}

/* A bitmap, to be freed; NULL: all that the lists say is free can be had. */
static uint64_t *available_nodes(const struct alloc_view *view, uint32_t nodes)
{
    uint64_t *available;
    uint32_t count = 0;

    for (int i = 0; i < view->nhosts; i++)
        count += is_available(view, view->hosts[i]);
    if (count == cube_free_nodes(view->cube))
        return NULL;
    available = mem_array(((size_t)nodes + 63) / 64, sizeof(*available));
    for (int i = 0; i < view->nhosts; i++) {
        uint32_t node = (uint32_t)view->hosts[i]->index;
        if (is_available(view, view->hosts[i]))
            available[node / 64] |= UINT64_C(1) << (node % 64);
    }
    return available;
}

static const struct alloc_host *host_of(const struct alloc_view *view, uint32_t node)
{
    int low = 0, high = view->nhosts;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (view->hosts[middle]->index < (int)node)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low < view->nhosts && view->hosts[low]->index == (int)node);
    return view->hosts[low];
}

static uint32_t choose(const struct alloc_view *view, const struct alloc_request *request, bool auxiliary,
                       struct core_processor *processors)
{
    struct mesh mesh = {request->mesh_rows, request->nprocs / (request->mesh_rows > 0 ? request->mesh_rows : 1)};
    struct subcube host;
    uint64_t *available;
    bool found;

    if (!view->cube || request->mesh_rows == 0 || mesh_dimension(mesh) > cube_dimension(view->cube))
        return 1;
    available = available_nodes(view, 1u << cube_dimension(view->cube));
    found = cube_find(view->cube, mesh_dimension(mesh), auxiliary, available, &host);
    free(available);
    if (!found)
        return 1;
    for (uint32_t row = 0; row < mesh.rows; row++)
        for (uint32_t column = 0; column < mesh.columns; column++) {
            const struct alloc_host *at = host_of(view, mesh_node(mesh, host, row, column));
            *processors++ = (struct core_processor){.host = at->index, .cpu = at->cpus[0]};
        }
    return 0;
}

static uint32_t choose_fl(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                          struct core_processor *processors)
{
    (void)random;
    return choose(view, request, false, processors);
}

static uint32_t choose_afl(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                           struct core_processor *processors)
{
    (void)random;
    return choose(view, request, true, processors);
}

const struct allocator alloc_cube_fl = {.choose = choose_fl, .judge = alloc_judge_level, .by_rank = true};
const struct allocator alloc_cube_afl = {.choose = choose_afl, .judge = alloc_judge_level, .by_rank = true};
