#include "config.h"

#include "client/refs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/job/tasks.h"

bool ref_parse(const char *text, struct ref *ref)
{
    static struct tasks tasks;
    const char *bracket = strchr(text, '[');
    size_t length = strlen(text);
    char why[TASKS_WHY], *id;
    bool good;

    *ref = (struct ref){.id = 0};
    if (!bracket)
        return parse_id(text, &ref->id);
    id = must(strndup(text, (size_t)(bracket - text)));
    good = parse_id(id, &ref->id);
    free(id);
    if (!good)
        return false;
    if (text[length - 1] != ']') {
        usage_error("'%s' has no ] at its end; tasks of an array are named like 57[12], 57[3-9,12] or 57[*]", text);
        return false;
    }
    ref->tasks = must(strndup(bracket + 1, length - (size_t)(bracket - text) - 2));
    if (strcmp(ref->tasks, "*") == 0 || tasks_parse(ref->tasks, false, &tasks, why) == 0)
        return true;
    usage_error("%s: %s", text, why);
    free(ref->tasks);
    ref->tasks = NULL;
    return false;
}

void refs_fini(struct ref *refs, size_t count)
{
    for (size_t i = 0; refs && i < count; i++)
        free(refs[i].tasks);
    free(refs);
}

struct ids {
    uint64_t *items;
    size_t count;
};

static bool add(struct ids *ids, uint64_t id)
{
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i] == id)
            return true;
    if (ids->count == REFS_IDS) {
        usage_error("these are more than %d jobs and tasks; name fewer at a time", REFS_IDS);
        return false;
    }
    ids->items[ids->count++] = id;
    return true;
}

static int add_tasks(struct ids *ids, const struct ref *ref, const struct elmer_job *array)
{
    static struct tasks all, asked;
    const char *wanted = strcmp(ref->tasks, "*") == 0 ? array->tasks : ref->tasks;
    unsigned long long id = ref->id;
    char why[TASKS_WHY];

    if (array->ntasks == 0 || tasks_parse(array->tasks, true, &all, why) < 0 ||
        tasks_parse(wanted, true, &asked, why) < 0) {
        say("job %llu is no array: leave out [%s]", id, ref->tasks);
        return EXIT_JOB;
    }
    for (uint32_t i = 0; i < asked.count; i++) {
        int64_t ordinal = tasks_ordinal(&all, tasks_index(&asked, i));

        if (ordinal < 0) {
            say("array %llu has no task %lu", id, (unsigned long)tasks_index(&asked, i));
            return EXIT_JOB;
        }
        if (!add(ids, ref->id + 1 + (uint64_t)ordinal))
            return EXIT_USAGE;
    }
    return -1;
}

static int find_tasks(struct elmer *elmer, const struct ref *ref, int timeout_ms, struct ids *ids)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    int result = elmer_query(elmer, false, false, &ref->id, 1, timeout_ms, &jobs, &error);

    if (result != ELMER_OK)
        return say_result(result, &error);
    if (jobs->count == 1) {
        result = add_tasks(ids, ref, &jobs->items[0]);
    } else {
        say("there is no job %llu", (unsigned long long)ref->id);
        result = EXIT_JOB;
    }
    elmer_jobs_free(jobs);
    return result;
}

int refs_ids(struct elmer *elmer, const struct ref *refs, size_t count, int timeout_ms, uint64_t **items, size_t *nids)
{
    struct ids ids = {must(calloc(REFS_IDS, sizeof(*ids.items))), 0};
    int code = -1;

    for (size_t i = 0; i < count && code < 0; i++) {
        if (refs[i].tasks)
            code = find_tasks(elmer, &refs[i], timeout_ms, &ids);
        else if (!add(&ids, refs[i].id))
            code = EXIT_USAGE;
    }
    *items = ids.items;
    *nids = ids.count;
    return code;
}
