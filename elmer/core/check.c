/* check.c - the invariants of doc/02-scheduling, found out again in a plain way.
 *
 * The core keeps tables, counters and a place in the queue up to date with each event. Here levels, eligibility and
 * what the allocator would say are computed from the list of jobs and their processors alone, by going through the jobs
 * in the order of arrival; then what the core keeps is compared. Slow, for tests.
 */
#include "elmer/core/internal.h"
#include "elmer/core/policy/policy.h"
#include "elmer/core/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
    const struct core *core;
    char *text;
    size_t size;
    size_t *first; /* [nhosts] where the host's processors begin in depth */
    int *depth;    /* per processor: the greatest level on it, -1 without jobs */
    int *starting; /* per processor: jobs on it that are starting */
    int *jobs;     /* per processor: jobs on it */
};

static int broken(const struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int broken(const struct check *check, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (check->size > 0)
        vsnprintf(check->text, check->size, format, arguments);
    va_end(arguments);
    return -1;
}

#define ID(job)      ((unsigned long long)(job)->info.id)
#define ACTIVE(node) LIST_ITEM(node, struct job, in_active)

static size_t processor_at(const struct check *check, const struct core_processor *at)
{
    return check->first[at->host] + (size_t)at->cpu;
}

/* ---- rules 1 and 2: order and levels ---- */

/* Deals the processors to the jobs again, one job after the other. */
static int check_levels(const struct check *check)
{
    uint64_t last = 0;

    LIST_FOR_EACH (node, &check->core->active) {
        const struct job *job = ACTIVE(node);
        int level = 0;

        if (job->info.allocation <= last)
            return broken(check, "job %llu: allocated earlier than the one before it", ID(job));
        last = job->info.allocation;
        if (job->info.notice && job->info.level != 0)
            return broken(check, "notice %llu has level %d", ID(job), job->info.level);
        if (job->info.notice)
            continue;
        for (uint32_t i = 0; i < job->info.nprocs; i++)
            if (check->depth[processor_at(check, &job->processors[i])] + 1 > level)
                level = check->depth[processor_at(check, &job->processors[i])] + 1;
        if (level != job->info.level)
            return broken(check, "rule 2: job %llu has level %d, should have %d", ID(job), job->info.level, level);
        if (level >= check->core->levels_used)
            return broken(check, "rule 5: job %llu has level %d of %d", ID(job), level, check->core->levels_used);
        for (uint32_t i = 0; i < job->info.nprocs; i++) {
            check->depth[processor_at(check, &job->processors[i])] = level;
            check->starting[processor_at(check, &job->processors[i])] += job->info.state == JOB_STARTING;
            check->jobs[processor_at(check, &job->processors[i])]++;
        }
    }
    return 0;
}

static bool has_processor(const struct job *job, int host, int cpu)
{
    for (uint32_t i = 0; i < job->info.nprocs; i++)
        if (job->processors[i].host == host && job->processors[i].cpu == cpu)
            return true;
    return false;
}

static int check_row(const struct check *check, const struct host *host, int cpu, size_t *entries)
{
    const struct job *last = NULL;
    size_t at = check->first[host->index] + (size_t)cpu;

    for (int level = 0; level < CORE_MAX_LEVELS; level++) {
        const struct job *job = host->table[(size_t)cpu * CORE_MAX_LEVELS + (size_t)level];
        if (!job)
            continue;
        ++*entries;
        if (!job_has_cluster(job) || !has_processor(job, host->index, cpu))
            return broken(check, "table: job %llu is on %s:%d but should not be", ID(job), host->name, cpu);
        if (job->info.level != level)
            return broken(check, "rule 2: job %llu of level %d is at level %d on %s:%d", ID(job), job->info.level,
                          level, host->name, cpu);
        if (last && last->info.allocation >= job->info.allocation)
            return broken(check, "rule 1: job %llu is below the later job %llu on %s:%d", ID(job), ID(last), host->name,
                          cpu);
        last = job;
    }
    if (host->processors[cpu].next_level != check->depth[at] + 1)
        return broken(check, "table: %s:%d would give level %d, not %d", host->name, cpu,
                      host->processors[cpu].next_level, check->depth[at] + 1);
    if (host->processors[cpu].jobs != check->jobs[at])
        return broken(check, "table: %s:%d counts %d jobs, has %d", host->name, cpu, host->processors[cpu].jobs,
                      check->jobs[at]);
    if (host->processors[cpu].starting != check->starting[at])
        return broken(check, "table: %s:%d counts %d starting jobs, has %d", host->name, cpu,
                      host->processors[cpu].starting, check->starting[at]);
    return 0;
}

static int check_table(const struct check *check)
{
    size_t entries = 0, expected = 0;

    for (int h = 0; h < check->core->nhosts; h++)
        for (int cpu = 0; cpu < check->core->hosts[h]->nslots; cpu++)
            if (check_row(check, check->core->hosts[h], cpu, &entries) != 0)
                return -1;
    LIST_FOR_EACH (node, &check->core->active)
        expected += ACTIVE(node)->info.notice ? 0 : ACTIVE(node)->info.nprocs;
    return entries == expected ? 0 : broken(check, "table: %zu entries, jobs have %zu processors", entries, expected);
}

/* ---- rule 4: the queue ---- */

bool check_allows(const struct job *job, int host)
{
    if (!job->hosts)
        return true;
    for (int i = 0; i < job->info.nhosts; i++)
        if (job->hosts[i] == host)
            return true;
    return false;
}

static struct core_user plainly_has(const struct core *core, uint32_t uid)
{
    struct core_user has = {0};

    for (size_t i = 0; i < core->nindex; i++) {
        const struct job *job = core->index[i].job;
        if (!job || job->info.uid != uid)
            continue;
        has.running += job_has_cluster(job) && !job->info.notice;
        has.queued += job->info.state == JOB_QUEUED || job->info.state == JOB_HELD;
    }
    return has;
}

static bool plainly_at_limit(const struct core *core, const struct job *job)
{
    return core->options.user_running > 0 && plainly_has(core, job->info.uid).running >= core->options.user_running;
}

static bool plainly_at_task_limit(const struct core *core, const struct job *job)
{
    const struct job *array = job->array ? job : job->of;
    uint32_t running = 0;

    for (size_t i = 0; array && i < core->nindex; i++)
        running += core->index[i].job && core->index[i].job->info.array == array->info.id &&
                   job_has_cluster(core->index[i].job);
    return array && array->info.task_limit > 0 && running >= array->info.task_limit;
}

static bool plainly_usable(const struct host *host)
{
    return host->info.state == CORE_HOST_UP && !host->info.drained && !host->info.closed && !host->info.retired;
}

/* What may be waited for: also hosts that are suspect, or awaited after a restart. */
static uint64_t plain_supply(const struct host *host)
{
    if (host->info.drained || host->info.closed || host->info.retired || host->info.state == CORE_HOST_DOWN)
        return 0;
    return (uint64_t)(core_host_up(&host->info) ? host->info.ncpus : host->expected_cpus < 0 ? 0 : host->expected_cpus);
}

static bool plainly_gathering(const struct core *core)
{
    bool any = false;

    for (int h = 0; h < core->nhosts; h++)
        any = any || (core->hosts[h]->info.state == CORE_HOST_AWAITED && !core->hosts[h]->info.drained &&
                      !core->hosts[h]->info.retired && core->hosts[h]->expected_cpus != 0);
    return any && core->now_ms < core->gather_until_ms;
}

static bool plainly_eligible(const struct core *core, const struct job *job)
{
    uint64_t cpus = 0;

    for (int h = 0; h < core->nhosts; h++)
        if (check_allows(job, h))
            cpus += check_room_supply(job, core->hosts[h], plain_supply(core->hosts[h]));
    return job->info.state == JOB_QUEUED && check_after_met(job) && job->info.nlost == 0 &&
           !plainly_at_limit(core, job) && !plainly_at_task_limit(core, job) && cpus >= job->info.nprocs &&
           check_topology_supply(core, job);
}

/* What doc/02-scheduling.md says of v2, "Allocators". */
static bool report_admits(const struct check *check, const struct host *host, int cpu)
{
    const struct core *core = check->core;
    const struct alloc_processor *processor = &host->processors[cpu];
    size_t at = check->first[host->index] + (size_t)cpu;
    bool fresh = host->seen.reported && host->seen.report_end_ms + core->options.fresh_ms >= core->now_ms;
    bool settled =
        host->seen.report_begin_ms - processor->changed_ms >= core->options.settle_ms && check->starting[at] == 0;

    if (check->depth[at] < 0)
        return fresh && processor->foreign <= core->options.threshold;
    return fresh && settled && processor->busy <= core->options.threshold;
}

static bool plainly_fits(const struct check *check, const struct job *job)
{
    const struct core *core = check->core;
    uint64_t fitting = 0;

    if (core_allocator_in_cube(core->options.allocator))
        return check_topology_fits(core, job);
    for (int h = 0; h < core->nhosts; h++) {
        const struct host *host = core->hosts[h];
        uint64_t count = 0;
        if (!plainly_usable(host) || host->info.leftovers > 0 || !check_allows(job, h))
            continue;
        for (int i = 0; i < host->info.ncpus; i++)
            count += check->depth[check->first[h] + (size_t)host->info.cpus[i]] + 1 < core->options.levels &&
                     (core->options.allocator != ALLOCATOR_V2 || report_admits(check, host, host->info.cpus[i]));
        fitting += check_room_now(core, job, host, count);
    }
    return fitting >= job->info.nprocs;
}

static int check_users(const struct check *check)
{
    for (size_t i = 0; i < check->core->nusers; i++) {
        const struct owner *user = check->core->users[i];
        struct core_user plain = plainly_has(check->core, user->uid);
        if (plain.queued != user->has.queued || plain.running != user->has.running)
            return broken(check, "user %u: has %u jobs queued and %u running, counted as %u and %u", user->uid,
                          plain.queued, plain.running, user->has.queued, user->has.running);
    }
    return 0;
}

/* Whoever waits is in the queue, each before those that the policy puts behind it. */
static int check_order(const struct check *check)
{
    const struct core *core = check->core;
    const struct job *last = NULL;
    size_t waiting = 0, queued = 0;

    for (size_t i = 0; i < core->nindex; i++) {
        const struct job *job = core->index[i].job;
        if (!job)
            continue;
        if (i > 0 && core->index[i - 1].id >= core->index[i].id)
            return broken(check, "index: job %llu is out of order", ID(job));
        waiting += !job->info.notice && (job->info.state == JOB_QUEUED || job->info.state == JOB_HELD);
    }
    for (const struct place *at = order_first(&core->queue.jobs); at; at = order_next(at)) {
        const struct job *job = CONTAINER_OF(at, const struct job, in_queue);
        if (order_rank(at) != queued)
            return broken(check, "queue: job %llu is number %zu, counted %u", ID(job), queued, order_rank(at));
        if (at->awake != (job->info.state == JOB_QUEUED && check_after_met(job)))
            return broken(check, "queue: job %llu sleeps, or does not", ID(job));
        queued++;
        if (job->info.state != JOB_QUEUED && job->info.state != JOB_HELD)
            return broken(check, "rule 4: job %llu is queued and should not be", ID(job));
        if (job->info.notice)
            return broken(check, "rule 4: notice %llu has a turn", ID(job));
        if (last && !policy_by_number(core->options.policy)->before(&last->info, &job->info))
            return broken(check, "rule 4: job %llu does not have its place in the queue", ID(job));
        last = job;
    }
    return queued == waiting ? 0 : broken(check, "rule 4: %zu jobs wait, %zu are in the queue", waiting, queued);
}

static int check_queue(const struct check *check)
{
    const struct core *core = check->core;
    const struct job *head = NULL;

    if (check_order(check) != 0)
        return -1;
    for (const struct place *at = order_first(&core->queue.jobs); at; at = order_next(at)) {
        const struct job *job = CONTAINER_OF(at, const struct job, in_queue);
        if (!head && plainly_eligible(core, job))
            head = job;
    }
    if (head && !plainly_gathering(core) && plainly_fits(check, head))
        return broken(check, "rule 4: job %llu waits though the allocator would take it", ID(head));
    return 0;
}

/* ---- rule 6: parts ---- */

static int check_parts(const struct check *check, const struct job *job)
{
    int unopened = 0, unempty = 0;
    uint32_t processors = 0;

    for (int i = 0; i < job->nparts; i++) {
        const struct part *part = &job->parts[i];
        unopened += part->state == PART_OPENING;
        unempty += part->state != PART_EMPTY;
        processors += (uint32_t)part->ncpus;
        if (part->job != job || job_part(part->job, part->host->index) != part)
            return broken(check, "job %llu: a part is not linked rightly", ID(job));
        if (part->state == PART_EMPTY && job->info.state != JOB_ENDING)
            return broken(check, "job %llu: empty on %s though it has not ended", ID(job), part->host->name);
        if (part->host->info.state == CORE_HOST_DOWN && part->state != PART_EMPTY)
            return broken(check, "job %llu: goes on on %s, which is down", ID(job), part->host->name);
    }
    if (processors != job->info.nprocs)
        return broken(check, "job %llu: parts have %u of %u processors", ID(job), processors, job->info.nprocs);
    if (job->info.state == JOB_ENDING && (unempty == 0 || unempty != job->unempty))
        return broken(check, "rule 6: job %llu is ending with %d hosts to wait for, counted %d", ID(job), unempty,
                      job->unempty);
    if (job->info.state == JOB_STARTING && unopened != job->unopened)
        return broken(check, "job %llu: %d hosts to open, counted %d", ID(job), unopened, job->unopened);
    if (job->info.state == JOB_RUNNING && (unopened > 0 || !job->launched))
        return broken(check, "job %llu: running before all hosts have opened", ID(job));
    return 0;
}

/* ---- leases ---- */

static int check_claims(const struct check *check, const struct job *job)
{
    bool waits = job->info.state == JOB_QUEUED || job->info.state == JOB_HELD;

    if ((job->info.nlost > 0) != node_linked(&job->in_leases))
        return broken(check, "job %llu: has claims and is not looked at, or the other way round", ID(job));
    if (job->info.nlost > 0 && !waits && !lease_goes_again(job))
        return broken(check, "job %llu: is %s and has claims", ID(job), job_state_name(job->info.state));
    for (int i = 0; i < job->info.nlost; i++) {
        const struct claim *claim = &job->claims[i];
        bool up = claim->host && core_host_up(&claim->host->info);
        if (claim->until_ms == INT64_MAX && (!waits || !up || claim->host->info.leftovers == 0))
            return broken(check, "job %llu: waits for ever for %s", ID(job), claim->host ? claim->host->name : "?");
        if (claim->until_ms != INT64_MAX && up)
            return broken(check, "job %llu: waits for %s, which is up", ID(job), claim->host->name);
        if (claim->until_ms < check->core->lease_check_ms)
            return broken(check, "job %llu: nobody will see that its lease is over", ID(job));
    }
    return 0;
}

static int check_jobs(const struct check *check)
{
    size_t active = 0;
    const char *fault;

    for (size_t i = 0; i < check->core->nindex; i++) {
        const struct job *job = check->core->index[i].job;
        if (!job)
            continue;
        if (job_has_cluster(job) != node_linked(&job->in_active) || job->in_heap)
            return broken(check, "job %llu: is in a list that does not fit its state", ID(job));
        if ((job->info.state == JOB_STARTING) != node_linked(&job->in_start))
            return broken(check, "job %llu: has a deadline that does not fit its state", ID(job));
        if (check_claims(check, job) != 0)
            return -1;
        fault = check_after(check->core, job);
        fault = fault ? fault : check_array(check->core, job);
        if (fault)
            return broken(check, "job %llu: %s", ID(job), fault);
        if (!job_has_cluster(job)) {
            if (job->nparts != 0 || job->info.level != CORE_NO_LEVEL)
                return broken(check, "job %llu: has parts or a level without a cluster", ID(job));
            continue;
        }
        active++;
        if (check_parts(check, job) != 0)
            return -1;
    }
    if (active != check->core->nactive || check->core->nheap != 0)
        return broken(check, "the number of active jobs is wrong");
    return 0;
}

static int check_hosts(const struct check *check)
{
    const struct core *core = check->core;
    uint64_t supply = 0, known = 0;
    int unknown = 0;

    for (int h = 0; h < core->nhosts; h++) {
        const struct core_host *host = &core->hosts[h]->info;
        supply += plain_supply(core->hosts[h]);
        if (!host->retired) {
            known += (uint64_t)(host->known ? host->ncpus : core->hosts[h]->configured_cpus);
            unknown += !host->known && core->hosts[h]->configured_cpus == 0;
        }
        if (node_linked(&core->hosts[h]->in_retiring) != (host->retired && !core_host_gone(core, h)))
            return broken(check, "%s is retired, and nobody looks when it is gone, or the other way round", host->name);
        if (host->row.up != (host->state != CORE_HOST_DOWN) || host->row.drained != host->drained ||
            host->row.joined != (host->joined && !host->retired))
            return broken(check, "%s: its row says something else", host->name);
        if (host->applied > host->generation)
            return broken(check, "%s has confirmed an order that was not sent", host->name);
        if (host->state == CORE_HOST_UP && core->timer_ms == INT64_MAX && host->applied < host->generation)
            return broken(check, "%s: an order is unconfirmed and nobody will look", host->name);
    }
    if (core->timer_ms > core->lease_check_ms)
        return broken(check, "a lease runs out and nobody will look");
    if (plainly_gathering(core) != host_gathering(core))
        return broken(check, "allocations wait for hosts, or the other way round");
    if (plainly_gathering(core) && core->timer_ms > core->gather_until_ms)
        return broken(check, "allocations wait for hosts and nobody will see the end of it");
    if (supply != core->supply_cpus || known != core->known_cpus || unknown != core->unknown_hosts)
        return broken(check, "the numbers of processors are wrong");
    return 0;
}

static int check_settings(const struct check *check)
{
    const struct core *core = check->core;

    for (int i = 0; i < SETTING_COUNT; i++) {
        enum core_setting setting = (enum core_setting)i;
        int value = core->set[i] != SETTING_UNSET ? core->set[i] : core_setting_default(core, setting);
        if (core_setting_value(core, setting) != value)
            return broken(check, "%s is %s, and should be %s", core_setting_name(setting),
                          core_setting_value_name(setting, core_setting_value(core, setting)),
                          core_setting_value_name(setting, value));
    }
    return 0;
}

/* Only the first of a list is looked at for the timer. */
static int check_deadlines(const struct check *check)
{
    int64_t last_ms = INT64_MIN;

    LIST_FOR_EACH (node, &check->core->starting) {
        const struct job *job = LIST_ITEM(node, const struct job, in_start);
        if (job->deadline_ms < last_ms)
            return broken(check, "job %llu has to start before one that stands before it", ID(job));
        last_ms = job->deadline_ms;
    }
    last_ms = INT64_MIN;
    LIST_FOR_EACH (node, &check->core->waiting) {
        const struct host *host = LIST_ITEM(node, const struct host, in_waiting);
        if (host->check_ms < last_ms)
            return broken(check, "%s is to be looked at before one that stands before it", host->name);
        last_ms = host->check_ms;
    }
    return 0;
}

static int check_lists(const struct check *check)
{
    const char *fault = check_topology(check->core);

    if (fault)
        return broken(check, "cube: %s", fault);
    fault = check_rooms(check->core);
    fault = fault ? fault : check_notices(check->core);
    return !fault ? 0 : broken(check, "%s", fault);
}

int core_check(const struct core *core, char *text, size_t size)
{
    struct check check = {.core = core, .text = text, .size = size};
    size_t slots = 0;
    int result = -1;

    check.first = mem_array((size_t)core->nhosts + 1, sizeof(*check.first));
    for (int h = 0; h < core->nhosts; h++) {
        check.first[h] = slots;
        slots += (size_t)core->hosts[h]->nslots;
    }
    check.depth = mem_array(slots + 1, sizeof(*check.depth));
    check.starting = mem_array(slots + 1, sizeof(*check.starting));
    check.jobs = mem_array(slots + 1, sizeof(*check.jobs));
    memset(check.depth, 0xff, (slots + 1) * sizeof(*check.depth)); /* all -1 */
    if (check_levels(&check) == 0 && check_table(&check) == 0 && check_queue(&check) == 0 && check_users(&check) == 0 &&
        check_jobs(&check) == 0 && check_hosts(&check) == 0 && check_settings(&check) == 0 &&
        check_deadlines(&check) == 0 && check_lists(&check) == 0)
        result = 0;
    free(check.first);
    free(check.depth);
    free(check.starting);
    free(check.jobs);
    return result;
}
