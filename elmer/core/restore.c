/* restore.c - a core is made again from what was stored: which hosts there are, which rows of jobs make sense, where
 * these stand now, and what becomes of one whose host is not in the configuration any more.
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- hosts ---- */

/* In a cube each host has its place. */
static bool takes_hosts(const struct core *core)
{
    return core->options.topology != TOPOLOGY_CUBE;
}

int core_restore_host_row(struct core *core, const char *name, const struct core_host_row *saved, int64_t now_ms)
{
    int index = core_host_by_name(core, name), result;
    bool configured = index >= 0;

    if (!configured && saved->joined && takes_hosts(core))
        index = core_add_host(core, name);
    if (index < 0)
        return -ENOENT;
    result = core_restore_host(core, index, saved, now_ms);
    if (result == 0 && configured && saved->joined)
        configure_joined(core, core->hosts[index], false); /* its row is to say so, too */
    return result == 0 ? index : result;
}

bool core_restore_past_host(struct core *core, const char *name, bool drained)
{
    int index;

    if (core_host_by_name(core, name) >= 0 || !takes_hosts(core))
        return false;
    index = core_add_host(core, name);
    if (index < 0)
        return false;
    core->hosts[index]->info.drained = drained;
    core_restore_retired(core, index);
    return true;
}

/* ---- what the store may say of jobs ---- */

static bool processors_valid(const struct core *core, const struct core_job *saved)
{
    for (uint32_t i = 0; i < saved->nprocs; i++) {
        const struct core_processor *at = &saved->processors[i], *last = i > 0 ? at - 1 : NULL;
        if (at->host < 0 || at->host >= core->nhosts || at->cpu < 0 || at->cpu >= CORE_MAX_CPUS)
            return false;
        if (last && at->host == last->host && at->cpu <= last->cpu)
            return false;
    }
    return alloc_together(saved->processors, saved->nprocs);
}

static bool tasks_valid(const struct core_job *saved)
{
    uint32_t before = 0;

    if (saved->ntasks == 0)
        return saved->state != JOB_STARTED && saved->ngone == 0 && (saved->array == 0) == (saved->task == 0) &&
               (saved->array == 0 || saved->id == saved->array + saved->task);
    for (int i = 0; i < saved->ngone; before = saved->gone[i++].to)
        if (saved->gone[i].from >= saved->gone[i].to || saved->gone[i].to > saved->ntasks ||
            (i > 0 && saved->gone[i].from < before))
            return false;
    return saved->ngone >= 0 && saved->array == 0 && saved->next_task <= saved->ntasks &&
           saved->ntasks <= CORE_MAX_TASKS && !job_state_has_cluster(saved->state) &&
           (saved->state == JOB_STARTED) == (core_tasks_waiting(saved) == 0);
}

static bool saved_valid(const struct core *core, const struct core_job *saved)
{
    const struct node *last = core->active.head.prev;

    if (saved->id == 0 || saved->nprocs == 0 || saved->nhosts < 0)
        return false;
    if (saved->notice && (saved->nprocs != 1 || saved->ntasks > 0 || saved->array != 0 || !saved->hosts))
        return false;
    for (int i = 0; saved->hosts && i < saved->nhosts; i++)
        if (saved->hosts[i] < -1 || saved->hosts[i] >= core->nhosts)
            return false;
    for (int i = 0; i < saved->nlost; i++)
        if (saved->lost[i] < -1 || saved->lost[i] >= core->nhosts)
            return false;
    if (saved->memory_bytes > MEMORY_MAX_BYTES || saved->nafter < 0 ||
        !after_valid(saved->after, saved->nafter, saved->id))
        return false;
    if (saved->nlost < 0 || saved->lease_ms < 0 || (saved->nlost > 0 && !saved->requeue))
        return false;
    if (!tasks_valid(saved))
        return false;
    if (saved->state == JOB_QUEUED || saved->state == JOB_HELD || saved->state == JOB_STARTED)
        return true;
    if (!job_state_has_cluster(saved->state) || saved->attempt == 0 || !saved->processors || !saved->exited)
        return false;
    if (last != &core->active.head &&
        LIST_ITEM(last, const struct job, in_active)->info.allocation >= saved->allocation)
        return false;
    return processors_valid(core, saved);
}

/* Its host may not have told us of a processor yet. */
static int level_of_restored(struct core *core, const struct core_job *saved)
{
    int level = 0;

    for (uint32_t i = 0; i < saved->nprocs; i++) {
        const struct core_processor *at = &saved->processors[i];
        struct host *host = core->hosts[at->host];
        host_make_slots(host, at->cpu + 1);
        if (!saved->notice && host->processors[at->cpu].next_level > level)
            level = host->processors[at->cpu].next_level;
    }
    return level;
}

static void restore_parts(struct core *core, struct job *job)
{
    static const enum part_state states[JOB_STATE_COUNT] = {
        [JOB_STARTING] = PART_OPENING, [JOB_RUNNING] = PART_OPEN, [JOB_ENDING] = PART_ENDING};

    for (int i = 0; i < job->nparts; i++) {
        job->parts[i].state = states[job->info.state];
        host_await(core, job->parts[i].host);
    }
    job->unopened = job->info.state == JOB_STARTING ? job->nparts : 0;
    job->unempty = job->nparts;
    job->launched = job->info.state != JOB_STARTING;
    job->info.launched |= job->launched; /* a store from before schema 4 does not say it of a job that runs */
    job->restored = true;
}

/* Its level was the same while the core was away. */
static void account_absence(const struct core *core, struct job *job, const struct core_job *saved)
{
    int64_t away_ms = core->now_ms - saved->level_until_ms;

    if (away_ms > 0 && saved->level >= 0 && saved->level < CORE_MAX_LEVELS)
        job->info.level_ms[saved->level] += away_ms;
}

static void restore_cluster(struct core *core, struct job *job, const struct core_job *saved, int level)
{
    struct part *parts;
    int nparts;

    job->processors = mem_copy(saved->processors, saved->nprocs, sizeof(*job->processors));
    job->exited = mem_copy(saved->exited, (job_ranks(job) + 7) / 8, 1);
    nparts = alloc_make_parts(core, job->processors, saved->nprocs, &parts);
    life_link_cluster(core, job, parts, nparts);
    account_absence(core, job, saved);
    cluster_enter(core, job, level);
    cluster_touch(core, job);
    restore_parts(core, job);
    if (job->info.state == JOB_STARTING) {
        job->deadline_ms = core->now_ms + core->options.start_timeout_ms;
        list_append(&core->starting, &job->in_start);
        cluster_count_starting(core, job, +1);
    }
    if (level >= core->levels_used)
        core->levels_used = level + 1;
}

static void copy_facts(struct job *job, const struct core_job *saved)
{
    job_take_asked(job, saved);
#define COPY_KEPT(name, type, record, core, ...) JOB_IF(RESTORED, core, job->info.name = saved->name;)
    JOB_FIELDS(JOB_NONE, COPY_KEPT, JOB_NONE)
    memcpy(job->info.level_ms, saved->level_ms, sizeof(job->info.level_ms));
    if (job->info.place == 0)
        job->info.place = saved->id;
}

/* When the last contact was is not known, but it was before the restart. A job that is ending has its parts instead. */
static void restore_claims(struct core *core, struct job *job, const struct core_job *saved)
{
    for (int i = 0; i < saved->nlost; i++)
        lease_claim(core, job, saved->lost[i] >= 0 ? core->hosts[saved->lost[i]] : NULL,
                    core->now_ms + core_lease_wait_ms(saved->lease_ms));
}

static void restore_array(struct job *job, const struct core_job *saved)
{
    uint64_t place = job->info.place;

    if (saved->ntasks == 0)
        return;
    array_create(job, saved->ntasks, saved->task_limit);
    job->info.place = saved->place != 0 ? place : job->info.place;
    if (saved->ngone > 0)
        job->array->gone = mem_copy(saved->gone, (size_t)saved->ngone, sizeof(*saved->gone));
    job->array->gone_capacity = (size_t)saved->ngone;
    job->info.gone = job->array->gone;
    job->info.ngone = saved->ngone;
}

/* It has ended as one that failed. An array that comes later is told then. */
static void lose_task(struct core *core, const struct core_job *saved)
{
    struct job *array;

    if (saved->array == 0)
        return;
    array = index_find(core, saved->array);
    if (array && array->array) {
        array_count_failed(array, saved->task - 1, saved->exit_status, saved->signal);
        return;
    }
    core->lost_tasks =
        mem_grow(core->lost_tasks, &core->lost_tasks_capacity, core->nlost_tasks + 1, sizeof(*core->lost_tasks));
    core->lost_tasks[core->nlost_tasks++] =
        (struct lost_task){saved->array, saved->task - 1, saved->exit_status, saved->signal};
}

static void count_lost_tasks(const struct core *core, struct job *array)
{
    for (size_t i = 0; array->array && i < core->nlost_tasks; i++) {
        const struct lost_task *lost = &core->lost_tasks[i];
        if (lost->array == array->info.id)
            array_count_failed(array, lost->ordinal, lost->exit_status, lost->signal);
    }
}

/* With those of its hosts that are there. If none is left it waits for one of them, and may not have others. */
static struct job *create(const struct core_job *saved)
{
    int *hosts = NULL, n = saved->hosts ? reach_copy_hosts(saved->hosts, saved->nhosts, &hosts) : 0;
    int missing = n > 0 && hosts[0] < 0;
    struct job *job = job_create(saved->id, saved->uid, hosts ? hosts + missing : NULL, n - missing);

    free(hosts);
    return job;
}

/* A task with a row is one for which its array waits no more. */
bool core_saved_waits(const struct core_job *saved)
{
    return saved->attempt == 0 && saved->array == 0;
}

static int restore(struct core *core, const struct core_job *saved)
{
    struct job *job;
    int level;

    if (index_find(core, saved->id))
        return -EEXIST;
    if (!saved_valid(core, saved))
        return -EINVAL;
    level = job_state_has_cluster(saved->state) ? level_of_restored(core, saved) : 0;
    if (level >= CORE_MAX_LEVELS)
        return -EINVAL;
    job = create(saved);
    user_enter(core, job);
    job_set_text(job, job_copy_text(saved->text));
    copy_facts(job, saved);
    if (!job->info.notice)
        (void)topology_rows(core, job->info.nprocs, &job->info.mesh_rows);
    restore_array(job, saved);
    count_lost_tasks(core, job);
    core->arrays_restored |= saved->ntasks > 0;
    index_insert(core, job);
    array_link(core, job);
    after_take(core, job, saved->after, core_saved_waits(saved) ? saved->nafter : 0);
    if (job_state_has_cluster(saved->state)) {
        restore_cluster(core, job, saved, level);
    } else if (job->info.state != JOB_STARTED) {
        queue_add(core, job);
        restore_claims(core, job, saved);
    }
    core_set_next(core, saved->id + 1 + saved->ntasks, saved->allocation + 1);
    return 0;
}

/* ---- a host that is not in the configuration any more ---- */

static bool misses_a_host(const struct core_job *saved)
{
    for (uint32_t i = 0; job_state_has_cluster(saved->state) && saved->processors && i < saved->nprocs; i++)
        if (saved->processors[i].host < 0)
            return true;
    return false;
}

/* As if the host had been lost while the core was away: see lease_goes_again(). */
static bool would_go_again(const struct core_job *saved)
{
    return saved->requeue && saved->lease_ms > 0 && saved->attempt < CORE_MAX_ATTEMPTS &&
           (saved->state != JOB_ENDING || lease_allows(saved->reason, saved->limit_requeue));
}

/* Back into the queue. Any of its hosts may still have the attempt; those that are left are told to end it when they
 * come, because it is not theirs any more. */
static int put_back(struct core *core, const struct core_job *saved)
{
    struct core_job again = *saved;
    int *lost = mem_array(saved->nprocs, sizeof(*lost)), result;

    again.nlost = 0;
    for (uint32_t i = 0; i < saved->nprocs; i++) {
        int host = saved->processors[i].host < 0 ? -1 : saved->processors[i].host;
        bool known = false;
        for (int j = 0; j < again.nlost && !known; j++)
            known = lost[j] == host;
        if (!known)
            lost[again.nlost++] = host;
    }
    again.lost = lost;
    again.state = JOB_QUEUED;
    again.processors = NULL;
    again.exited = NULL;
    again.exits = 0;
    again.exit_status = -1;
    again.signal = 0;
    again.failed_rank = UINT32_MAX;
    again.launched = false;
    result = restore(core, &again);
    free(lost);
    return result;
}

struct core_job core_lost_job(const struct core_job *saved)
{
    struct core_job end = *saved;

    end.state = JOB_DONE;
    end.reason = REASON_HOST_LOST;
    end.level = CORE_NO_LEVEL;
    return end;
}

int core_restore_job(struct core *core, const struct core_job *saved, int64_t now_ms)
{
    int result;

    if (now_ms < core->now_ms)
        return -EINVAL;
    core->now_ms = now_ms;
    if (!misses_a_host(saved))
        return restore(core, saved);
    if (!would_go_again(saved)) {
        lose_task(core, saved);
        return CORE_LOST;
    }
    result = put_back(core, saved);
    return result == 0 ? CORE_PUT_BACK : result;
}
