#include "config.h"

#include "elmer/launch/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/variable.h"
#include "lib/job/lines.h"
#include "lib/job/variables.h"

/* The kernel takes no string of more than 128 KiB (MAX_ARG_STRLEN). A cluster whose names need more finds them in the
 * host file only. */
enum { MAX_OURS = 16, MAX_STRING = 120 << 10 };

struct list {
    struct arena *memory;
    char **items;
    size_t count;
};

static void add(struct list *list, const char *name, const char *value)
{
    list->items[list->count++] = arena_format(list->memory, "%s=%s", name, value);
}

static void add_number(struct list *list, const char *name, uint64_t number)
{
    list->items[list->count++] = arena_format(list->memory, "%s=%" PRIu64, name, number);
}

static void add_hosts(struct list *list, const struct environment_facts *facts)
{
    size_t room = 1;
    char *text, *end;
    for (uint64_t i = 0; i < facts->submit->nprocs && room < MAX_STRING + 2; i++)
        room += strlen(facts->ranks[i]) + 1;
    if (room >= MAX_STRING + 2) /* the last separator is none, and the NUL does not count */
        return;
    text = end = mem_zalloc(room);
    for (uint64_t i = 0; i < facts->submit->nprocs; i++)
        end += snprintf(end, room - (size_t)(end - text), "%s%s", i ? ":" : "", facts->ranks[i]);
    add(list, "ELMER_HOSTS", text);
    free(text);
}

/* Ours, whoever sets them. */
static bool is_reserved(const char *item, const struct environment_facts *facts)
{
    static const char *const always[] = {JOB_VARIABLES, NULL};
    return variable_is_one_of(item, always) || variable_is_one_of(item, facts->reserved);
}

struct wire_strs environment_build(const struct environment_facts *facts, struct arena *memory)
{
    const struct wire_submit *submit = facts->submit;
    size_t most = submit->environment.count + MAX_OURS + facts->variables.count;
    struct list list = {memory, arena_array(memory, most, sizeof(char *)), 0};
    for (size_t i = 0; i < submit->environment.count; i++)
        if (!is_reserved(submit->environment.items[i], facts))
            list.items[list.count++] = arena_strdup(memory, submit->environment.items[i]);
    add_number(&list, "ELMER_JOB_ID", facts->job);
    if (facts->array) {
        add_number(&list, "ELMER_ARRAY_ID", facts->array);
        add_number(&list, "ELMER_ARRAY_INDEX", (uint64_t)facts->index);
        if (facts->line)
            add(&list, LINE_VARIABLE, facts->line);
    }
    add(&list, "ELMER_JOB_NAME", submit->name);
    add_number(&list, "ELMER_NPROCS", submit->nprocs);
    add_number(&list, "ELMER_RANK", facts->rank);
    if (facts->mesh_rows)
        list.items[list.count++] = arena_format(memory, "ELMER_MESH=%" PRIu32 "x%" PRIu64, facts->mesh_rows,
                                                submit->nprocs / facts->mesh_rows);
    add_hosts(&list, facts);
    list.items[list.count++] = arena_format(memory, "ELMER_HOSTFILE=%s/hostfile", facts->tmpdir);
    add(&list, "ELMER_SUBMIT_HOST", submit->submit_host);
    add(&list, "ELMER_SUBMIT_DIR", submit->dir);
    add(&list, "ELMER_TMPDIR", facts->tmpdir);
    if (*facts->address)
        add(&list, "ELMER_ADDRESS", facts->address);
    for (size_t i = 0; i < facts->variables.count; i++)
        list.items[list.count++] = arena_strdup(memory, facts->variables.items[i]);
    return (struct wire_strs){(const char **)list.items, list.count};
}
