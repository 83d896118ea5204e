/* reach.c - where a job may ever run: the hosts that its owner allows and that are not known to lack what it needs. A
 * submission for more processors than these may have is refused; one that only has to wait for hosts is not.
 *
 * What hosts offer may be another thing later. The hosts of a job are decided once, when it is accepted, and stored
 * with it, so that a restart decides nothing anew.
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <stdlib.h>

/* A sorted copy without doubles. */
static int copy_hosts(const int *hosts, int n, int **copy)
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

/* Takes those out of hosts that are none any more or lack something, and counts. Returns how many stay. */
static int choose(const struct core *core, int *hosts, int nhosts, uint32_t needs, struct core_reach *reach)
{
    int kept = 0;

    *reach = (struct core_reach){0};
    for (int i = 0; i < nhosts; i++) {
        const struct host *host = core->hosts[hosts[i]];
        if (host->info.retired)
            continue;
        if (host->info.known && (needs & ~host->info.offers) != 0) {
            reach->lacking++;
            continue;
        }
        reach->cpus += (uint64_t)(host->info.known ? host->info.ncpus : host->configured_cpus);
        reach->unknown += !host->info.known && host->configured_cpus == 0;
        hosts[kept++] = hosts[i];
    }
    return kept;
}

static bool enough(const struct core_reach *reach, uint32_t nprocs)
{
    return nprocs <= reach->cpus + (uint64_t)reach->unknown * CORE_MAX_CPUS;
}

/* Without a look at each host. A core without any waits for its first. */
static bool enough_in_all(const struct core *core, uint32_t nprocs)
{
    const struct core_reach all = {.cpus = core->known_cpus, .unknown = core->unknown_hosts};

    return core->nhosts == 0 || enough(&all, nprocs);
}

void core_reach(const struct core *core, const int *hosts, int nhosts, uint32_t needs, struct core_reach *reach)
{
    int *chosen, n = hosts ? copy_hosts(hosts, nhosts, &chosen) : all_hosts(core, &chosen);

    choose(core, chosen, n, needs, reach);
    free(chosen);
}

static enum answer judge(const struct core *core, uint32_t nprocs, const int *hosts, int nhosts, uint32_t needs,
                         int **chosen, int *nchosen)
{
    struct core_reach reach;

    *chosen = NULL;
    *nchosen = 0;
    if (hosts && nhosts == 0)
        return ANSWER_REFUSED_HOSTS;
    if (nprocs == 0 || !enough_in_all(core, nprocs))
        return ANSWER_REFUSED_SIZE;
    if (!hosts && needs == 0)
        return ANSWER_OK;
    *nchosen = hosts ? copy_hosts(hosts, nhosts, chosen) : all_hosts(core, chosen);
    *nchosen = choose(core, *chosen, *nchosen, needs, &reach);
    if (enough(&reach, nprocs) && (hosts || reach.lacking > 0))
        return ANSWER_OK;
    free(*chosen);
    *chosen = NULL;
    *nchosen = 0;
    return enough(&reach, nprocs) ? ANSWER_OK : ANSWER_REFUSED_HOSTS;
}

enum answer reach_judge(const struct core *core, uint32_t nprocs, uint32_t mesh_rows, bool notice, const int *hosts,
                        int nhosts, uint32_t needs, int **chosen, int *nchosen)
{
    enum answer answer = judge(core, nprocs, hosts, nhosts, needs, chosen, nchosen);

    if (answer != ANSWER_OK || core->nhosts == 0 || notice)
        return answer;
    if (!topology_has_room(core, nprocs, mesh_rows, NULL, 0))
        answer = ANSWER_REFUSED_SIZE;
    else if (*chosen && !topology_has_room(core, nprocs, mesh_rows, *chosen, *nchosen))
        answer = ANSWER_REFUSED_HOSTS;
    if (answer == ANSWER_OK)
        return answer;
    free(*chosen);
    *chosen = NULL;
    *nchosen = 0;
    return answer;
}
