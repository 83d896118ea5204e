/* queue.c - who is next: the first of the eligible in the order of the policy (first come, first served).
 *
 * The search keeps its place between steps. All jobs before the cursor are known to be not eligible; the cursor itself
 * is eligible, and when `refused` is set the allocator has no room for it, so nobody behind it is looked at. Whatever
 * changes one of these facts says so by queue_changed_*(), and queue_run() at the end of the step goes on from there.
 * So a submission behind 100,000 others costs nothing, and neither does a report that frees nothing. Jobs that are held
 * or wait for others sleep (order.h): the search does not even pass them.
 */
#include "elmer/core/internal.h"
#include "elmer/core/policy/policy.h"
#include "elmer/core/topology.h"

#include <stdlib.h>

#define QUEUED(place) CONTAINER_OF(place, struct job, in_queue)

static bool before(const struct core *core, const struct job *a, const struct job *b)
{
    return policy_by_number(core->options.policy)->before(&a->info, &b->info);
}

static bool place_before(const struct place *a, const struct place *b, const void *core)
{
    return before(core, CONTAINER_OF(a, const struct job, in_queue), CONTAINER_OF(b, const struct job, in_queue));
}

void queue_init(struct core *core)
{
    core->queue = (struct queue){.jobs = {.before = place_before, .data = core},
                                 .notices = {.before = place_before, .data = core}};
}

static struct job *job_at(struct place *place)
{
    return place ? QUEUED(place) : NULL;
}

static struct job *next_of(struct job *job)
{
    return job_at(order_next_awake(&job->in_queue));
}

/* It may have its turn, as far as it depends on the job itself. */
static bool awake(const struct job *job)
{
    return job->info.state == JOB_QUEUED && after_met(job);
}

static void set_cursor(struct core *core, struct job *job)
{
    core->queue.cursor = job;
    core->queue.refused = false;
}

void queue_add(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;

    job->user->has.queued++;
    if (job->info.notice) {
        order_insert(&queue->notices, &job->in_queue, job->info.id, false);
        notice_changed(core, job);
        return;
    }
    order_insert(&queue->jobs, &job->in_queue, job->info.id, awake(job));
    if (awake(job) && (!queue->cursor || before(core, job, queue->cursor)))
        set_cursor(core, job);
}

void queue_move(struct core *core, struct job *const *jobs, const uint64_t *places, size_t count)
{
    struct queue *queue = &core->queue;
    struct order *order = &queue->jobs;

    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->info.place == places[i])
            continue;
        if (queue->cursor == jobs[i]) /* the search goes on where it was */
            set_cursor(core, next_of(jobs[i]));
        order_remove(order, &jobs[i]->in_queue);
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->info.place == places[i])
            continue;
        jobs[i]->info.place = places[i];
        order_insert(order, &jobs[i]->in_queue, jobs[i]->info.id, awake(jobs[i]));
        emit_owe_persist(core, jobs[i]);
        queue_changed_job(core, jobs[i]);
    }
}

void queue_sort(struct core *core)
{
    struct order *jobs = &core->queue.jobs;
    size_t count = 0, size = jobs->root ? jobs->root->size : 0;
    struct job **all = mem_array(size + 1, sizeof(struct job *));

    for (struct job *job; (job = job_at(order_first(jobs))); all[count++] = job)
        order_remove(jobs, &job->in_queue);
    for (size_t i = 0; i < count; i++)
        order_insert(jobs, &all[i]->in_queue, all[i]->info.id, awake(all[i]));
    free(all);
    queue_changed_supply(core);
}

void queue_remove(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;

    if (queue->cursor == job)
        set_cursor(core, next_of(job));
    order_remove(job->info.notice ? &queue->notices : &queue->jobs, &job->in_queue);
    notice_leave(job);
    job->user->has.queued--;
}

uint32_t queue_ahead(const struct job *job)
{
    return job->info.notice ? 0 : order_rank(&job->in_queue);
}

/* So many processors are up, or may be again in a moment, and undrained. */
static bool has_supply(const struct core *core, const struct job *job)
{
    const struct core_demand demand = room_demand(job);
    uint64_t cpus = 0;

    if (!job->hosts && (job->info.nprocs > core->supply_cpus || !room_is_asked(&demand)))
        return job->info.nprocs <= core->supply_cpus;
    for (int i = 0; i < (job->hosts ? job->info.nhosts : core->nhosts) && cpus < job->info.nprocs; i++)
        cpus += room_supply(core->hosts[job->hosts ? job->hosts[i] : i], &demand);
    return cpus >= job->info.nprocs;
}

/* Rule 4, in the present state. */
bool queue_eligible(const struct core *core, const struct job *job)
{
    return awake(job) && job->info.nlost == 0 && !user_at_limit(core, job->user) && has_supply(core, job) &&
           topology_has_supply(core, job) && !array_at_limit(job);
}

enum reason queue_reason(const struct core *core, const struct job *job)
{
    if (!after_met(job))
        return after_never(job) ? REASON_NEVER : REASON_AFTER;
    if (job->info.nlost > 0)
        return REASON_LEASE;
    if (job->info.notice)
        return REASON_WAITING;
    if (!has_supply(core, job) || !topology_has_supply(core, job))
        return REASON_TOO_FEW_UP;
    if (user_at_limit(core, job->user))
        return REASON_AT_LIMIT;
    if (array_at_limit(job))
        return REASON_TASK_LIMIT;
    return host_gathering(core) ? REASON_AWAITING_HOSTS : REASON_WAITING;
}

/* One that is not eligible needs no search: whatever makes it so says so itself. */
void queue_changed_job(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;

    if (job->info.notice) {
        notice_changed(core, job);
        return;
    }
    order_wake(&job->in_queue, awake(job));
    if (job == queue->cursor)
        set_cursor(core, awake(job) ? job : next_of(job));
    else if ((!queue->cursor || before(core, job, queue->cursor)) && queue_eligible(core, job))
        set_cursor(core, job);
}

void queue_changed_supply(struct core *core)
{
    set_cursor(core, job_at(order_first_awake(&core->queue.jobs)));
}

void queue_changed_space(struct core *core, uint32_t gained)
{
    struct queue *queue = &core->queue;

    if (!queue->refused)
        return;
    if (gained >= queue->missing)
        queue->refused = false;
    else
        queue->missing -= gained;
}

/* Others have not become free. But a host on which memory was given back has more room for the head, if it asks for
 * any, also on those that were free before. */
void queue_changed_rows(struct core *core, uint32_t changed)
{
    struct core_demand demand;

    if (!core->queue.refused)
        return;
    demand = room_demand(core->queue.cursor);
    queue_changed_space(core, room_is_asked(&demand) ? UINT32_MAX : changed);
}

/* While hosts are gathered the cursor stays where it is: what it says stays true. */
void queue_run(struct core *core)
{
    struct queue *queue = &core->queue;

    if (host_gathering(core))
        return;
    while (queue->cursor && !queue->refused) {
        struct job *job = queue->cursor;
        uint32_t missing;

        if (!queue_eligible(core, job)) {
            queue->cursor = next_of(job);
            continue;
        }
        missing = alloc_try(core, job); /* takes it from the queue, which moves the cursor on; of an
                                          array its next task */
        if (missing > 0) {
            queue->refused = true;
            queue->missing = missing;
        }
    }
}
