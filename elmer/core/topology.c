#include "elmer/core/topology.h"

#include <assert.h>
#include <stdlib.h>

struct topology {
    struct cube *cube;
    int supply;   /* dimension of the largest cube of hosts that count as supply; NOT_KNOWN, NOTHING */
    int shut_out; /* jobs that are */
};
enum { NOTHING = -1, NOT_KNOWN = -2 };

void topology_destroy(struct topology *topology)
{
    if (!topology)
        return;
    cube_destroy(topology->cube);
    free(topology);
}

struct topology *topology_copy(const struct topology *from)
{
    struct topology *topology;

    if (!from)
        return NULL;
    topology = mem_copy(from, 1, sizeof(*topology));
    topology->cube = from->cube ? cube_copy(from->cube) : NULL;
    return topology;
}

/* Of these hosts, with all jobs in the order in which they have come. */
static void make_cube(struct core *core, int dimension)
{
    cube_destroy(core->topology->cube);
    core->topology->cube = cube_create(dimension);
    core->topology->shut_out = 0;
    LIST_FOR_EACH (node, &core->active)
        topology_enter(core, LIST_ITEM(node, struct job, in_active));
}

void topology_add_host(struct core *core)
{
    int dimension = 31 - __builtin_clz((unsigned)core->nhosts);

    if (core->options.topology != TOPOLOGY_CUBE || dimension > CUBE_MAX_DIMENSION)
        return;
    if (!core->topology)
        core->topology = mem_zalloc(sizeof(*core->topology));
    core->topology->supply = NOT_KNOWN;
    if (!core->topology->cube || cube_dimension(core->topology->cube) != dimension)
        make_cube(core, dimension);
}

struct cube *topology_cube(const struct core *core)
{
    return core->topology ? core->topology->cube : NULL;
}

bool topology_rows(const struct core *core, uint32_t nprocs, uint32_t *rows)
{
    struct mesh mesh;

    if (core->options.topology == TOPOLOGY_NONE)
        return *rows == 0;
    if (nprocs > CUBE_MAX_NODES || !mesh_of(nprocs, *rows, &mesh))
        return false;
    *rows = mesh.rows;
    return true;
}

uint32_t core_cube_for(const struct core *core, uint32_t nprocs, uint32_t mesh_rows)
{
    if (core->options.topology == TOPOLOGY_NONE || !topology_rows(core, nprocs, &mesh_rows))
        return 0;
    return 1u << mesh_dimension((struct mesh){mesh_rows, nprocs / mesh_rows});
}

static struct mesh mesh_of_job(const struct job *job)
{
    return (struct mesh){job->info.mesh_rows, job->info.nprocs / job->info.mesh_rows};
}

/* Processors that were not chosen as a mesh are just taken, which is seen by the level that they would give. Those that
 * happen to be one, by another allocator, are a cluster all the same: who has chosen them is not known after a restart.
 */
void topology_enter(struct core *core, struct job *job)
{
    struct cube *cube = topology_cube(core);
    uint32_t nodes, *at;
    struct subcube host;
    bool is_mesh = true;

    job->in_cube = job->shut_out = false;
    if (!cube || job->info.mesh_rows == 0)
        return;
    nodes = 1u << cube_dimension(cube);
    at = mem_array(job->info.nprocs, sizeof(*at));
    for (uint32_t i = 0; i < job->info.nprocs; i++) {
        at[i] = (uint32_t)job->processors[i].host;
        is_mesh = is_mesh && at[i] < nodes;
    }
    is_mesh = is_mesh && mesh_host(mesh_of_job(job), at, &host);
    job->in_cube = is_mesh && cube_take(cube, mesh_of_job(job), host);
    job->shut_out = is_mesh && !job->in_cube;
    core->topology->shut_out += job->shut_out;
    free(at);
}

/* Without it others may be clusters, as they would be after a restart. */
void topology_leave(struct core *core, struct job *job)
{
    if (job->shut_out)
        core->topology->shut_out--;
    else if (job->in_cube && core->topology->shut_out > 0)
        make_cube(core, cube_dimension(topology_cube(core)));
    else if (job->in_cube)
        cube_give(topology_cube(core), (uint32_t)job->processors[0].host);
    job->in_cube = job->shut_out = false;
}

/* ---- who may hope ---- */

/* now: it counts as supply; else: it would, if it were up. */
static bool counts(const struct host *host, const struct core_demand *demand, bool now)
{
    return now ? room_supply(host, demand) > 0
               : room_in(1, demand, host->info.known ? host->seen.memory_bytes : UINT64_MAX) > 0;
}

static void mark(const struct core *core, const struct host *host, const struct core_demand *demand, bool now,
                 uint64_t *map)
{
    uint32_t node = (uint32_t)host->index;

    if (node < 1u << cube_dimension(topology_cube(core)) && counts(host, demand, now))
        map[node / 64] |= UINT64_C(1) << (node % 64);
}

/* Of these hosts (NULL: all), in a bitmap to be freed; now: only those that count as supply. */
static uint64_t *map_of(const struct core *core, const struct core_demand *demand, const int *hosts, int nhosts,
                        bool now)
{
    uint64_t *map = mem_array(((size_t)core->nhosts + 63) / 64, sizeof(*map));

    for (int i = 0; i < (hosts ? nhosts : core->nhosts); i++)
        mark(core, core->hosts[hosts ? hosts[i] : i], demand, now, map);
    return map;
}

static bool has_cube(const struct core *core, const struct core_demand *demand, const int *hosts, int nhosts, bool now,
                     int k)
{
    uint64_t *map = map_of(core, demand, hosts, nhosts, now);
    struct subcube found;
    bool has = cube_recognise(map, cube_dimension(topology_cube(core)), k, &found);

    free(map);
    return has;
}

void topology_changed_supply(struct core *core)
{
    if (core->topology)
        core->topology->supply = NOT_KNOWN;
}

static int supply(const struct core *core)
{
    int k = cube_dimension(topology_cube(core));

    if (core->topology->supply != NOT_KNOWN)
        return core->topology->supply;
    while (k >= 0 && !has_cube(core, &room_nothing, NULL, 0, true, k))
        k--;
    assert(k >= NOTHING);
    core->topology->supply = k;
    return k;
}

bool topology_has_supply(const struct core *core, const struct job *job)
{
    const struct core_demand demand = room_demand(job);

    if (!topology_cube(core) || job->info.mesh_rows == 0)
        return true;
    if (!job->hosts && (!room_is_asked(&demand) || mesh_dimension(mesh_of_job(job)) > supply(core)))
        return mesh_dimension(mesh_of_job(job)) <= supply(core);
    return has_cube(core, &demand, job->hosts, job->info.nhosts, true, mesh_dimension(mesh_of_job(job)));
}

bool topology_has_room(const struct core *core, uint32_t nprocs, uint32_t rows, const struct core_demand *demand,
                       const int *hosts, int nhosts)
{
    struct mesh mesh = {rows, rows > 0 ? nprocs / rows : 0};

    if (!topology_cube(core) || rows == 0)
        return true;
    if (!hosts && !room_is_asked(demand))
        return mesh_dimension(mesh) <= cube_dimension(topology_cube(core));
    return has_cube(core, demand, hosts, nhosts, false, mesh_dimension(mesh));
}
