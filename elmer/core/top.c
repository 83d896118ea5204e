/* top.c - the order of one's own jobs: some of them go before all others of their user that wait.
 *
 * Places change hands among what one user has in the queue, so that as many of his are before any job of another one as
 * before. A task that waits in an array has a place, too: the array stays behind these, and its tasks go. Who goes
 * before an array has the place of one of its tasks, and the last of them goes back for him.
 */
#include "elmer/core/internal.h"
#include "elmer/core/policy/policy.h"

#include <stdlib.h>
#include <string.h>

#define QUEUED(place) CONTAINER_OF(place, struct job, in_queue)
#define TASK(node)    LIST_ITEM(node, struct job, in_array)

/* An array is one like a job while it waits for other jobs, as a task out of it would wait for nothing; and where it is
 * not at its own place: there is one place for all of its tasks, and none for who goes before them. */
static bool is_one(const struct job *job)
{
    return !job->array || !after_met(job) || !core_at_own_place(&job->info);
}

/* Those that the user of the array has before it, of his jobs and of the tasks that wait in arrays, without its own. */
static uint64_t places_before(const struct core *core, const struct job *array)
{
    uint64_t places = 0;

    for (struct place *at = order_first(&core->queue.jobs); at && QUEUED(at) != array; at = order_next(at)) {
        const struct job *job = QUEUED(at);
        if (job->user == array->user && job->of != array)
            places += is_one(job) ? 1 : core_tasks_waiting(&job->info);
    }
    return places;
}

/* Who is told of each array how many tasks leave it; each NULL: nobody. */
struct tell {
    void (*each)(void *data, uint64_t array, uint64_t tasks);
    void *data;
};

/* Rows that are written when the marked ones go, of which there are `left`, beside their own: of jobs that go back, and
 * of tasks that leave their arrays for it. `more` tasks that wait in the array `from` go as well. */
static uint64_t count_rows(const struct core *core, const struct owner *user, size_t left, const struct job *from,
                           size_t more, struct tell tell)
{
    uint64_t rows = 0;

    left += more;
    for (struct place *at = order_first(&core->queue.jobs); at && left > 0; at = order_next(at)) {
        const struct job *job = QUEUED(at);
        const size_t out = job == from ? more : 0;
        size_t given = 0;
        if (job->user != user)
            continue;
        left -= out;
        if (is_one(job)) {
            rows += left > 0 && !job->topped;
            left -= job->topped;
        } else {
            given = core_tasks_waiting(&job->info) - out;
            given = given < left ? given : left;
            rows += given;
        }
        if (tell.each && given + out > 0)
            tell.each(tell.data, job->info.id, given + out);
    }
    return rows;
}

/* Until the last of those that are marked; of arrays only those before it, for each how many of these are behind it,
 * and how many jobs before. */
struct reach {
    struct job **jobs, **arrays;
    size_t *behind, *before, njobs, narrays, room[4];
};

static void reach(const struct core *core, struct reach *reach, const struct owner *user, size_t left)
{
    *reach = (struct reach){.jobs = NULL};
    for (struct place *at = order_first(&core->queue.jobs); at && left > 0; at = order_next(at)) {
        struct job *job = QUEUED(at);
        if (job->user != user)
            continue;
        if (!is_one(job)) {
            reach->arrays = mem_grow(reach->arrays, &reach->room[0], reach->narrays + 1, sizeof(struct job *));
            reach->behind = mem_grow(reach->behind, &reach->room[1], reach->narrays + 1, sizeof(size_t));
            reach->before = mem_grow(reach->before, &reach->room[3], reach->narrays + 1, sizeof(size_t));
            reach->behind[reach->narrays] = left;
            reach->before[reach->narrays] = reach->njobs;
            reach->arrays[reach->narrays++] = job;
            continue;
        }
        left -= job->topped;
        reach->jobs = mem_grow(reach->jobs, &reach->room[2], reach->njobs + 1, sizeof(struct job *));
        reach->jobs[reach->njobs++] = job;
    }
}

static void free_reach(struct reach *reach)
{
    free(reach->jobs);
    free(reach->arrays);
    free(reach->behind);
    free(reach->before);
}

/* An array has its place behind those of its tasks and stays there. For each that goes before it one of its tasks, the
 * last ones, leaves it while it has any, so that it has as many places before others as it had. Whether one did. */
static bool give_places(struct core *core, const struct reach *reach)
{
    size_t given = 0;

    for (size_t i = 0; i < reach->narrays; i++)
        given += array_let_go(core, reach->arrays[i], reach->behind[i]);
    return given > 0;
}

/* Where an array waits, and who shares its place is behind it. */
static bool has_array(const struct reach *reach, uint64_t place)
{
    for (size_t i = 0; i < reach->narrays; i++)
        if (reach->arrays[i]->in_queue.in && reach->arrays[i]->info.place == place)
            return true;
    return false;
}

/* Tasks of an array that was moved as a whole, and jobs for which these went ahead, have one place, where the policy
 * may have another order. Who would be before one that he is behind goes back to the next place, as the array would. */
static void part(const struct core *core, const struct reach *was, struct job *const *order, uint64_t *places, size_t n)
{
    const struct policy *policy = policy_by_number(core->options.policy);
    size_t next = 0;

    for (size_t i = 1; i < n; i++) {
        struct core_job before = order[i - 1]->info, job = order[i]->info;
        const uint64_t least = before.place = job.place = places[i - 1];
        bool parted = places[i] <= least && !policy->before(&before, &job) && !has_array(was, least);
        if (places[i] > least)
            continue;
        for (next = next > i ? next : i; next < n && places[next] <= least; next++)
            ;
        places[i] = parted && next < n ? places[next] : least;
    }
}

/* Those that go, then the rest in its order, and what an array has given where the array was. all: with these. */
static void change_places(struct core *core, const struct reach *was, const struct reach *all, struct job *const *jobs,
                          size_t count)
{
    uint64_t *places = mem_array(all->njobs, sizeof(*places));
    struct job **order = mem_array(all->njobs, sizeof(*order)), **given = mem_array(all->njobs, sizeof(*given));
    size_t next = count, ngiven = 0, first = 0, array = 0;

    memcpy(order, jobs, count * sizeof(*order));
    for (size_t i = 0; i < all->njobs; i++) {
        places[i] = all->jobs[i]->info.place;
        if (all->jobs[i]->given)
            given[ngiven++] = all->jobs[i];
        all->jobs[i]->given = false;
    }
    for (size_t i = 0; i < was->njobs; i++) {
        for (; array < was->narrays && was->before[array] == i; array++)
            while (first < ngiven && given[first]->of == was->arrays[array])
                order[next++] = given[first++];
        if (!was->jobs[i]->topped)
            order[next++] = was->jobs[i];
    }
    part(core, was, order, places, all->njobs);
    queue_move(core, order, places, all->njobs);
    free(places);
    free(order);
    free(given);
}

static void mark(struct job *const *jobs, size_t count, bool topped)
{
    for (size_t i = 0; i < count; i++)
        jobs[i]->topped = topped;
}

/* There are some. */
static void move(struct core *core, struct job *const *jobs, size_t count)
{
    struct reach was, all;
    bool given;

    mark(jobs, count, true);
    reach(core, &was, jobs[0]->user, count);
    given = give_places(core, &was);
    if (given)
        reach(core, &all, jobs[0]->user, count);
    change_places(core, &was, given ? &all : &was, jobs, count);
    if (given)
        free_reach(&all);
    free_reach(&was);
    mark(jobs, count, false);
}

/* These jobs, and `more` tasks that wait in the array. */
static bool too_many(const struct core *core, const struct owner *user, struct job *const *jobs, size_t count,
                     const struct job *from, size_t more, struct tell tell)
{
    uint64_t rows;

    mark(jobs, count, true);
    rows = count_rows(core, user, count, from, more, tell);
    mark(jobs, count, false);
    return rows > CORE_MAX_TOP;
}

enum answer top_job(struct core *core, struct job *job)
{
    if (too_many(core, job->user, &job, 1, NULL, 0, (struct tell){NULL, NULL}))
        return ANSWER_TOO_MANY;
    move(core, &job, 1);
    return ANSWER_OK;
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

/* Those of its tasks that are jobs behind it: others of its tasks go there for them. */
static uint64_t tasks_behind(const struct job *array)
{
    uint64_t behind = 0;

    LIST_FOR_EACH (node, &array->array->tasks)
        behind += job_is_waiting(TASK(node)) && TASK(node)->info.place >= array->info.place;
    return behind;
}

/* As many of its tasks as there are places before it become jobs, with these; if more wait, what had the places goes
 * behind the array. Some of them only, or where none would be left in it, or it is not at its own place: all of these.
 */
static uint64_t tasks_out(const struct core *core, const struct job *array, const struct core_range *ranges, int count,
                          bool all)
{
    uint64_t more = array_count_waiting(array, ranges, count), before;

    if (!all || !core_at_own_place(&array->info))
        return more;
    before = places_before(core, array);
    return more > before + tasks_behind(array) ? before : more;
}

enum answer top_array(struct core *core, struct job *array, const struct core_range *ranges, int count, bool all)
{
    uint64_t more;
    struct job **jobs;
    size_t n;
    bool refused;

    if (!after_met(array))
        return ANSWER_WRONG_STATE;
    more = tasks_out(core, array, ranges, count, all);
    jobs = waiting_jobs(array, ranges, count, &n);
    refused = more > CORE_MAX_SPLIT || too_many(core, array->user, jobs, n, array, more, (struct tell){NULL, NULL});
    free(jobs);
    if (refused)
        return ANSWER_TOO_MANY;
    for (int i = 0; i < count && more > 0; i++)
        for (uint32_t next = core_next_task(&array->info, ranges[i].from); next < ranges[i].to && more > 0;
             next = core_next_task(&array->info, next + 1), more--)
            array_split(core, array, (struct core_range){next, next + 1});
    jobs = waiting_jobs(array, ranges, count, &n);
    if (n > 0)
        move(core, jobs, n);
    free(jobs);
    if (all && array->in_queue.in && core_tasks_waiting(&array->info) > 0)
        put_behind(core, array);
    return n > 0 || (all && job_is_waiting(array)) ? ANSWER_OK : ANSWER_WRONG_STATE;
}

void core_top_splits(const struct core *core, uint64_t id, const struct core_range *ranges, int count,
                     void (*each)(void *data, uint64_t array, uint64_t tasks), void *data)
{
    struct job *job = index_find(core, id), **jobs = NULL;
    const struct core_range whole = {0, job ? job->info.ntasks : 0};
    size_t n = 1;

    if (!job || (job->array ? !after_met(job) : !job_is_waiting(job)))
        return;
    if (job->array)
        jobs = waiting_jobs(job, ranges ? ranges : &whole, ranges ? count : 1, &n);
    (void)too_many(core, job->user, jobs ? jobs : &job, n, job->array ? job : NULL,
                   job->array ? tasks_out(core, job, ranges ? ranges : &whole, ranges ? count : 1, !ranges) : 0,
                   (struct tell){each, data});
    free(jobs);
}
