/* judge.c - follows the core from outside and knows the rules of doc/02-scheduling by itself.
 *
 * It sees what any shell sees: events, actions and core_job(). From the jobs before and after a step it finds who was
 * allocated, and deals the processors again one job after the other to see whether that was right.
 */
#include "tests/sim/judge.h"

#include <string.h>

bool judge_has_cluster(enum job_state state)
{
    return state == JOB_STARTING || state == JOB_RUNNING || state == JOB_ENDING;
}

struct seen_job *judge_seen(struct world *world, uint64_t job)
{
    int low = 0, high = world->nseen;

    while (low < high) {
        int middle = (low + high) / 2;
        if (world->seen[middle].id < job)
            low = middle + 1;
        else
            high = middle;
    }
    return low < world->nseen && world->seen[low].id == job ? &world->seen[low] : NULL;
}

const struct seen_job *judge_find(const struct world *world, uint64_t job)
{
    return judge_seen((struct world *)world, job);
}

static void forget_ended(struct world *world)
{
    int kept = 0;

    for (int i = 0; i < world->nseen; i++) {
        if (world->ended[world->seen[i].id]) /* what is not on disk yet is not forgotten */
            core_forget(world->core, world->seen[i].id);
        else if (kept++ != i)
            world->seen[kept - 1] = world->seen[i];
    }
    world->nseen = kept;
}

/* What is on disk is what was accepted; a final state is there once and stays. */
void judge_committed(struct world *world, const struct core_job *row)
{
    bool final = row->state == JOB_DONE || row->state == JOB_CANCELLED;

    if (world->ended[row->id])
        world_fail(world, "job %llu: has ended, and goes on as %s", ID(row), job_state_name(row->state));
    world->coverage->accepted += !world->rows[row->id] && !world->ended[row->id];
    world->coverage->ended += final;
    world->ended[row->id] = final;
}

/* Two attempts of a job must never have a group at the same time, wherever. */
void judge_group(struct world *world, int host, uint64_t job, uint32_t attempt)
{
    for (int h = 0; h < world->nhosts; h++)
        for (int i = 0; i < world->hosts[h].ngroups; i++) {
            const struct sim_group *group = &world->hosts[h].groups[i];
            if (group->job == job && group->attempt != attempt)
                world_fail(world, "job %llu: attempt %u begins on %s, and attempt %u is still on %s",
                           (unsigned long long)job, attempt, world->hosts[host].name, group->attempt,
                           world->hosts[h].name);
        }
}

/* Nothing runs twice, also not in a group that was made anew. */
void judge_start(struct world *world, uint64_t job, uint32_t attempt, uint32_t rank)
{
    struct sim_ran *ran = &world->ran[job];

    if (attempt == 1 && judge_seen(world, job) && !judge_met(world->stored_fates, judge_seen(world, job)))
        world_fail(world, "job %llu: runs, and that it may is not on disk", (unsigned long long)job);
    if (ran->attempt != attempt)
        *ran = (struct sim_ran){.attempt = attempt > ran->attempt ? attempt : UINT32_MAX};
    if (ran->attempt != attempt || (ran->ranks & 1ull << rank) != 0)
        world_fail(world, "job %llu: rank %u of attempt %u runs a second time", (unsigned long long)job, rank, attempt);
    ran->ranks |= 1ull << rank;
}

static void remember(struct seen_job *seen, const struct core_job *job);

/* The jobs are those of the store now; some may not have got there. */
static void look_again(struct world *world)
{
    const struct core_job *job;
    uint64_t cursor = 0;

    world->nseen = 0;
    memcpy(world->fates, world->stored_fates, sizeof(world->fates));
    while ((job = core_next_job(world->core, &cursor))) {
        struct seen_job *seen = &world->seen[world->nseen++];
        memset(seen, 0, sizeof(*seen));
        remember(seen, job);
        seen->place = job->place;
        seen->judged = true;
    }
}

void judge_restart(struct world *world)
{
    look_again(world);
    world->gather_from_ms = world->now_ms;
    world->options = world->configured;
    for (int i = 0; i < SETTING_COUNT; i++)
        judge_setting(world, (enum core_setting)i, world->settings[i]);
    for (int h = 0; h < world->nhosts; h++) {
        struct seen_host *host = &world->seen_hosts[h];
        host->up = host->silent = host->reported = host->closed = false;
        host->retired = !world->hosts[h].listed && !world->host_rows[h].joined;
        host->drained = world->host_rows[h].drained; /* who drained it was answered when that was on disk */
        host->awaited = world->host_rows[h].up && !host->retired;
        host->expected = host->awaited ? world->host_rows[h].ncpus : -1;
        world->hosts[h].drained = host->drained;
        world->seen_hosts[h].ndirty = 0;
        world->seen_hosts[h].last = (struct sim_order){.generation = 0};
    }
    for (int i = 0; i < world->nseen; i++) {
        struct seen_job *job = &world->seen[i];
        for (uint32_t k = 0; judge_has_cluster(job->state) && k < job->nprocs; k++) {
            world->seen_hosts[job->processors[k].host].changed_ms[job->processors[k].cpu] = world->now_ms;
            world->seen_hosts[job->processors[k].host].awaited = true;
        }
    }
}

/* ---- allocations ---- */

/* What a job may wait for: also a host that is suspect, or was up before a restart, until it is given up. */
static uint32_t supply(const struct seen_host *host)
{
    if (host->drained || host->closed || host->retired || (!host->up && !host->awaited))
        return 0;
    return host->up ? (uint32_t)host->ncpus : host->expected > 0 ? (uint32_t)host->expected : 0;
}

static bool gathering(const struct world *world)
{
    for (int h = 0; h < world->nhosts; h++) {
        const struct seen_host *host = &world->seen_hosts[h];
        if (host->awaited && !host->drained && !host->retired && host->expected != 0)
            return world->now_ms < world->gather_from_ms + world->options.gather_ms;
    }
    return false;
}

/* Jobs of this user with clusters, without the one that has just got it. */
static uint32_t running_before(const struct world *world, uint32_t uid, const struct seen_job *newest)
{
    uint32_t count = 0;

    for (int i = 0; i < world->nseen; i++)
        count += world->seen[i].uid == uid && judge_has_cluster(world->seen[i].state) &&
                 world->seen[i].allocation < newest->allocation;
    return count;
}

static bool at_limit(const struct world *world, uint32_t uid, const struct seen_job *newest)
{
    return world->options.user_running > 0 && running_before(world, uid, newest) >= world->options.user_running;
}

uint32_t judge_room(const struct seen_job *job, uint32_t cpus, uint64_t bytes)
{
    uint32_t room = 0;

    for (; room < cpus && bytes >= job->memory_bytes && (job->per_host == 0 || room < job->per_host); room++)
        bytes -= job->memory_bytes;
    return room;
}

static bool eligible(const struct world *world, const struct seen_job *job, const struct seen_job *newest)
{
    uint32_t cpus = 0;

    if (job->claimed || (job->attempt == 0 && !judge_met(world->fates, job)) || at_limit(world, job->uid, newest))
        return false;
    for (int h = 0; h < world->nhosts; h++)
        if (!job->restricted || (job->hosts & 1u << h) != 0)
            cpus += judge_room(job, supply(&world->seen_hosts[h]),
                               world->seen_hosts[h].up ? world->seen_hosts[h].memory_bytes : UINT64_MAX);
    return cpus >= job->nprocs;
}

static void judge_allocation(struct world *world, const struct seen_job *job)
{
    if (gathering(world))
        world_fail(world, "job %llu is allocated while hosts that were up before the restart are awaited", ID(job));
    for (int i = 0; i < world->nseen; i++)
        if (world->seen[i].place < job->place && world->seen[i].state == JOB_QUEUED &&
            eligible(world, &world->seen[i], job))
            world_fail(world, "job %llu overtakes the eligible job %llu", ID(job), ID(&world->seen[i]));
    if (at_limit(world, job->uid, job))
        world_fail(world, "job %llu: its user had %u jobs with clusters already", ID(job), world->options.user_running);
    if (job->attempt == 1 && !judge_met(world->fates, job))
        world_fail(world, "job %llu is allocated before what it waits for has happened", ID(job));
    world->coverage->waited += job->attempt == 1 && job->nafter > 0;
    judge_choice(world, job);
    world->coverage->allocators[world->options.allocator]++;
    world->coverage->shared += job->level > 0;
    world->coverage->roomy += job->memory_bytes > 0 || job->per_host > 0;
}

/* ---- jobs before and after ---- */

static void touch(struct world *world, const struct seen_job *job)
{
    for (uint32_t i = 0; i < job->nprocs; i++)
        world->seen_hosts[job->processors[i].host].changed_ms[job->processors[i].cpu] = world->now_ms;
}

static void remember(struct seen_job *seen, const struct core_job *job)
{
    seen->id = job->id;
    seen->attempt = job->attempt;
    seen->allocation = job->allocation;
    seen->state = job->state;
    seen->level = job->level;
    seen->uid = job->uid;
    seen->nprocs = job->nprocs;
    seen->each = job->each;
    seen->requeue = job->requeue;
    seen->claimed = job->nlost > 0;
    seen->memory_bytes = job->memory_bytes;
    seen->per_host = job->per_host;
    seen->keep_never = job->keep_never;
    seen->nafter = job->attempt > 1 ? 0 : job->nafter;
    if (seen->nafter > 0)
        memcpy(seen->after, job->after, (size_t)seen->nafter * sizeof(*job->after));
    seen->restricted = job->hosts != NULL;
    seen->hosts = 0;
    for (int i = 0; i < job->nhosts; i++)
        seen->hosts |= 1u << job->hosts[i];
    if (judge_has_cluster(job->state))
        memcpy(seen->processors, job->processors, job->nprocs * sizeof(job->processors[0]));
}

static bool may_move(enum job_state from, enum job_state to)
{
    static const char *const moves[JOB_STATE_COUNT] = {
        [JOB_QUEUED] = "held starting cancelled",
        [JOB_HELD] = "queued cancelled starting",
        [JOB_STARTING] = "running ending done",
        [JOB_RUNNING] = "ending done",
        [JOB_ENDING] = "done",
        [JOB_DONE] = "",
        [JOB_CANCELLED] = "",
    };

    return from == to || strstr(moves[from], job_state_name(to));
}

/* A job with requeue that a host took away: at least one host, and there is no other way back into the queue. */
static bool goes_again(const struct seen_job *seen, const struct core_job *job)
{
    return job->requeue && judge_has_cluster(seen->state) &&
           (job->attempt != seen->attempt || job->state == JOB_QUEUED || job->state == JOB_HELD);
}

static void judge_again(struct world *world, const struct seen_job *seen, const struct core_job *job)
{
    world->coverage->again++;
    world->coverage->lease_waits += job->nlost > 0;
    touch(world, seen);
    if (seen->killed)
        world_fail(world, "job %llu: was killed and goes again", ID(job));
    if (job->attempt != seen->attempt + (job->state == JOB_STARTING))
        world_fail(world, "job %llu: attempt %u after %u, %s", ID(job), job->attempt, seen->attempt,
                   job_state_name(job->state));
}

static void judge_time(struct world *world, const struct seen_job *seen, const struct core_job *job)
{
    int64_t sum = 0;

    for (int i = 0; i < CORE_MAX_LEVELS; i++)
        sum += job->level_ms[i];
    if (seen->timed && sum != world->now_ms - seen->allocated_ms)
        world_fail(world, "job %llu: %lld ms at its levels, lived %lld", ID(job), (long long)sum,
                   (long long)(world->now_ms - seen->allocated_ms));
}

static void judge_change(struct world *world, struct seen_job *seen, const struct core_job *job)
{
    bool had = judge_has_cluster(seen->state), has = judge_has_cluster(job->state);

    if (goes_again(seen, job)) {
        judge_again(world, seen, job);
        return;
    }
    if (!may_move(seen->state, job->state))
        world_fail(world, "job %llu: moved from %s to %s", ID(job), job_state_name(seen->state),
                   job_state_name(job->state));
    if (had && has && job->level > seen->level)
        world_fail(world, "rule 3: job %llu got worse: level %d, was %d", ID(job), job->level, seen->level);
    if (had && memcmp(seen->processors, job->processors, job->nprocs * sizeof(job->processors[0])) != 0)
        world_fail(world, "job %llu: its processors have changed", ID(job));
    if (had && has && job->level < seen->level) {
        world->coverage->moves_up++;
        world->coverage->moves_up_far += job->level < seen->level - 1;
    }
    if (had && (!has || job->level != seen->level || (seen->state == JOB_STARTING) != (job->state == JOB_STARTING)))
        touch(world, seen);
    if (had)
        judge_time(world, seen, job);
    if (job->state == JOB_DONE && seen->state != JOB_DONE)
        world->coverage->reasons[job->reason]++;
}

static void judge_new(struct world *world, const bool *fresh)
{
    for (;;) {
        struct seen_job *next = NULL;
        for (int i = 0; i < world->nseen; i++)
            if (fresh[i] && !world->seen[i].judged && (!next || world->seen[i].allocation < next->allocation))
                next = &world->seen[i];
        if (!next)
            return;
        next->judged = true;
        next->timed = true;
        next->allocated_ms = world->now_ms;
        next->opened = next->gone = 0;
        next->launches = 0;
        judge_allocation(world, next);
        touch(world, next);
    }
}

static void look_at_jobs(struct world *world)
{
    bool fresh[SEEN_JOBS] = {false}, any = false;
    const struct core_job *job;
    uint64_t cursor = 0;
    int n = 0;

    while ((job = core_next_job(world->core, &cursor)))
        judge_fate(&world->fates[job->id], job);
    cursor = 0;

    while ((job = core_next_job(world->core, &cursor)) && !world_failed(world)) {
        struct seen_job *seen = &world->seen[n];
        if (n == world->nseen) {
            if (n == SEEN_JOBS) {
                world_fail(world, "too many jobs");
                return;
            }
            memset(seen, 0, sizeof(*seen));
            *seen = (struct seen_job){
                .id = job->id, .place = job->id, .state = JOB_QUEUED, .level = CORE_NO_LEVEL, .nprocs = job->nprocs};
            world->nseen++;
        } else if (seen->id != job->id) {
            world_fail(world, "job %llu has gone", ID(seen));
            return;
        }
        fresh[n] = judge_has_cluster(job->state) && (!judge_has_cluster(seen->state) || job->attempt != seen->attempt);
        any |= fresh[n];
        judge_never(world, seen, job);
        if (seen->place != job->place)
            world_fail(world, "job %llu: has the place of %llu, not of %llu", ID(job), (unsigned long long)job->place,
                       (unsigned long long)seen->place);
        judge_change(world, seen, job);
        if (world->on_change && (seen->state != job->state || seen->level != job->level))
            world->on_change(world, seen, job);
        remember(seen, job);
        seen->judged = !fresh[n];
        n++;
    }
    if (n != world->nseen)
        world_fail(world, "jobs have gone");
    if (any && !world_failed(world))
        judge_new(world, fresh);
}

void judge_after(struct world *world, const struct event *event)
{
    bool client = event->type <= EVENT_UNDRAIN;
    bool exited = event->type == EVENT_EXITED && world->seen_hosts[event->host].up;

    if (world->answered != (client ? 1 : 0) || world->taken != (exited ? 1 : 0))
        world_fail(world, "event %d: %d answers, %d exits taken", (int)event->type, world->answered, world->taken);
    world->answered = world->taken = 0;
    if (event->type == EVENT_KILL && world->answer == ANSWER_OK)
        judge_seen(world, event->job)->killed = true;
    if (event->type == EVENT_TOP && world->answer == ANSWER_OK)
        judge_top(world, event->job);
    look_at_jobs(world);
    if (!world->keep_ended && (world->nseen > SEEN_JOBS / 2 || world_chance(world, 100)))
        forget_ended(world);
}
