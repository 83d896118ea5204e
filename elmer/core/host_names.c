/* host_names.c - which hosts there are, and how one is found by its name. */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static uint64_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, and its bits once more: names differ at their end */

    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
}

/* Hosts are a tree by the hash of their names, host 0 is its root. It is not balanced, but hashes come in any order. */
static int *next_by_name(struct host *host, uint64_t key)
{
    return &host->below[key >= host->hash];
}

int core_host_by_name(const struct core *core, const char *name)
{
    uint64_t key = hash(name);

    for (int i = 0; i < core->nhosts;) {
        struct host *host = core->hosts[i];
        if (host->hash == key && strcmp(host->name, name) == 0)
            return i;
        i = *next_by_name(host, key);
        if (i == NO_HOST_BELOW)
            break;
    }
    return -1;
}

static void add_name(struct core *core, struct host *host)
{
    int *at;

    host->hash = hash(host->name);
    if (host->index == 0)
        return;
    at = next_by_name(core->hosts[0], host->hash);
    while (*at != NO_HOST_BELOW)
        at = next_by_name(core->hosts[*at], host->hash);
    *at = host->index;
}

static void make_room(struct core *core)
{
    size_t before = core->hosts_capacity, room;

    core->hosts = mem_grow(core->hosts, &core->hosts_capacity, (size_t)core->nhosts + 1, sizeof(struct host *));
    room = core->hosts_capacity;
    if (room == before)
        return;
    core->view = mem_exactly(core->view, before, room, sizeof(*core->view));
    core->notes = mem_exactly(core->notes, before, room, sizeof(*core->notes));
}

int core_add_host(struct core *core, const char *name)
{
    struct host *host;

    if (!name || name[0] == '\0')
        return -EINVAL;
    if (core_host_by_name(core, name) >= 0)
        return -EEXIST;
    make_room(core);
    host = mem_zalloc(sizeof(*host));
    host->info.name = host->name = mem_strdup(name);
    host->index = host->seen.index = core->nhosts;
    list_init(&host->parts);
    list_init(&host->notices);
    core->hosts[core->nhosts++] = host;
    add_name(core, host);
    core->unknown_hosts++;
    topology_add_host(core);
    return host->index;
}

void core_expect_cpus(struct core *core, int index, int ncpus)
{
    struct host *host = core->hosts[index];

    assert(ncpus > 0 && !host->info.known && host->configured_cpus == 0);
    host_take_out(core, host);
    host->configured_cpus = core->options.topology == TOPOLOGY_CUBE ? 1 : ncpus;
    host_put_in(core, host);
}
