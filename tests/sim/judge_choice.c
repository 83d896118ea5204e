/* judge_choice.c - the promises of the allocators, of doc/02-scheduling, found out again for each allocation.
 *
 * For every processor: what it was when the job came. Then v1 and v2 are judged by the level, spread by comparing each
 * processor that was taken with each that was not, pack by trying all sets of hosts.
 */
#include "tests/sim/judge.h"

#include <string.h>

struct place { /* of one processor, before the job came */
    int host;
    int level, jobs; /* level: that a new job would get */
    bool starting;
    bool may;  /* the host could take jobs, and the job use it */
    bool mine; /* the job has got it */
    int percent;
};

struct places {
    int n;
    struct place items[SIM_PROCS];
};

static bool is_on(const struct seen_job *job, int host, int cpu)
{
    for (uint32_t i = 0; i < job->nprocs; i++)
        if (job->processors[i].host == host && job->processors[i].cpu == cpu)
            return true;
    return false;
}

/* The jobs that were allocated before this one. */
static void look_above(const struct world *world, const struct seen_job *newest, int cpu, struct place *place)
{
    for (int i = 0; i < world->nseen; i++) {
        const struct seen_job *job = &world->seen[i];
        if ((job->state != JOB_STARTING && job->state != JOB_RUNNING && job->state != JOB_ENDING) ||
            job->allocation >= newest->allocation || !is_on(job, place->host, cpu))
            continue;
        place->jobs++;
        place->starting |= job->state == JOB_STARTING;
        if (job->level >= place->level)
            place->level = job->level + 1;
    }
}

static bool fresh(const struct world *world, const struct seen_host *host)
{
    return host->reported && world->now_ms - host->report_end_ms <= world->options.fresh_ms;
}

/* What v2 says of it. */
static bool admitted(const struct world *world, const struct place *place, int position)
{
    const struct seen_host *host = &world->seen_hosts[place->host];

    if (!fresh(world, host))
        return false;
    if (place->jobs == 0)
        return host->foreign[position] <= world->options.threshold;
    return !place->starting &&
           host->report_begin_ms >= host->changed_ms[host->cpus[position]] + world->options.settle_ms &&
           host->busy[position] <= world->options.threshold;
}

/* What spread compares. */
static int percent_of(const struct world *world, const struct place *place, int position)
{
    const struct seen_host *host = &world->seen_hosts[place->host];
    double busy = place->jobs == 0 ? host->foreign[position] : host->busy[position];

    if (!fresh(world, host) || busy > 1)
        return 100;
    return busy < 0 ? 0 : (int)(100 * busy + 0.5);
}

static void find_places(const struct world *world, const struct seen_job *job, struct places *places)
{
    memset(places, 0, sizeof(*places));
    for (int h = 0; h < world->nhosts; h++) {
        const struct seen_host *host = &world->seen_hosts[h];
        bool may = host->up && !host->silent && !host->drained && !host->closed && !host->retired &&
                   host->ndirty == 0 && (!job->restricted || (job->hosts & 1u << h) != 0);
        for (int i = 0; i < host->ncpus; i++) {
            struct place *place = &places->items[places->n++];
            place->host = h;
            look_above(world, job, host->cpus[i], place);
            place->mine = is_on(job, h, host->cpus[i]);
            place->percent = percent_of(world, place, i);
            place->may = may && place->level < world->options.levels &&
                         (world->options.allocator != ALLOCATOR_V2 || admitted(world, place, i));
        }
    }
}

/* ---- rooms ---- */

/* So many processors of the host the job may have, as jobs before it have asked for memory there. */
static uint32_t room_on(const struct world *world, const struct seen_job *newest, int host)
{
    uint64_t has = world->seen_hosts[host].memory_bytes, asked = 0;

    for (int i = 0; i < world->nseen; i++) {
        const struct seen_job *job = &world->seen[i];
        if ((job->state != JOB_STARTING && job->state != JOB_RUNNING && job->state != JOB_ENDING) ||
            job->allocation >= newest->allocation)
            continue;
        for (uint32_t k = 0; k < job->nprocs; k++)
            asked += job->processors[k].host == host ? job->memory_bytes : 0;
    }
    if (newest->memory_bytes > 0 && asked > has)
        return 0;
    return judge_room(newest, SIM_CPUS, newest->memory_bytes > 0 ? has - asked : 0);
}

static void judge_rooms(struct world *world, const struct seen_job *job)
{
    for (int h = 0; h < world->nhosts; h++) {
        uint32_t mine = 0;
        for (uint32_t i = 0; i < job->nprocs; i++)
            mine += job->processors[i].host == h;
        if (mine > room_on(world, job, h))
            world_fail(world, "job %llu: has %u processors of host %d, which has room for %u", ID(job), mine, h,
                       room_on(world, job, h));
    }
}

/* Those that may be used up to this level, host by host as far as there is room; set: a bit for each host. */
static uint32_t count_to(const struct world *world, const struct seen_job *job, const struct places *places, int level,
                         unsigned set)
{
    uint32_t all = 0;

    for (int h = 0; h < world->nhosts; h++) {
        uint32_t count = 0, room = room_on(world, job, h);
        for (int i = 0; i < places->n && (set & 1u << h) != 0; i++)
            count += places->items[i].host == h && places->items[i].may && places->items[i].level <= level;
        all += count < room ? count : room;
    }
    return all;
}

/* ---- v1, v2 ---- */

static void judge_level(struct world *world, const struct seen_job *job, const struct places *places)
{
    for (int level = 0; level < world->options.levels; level++) {
        if (count_to(world, job, places, level, UINT32_MAX) < job->nprocs)
            continue;
        if (level != job->level)
            world_fail(world, "job %llu: allocated at level %d, the first with enough processors is %d", ID(job),
                       job->level, level);
        return;
    }
    world_fail(world, "job %llu: allocated, but there are not enough processors", ID(job));
}

/* ---- spread ---- */

/* The job could not have got another one of this host. */
static bool is_filled(const struct world *world, const struct seen_job *job, const struct places *places, int host)
{
    uint32_t mine = 0;

    for (int i = 0; i < places->n; i++)
        mine += places->items[i].mine && places->items[i].host == host;
    return mine >= room_on(world, job, host);
}

static void judge_spread(struct world *world, const struct seen_job *job, const struct places *places)
{
    for (int i = 0; i < places->n; i++)
        for (int k = 0; k < places->n; k++) {
            const struct place *mine = &places->items[i], *other = &places->items[k];
            if (!mine->mine || other->mine || !other->may ||
                (mine->host != other->host && is_filled(world, job, places, other->host)))
                continue;
            if (other->jobs < mine->jobs || (other->jobs == mine->jobs && other->percent < mine->percent))
                world_fail(world, "job %llu: has a processor with %d jobs, %d %% busy; one with %d, %d %% was left",
                           ID(job), mine->jobs, mine->percent, other->jobs, other->percent);
        }
}

/* ---- pack ---- */

static int bits(unsigned set)
{
    int n = 0;

    for (; set != 0; set &= set - 1)
        n++;
    return n;
}

/* The fewest hosts that have enough processors up to this level; SIM_HOSTS + 1: all together have not. */
static int fewest(const struct world *world, const struct seen_job *job, const struct places *places, int level)
{
    int best = SIM_HOSTS + 1;

    for (unsigned set = 1; set < 1u << world->nhosts; set++) {
        if (count_to(world, job, places, level, set) >= job->nprocs && bits(set) < best)
            best = bits(set);
    }
    return best;
}

static void judge_pack(struct world *world, const struct seen_job *job, const struct places *places)
{
    unsigned hosts = 0;
    int best = fewest(world, job, places, world->options.levels - 1), level = 0;

    for (int i = 0; i < places->n; i++)
        if (places->items[i].mine)
            hosts |= 1u << places->items[i].host;
    while (level < world->options.levels - 1 && fewest(world, job, places, level) > best)
        level++;
    if (bits(hosts) != best || job->level != level)
        world_fail(world, "job %llu: on %d hosts at level %d, %d hosts at level %d are enough", ID(job), bits(hosts),
                   job->level, best, level);
}

void judge_choice(struct world *world, const struct seen_job *job)
{
    struct places places;
    uint32_t mine = 0;

    find_places(world, job, &places);
    for (int i = 0; i < places.n; i++) {
        const struct place *place = &places.items[i];
        mine += place->mine;
        if (place->mine && (!place->may || place->level > job->level))
            world_fail(world, "job %llu: is at level %d on host %d, which %s and would give %d", ID(job), job->level,
                       place->host, place->may ? "may be used" : "may not be used", place->level);
    }
    if (mine != job->nprocs)
        world_fail(world, "job %llu: has processors that do not exist", ID(job));
    judge_rooms(world, job);
    switch (world->options.allocator) {
    case ALLOCATOR_V1:
    case ALLOCATOR_V2:
        judge_level(world, job, &places);
        break;
    case ALLOCATOR_SPREAD:
        judge_spread(world, job, &places);
        break;
    case ALLOCATOR_PACK:
        judge_pack(world, job, &places);
        break;
    case ALLOCATOR_CUBE_FL:
    case ALLOCATOR_CUBE_AFL:
    case ALLOCATOR_COUNT:
        break;
    }
}
