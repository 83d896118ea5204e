/* copy.c - a second core in the same state, to ask what would happen.
 *
 * Everything that the core owns is copied; what points to a host or a job of the original is found again by index or
 * id. Between two steps nothing is owed that a copy could not have, so it goes on from here exactly as the original
 * would with the same events: tests/sim goes on with a copy every few steps.
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct job *job_in(const struct core *core, const struct job *job)
{
    return job ? index_find(core, job->info.id) : NULL;
}

static struct host *host_in(const struct core *core, const struct host *host)
{
    return host ? core->hosts[host->index] : NULL;
}

static void *copy_or_null(const void *from, size_t count, size_t size)
{
    return from ? mem_copy(from, count, size) : NULL;
}

/* ---- what belongs to nobody else ---- */

static struct host *copy_host(const struct host *from)
{
    struct host *host = mem_copy(from, 1, sizeof(*host));

    host->info.name = host->name = mem_strdup(from->name);
    host->info.cpus = host->cpus = copy_or_null(from->cpus, (size_t)from->nslots, sizeof(*host->cpus));
    host->processors = copy_or_null(from->processors, (size_t)from->nslots, sizeof(*host->processors));
    host->seen.cpus = host->cpus;
    host->seen.processors = host->processors;
    host->table = mem_array((size_t)from->nslots * CORE_MAX_LEVELS, sizeof(*host->table));
    host->leftovers = copy_or_null(from->leftovers, (size_t)from->info.leftovers, sizeof(*host->leftovers));
    host->leftovers_capacity = (size_t)from->info.leftovers;
    list_init(&host->parts);
    list_init(&host->notices);
    host->in_work = host->in_waiting = host->in_rows = host->in_retiring = host->in_noticing = (struct node){0};
    return host;
}

static struct host **copy_hosts_of(const struct core *core, struct host *const *from)
{
    struct host **hosts;
    size_t count = 0;

    if (!from)
        return NULL;
    while (from[count])
        count++;
    hosts = mem_array(count + 1, sizeof(struct host *));
    for (size_t i = 0; i < count; i++)
        hosts[i] = host_in(core, from[i]);
    return hosts;
}

static void copy_links(const struct core *core, struct job *job, const struct job *from)
{
    job->user = user_find(core, from->info.uid);
    job->parts = copy_or_null(from->parts, (size_t)from->nparts, sizeof(*job->parts));
    for (int i = 0; i < from->nparts; i++) {
        job->parts[i].job = job;
        job->parts[i].host = host_in(core, from->parts[i].host);
        job->parts[i].on_host = (struct node){0};
    }
    job->claims_capacity = (size_t)from->info.nlost;
    job->claims = from->info.nlost > 0 ? mem_copy(from->claims, job->claims_capacity, sizeof(*job->claims)) : NULL;
    job->lost = from->info.nlost > 0 ? mem_copy(from->lost, job->claims_capacity, sizeof(*job->lost)) : NULL;
    job->info.lost = from->info.lost ? job->lost : NULL;
    for (int i = 0; i < from->info.nlost; i++)
        job->claims[i].host = host_in(core, from->claims[i].host);
    job->last = copy_hosts_of(core, from->last);
}

static void copy_waits(struct job *job, const struct job *from)
{
    size_t count = (size_t)from->info.nafter;

    job->info.after = job->after = copy_or_null(from->after, count, sizeof(*job->after));
    job->waits = copy_or_null(from->waits, count, sizeof(*job->waits));
    for (size_t i = 0; i < count; i++)
        job->waits[i] = (struct wait){.job = job, .what = &job->after[i]};
    list_init(&job->waiters);
}

static void copy_array(struct job *job, const struct job *from)
{
    if (!from->array)
        return;
    job->array = mem_copy(from->array, 1, sizeof(*job->array));
    job->info.gone = job->array->gone =
        copy_or_null(from->array->gone, (size_t)from->info.ngone, sizeof(*from->array->gone));
    job->array->gone_capacity = (size_t)from->info.ngone;
    list_init(&job->array->tasks);
    list_init(&job->array->waiters);
}

static struct job *copy_job(const struct core *core, const struct job *from)
{
    static const struct node none;
    struct job *job = mem_copy(from, 1, sizeof(*job));

    job->info.processors = job->processors =
        copy_or_null(from->processors, from->info.nprocs, sizeof(*job->processors));
    job->info.hosts = job->hosts = copy_or_null(from->hosts, (size_t)from->info.nhosts, sizeof(*job->hosts));
    job->info.exited = job->exited = copy_or_null(from->exited, (job_ranks(from) + 7) / 8, 1);
    job->text = NULL;
    job_set_text(job, job_copy_text(from->text));
    job->in_queue = (struct place){.in = false};
    job->in_active = job->in_start = job->in_persist = job->in_launch = job->in_leases = job->in_doomed =
        job->in_notices = none;
    job->of = NULL;
    job->in_array = none;
    copy_array(job, from);
    copy_links(core, job, from);
    copy_waits(job, from);
    return job;
}

/* ---- lists, in their order ---- */

#define COPY_LIST(core, from, list, type, member, in)                                                                  \
    do {                                                                                                               \
        list_init(&(core)->list);                                                                                      \
        LIST_FOR_EACH (node, &(from)->list)                                                                            \
            list_append(&(core)->list, &in(core, LIST_ITEM(node, const struct type, member))->member);                 \
    } while (0)

static void copy_lists(struct core *core, const struct core *from)
{
    COPY_LIST(core, from, active, job, in_active, job_in);
    COPY_LIST(core, from, starting, job, in_start, job_in);
    COPY_LIST(core, from, persist, job, in_persist, job_in);
    COPY_LIST(core, from, launch, job, in_launch, job_in);
    COPY_LIST(core, from, leases, job, in_leases, job_in);
    COPY_LIST(core, from, doomed, job, in_doomed, job_in);
    COPY_LIST(core, from, work, host, in_work, host_in);
    COPY_LIST(core, from, waiting, host, in_waiting, host_in);
    COPY_LIST(core, from, rows, host, in_rows, host_in);
    COPY_LIST(core, from, retiring, host, in_retiring, host_in);
    COPY_LIST(core, from, noticing, host, in_noticing, host_in);
}

static void copy_queue(struct core *core, const struct core *from)
{
    core->queue.jobs.root = NULL;
    core->queue.jobs.data = core;
    for (const struct place *at = order_first(&from->queue.jobs); at; at = order_next(at)) {
        struct job *job = job_in(core, CONTAINER_OF(at, const struct job, in_queue));
        order_insert(&core->queue.jobs, &job->in_queue, job->info.id, at->awake);
    }
    core->queue.notices.root = NULL;
    core->queue.notices.data = core;
    for (const struct place *at = order_first(&from->queue.notices); at; at = order_next(at)) {
        struct job *job = job_in(core, CONTAINER_OF(at, const struct job, in_queue));
        order_insert(&core->queue.notices, &job->in_queue, job->info.id, false);
    }
    core->queue.cursor = job_in(core, from->queue.cursor);
}

/* Its tasks, in their order. */
static void copy_tasks(struct core *core, const struct job *from)
{
    struct job *array = job_in(core, from);

    if (!from->array)
        return;
    LIST_FOR_EACH (node, &from->array->tasks) {
        struct job *task = job_in(core, LIST_ITEM(node, const struct job, in_array));
        task->of = array;
        list_append(&array->array->tasks, &task->in_array);
    }
}

/* Who waits for it, in their order. */
static void copy_waiters(struct core *core, const struct job *from)
{
    struct job *job = job_in(core, from);

    LIST_FOR_EACH (node, &from->waiters) {
        const struct wait *wait = LIST_ITEM(node, const struct wait, on_job);
        list_append(&job->waiters, &job_in(core, wait->job)->waits[wait - wait->job->waits].on_job);
    }
    if (!from->array)
        return;
    LIST_FOR_EACH (node, &from->array->waiters) {
        const struct wait *wait = LIST_ITEM(node, const struct wait, on_job);
        list_append(&job->array->waiters, &job_in(core, wait->job)->waits[wait - wait->job->waits].on_job);
    }
}

/* Who is on a host, and at which level. */
static void copy_table(struct core *core, struct host *host, const struct host *from)
{
    for (size_t i = 0; i < (size_t)from->nslots * CORE_MAX_LEVELS; i++)
        host->table[i] = job_in(core, from->table[i]);
    LIST_FOR_EACH (node, &from->parts) {
        const struct part *part = LIST_ITEM(node, const struct part, on_host);
        struct part *copy = job_part(job_in(core, part->job), host->index);
        assert(copy != NULL);
        list_append(&host->parts, &copy->on_host);
    }
    LIST_FOR_EACH (node, &from->notices)
        list_append(&host->notices, &job_in(core, LIST_ITEM(node, const struct job, in_notices))->in_notices);
}

static void copy_index(struct core *core, const struct core *from)
{
    core->index = mem_array(from->nindex, sizeof(*core->index));
    core->index_capacity = from->nindex;
    for (size_t i = 0; i < from->nindex; i++) {
        core->index[i].id = from->index[i].id;
        if (from->index[i].job)
            core->index[i].job = copy_job(core, from->index[i].job);
    }
}

struct core *core_copy(const struct core *from)
{
    struct core *core = mem_copy(from, 1, sizeof(*core));

    assert(from->nheap == 0); /* not within a step */
    core->hosts = mem_array(from->hosts_capacity, sizeof(struct host *));
    core->view = mem_array(from->hosts_capacity, sizeof(*core->view));
    core->notes = mem_array(from->hosts_capacity, sizeof(*core->notes));
    core->nview = -1;
    core->choice = NULL;
    core->choice_capacity = 0;
    core->heap = NULL;
    core->heap_capacity = 0;
    core->lost_tasks = mem_copy(from->lost_tasks, from->nlost_tasks, sizeof(*core->lost_tasks));
    core->lost_tasks_capacity = from->nlost_tasks;
    for (int i = 0; i < from->nhosts; i++)
        core->hosts[i] = copy_host(from->hosts[i]);
    core->users = mem_array(from->nusers, sizeof(struct owner *));
    core->users_capacity = from->nusers;
    for (size_t i = 0; i < from->nusers; i++)
        core->users[i] = mem_copy(from->users[i], 1, sizeof(struct owner));
    copy_index(core, from);
    for (size_t i = 0; i < from->nindex; i++)
        if (from->index[i].job) {
            copy_waiters(core, from->index[i].job);
            copy_tasks(core, from->index[i].job);
        }
    copy_lists(core, from);
    copy_queue(core, from);
    for (int i = 0; i < from->nhosts; i++)
        copy_table(core, core->hosts[i], from->hosts[i]);
    core->topology = topology_copy(from->topology);
    return core;
}
