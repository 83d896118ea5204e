/* client_tasks.c - tasks of an array by their indices: their ids, and signals to them.
 *
 * Which indices an array has it says itself, so it is asked for first. A signal has no request for tasks: each gets it
 * by its id, one behind the other by the same deadline. One that does not run is left out; what else fails ends that.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/tasks.h"
#include "libelmer/client.h"

enum { SIGNALS = 64 };

struct ids {
    struct elmer_ids ids; /* first: what the caller sees */
    uint64_t *items;
    uint64_t array;
    char *tasks; /* NULL: all */
    void *jobs;  /* the array, until its answer is used */
    /* of signals */
    struct elmer_error text;
    int number; /* 0: none is sent */
    bool sends;
    size_t next, told;
};

static void free_ids(void *data)
{
    struct ids *ids = data;

    if (!ids)
        return;
    if (ids->jobs)
        client_jobs_free(ids->jobs);
    free(ids->tasks);
    free(ids->items);
    free(ids);
}

static int no_such(const struct elmer_jobs *jobs, const struct ids *ids, struct elmer_error *error)
{
    if (jobs->count == 0)
        return client_error(error, ELMER_NO_SUCH_JOB, "there is no job %" PRIu64, ids->array);
    return client_error(error, ELMER_WRONG_STATE, "job %" PRIu64 " is no array: it has no tasks", ids->array);
}

/* The id of a task follows from its place in the array. */
static int find(struct ids *ids, const struct elmer_jobs *jobs, struct tasks *all, struct tasks *named,
                struct elmer_error *error)
{
    char why[TASKS_WHY];

    if (jobs->count == 0 || jobs->items[0].ntasks == 0 || tasks_parse(jobs->items[0].tasks, true, all, why) < 0)
        return no_such(jobs, ids, error);
    if (!ids->tasks)
        *named = *all;
    else if (tasks_parse(ids->tasks, false, named, why) < 0)
        return client_error(error, ELMER_USAGE, "the tasks of an array: %s", why);
    ids->items = calloc(named->count, sizeof(*ids->items));
    if (!ids->items)
        return client_error(error, ELMER_FAILED, "out of memory");
    for (uint32_t i = 0; i < named->count; i++) {
        int64_t ordinal = tasks_ordinal(all, tasks_index(named, i));

        if (ordinal < 0)
            return client_error(error, ELMER_REFUSED, "array %" PRIu64 " has no task %" PRIu32, ids->array,
                                tasks_index(named, i));
        ids->items[i] = ids->array + 1 + (uint64_t)ordinal;
    }
    ids->ids = (struct elmer_ids){.items = ids->items, .count = named->count};
    return ELMER_OK;
}

static int use_answer(struct ids *ids, struct elmer_error *error)
{
    struct tasks *all = calloc(2, sizeof(*all));
    int result = all && client_jobs_present(ids->jobs) == 0 ? find(ids, ids->jobs, &all[0], &all[1], error)
                                                            : client_error(error, ELMER_FAILED, "out of memory");

    free(all);
    client_jobs_free(ids->jobs);
    ids->jobs = NULL;
    return result;
}

/* ---- signals ---- */

static int take_done(struct wire_message *answer, void *data)
{
    (void)data;
    return answer->type == WIRE_done ? 0 : -EPROTO;
}

static int send_next(struct ids *ids, struct client_call *call)
{
    size_t count = ids->ids.count;

    if (ids->next < count) {
        call->take = take_done;
        call->restart = NULL;
        call->data = ids;
        *call->request =
            (struct wire_message){.type = WIRE_signal_job,
                                  .memory = call->request->memory,
                                  .u.signal_job = {.job = ids->items[ids->next++], .number = (uint64_t)ids->number}};
        return CLIENT_ASK;
    }
    if (ids->told == 0)
        return client_error(call->error, ELMER_WRONG_STATE,
                            "none of the %zu tasks of array %" PRIu64 " that are named runs: no process can get a "
                            "signal",
                            count, ids->array);
    client_error(&ids->text, 0, "signal %d is sent to %zu of %zu tasks of array %" PRIu64, ids->number, ids->told,
                 count, ids->array);
    return ELMER_OK;
}

static int then_next(struct client_call *call, int result)
{
    struct ids *ids = ((struct elmer_call *)call)->answer;

    if (!ids->jobs) { /* of a signal */
        ids->told += result == ELMER_OK;
        return result == ELMER_OK || result == ELMER_WRONG_STATE ? send_next(ids, call) : result;
    }
    if (result == ELMER_OK)
        result = use_answer(ids, call->error);
    return result == ELMER_OK && ids->sends ? send_next(ids, call) : result;
}

/* ---- calls ---- */

static struct elmer_call *make(struct elmer *elmer, uint64_t array, const char *tasks, bool sends, int number)
{
    struct ids *ids = calloc(1, sizeof(*ids));
    struct wire_message request = {.type = WIRE_query, .u.query = {.running = true, .queued = true}};
    struct client_call call = {.take = client_jobs_take, .restart = client_jobs_restart, .then = then_next};
    struct elmer_call *made;

    if (!ids)
        return NULL;
    ids->array = array;
    ids->sends = sends;
    ids->number = number;
    ids->tasks = tasks ? strdup(tasks) : NULL;
    ids->jobs = client_jobs_create((struct client_filter){.any = true});
    if ((tasks && !ids->tasks) || !ids->jobs) {
        free_ids(ids);
        return NULL;
    }
    call.data = ids->jobs;
    request.u.query.jobs.items = &ids->array;
    request.u.query.jobs.count = 1;
    made = client_call_create(elmer, &request, &call, ids, free_ids);
    if (made)
        made->text = sends ? &ids->text : NULL;
    return made;
}

/* What can be said without asking. */
static int check(const char *tasks, bool sends, int number, struct elmer_error *error)
{
    struct tasks *named = calloc(1, sizeof(*named));
    char why[TASKS_WHY];
    int result = named ? ELMER_OK : client_error(error, ELMER_FAILED, "out of memory");

    if (result == ELMER_OK && tasks && tasks_parse(tasks, false, named, why) < 0)
        result = client_error(error, ELMER_USAGE, "the tasks of an array: %s", why);
    if (result == ELMER_OK && sends && (number < 1 || number > SIGNALS))
        result = client_error(error, ELMER_USAGE, "%d is no signal", number);
    free(named);
    return result;
}

int elmer_task_ids(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms, struct elmer_ids **ids,
                   struct elmer_error *error)
{
    int result = check(tasks, false, 0, error);

    *ids = NULL;
    return result == ELMER_OK ? client_call_run(make(elmer, array, tasks, false, 0), timeout_ms, (void **)ids, error)
                              : result;
}

int elmer_task_ids_begin(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms,
                         struct elmer_call **call, struct elmer_error *error)
{
    int result = check(tasks, false, 0, error);

    *call = NULL;
    return result == ELMER_OK ? client_call_begin(make(elmer, array, tasks, false, 0), timeout_ms, call, error)
                              : result;
}

struct elmer_ids *elmer_call_ids(struct elmer_call *call)
{
    return call->text ? NULL : client_call_answer(call, free_ids);
}

void elmer_ids_free(struct elmer_ids *ids)
{
    free_ids(ids);
}

int elmer_signal_tasks(struct elmer *elmer, uint64_t array, const char *tasks, int number, int timeout_ms,
                       struct elmer_error *text, struct elmer_error *error)
{
    void *answer = NULL;
    int result;

    if (!tasks) /* there is a request for that */
        return elmer_signal(elmer, array, number, timeout_ms, text, error);
    result = check(tasks, true, number, error);
    if (result == ELMER_OK)
        result = client_call_run(make(elmer, array, tasks, true, number), timeout_ms, &answer, error);
    if (text)
        *text = answer ? ((struct ids *)answer)->text : (struct elmer_error){{0}};
    free_ids(answer);
    return result;
}

int elmer_signal_tasks_begin(struct elmer *elmer, uint64_t array, const char *tasks, int number, int timeout_ms,
                             struct elmer_call **call, struct elmer_error *error)
{
    int result;

    *call = NULL;
    if (!tasks)
        return elmer_signal_begin(elmer, array, number, timeout_ms, call, error);
    result = check(tasks, true, number, error);
    return result == ELMER_OK ? client_call_begin(make(elmer, array, tasks, true, number), timeout_ms, call, error)
                              : result;
}
