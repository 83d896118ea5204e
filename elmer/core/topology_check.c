/* topology_check.c - what the cube may hold, found out again: each node gets the name of its region from the clusters,
 * one after the other, and every subcube is looked at. Slow, for tests with few hosts. */
#include "elmer/core/topology.h"

#include <stdlib.h>

enum { TAKEN = -1 };

static bool nodes_of(struct subcube cube, uint32_t nodes, bool (*good)(uint32_t node, uint32_t first, const void *data),
                     const void *data)
{
    for (uint32_t node = 0; node < nodes; node++)
        if ((node & ~cube.stars) == cube.value && !good(node, cube.value, data))
            return false;
    return true;
}

/* Whether there is a k-cube of which all nodes are good. */
static bool any_cube(const struct core *core, int k, bool (*good)(uint32_t node, uint32_t first, const void *data),
                     const void *data)
{
    uint32_t nodes = 1u << cube_dimension(topology_cube(core));

    for (uint32_t stars = 0; stars < nodes; stars++)
        for (uint32_t value = 0; value < nodes && __builtin_popcount(stars) == k; value++)
            if ((value & stars) == 0 && nodes_of((struct subcube){stars, value}, nodes, good, data))
                return true;
    return false;
}

struct wish {
    const struct core *core;
    const struct job *job;
    const int *region; /* [nodes] 0: the free list; TAKEN; another number for each leftover */
};

static bool has_processor(uint32_t node, uint32_t first, const void *data)
{
    const struct wish *wish = data;

    (void)first;
    return check_allows(wish->job, (int)node) &&
           check_room_supply(wish->job, wish->core->hosts[node], host_supply(wish->core->hosts[node])) > 0;
}

static bool is_free(uint32_t node, uint32_t first, const void *data)
{
    const struct wish *wish = data;
    const struct host *host = wish->core->hosts[node];

    return wish->region[node] == wish->region[first] && wish->region[node] != TAKEN &&
           check_allows(wish->job, (int)node) && host_allocatable(host) &&
           check_room_now(wish->core, wish->job, host, 1) > 0 && host->processors[host->cpus[0]].jobs == 0 &&
           (wish->region[node] == 0 || wish->core->options.allocator == ALLOCATOR_CUBE_AFL);
}

static int dimension_of(const struct job *job)
{
    return mesh_dimension((struct mesh){job->info.mesh_rows, job->info.nprocs / job->info.mesh_rows});
}

bool check_topology_supply(const struct core *core, const struct job *job)
{
    const struct wish wish = {.core = core, .job = job};

    return !topology_cube(core) || job->info.mesh_rows == 0 || any_cube(core, dimension_of(job), has_processor, &wish);
}

/* Whether its processors are a mesh, and where. */
static bool is_mesh(const struct core *core, const struct job *job, struct mesh *mesh, struct subcube *host)
{
    uint32_t *at, nprocs = job->info.nprocs;
    bool inside = job->info.mesh_rows > 0;

    if (!inside)
        return false;
    *mesh = (struct mesh){job->info.mesh_rows, nprocs / job->info.mesh_rows};
    at = mem_array(nprocs, sizeof(*at));
    for (uint32_t i = 0; i < nprocs; i++) {
        at[i] = (uint32_t)job->processors[i].host;
        inside = inside && at[i] < 1u << cube_dimension(topology_cube(core));
    }
    inside = inside && mesh_host(*mesh, at, host);
    free(at);
    return inside;
}

/* As after a restart. */
static bool follows_from_jobs(const struct core *core)
{
    struct cube *again = cube_create(cube_dimension(topology_cube(core)));
    bool same = true;

    LIST_FOR_EACH (node, &core->active) {
        const struct job *job = LIST_ITEM(node, const struct job, in_active);
        struct mesh mesh;
        struct subcube host;
        same = same && job->in_cube == (is_mesh(core, job, &mesh, &host) && cube_take(again, mesh, host));
    }
    cube_destroy(again);
    return same;
}

/* Clusters in the order of arrival: one that is in a leftover came after whose leftover it is. */
static int *find_regions(const struct core *core)
{
    uint32_t nodes = 1u << cube_dimension(topology_cube(core));
    int *region = mem_array(nodes, sizeof(*region)), last = 0;

    LIST_FOR_EACH (list_node, &core->active) {
        const struct job *job = LIST_ITEM(list_node, const struct job, in_active);
        struct subcube leftovers[MESH_MAX_PIECES], host;
        struct mesh mesh;
        size_t count;
        if (!job->in_cube)
            continue;
        for (uint32_t i = 0; i < job->info.nprocs; i++)
            region[job->processors[i].host] = TAKEN;
        count = is_mesh(core, job, &mesh, &host) ? mesh_leftovers(mesh, host, leftovers) : 0;
        for (size_t i = 0; i < count; i++, last++)
            for (uint32_t node = 0; node < nodes; node++)
                if ((node & ~leftovers[i].stars) == leftovers[i].value)
                    region[node] = last + 1;
    }
    return region;
}

bool check_topology_fits(const struct core *core, const struct job *job)
{
    struct wish wish = {.core = core, .job = job};
    int *region;
    bool fits;

    if (!topology_cube(core) || job->info.mesh_rows == 0)
        return false;
    wish.region = region = find_regions(core);
    fits = any_cube(core, dimension_of(job), is_free, &wish);
    free(region);
    return fits;
}

const char *check_topology(const struct core *core)
{
    struct cube *cube = topology_cube(core);
    const char *fault = cube ? cube_check(cube) : NULL;
    uint32_t used = 0;
    int *region;

    if (!cube || fault)
        return fault;
    region = find_regions(core);
    for (uint32_t node = 0; node < 1u << cube_dimension(cube); node++)
        used += region[node] == TAKEN;
    free(region);
    if (used + cube_free_nodes(cube) != 1u << cube_dimension(cube))
        return "counts other nodes than the jobs have";
    return follows_from_jobs(core) ? NULL : "the cube would be another one after a restart";
}
