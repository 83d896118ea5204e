/* tasks.c - which tasks of an array a request is about: from indices to the ordinals that the core knows. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "elmer/requests/internal.h"
#include "lib/job/tasks.h"

const char *tasks_text_of(const struct request *request)
{
    const struct wire_message *message = &request->message;
    switch ((int)request->type) {
    case WIRE_cancel:
        return message->u.cancel.tasks;
    case WIRE_kill:
        return message->u.kill.tasks;
    case WIRE_hold:
        return message->u.hold.tasks;
    case WIRE_release:
        return message->u.release.tasks;
    case WIRE_top:
        return message->u.top.tasks;
    default:
        return "";
    }
}

/* Neighbours become one range. */
static bool add(struct core_range *ranges, int *count, uint32_t ordinal)
{
    if (*count && ranges[*count - 1].to == ordinal) {
        ranges[*count - 1].to++;
        return true;
    }
    if (*count == CORE_MAX_GONE)
        return false;
    ranges[(*count)++] = (struct core_range){ordinal, ordinal + 1};
    return true;
}

static bool find_all(struct request *request, const struct tasks *asked, const struct tasks *all,
                     struct core_range *ranges, int *count)
{
    for (uint32_t i = 0; i < asked->count; i++) {
        uint32_t index = tasks_index(asked, i);
        int64_t ordinal = tasks_ordinal(all, index);
        if (ordinal < 0) {
            request_error(request, WIRE_CODE_REFUSED, "array %" PRIu64 " has no task %" PRIu32, request->job, index);
            return false;
        }
        if (!add(ranges, count, (uint32_t)ordinal)) {
            request_error(request, WIRE_CODE_REFUSED,
                          "these are more than %d ranges of array %" PRIu64 ": name fewer at a time", CORE_MAX_GONE,
                          request->job);
            return false;
        }
    }
    return true;
}

static bool fill(struct request *request, const char *text, struct core_range *ranges, int *count)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, request->job);
    const struct core_job *state = job ? core_job(engine_core(request->requests->room.engine), request->job) : NULL;
    struct tasks asked, all;
    char why[TASKS_WHY];
    if (!job || job->refused || (!state && *job_submit(job)->tasks))
        request_no_job(request, request->job);
    else if (!state || !state->ntasks || tasks_parse(job_submit(job)->tasks, true, &all, why))
        request_error(request, WIRE_CODE_REFUSED, "job %" PRIu64 " is no array: leave out [%.40s]", request->job, text);
    else if (tasks_parse(text, false, &asked, why))
        request_error(request, WIRE_CODE_REFUSED, "the tasks: %s", why);
    else
        return find_all(request, &asked, &all, ranges, count);
    return false;
}

/* That so many more tasks become jobs of their own; which are these, and what else could be done. */
static bool has_room(struct request *request, const struct engine_job *job, uint64_t more, size_t more_bytes,
                     const char *which, const char *instead)
{
    const struct requests_settings *s = request->requests->settings;
    struct engine *engine = request->requests->room.engine;
    uint64_t queued = core_user(engine_core(engine), request->uid).queued;
    size_t bytes = jobs_bytes(engine_jobs(engine), request->uid) + more_bytes;
    if (more && queued + more > (uint64_t)s->user_queued)
        request_error(request, WIRE_CODE_REFUSED,
                      "user %s has %" PRIu64 " job%s in the queue and may have %" PRId64
                      " (user_queued in elmer.conf), and each task that is %s becomes one more, here %" PRIu64 ": %s",
                      job->user, queued, queued == 1 ? "" : "s", s->user_queued, which, more, instead);
    else if (more && bytes > (size_t)s->user_memory << 20)
        request_error(request, WIRE_CODE_REFUSED,
                      "the jobs of user %s would take %zu MiB of elmer's memory with %" PRIu64
                      " tasks as jobs of their own, and may take %" PRId64 " (user_memory in elmer.conf): %s",
                      job->user, bytes >> 20, more, s->user_memory, instead);
    else
        return true;
    return false;
}

struct splits {
    struct engine *engine;
    uint64_t more;
    size_t bytes;
};

static void add_split(void *data, uint64_t array, uint64_t tasks)
{
    struct splits *splits = data;
    const struct engine_job *job = engine_job(splits->engine, array);
    splits->more += tasks;
    splits->bytes += job ? tasks * jobs_task_bytes(job) : 0;
}

/* For what is moved tasks may leave their arrays, named or not: as many as have to become jobs of their own. */
static bool may_move(struct request *request, const struct event *event)
{
    struct engine *engine = request->requests->room.engine;
    const struct engine_job *job = engine_job(engine, event->job);
    struct splits splits = {.engine = engine};
    if (request->admin || !job || job->uid != request->uid)
        return true;
    core_top_splits(engine_core(engine), event->job, event->u.by.tasks, event->u.by.ntasks, add_split, &splits);
    return has_room(request, job, splits.more, splits.bytes, "moved, or leaves its array for what goes before it,",
                    "wait until some have started, or name fewer");
}

/* That these tasks become jobs of their own. Of others' arrays the core says that they are not his. */
static bool may_split(struct request *request, const struct core_job *array, const struct core_range *ranges, int count)
{
    const struct engine_job *job = engine_job(request->requests->room.engine, array->id);
    bool splits = request->type == WIRE_hold || request->type == WIRE_release;
    char instead[100];
    uint64_t more = 0;
    if (!splits || request->admin || !job || job->uid != request->uid)
        return true;
    for (int i = 0; i < count; i++)
        more += core_range_waiting(array->gone, array->ngone, array->next_task, ranges[i]);
    snprintf(instead, sizeof(instead), "name fewer, or do it to all of array %" PRIu64 ", which is one job", array->id);
    return has_room(request, job, more, more * jobs_task_bytes(job), "held or released alone", instead);
}

bool tasks_fill(struct request *request, struct event *event, struct core_range **ranges)
{
    const struct core *core = engine_core(request->requests->room.engine);
    const struct core_job *array = core_array_of(core, request->job);
    const char *text = tasks_text_of(request);
    int count = 0;
    *ranges = NULL;
    if (!array && !*text)
        return request->type != WIRE_top || may_move(request, event);
    *ranges = mem_array(CORE_MAX_GONE, sizeof(**ranges));
    if (array) { /* a task that has no job yet, by its own id */
        (void)add(*ranges, &count, (uint32_t)(request->job - array->id) - 1);
        request->job = event->job = array->id;
    } else if (!fill(request, text, *ranges, &count)) {
        return false;
    }
    event->u.by.tasks = *ranges;
    event->u.by.ntasks = count;
    array = core_job(core, request->job);
    if (request->type == WIRE_top)
        return may_move(request, event);
    return !array || may_split(request, array, *ranges, count);
}

/* Waiting, or else cancelled. */
static struct record *record_of(struct engine *engine, uint64_t id, bool waiting)
{
    const struct core_job *array = core_array_of(engine_core(engine), id);
    const struct engine_job *job = array ? engine_job(engine, array->id) : NULL;
    uint32_t ordinal = array ? (uint32_t)(id - array->id) - 1 : 0;
    if (!job || job->refused)
        return NULL;
    bool is = waiting ? core_range_next(array->gone, array->ngone, array->next_task, ordinal) == ordinal
                      : core_range_has(array->gone, array->ngone, ordinal);
    return !is ? NULL : engine_task_record(engine, job, ordinal);
}

struct record *tasks_waiting(struct engine *engine, uint64_t id)
{
    return record_of(engine, id, true);
}

struct record *tasks_cancelled(struct engine *engine, uint64_t id)
{
    return record_of(engine, id, false);
}

bool tasks_explain(struct request *request, const char *verb, enum answer answer)
{
    const struct core_job *array = core_job(engine_core(request->requests->room.engine), request->job);
    if (!array || !array->ntasks || array->state == JOB_DONE || array->state == JOB_CANCELLED)
        return false;
    if (answer == ANSWER_TOO_MANY && request->type == WIRE_top)
        request_error(request, WIRE_CODE_REFUSED,
                      "array %" PRIu64 " is not moved: %d of its tasks, and past %d other jobs of its owner, is the "
                      "most at a time; name fewer, like etop '%" PRIu64 "[1-100]'",
                      request->job, CORE_MAX_SPLIT, CORE_MAX_TOP, request->job);
    else if (answer == ANSWER_TOO_MANY)
        request_error(request, WIRE_CODE_REFUSED,
                      "these are too many tasks of array %" PRIu64
                      ": at most %d that wait in it can be held or released alone at a time, and it can lose %d "
                      "ranges; name them all, or fewer",
                      request->job, CORE_MAX_SPLIT, CORE_MAX_GONE);
    else if (answer == ANSWER_WRONG_STATE)
        request_error(request, WIRE_CODE_WRONG_STATE,
                      "none of these tasks of array %" PRIu64 " can be %s: those that could be have ended, or run, or "
                      "wait for other jobs with all of the array",
                      request->job, verb);
    return answer == ANSWER_TOO_MANY || answer == ANSWER_WRONG_STATE;
}
