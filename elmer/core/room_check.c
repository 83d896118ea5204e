/* room_check.c - what hosts have promised, added up again from the jobs, how many of their processors have which next
 * level, counted again, and what a job may have of one. For tests. */
#include "elmer/core/topology.h"

#include <string.h>

/* One after the other, as one would deal them out by hand. */
static uint64_t deal(const struct job *job, uint64_t cpus, uint64_t bytes)
{
    uint64_t dealt = 0;

    while (dealt < cpus && bytes >= job->info.memory_bytes && (job->info.per_host == 0 || dealt < job->info.per_host)) {
        bytes -= job->info.memory_bytes;
        dealt++;
    }
    return dealt;
}

static uint64_t plainly_promised(const struct core *core, const struct host *host)
{
    uint64_t bytes = 0;

    LIST_FOR_EACH (node, &core->active) {
        const struct job *job = LIST_ITEM(node, const struct job, in_active);
        for (uint32_t i = 0; i < job->info.nprocs; i++)
            bytes += job->processors[i].host == host->index && !job->info.notice ? job->info.memory_bytes : 0;
    }
    return bytes;
}

uint64_t check_room_supply(const struct job *job, const struct host *host, uint64_t cpus)
{
    return host->info.known ? deal(job, cpus, host->seen.memory_bytes) : deal(job, cpus, UINT64_MAX);
}

uint64_t check_room_now(const struct core *core, const struct job *job, const struct host *host, uint64_t cpus)
{
    uint64_t promised = plainly_promised(core, host), bytes = host->seen.memory_bytes;

    return job->info.memory_bytes == 0 ? deal(job, cpus, 0) : bytes < promised ? 0 : deal(job, cpus, bytes - promised);
}

static bool counts_levels(const struct host *host)
{
    uint16_t at_level[CORE_MAX_LEVELS + 1] = {0};

    for (int i = 0; i < host->info.ncpus; i++)
        at_level[host->processors[host->cpus[i]].next_level]++;
    return memcmp(at_level, host->seen.at_level, sizeof(at_level)) == 0;
}

static bool has_gathered(const struct core *core)
{
    int count = 0;

    for (int h = 0; h < core->nhosts && core->nview >= 0; h++)
        if (host_allocatable(core->hosts[h]) && core->hosts[h]->info.ncpus > 0 &&
            (count == core->nview || core->view[count++] != &core->hosts[h]->seen))
            return false;
    return core->nview < 0 || count == core->nview;
}

const char *check_rooms(const struct core *core)
{
    if (!has_gathered(core))
        return "what is kept of the hosts that may take a job is not true any more";
    for (int h = 0; h < core->nhosts; h++) {
        if (core->hosts[h]->seen.promised_bytes != plainly_promised(core, core->hosts[h]))
            return "a host has promised another amount than its jobs have asked for";
        if (!counts_levels(core->hosts[h]))
            return "a host has other numbers of processors at levels than it counts";
    }
    return NULL;
}
