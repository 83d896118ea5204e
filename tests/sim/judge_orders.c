/* judge_orders.c - what the core tells hosts: each order is the host's part of the table, nothing is opened, launched
 * or ended before its time, and when all is quiet the hosts have what the table says.
 */
#include "tests/sim/judge.h"

static unsigned cpus_on(const struct core_job *job, int host)
{
    unsigned cpus = 0;

    for (uint32_t i = 0; i < job->nprocs; i++)
        if (job->processors[i].host == host)
            cpus |= 1u << job->processors[i].cpu;
    return cpus;
}

/* The list that this host should have, from the jobs as they are. */
static void expected_order(struct world *world, int host, struct sim_order *order)
{
    const struct core_job *job;
    uint64_t cursor = 0;
    uint64_t allocations[SIM_ENTRIES];

    order->n = 0;
    while ((job = core_next_job(world->core, &cursor))) {
        unsigned cpus = judge_has_cluster(job->state) ? cpus_on(job, host) : 0;
        int at;
        if (cpus == 0)
            continue;
        if (order->n == SIM_ENTRIES) {
            world_fail(world, "more jobs on host %d than levels", host);
            return;
        }
        for (at = order->n++; at > 0; at--) { /* by level, then arrival */
            if (order->entries[at - 1].level < job->level ||
                (order->entries[at - 1].level == job->level && allocations[at - 1] < job->allocation))
                break;
            order->entries[at] = order->entries[at - 1];
            allocations[at] = allocations[at - 1];
        }
        allocations[at] = job->allocation;
        order->entries[at] = (struct sim_entry){
            .job = job->id, .attempt = job->attempt, .level = job->level, .lowest = true, .cpus = cpus};
    }
    for (int i = 0; i < order->n; i++)
        for (int k = 0; k < order->n; k++)
            if (order->entries[k].level > order->entries[i].level &&
                (order->entries[k].cpus & order->entries[i].cpus) != 0)
                order->entries[i].lowest = false;
}

static bool same_entries(const struct sim_order *a, const struct sim_order *b)
{
    if (a->n != b->n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const struct sim_entry *x = &a->entries[i], *y = &b->entries[i];
        if (x->job != y->job || x->attempt != y->attempt || x->level != y->level || x->lowest != y->lowest ||
            x->cpus != y->cpus)
            return false;
    }
    return true;
}

static void judge_order(struct world *world, const struct action *action)
{
    struct sim_order *last = &world->seen_hosts[action->host].last;
    struct sim_order order = {.generation = action->generation, .n = action->nentries}, expected;

    if (action->nentries > SIM_ENTRIES) {
        world_fail(world, "an order of %d entries", action->nentries);
        return;
    }
    for (int i = 0; i < order.n; i++) {
        const struct order_entry *from = &action->entries[i];
        order.entries[i] = (struct sim_entry){
            .job = from->job, .attempt = from->attempt, .level = from->level, .lowest = from->lowest};
        for (int k = 0; k < from->ncpus; k++)
            order.entries[i].cpus |= 1u << from->cpus[k];
    }
    expected_order(world, action->host, &expected);
    if (!same_entries(&order, &expected))
        world_fail(world, "the order of host %d is not its part of the table", action->host);
    if (order.generation < last->generation || (order.generation == last->generation && !same_entries(&order, last)))
        world_fail(world, "host %d: generation %llu does not grow", action->host, (unsigned long long)order.generation);
    *last = order;
}

static void judge_open(struct world *world, const struct action *action)
{
    const struct sim_order *last = &world->seen_hosts[action->host].last;
    unsigned cpus = 0;

    for (int i = 0; i < action->ncpus; i++)
        cpus |= 1u << action->cpus[i];
    for (int i = 0; i < last->n; i++)
        if (last->entries[i].job == action->job && last->entries[i].attempt == action->attempt &&
            last->entries[i].cpus == cpus && last->generation == action->generation)
            return;
    world_fail(world, "job %llu: OPEN on host %d without an order that has it", (unsigned long long)action->job,
               action->host);
}

/* Of an attempt that was launched before a restart: the host has nothing of it, as it says, and no rank has to run
 * there any more, or none ever had. */
static bool over_there(struct world *world, const struct seen_job *seen, int host)
{
    const struct core_job *job = core_job(world->core, seen->id);

    for (uint32_t rank = 0; rank < (job->each ? job->nprocs : 1); rank++)
        if (job->processors[rank].host == host && (job->exited[rank / 8] & (1u << (rank % 8))) == 0)
            return false;
    return (seen->gone & 1u << host) != 0 && job->launched && !seen->timed;
}

static void judge_launch(struct world *world, const struct action *action)
{
    struct seen_job *seen = judge_seen(world, action->job);

    if (!seen || seen->attempt != action->attempt || seen->state != JOB_STARTING) {
        world_fail(world, "job %llu: LAUNCH though it is not starting", (unsigned long long)action->job);
        return;
    }
    if (++seen->launches > 1)
        world_fail(world, "job %llu: launched twice", (unsigned long long)action->job);
    for (uint32_t i = 0; i < seen->nprocs; i++)
        if ((seen->opened & 1u << seen->processors[i].host) == 0 && !over_there(world, seen, seen->processors[i].host))
            world_fail(world, "job %llu: LAUNCH before host %d has opened", (unsigned long long)action->job,
                       seen->processors[i].host);
}

static void judge_end(struct world *world, const struct action *action)
{
    const struct core_job *job = core_job(world->core, action->job);

    if (job && job->attempt == action->attempt && (job->state == JOB_STARTING || job->state == JOB_RUNNING) &&
        cpus_on(job, action->host) != 0)
        world_fail(world, "job %llu: END though it is %s", (unsigned long long)action->job, job_state_name(job->state));
}

void judge_action(struct world *world, const struct action *action)
{
    const struct seen_host *host = action->host >= 0 ? &world->seen_hosts[action->host] : NULL;

    if (host && (!host->up || (host->silent && action->type != ACTION_ACKNOWLEDGE)) && action->type != ACTION_ANSWER &&
        action->type != ACTION_PERSIST_HOST && action->type != ACTION_PERSIST_SETTING &&
        action->type != ACTION_HOST_GONE)
        world_fail(world, "action %d for host %d, which cannot hear it", (int)action->type, action->host);
    switch ((int)action->type) {
    case ACTION_ORDER:
        judge_order(world, action);
        break;
    case ACTION_OPEN:
        judge_open(world, action);
        break;
    case ACTION_LAUNCH:
        judge_launch(world, action);
        break;
    case ACTION_END:
        judge_end(world, action);
        break;
    case ACTION_ACKNOWLEDGE:
        world->taken++;
        break;
    case ACTION_HOST_GONE:
        judge_gone(world, action->host);
        break;
    case ACTION_ANSWER:
        world->answered++;
        break;
    default:
        break;
    }
}

/* Running jobs from before a restart of which nothing runs on this host any more: it may have no group of them, because
 * the earlier core had seen the last exit, which was not on disk, and had told it to end them. */
static int count_over(const struct world *world, int h, const struct sim_order *order)
{
    int over = 0;

    for (int i = 0; i < order->n; i++) {
        const struct core_job *job = core_job(world->core, order->entries[i].job);
        const struct seen_job *seen = judge_find(world, order->entries[i].job);
        uint32_t live = 0;

        for (uint32_t rank = 0; rank < (job->each ? job->nprocs : 1); rank++)
            live += job->processors[rank].host == h && (job->exited[rank / 8] & (1u << (rank % 8))) == 0;
        over += job->state == JOB_RUNNING && live == 0 && seen && !seen->timed;
    }
    return over;
}

void judge_quiet(struct world *world)
{
    for (int h = 0; h < world->nhosts && !world_failed(world); h++) {
        const struct sim_host *host = &world->hosts[h];
        const struct core_host *info = core_host(world->core, h);
        struct sim_order expected;
        expected_order(world, h, &expected);
        if (!same_entries(&host->order, &expected) || host->order.generation != info->generation)
            world_fail(world, "quiet, but the order that %s has applied is not the table", host->name);
        if (info->applied != info->generation || info->leftovers != 0)
            world_fail(world, "quiet, but %s has not confirmed all, or has %d leftovers", host->name, info->leftovers);
        if (host->ngroups > expected.n || host->ngroups < expected.n - count_over(world, h, &expected))
            world_fail(world, "quiet, but %s has %d groups, the table %d", host->name, host->ngroups, expected.n);
        for (int i = 0; i < host->ngroups; i++)
            if (!judge_belongs(world, host->groups[i].job, host->groups[i].attempt, h))
                world_fail(world, "quiet, but %s has a group of job %llu", host->name,
                           (unsigned long long)host->groups[i].job);
    }
    for (int i = 0; i < world->nseen; i++)
        if (world->seen[i].state == JOB_STARTING || world->seen[i].state == JOB_ENDING)
            world_fail(world, "quiet, but job %llu is %s", ID(&world->seen[i]), job_state_name(world->seen[i].state));
}
