#include "config.h"

#include "client/again.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

enum { IDS_AT_ONCE = 4096 };

/* ---- what has ended, and how ---- */

static bool ended_well(const struct elmer_job *job)
{
    return strcmp(job->state, "done") == 0 && strcmp(job->reason_code, "exited") == 0 && job->exit_status == 0 &&
           job->signal <= 0;
}

static int query(struct elmer *elmer, const uint64_t *ids, size_t count, struct elmer_jobs **jobs)
{
    struct elmer_error error = {{0}};
    int result = elmer_query(elmer, false, false, ids, count, ANSWER_MS, jobs, &error);

    return result == ELMER_OK ? -1 : say_result(result, &error);
}

static int not_ended(const struct elmer_job *job)
{
    if (job->array)
        say("task %" PRIu64 "[%d] is %s: only what has ended runs again", job->array, job->index, job->state);
    else
        say("job %" PRIu64 " is %s: only what has ended runs again", job->id, job->state);
    return EXIT_JOB;
}

static int look_at_job(bool failed, const struct elmer_job *job)
{
    if (!elmer_job_ended(job))
        return not_ended(job);
    if (*job->terminal) {
        say("job %" PRIu64 " had a terminal, and what was typed cannot be run again: esubmit --pty", job->id);
        return EXIT_REFUSED;
    }
    if (!failed || (strcmp(job->state, "done") == 0 && !ended_well(job)))
        return -1;
    say("job %" PRIu64 " has not failed", job->id);
    return EXIT_JOB;
}

/* ---- tasks ---- */

/* Those that are to be looked at: all, or those that are named. */
static int choose_named(struct again *again, const char *named)
{
    char why[TASKS_WHY];

    again->some = named && strcmp(named, "*") != 0;
    again->chosen = must(calloc(again->all.count, sizeof(bool)));
    again->nchosen = 0;
    if (again->some && tasks_parse(named, false, &again->wanted, why) < 0)
        return usage_error("%s", why);
    for (uint32_t i = 0; again->some && i < again->wanted.count; i++) {
        uint32_t index = tasks_index(&again->wanted, i);
        int64_t ordinal = tasks_ordinal(&again->all, index);

        if (ordinal < 0) {
            say("array %" PRIu64 " has no task %" PRIu32, again->id, index);
            return EXIT_JOB;
        }
        again->chosen[ordinal] = true;
        again->nchosen++;
    }
    for (uint32_t i = 0; !again->some && i < again->all.count; i++)
        again->chosen[i] = true;
    if (!again->some)
        again->nchosen = again->all.count;
    return -1;
}

/* What is said of these; one of which nothing is said is not in the history any more, and counts as ended; or it was
 * cancelled before it began. */
static int judge(bool failed, struct again *again, const struct elmer_jobs *jobs, const uint32_t *ordinals,
                 size_t count)
{
    for (size_t i = 0; failed && i < count; i++)
        again->chosen[ordinals[i]] = false;
    again->nforgotten += (uint32_t)(count - jobs->count);
    for (size_t i = 0; i < jobs->count; i++) {
        const struct elmer_job *job = &jobs->items[i];

        if (!failed && !elmer_job_ended(job))
            return not_ended(job);
        if (failed && job->id > again->id && job->id - again->id <= again->all.count)
            again->chosen[job->id - again->id - 1] = strcmp(job->state, "done") == 0 && !ended_well(job);
    }
    return -1;
}

static void count_chosen(struct again *again)
{
    again->nchosen = 0;
    for (uint32_t i = 0; i < again->all.count; i++)
        again->nchosen += again->chosen[i];
}

/* How the forgotten ones have ended nobody knows, but how many have failed in all. */
static uint32_t tell_forgotten(const struct again *again)
{
    uint32_t missing = again->nfailed > again->nchosen ? again->nfailed - again->nchosen : 0;

    if (missing > again->nforgotten)
        missing = again->nforgotten;
    if (missing > 0 && again->some)
        say("array %" PRIu64 ": of those named %" PRIu32 " cannot be found in the history, so that it is not known "
            "whether they have failed; without --failed they are run",
            again->id, again->nforgotten);
    else if (missing > 0)
        say("array %" PRIu64 ": %" PRIu32 " of the %" PRIu32 " tasks that have failed are not in the history any more, "
            "and are not run; name them without --failed, like %" PRIu64 "[%" PRIu32 "]",
            again->id, missing, again->nfailed, again->id, tasks_index(&again->all, 0));
    return missing;
}

static int look_at_tasks(struct elmer *elmer, bool failed, struct again *again)
{
    uint64_t *ids = must(calloc(IDS_AT_ONCE, sizeof(*ids)));
    uint32_t *ordinals = must(calloc(IDS_AT_ONCE, sizeof(*ordinals)));
    struct elmer_jobs *jobs;
    int code = -1;

    for (uint32_t next = 0; code < 0 && next < again->all.count;) {
        size_t count = 0;

        for (; next < again->all.count && count < IDS_AT_ONCE; next++)
            if (again->chosen[next]) {
                ordinals[count] = next;
                ids[count++] = again->id + 1 + next;
            }
        if (count == 0)
            break;
        code = query(elmer, ids, count, &jobs);
        if (code >= 0)
            break;
        code = judge(failed, again, jobs, ordinals, count);
        elmer_jobs_free(jobs);
    }
    free(ordinals);
    free(ids);
    count_chosen(again);
    if (code < 0 && failed && tell_forgotten(again) > 0)
        return again->nchosen > 0 ? -1 : EXIT_JOB;
    if (code < 0 && again->nchosen == 0) {
        say("none of the tasks of array %" PRIu64 "%s has failed", again->id, again->some ? " that are named" : "");
        code = EXIT_JOB;
    }
    return code;
}

static int look_at_array(struct elmer *elmer, bool failed, struct again *again, const struct elmer_job *array,
                         const char *named)
{
    char why[TASKS_WHY];
    int code;

    again->id = array->id;
    again->is_array = true;
    again->nfailed = array->tasks_failed;
    if (tasks_parse(array->tasks, true, &again->all, why) < 0) {
        say("array %" PRIu64 ": %s", array->id, why);
        return EXIT_REFUSED;
    }
    code = choose_named(again, named);
    if (code >= 0)
        return code;
    if (!failed && elmer_job_ended(array))
        return -1; /* so has each of its tasks */
    return look_at_tasks(elmer, failed, again);
}

/* A task by its own id, 69 for 57[12]. */
static int look_at_task(struct elmer *elmer, bool failed, struct again *again, const struct elmer_job *task)
{
    char *named = must(str_format("%d", task->index));
    struct elmer_jobs *jobs;
    int code = query(elmer, &task->array, 1, &jobs);

    if (code < 0) {
        if (jobs->count == 1 && jobs->items[0].ntasks > 0) {
            code = look_at_array(elmer, failed, again, &jobs->items[0], named);
        } else {
            say("array %" PRIu64 " is not in the history any more", task->array);
            code = EXIT_JOB;
        }
        elmer_jobs_free(jobs);
    }
    free(named);
    return code;
}

int again_look_up(struct elmer *elmer, bool failed, const struct ref *ref, struct again *again)
{
    struct elmer_jobs *jobs;
    int code = query(elmer, &ref->id, 1, &jobs);

    if (code >= 0)
        return code;
    again->id = ref->id;
    if (jobs->count == 0) {
        say("there is no job %" PRIu64, ref->id);
        code = EXIT_JOB;
    } else if (jobs->items[0].ntasks > 0) {
        code = look_at_array(elmer, failed, again, &jobs->items[0], ref->tasks);
    } else if (ref->tasks) {
        say("job %" PRIu64 " is no array: leave out [%s]", ref->id, ref->tasks);
        code = EXIT_JOB;
    } else if (jobs->items[0].array) {
        code = look_at_task(elmer, failed, again, &jobs->items[0]);
    } else {
        code = look_at_job(failed, &jobs->items[0]);
    }
    elmer_jobs_free(jobs);
    return code;
}
