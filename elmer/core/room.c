/* room.c - how many of a host's processors a job may have at most: by the memory that it asks for and by how many it
 * wants of one host.
 *
 * A host has promised what the jobs that have processors there have asked for, from their allocation until they are
 * done, whether they use it or not; jobs that ask for none count as nothing. So who asked early is not refused memory
 * by who came later, and nobody measures. What a host has is what it said when it came up; where that is less than it
 * has promised, as after a change of its configuration, it takes nobody who asks until enough have ended.
 */
#include "elmer/core/internal.h"

#include <assert.h>

const struct core_demand room_nothing = {0};

bool room_is_asked(const struct core_demand *demand)
{
    return demand->memory_bytes > 0 || demand->per_host > 0;
}

struct core_demand room_demand(const struct job *job)
{
    return (struct core_demand){.memory_bytes = job->info.memory_bytes, .per_host = job->info.per_host};
}

uint64_t room_in(uint64_t cpus, const struct core_demand *demand, uint64_t bytes)
{
    if (demand->per_host > 0 && cpus > demand->per_host)
        cpus = demand->per_host;
    if (demand->memory_bytes > 0 && cpus > bytes / demand->memory_bytes)
        cpus = bytes / demand->memory_bytes;
    return cpus;
}

/* One that is awaited has not said yet what memory it has: it counts as if it had enough, as its processors do. */
uint64_t room_supply(const struct host *host, const struct core_demand *demand)
{
    return room_in(host_supply(host), demand, host->info.known ? host->seen.memory_bytes : UINT64_MAX);
}

static uint64_t share_of(const struct part *part)
{
    return part->job->info.notice ? 0 : part->job->info.memory_bytes * (uint64_t)part->ncpus;
}

void room_promise(const struct part *part)
{
    part->host->seen.promised_bytes += share_of(part);
}

void room_take_back(const struct part *part)
{
    assert(part->host->seen.promised_bytes >= share_of(part));
    part->host->seen.promised_bytes -= share_of(part);
}

void core_memory(const struct core *core, int host, uint64_t *memory_bytes, uint64_t *promised_bytes)
{
    *memory_bytes = core->hosts[host]->seen.memory_bytes;
    *promised_bytes = core->hosts[host]->seen.promised_bytes;
}
