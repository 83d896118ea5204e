/* machine.c - the hosts of a simulation: their processors and speeds. */
#include "config.h"

#include <stdlib.h>

#include "esim/world.h"
#include "lib/memory/mem.h"

int world_cpus(const struct world_settings *settings, int host)
{
    if (!settings->known)
        return settings->ncpus;
    return host < settings->nknown ? settings->known[host] : settings->cpus_more;
}

double *world_speeds(const struct world_settings *settings)
{
    double *speeds = mem_array((size_t)settings->nhosts, sizeof(*speeds));
    int group = 0, rest = settings->nspeeds > 0 ? settings->speeds[0].hosts : 0;

    for (int h = 0; h < settings->nhosts; h++) {
        while (rest == 0 && group + 1 < settings->nspeeds)
            rest = settings->speeds[++group].hosts;
        speeds[h] = settings->nspeeds > 0 ? settings->speeds[group].speed : 1;
        rest -= rest > 0;
    }
    return speeds;
}

uint64_t world_processors(const struct world_settings *settings)
{
    uint64_t count = 0;

    for (int h = 0; h < settings->nhosts; h++)
        count += settings->core.topology == TOPOLOGY_CUBE ? 1 : (uint64_t)world_cpus(settings, h);
    return count;
}

uint64_t world_place(const struct core_processor *processors, uint32_t n)
{
    uint64_t place = 0xcbf29ce484222325u; /* FNV-1a */

    for (uint32_t i = 0; i < n; i++)
        place = (place ^ ((uint64_t)processors[i].host << 16 | (uint64_t)processors[i].cpu)) * 0x100000001b3u;
    return place;
}
