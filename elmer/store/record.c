#include "config.h"

#include "elmer/store/record.h"

#include <stdlib.h>
#include <string.h>

struct record *record_create(void)
{
    struct record *record = mem_zalloc(sizeof(*record));
    record->level = CORE_NO_LEVEL;
    record->submitted_ms = record->started_ms = record->ended_ms = -1;
    record->accounted_ms = record->accounted_mono_ms = -1;
    record->user = record->token = record->text = "";
    return record;
}

void record_destroy(struct record *record)
{
    if (!record)
        return;
    arena_fini(&record->memory);
    wire_message_fini(&record->submission);
    free(record);
}

struct wire_strs record_cluster_hosts(const struct record *r, struct arena *memory)
{
    struct wire_strs hosts = {arena_array(memory, r->nprocessors, sizeof(char *)), 0};
    for (uint32_t i = 0; i < r->nprocessors; i++)
        if (!hosts.count || strcmp(hosts.items[hosts.count - 1], r->processors[i].host))
            hosts.items[hosts.count++] = r->processors[i].host;
    return hosts;
}
