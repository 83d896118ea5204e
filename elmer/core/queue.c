/* queue.c - who is next: the first of the eligible in the order of the policy (first come, first served).
 *
 * The search keeps its place between steps. All jobs before the cursor are known to be not eligible; the cursor itself
 * is eligible, and when `refused` is set the allocator has no room for it, so nobody behind it is looked at. Whatever
 * changes one of these facts says so by queue_changed_*(), and queue_run() at the end of the step goes on from there.
 * So a submission behind 100,000 others costs nothing, and neither does a report that frees nothing.
 *
 * Positions: jobs are numbered as they come; the number of jobs ahead is the distance to the first. Taking a job from
 * the middle makes the numbers wrong, and they are given anew when somebody asks.
 */
#include "elmer/core/internal.h"
#include "elmer/core/policy/policy.h"
#include "elmer/core/topology.h"

#define QUEUED(node) LIST_ITEM(node, struct job, in_queue)

void queue_init(struct queue *queue)
{
    list_init(&queue->jobs);
    queue->next_position = 0;
    queue->renumber = false;
    queue->cursor = NULL;
    queue->refused = false;
    queue->missing = 0;
}

static struct job *next_of(struct core *core, const struct job *job)
{
    struct node *node = list_next(&core->queue.jobs, &job->in_queue);

    return node != NULL ? QUEUED(node) : NULL;
}

static bool before(const struct core *core, const struct job *a, const struct job *b)
{
    return policy_by_number(core->options.policy)->before(&a->info, &b->info);
}

static void set_cursor(struct core *core, struct job *job)
{
    core->queue.cursor = job;
    core->queue.refused = false;
}

static void insert(struct core *core, struct job *job, struct node *at)
{
    struct queue *queue = &core->queue;

    if (at != &queue->jobs.head)
        queue->renumber = true;
    list_insert(&job->in_queue, at);
    job->user->has.queued++;
    job->position = queue->next_position++;
    if (queue->cursor == NULL || before(core, job, queue->cursor))
        set_cursor(core, job);
}

void queue_add(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;
    struct node *at = &queue->jobs.head;

    while (at->prev != &queue->jobs.head && before(core, job, QUEUED(at->prev)))
        at = at->prev;
    insert(core, job, at);
}

void queue_put_back(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;
    struct node *at = queue->jobs.head.next;

    while (at != &queue->jobs.head && before(core, QUEUED(at), job))
        at = at->next;
    insert(core, job, at);
}

/* Merge sort of lists: runs of 1, 2, 4.. are joined, the earlier one first when neither is before the other. */
static struct node *merge(const struct core *core, struct node *a, struct node *b)
{
    struct node *first = NULL, **last = &first;

    while (a != NULL && b != NULL) {
        struct node **from = before(core, QUEUED(b), QUEUED(a)) ? &b : &a;
        *last = *from;
        last = &(*from)->next;
        *from = (*from)->next;
    }
    *last = a != NULL ? a : b;
    return first;
}

void queue_sort(struct core *core)
{
    struct list *jobs = &core->queue.jobs;
    struct node *runs[64] = {NULL}, *all = NULL, *node; /* runs[i] has 2^i jobs */

    while ((node = list_first(jobs)) != NULL) {
        int i = 0;
        list_remove(node);
        for (; runs[i] != NULL; runs[i++] = NULL)
            node = merge(core, runs[i], node);
        runs[i] = node;
    }
    for (int i = 0; i < 64; i++)
        if (runs[i] != NULL)
            all = all == NULL ? runs[i] : merge(core, runs[i], all);
    while ((node = all) != NULL) {
        all = node->next;
        node->next = NULL;
        list_append(jobs, node);
    }
    core->queue.renumber = true;
    queue_changed_supply(core);
}

void queue_remove(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;

    if (queue->cursor == job)
        set_cursor(core, next_of(core, job));
    if (list_first(&queue->jobs) != &job->in_queue)
        queue->renumber = true;
    list_remove(&job->in_queue);
    job->user->has.queued--;
}

uint32_t queue_ahead(struct core *core, const struct job *job)
{
    struct queue *queue = &core->queue;

    if (queue->renumber) {
        queue->next_position = 0;
        LIST_FOR_EACH (node, &queue->jobs)
            QUEUED(node)->position = queue->next_position++;
        queue->renumber = false;
    }
    return (uint32_t)(job->position - QUEUED(queue->jobs.head.next)->position); /* the queue has job at least */
}

/* So many processors are up, or may be again in a moment, and undrained. */
static bool has_supply(const struct core *core, const struct job *job)
{
    uint64_t cpus = 0;

    if (job->hosts == NULL)
        return job->info.nprocs <= core->supply_cpus;
    for (int i = 0; i < job->info.nhosts && cpus < job->info.nprocs; i++)
        cpus += host_supply(core->hosts[job->hosts[i]]);
    return cpus >= job->info.nprocs;
}

/* Rule 4, in the present state. */
bool queue_eligible(const struct core *core, const struct job *job)
{
    return job->info.state == JOB_QUEUED && job->info.nlost == 0 && !user_at_limit(core, job->user) &&
           has_supply(core, job) && topology_has_supply(core, job);
}

enum reason queue_reason(const struct core *core, const struct job *job)
{
    if (job->info.nlost > 0)
        return REASON_LEASE;
    if (!has_supply(core, job) || !topology_has_supply(core, job))
        return REASON_TOO_FEW_UP;
    if (user_at_limit(core, job->user))
        return REASON_AT_LIMIT;
    return host_gathering(core) ? REASON_AWAITING_HOSTS : REASON_WAITING;
}

void queue_changed_job(struct core *core, struct job *job)
{
    struct queue *queue = &core->queue;

    if (queue->cursor == NULL || job == queue->cursor || before(core, job, queue->cursor))
        set_cursor(core, job);
}

void queue_changed_supply(struct core *core)
{
    struct node *first = list_first(&core->queue.jobs);

    set_cursor(core, first != NULL ? QUEUED(first) : NULL);
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

/* While hosts are gathered the cursor stays where it is: what it says stays true. */
void queue_run(struct core *core)
{
    struct queue *queue = &core->queue;

    if (host_gathering(core))
        return;
    while (queue->cursor != NULL && !queue->refused) {
        struct job *job = queue->cursor;
        uint32_t missing;

        if (!queue_eligible(core, job)) {
            queue->cursor = next_of(core, job);
            continue;
        }
        missing = alloc_try(core, job); /* takes it from the queue, which moves the cursor on */
        if (missing > 0) {
            queue->refused = true;
            queue->missing = missing;
        }
    }
}
