/* reach.c - where a job may ever run: the hosts that its owner allows and that are not known to lack what it needs. A
 * submission for more processors than these may have is refused; one that only has to wait for hosts is not.
 *
 * What hosts offer may be another thing later. The hosts of a job are decided once, when it is accepted, and stored
 * with it, so that a restart decides nothing anew. Memory is not part of that: a host that has too little of it may
 * have more when it comes back, and counts then.
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <stdlib.h>

int reach_copy_hosts(const int *hosts, int n, int **copy)
{
    int kept = 0;

    *copy = mem_copy(hosts, (size_t)n, sizeof(**copy));
    qsort(*copy, (size_t)n, sizeof(**copy), compare_ints);
    for (int i = 0; i < n; i++)
        if (kept == 0 || (*copy)[kept - 1] != (*copy)[i])
            (*copy)[kept++] = (*copy)[i];
    return kept;
}

static int all_hosts(const struct core *core, int **all)
{
    *all = mem_array((size_t)core->nhosts, sizeof(**all));
    for (int i = 0; i < core->nhosts; i++)
        (*all)[i] = i;
    return core->nhosts;
}

static void count(const struct host *host, const struct core_demand *demand, struct core_reach *reach)
{
    uint64_t cpus = (uint64_t)(host->info.known ? host->info.ncpus : host->configured_cpus);

    reach->cpus_there += cpus;
    reach->cpus += room_in(cpus, demand, host->info.known ? host->seen.memory_bytes : UINT64_MAX);
    if (!host->info.known || (reach->most_memory_host >= 0 && host->seen.memory_bytes <= reach->most_memory_bytes))
        return;
    reach->most_memory_bytes = host->seen.memory_bytes;
    reach->most_memory_host = host->index;
}

/* Takes those out of hosts that are none any more or lack something, and counts. Returns how many stay. */
static int choose(const struct core *core, int *hosts, int nhosts, uint32_t needs, const struct core_demand *demand,
                  struct core_reach *reach)
{
    int kept = 0;

    *reach = (struct core_reach){.most_memory_host = -1};
    for (int i = 0; i < nhosts; i++) {
        const struct host *host = core->hosts[hosts[i]];
        if (host->info.retired)
            continue;
        if (host->info.known && (needs & ~host->info.offers) != 0) {
            reach->lacking++;
            continue;
        }
        count(host, demand, reach);
        reach->unknown += !host->info.known && host->configured_cpus == 0;
        hosts[kept++] = hosts[i];
    }
    return kept;
}

static bool enough(const struct core_reach *reach, uint32_t nprocs, const struct core_demand *demand)
{
    return nprocs <= reach->cpus + (uint64_t)reach->unknown * room_in(CORE_MAX_CPUS, demand, UINT64_MAX);
}

/* Without a look at each host. A core without any waits for its first. */
static bool enough_in_all(const struct core *core, uint32_t nprocs)
{
    const struct core_reach all = {.cpus = core->known_cpus, .unknown = core->unknown_hosts};

    return core->nhosts == 0 || enough(&all, nprocs, &room_nothing);
}

void core_reach(const struct core *core, const int *hosts, int nhosts, uint32_t needs, const struct core_demand *demand,
                struct core_reach *reach)
{
    int *chosen, n = hosts ? reach_copy_hosts(hosts, nhosts, &chosen) : all_hosts(core, &chosen);

    choose(core, chosen, n, needs, demand, reach);
    free(chosen);
}

static enum answer judge(const struct core *core, uint32_t nprocs, const struct core_demand *demand, const int *hosts,
                         int nhosts, uint32_t needs, int **chosen, int *nchosen)
{
    struct core_reach reach;

    *chosen = NULL;
    *nchosen = 0;
    if (hosts && nhosts == 0)
        return ANSWER_REFUSED_HOSTS;
    if (nprocs == 0 || !enough_in_all(core, nprocs))
        return ANSWER_REFUSED_SIZE;
    if (!hosts && needs == 0 && (core->nhosts == 0 || !room_is_asked(demand)))
        return ANSWER_OK;
    *nchosen = hosts ? reach_copy_hosts(hosts, nhosts, chosen) : all_hosts(core, chosen);
    *nchosen = choose(core, *chosen, *nchosen, needs, demand, &reach);
    if (enough(&reach, nprocs, demand) && (hosts || reach.lacking > 0))
        return ANSWER_OK;
    free(*chosen);
    *chosen = NULL;
    *nchosen = 0;
    return enough(&reach, nprocs, demand) ? ANSWER_OK : ANSWER_REFUSED_HOSTS;
}

enum answer reach_judge(const struct core *core, uint32_t nprocs, uint32_t mesh_rows, const struct core_demand *demand,
                        bool notice, const int *hosts, int nhosts, uint32_t needs, int **chosen, int *nchosen)
{
    enum answer answer = judge(core, nprocs, demand, hosts, nhosts, needs, chosen, nchosen);

    if (answer != ANSWER_OK || core->nhosts == 0 || notice)
        return answer;
    if (!topology_has_room(core, nprocs, mesh_rows, demand, NULL, 0))
        answer = ANSWER_REFUSED_SIZE;
    else if (*chosen && !topology_has_room(core, nprocs, mesh_rows, demand, *chosen, *nchosen))
        answer = ANSWER_REFUSED_HOSTS;
    if (answer == ANSWER_OK)
        return answer;
    free(*chosen);
    *chosen = NULL;
    *nchosen = 0;
    return answer;
}
