/* top.c - the order of one's own jobs: some of them go before all others of their user that wait.
 *
 * Places change hands among what one user has in the queue, so that as many of his are before any job of another one as
 * before. A task that waits in an array has a place, too: the array stays behind these, and its tasks go. Who goes
 * before an array has the place of one of its tasks, and the last of them goes back for him.
 */
#include "elmer/core/internal.h"

#include <stdlib.h>
#include <string.h>

#define QUEUED(place) CONTAINER_OF(place, struct job, in_queue)
#define TASK(node)    LIST_ITEM(node, struct job, in_array)

/* Jobs of a user, and places that he has: of his jobs, and of the tasks that wait in his arrays. */
struct own {
    uint32_t jobs;
    uint64_t places;
};

/* An array that waits for other jobs is one like a job: a task out of it would wait for nothing. */
static bool is_one(const struct job *job)
{
    return !job->array || !after_met(job);
}

/* Those before the array, without its tasks. */
static struct own own_before(const struct core *core, const struct job *array)
{
    struct own own = {0, 0};

    for (struct place *at = order_first(&core->queue.jobs); at && QUEUED(at) != array; at = order_next(at)) {
        const struct job *job = QUEUED(at);
        if (job->user != array->user || job->of == array)
            continue;
        own.jobs += is_one(job);
        own.places += is_one(job) ? 1 : core_tasks_waiting(&job->info);
    }
    return own;
}

/* An array has its place behind those of its tasks and stays there. For who goes before it, as many of its tasks, the
 * last ones, leave it, so that it has as many places before others as it had. Returns how many did. */
static size_t give_places(struct core *core, struct job *const *arrays, const size_t *behind, size_t count)
{
    size_t given = 0;

    for (size_t i = 0; i < count; i++)
        if (behind[i] > given)
            given += array_let_go(core, arrays[i], behind[i] - given);
    return given;
}

/* Until the last of those that are marked; of arrays only those before it, and how many of these are behind them. */
struct reach {
    struct job **jobs, **arrays;
    size_t *behind, njobs, narrays, room[3];
    uint32_t others;
};

static void reach(const struct core *core, struct reach *reach, const struct job *any, size_t left)
{
    *reach = (struct reach){.jobs = NULL};
    for (struct place *at = order_first(&core->queue.jobs); at && left > 0; at = order_next(at)) {
        struct job *job = QUEUED(at);
        if (job->user != any->user)
            continue;
        if (!is_one(job)) {
            reach->arrays = mem_grow(reach->arrays, &reach->room[0], reach->narrays + 1, sizeof(struct job *));
            reach->behind = mem_grow(reach->behind, &reach->room[1], reach->narrays + 1, sizeof(size_t));
            reach->behind[reach->narrays] = left;
            reach->arrays[reach->narrays++] = job;
            continue;
        }
        left -= job->topped;
        reach->others += !job->topped;
        reach->jobs = mem_grow(reach->jobs, &reach->room[2], reach->njobs + 1, sizeof(struct job *));
        reach->jobs[reach->njobs++] = job;
    }
}

static void free_reach(struct reach *reach)
{
    free(reach->jobs);
    free(reach->arrays);
    free(reach->behind);
}

/* Those that go, then the rest in its order; but what an array has given is behind all that was before the array. */
static void change_places(struct core *core, const struct reach *reach, struct job *const *jobs, size_t count)
{
    uint64_t *places = mem_array(reach->njobs, sizeof(*places));
    struct job **order = mem_array(reach->njobs, sizeof(*order)), **given = mem_array(reach->njobs, sizeof(*given));
    size_t next = count, first = 0, ngiven = 0;

    memcpy(order, jobs, count * sizeof(*order));
    for (size_t i = 0; i < reach->njobs; i++) {
        struct job *job = reach->jobs[i];
        places[i] = job->info.place;
        if (job->given)
            given[ngiven++] = job;
        job->given = false;
        if (job->topped || (ngiven > 0 && given[ngiven - 1] == job))
            continue;
        for (; first < ngiven && given[first]->of->info.place <= job->info.place; first++)
            order[next++] = given[first];
        order[next++] = job;
    }
    while (first < ngiven)
        order[next++] = given[first++];
    queue_move(core, order, places, reach->njobs);
    free(places);
    free(order);
    free(given);
}

bool top_jobs(struct core *core, struct job *const *jobs, size_t count)
{
    struct reach found;
    bool few;

    for (size_t i = 0; i < count; i++)
        jobs[i]->topped = true;
    reach(core, &found, count > 0 ? jobs[0] : NULL, count);
    few = found.others <= CORE_MAX_TOP;
    if (few && give_places(core, found.arrays, found.behind, found.narrays) > 0) {
        free_reach(&found);
        reach(core, &found, jobs[0], count);
    }
    if (few)
        change_places(core, &found, jobs, count);
    free_reach(&found);
    for (size_t i = 0; i < count; i++)
        jobs[i]->topped = false;
    return few;
}

/* ---- arrays ---- */

static int compare_tasks(const void *a, const void *b)
{
    const struct job *const *of_a = a, *const *of_b = b;
    return ((*of_a)->info.task > (*of_b)->info.task) - ((*of_a)->info.task < (*of_b)->info.task);
}

/* Its tasks of these ordinals that are jobs and wait, in their order. The caller frees them. */
static struct job **waiting_jobs(const struct job *array, const struct core_range *ranges, int count, size_t *n)
{
    struct job **jobs = NULL;
    size_t room = 0;

    *n = 0;
    LIST_FOR_EACH (node, &array->array->tasks) {
        if (!job_is_waiting(TASK(node)) || !core_range_has(ranges, count, TASK(node)->info.task - 1))
            continue;
        jobs = mem_grow(jobs, &room, *n + 1, sizeof(struct job *));
        jobs[(*n)++] = TASK(node);
    }
    if (*n > 1)
        qsort(jobs, *n, sizeof(*jobs), compare_tasks);
    return jobs;
}

/* Those of its user that are before those that wait in it: they share its place, and are behind it there. */
static void put_behind(struct core *core, const struct job *array)
{
    struct job **jobs = NULL;
    uint64_t *places;
    size_t n = 0, room = 0;

    for (struct place *at = order_first(&core->queue.jobs); at && QUEUED(at) != array; at = order_next(at)) {
        struct job *job = QUEUED(at);
        if (job->user != array->user || job->of == array || !is_one(job))
            continue;
        jobs = mem_grow(jobs, &room, n + 1, sizeof(struct job *));
        jobs[n++] = job;
    }
    places = mem_array(n, sizeof(*places));
    for (size_t i = 0; i < n; i++)
        places[i] = array->info.place;
    queue_move(core, jobs, places, n);
    free(places);
    free(jobs);
}

/* As many of its tasks as there are places before it become jobs, with these; if more wait, what had the places goes
 * behind the array. Some of them only: all of these. */
enum answer top_array(struct core *core, struct job *array, const struct core_range *ranges, int count, bool all)
{
    struct own before = own_before(core, array);
    uint32_t waiting = array_count_waiting(array, ranges, count), first;
    struct job **jobs;
    size_t n;
    bool few;

    if (!after_met(array))
        return ANSWER_WRONG_STATE;
    if (!all || waiting <= before.places)
        before.places = waiting;
    if (before.jobs > CORE_MAX_TOP || before.places > CORE_MAX_SPLIT)
        return ANSWER_TOO_MANY;
    for (int i = 0; i < count && before.places > 0; i++)
        for (first = core_next_task(&array->info, ranges[i].from); first < ranges[i].to && before.places > 0;
             first = core_next_task(&array->info, first + 1), before.places--)
            array_split(core, array, (struct core_range){first, first + 1});
    jobs = waiting_jobs(array, ranges, count, &n);
    few = n == 0 || top_jobs(core, jobs, n);
    free(jobs);
    if (!few)
        return ANSWER_TOO_MANY;
    if (all && array->in_queue.in && core_tasks_waiting(&array->info) > 0)
        put_behind(core, array);
    return n > 0 || (all && job_is_waiting(array)) ? ANSWER_OK : ANSWER_WRONG_STATE;
}
