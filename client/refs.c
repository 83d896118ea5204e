#include "config.h"

#include "client/refs.h"

#include <stdlib.h>
#include <string.h>

#include "client/patience.h"
#include "lib/base/str.h"
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
    good = str_to_u64(id, &ref->id) && ref->id > 0 && ref->id <= INT64_MAX;
    free(id);
    if (!good)
        return parse_id(text, &ref->id); /* which says so of all of it */
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
    if (ids->count == REFS_IDS) {
        usage_error("these are more than %d jobs and tasks; name fewer at a time, like 57[1-%d]", REFS_IDS, REFS_IDS);
        return false;
    }
    ids->items[ids->count++] = id;
    return true;
}

struct place {
    uint64_t id;
    size_t at;
};

static int compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;

    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return left->at < right->at ? -1 : left->at > right->at;
}

/* Of those that are named twice the first stays. */
static void remove_twins(struct ids *ids)
{
    struct place *places = must(calloc(ids->count + 1, sizeof(*places)));
    size_t kept = 0;

    for (size_t i = 0; i < ids->count; i++)
        places[i] = (struct place){ids->items[i], i};
    qsort(places, ids->count, sizeof(*places), compare);
    for (size_t i = 1; i < ids->count; i++)
        if (places[i].id == places[i - 1].id)
            ids->items[places[i].at] = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i])
            ids->items[kept++] = ids->items[i];
    ids->count = kept;
    free(places);
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

bool *refs_found(const uint64_t *ids, size_t count, const struct elmer_jobs *jobs)
{
    bool *found = must(calloc(count + 1, sizeof(*found)));
    uint64_t *sorted = must(calloc(jobs->count + 1, sizeof(*sorted)));

    for (size_t i = 0; i < jobs->count; i++)
        sorted[i] = jobs->items[i].id;
    qsort(sorted, jobs->count, sizeof(*sorted), compare_ids);
    for (size_t i = 0; i < count; i++)
        found[i] = bsearch(&ids[i], sorted, jobs->count, sizeof(*sorted), compare_ids);
    free(sorted);
    return found;
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

static int find_tasks(struct elmer *elmer, const struct ref *ref, int64_t until_ms, struct ids *ids)
{
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    int result = until_ms == REFS_ONCE ? elmer_query(elmer, false, false, &ref->id, 1, ANSWER_MS, &jobs, &error)
                                       : patience_query(elmer, &ref->id, 1, until_ms, &jobs, &error);

    if (until_ms != REFS_ONCE && (result == ELMER_UNREACHABLE || result == ELMER_UNAVAILABLE))
        return result == ELMER_UNREACHABLE ? EXIT_UNREACHABLE : EXIT_UNAVAILABLE;
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

int refs_ids(struct elmer *elmer, const struct ref *refs, size_t count, int64_t until_ms, uint64_t **items,
             size_t *nids)
{
    struct ids ids = {must(calloc(REFS_IDS, sizeof(*ids.items))), 0};
    int code = -1;

    for (size_t i = 0; i < count && code < 0; i++) {
        if (refs[i].tasks)
            code = find_tasks(elmer, &refs[i], until_ms, &ids);
        else if (!add(&ids, refs[i].id))
            code = EXIT_USAGE;
    }
    remove_twins(&ids);
    *items = ids.items;
    *nids = ids.count;
    return code;
}
