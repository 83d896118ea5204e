#include "config.h"

#include "elmer/launch/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel takes no string of more than 128 KiB (MAX_ARG_STRLEN). A cluster whose names need more finds them in the
 * host file only. */
enum { MAX_OURS = 24, MAX_STRING = 120 << 10, PVM_LOG_BYTES = 1000000 };

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
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    for (uint64_t i = 0; i < facts->submit->nprocs; i++)
        fprintf(out, "%s%s", i ? ":" : "", facts->ranks[i]);
    fclose(out);
    if (size < MAX_STRING)
        add(list, "ELMER_HOSTS", text);
    free(text);
}

static void add_pvm(struct list *list, const struct environment_facts *facts)
{
    add(list, "PVM_TMP", facts->tmpdir);
    add(list, "PVM_WD", facts->submit->dir);
    add(list, "PVM_RSH", "/bin/false"); /* nothing leaves the job's hosts, whatever happens to its hoster */
    add_number(list, "PVMDLOGMAX", PVM_LOG_BYTES);
    if (facts->pvmsock)
        add(list, "PVMSOCK", facts->pvmsock);
}

static bool named(const char *item, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(item, name, length) && item[length] == '=';
}

/* Ours, whoever sets them. */
static bool reserved(const char *item, bool pvm)
{
    static const char *const always[] = {"ELMER_JOB_ID",      "ELMER_JOB_NAME",   "ELMER_NPROCS",
                                         "ELMER_RANK",        "ELMER_HOSTS",      "ELMER_HOSTFILE",
                                         "ELMER_SUBMIT_HOST", "ELMER_SUBMIT_DIR", "ELMER_TMPDIR"};
    static const char *const of_pvm[] = {"PVM_TMP",    "PVM_WD",     "PVM_RSH",   "PVMDLOGMAX",
                                         "PVMSOCK",    "PVM_VMID",   "PVMTMPDIR", "PVMNETSOCKPORT",
                                         "PVM_HOSTER", "PVM_TASKER", "PVM_RM"};
    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
        if (named(item, always[i]))
            return true;
    for (size_t i = 0; pvm && i < sizeof(of_pvm) / sizeof(*of_pvm); i++)
        if (named(item, of_pvm[i]))
            return true;
    return false;
}

struct wire_strs environment_build(const struct environment_facts *facts, struct arena *memory)
{
    const struct wire_submit *submit = facts->submit;
    struct list list = {memory, arena_array(memory, submit->environment.count + MAX_OURS, sizeof(char *)), 0};
    for (size_t i = 0; i < submit->environment.count; i++)
        if (!reserved(submit->environment.items[i], submit->pvm))
            list.items[list.count++] = arena_strdup(memory, submit->environment.items[i]);
    add_number(&list, "ELMER_JOB_ID", facts->job);
    add(&list, "ELMER_JOB_NAME", submit->name);
    add_number(&list, "ELMER_NPROCS", submit->nprocs);
    add_number(&list, "ELMER_RANK", facts->rank);
    add_hosts(&list, facts);
    list.items[list.count++] = arena_format(memory, "ELMER_HOSTFILE=%s/hostfile", facts->tmpdir);
    add(&list, "ELMER_SUBMIT_HOST", submit->submit_host);
    add(&list, "ELMER_SUBMIT_DIR", submit->dir);
    add(&list, "ELMER_TMPDIR", facts->tmpdir);
    if (submit->pvm)
        add_pvm(&list, facts);
    return (struct wire_strs){(const char **)list.items, list.count};
}
