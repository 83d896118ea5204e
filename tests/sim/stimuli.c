/* stimuli.c - what disturbs a cluster in a random walk: clients, administrators, hosts and links that come and go,
 * processes that end, a core that is restarted. */
#include "tests/sim/world.h"

#include <stdio.h>

/* Mostly of late jobs, also of such as have ended; of one that is neither there nor on disk the history knows nothing,
 * and sometimes of another one, that nobody waits for, neither. */
static int draw_after(struct world *world, struct core_after *after)
{
    uint64_t next = core_next_id(world->core);
    int n = 0;

    for (int i = 1 + (int)world_random(world, SIM_AFTER - 1); i > 0 && next > 1; i--) {
        uint64_t back = 1 + world_random(world, world_chance(world, 900) ? 12 : 60), id = back < next ? next - back : 1;
        struct sim_fate *fate = &world->fates[id];
        after[n] = (struct core_after){.job = id, .kind = (enum after_kind)world_random(world, AFTER_KIND_COUNT)};
        if (!core_job(world->core, id) && !world->stored_fates[id].ended) {
            *fate = world->stored_fates[id] = (struct sim_fate){.ended = true, .forgotten = true};
            world->ended[id] = true;
        }
        (void)world_end_of(world, id, &after[n++].end);
    }
    return n;
}

static void submit(struct world *world)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1};
    struct core_after after[SIM_AFTER];
    int hosts[SIM_HOSTS], n = 0;

    event.u.submit.uid = 1 + world_random(world, 3);
    event.u.submit.nprocs = 1 + world_random(world, world_chance(world, 900) ? 4 : 12);
    event.u.submit.each = world_chance(world, 300);
    event.u.submit.requeue = world_chance(world, 500);
    if (world_chance(world, 200))
        event.u.submit.memory_bytes = 1 + world_random(world, 4);
    if (world_chance(world, 100))
        event.u.submit.per_host = 1 + world_random(world, 2);
    if (world_chance(world, 250)) {
        for (int h = world->nhosts - 1; h >= 0; h--) /* not in order, some twice */
            for (uint32_t k = world_random(world, 3); k > 0 && n < SIM_HOSTS; k--)
                hosts[n++] = h;
        event.u.submit.hosts = hosts;
        event.u.submit.nhosts = n;
    }
    if (world_chance(world, 300)) {
        event.u.submit.nafter = draw_after(world, after);
        event.u.submit.after = after;
        event.u.submit.keep_never = world_chance(world, 250);
    }
    world_step(world, &event);
}

/* Of a job that exists mostly, seldom of one that does not. */
static void by_client(struct world *world, enum event_type type)
{
    struct event event = {.type = type, .host = -1};

    event.job = world->nseen > 0 && world_chance(world, 980)
                    ? world->seen[world_random(world, (uint32_t)world->nseen)].id
                    : world_random(world, 1000);
    event.u.by.uid = 1 + world_random(world, 3);
    event.u.by.admin = world_chance(world, 700);
    world_step(world, &event);
}

static void drain(struct world *world, bool drained)
{
    struct event event = {.type = drained ? EVENT_DRAIN : EVENT_UNDRAIN};

    event.host = (int)world_random(world, (uint32_t)world->nhosts);
    world->hosts[event.host].drained = drained;
    world_step(world, &event);
}

static void set(struct world *world)
{
    struct event event = {.type = EVENT_SET, .host = -1};

    event.u.set.setting = (enum core_setting)world_random(world, SETTING_COUNT);
    event.u.set.value =
        (int)world_random(world, event.u.set.setting == SETTING_ALLOCATOR ? ALLOCATOR_ANYWHERE + 1 : POLICY_COUNT + 1) -
        1;
    world_step(world, &event);
}

/* Somebody reloads another configuration. */
static void configure(struct world *world)
{
    struct core_options options = world->configured;

    options.levels = 1 + (int)world_random(world, 4);
    options.threshold = 0.5 + world_random(world, 40) / 100.0;
    options.fresh_ms = 3000 + (int64_t)world_random(world, 5000);
    options.settle_ms = (int64_t)world_random(world, 1500);
    options.start_timeout_ms = 2000 + (int64_t)world_random(world, 4000);
    options.resend_ms = 500 + (int64_t)world_random(world, 2000);
    options.user_running = world_random(world, 3) == 0 ? 1 + world_random(world, 4) : 0;
    options.lease_ms = 1500 + (int64_t)world_random(world, 3000);
    if (world_chance(world, 300))
        options.allocator = (enum core_allocator)world_random(world, ALLOCATOR_ANYWHERE);
    world_configure(world, &options);
}

/* Hosts come, by the configuration or with a token, and go, and some come back. */
static void change_hosts(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);
    bool joined = world_chance(world, 400);
    char name[16];

    if (world_chance(world, 300) && world->nhosts < SIM_HOSTS) {
        snprintf(name, sizeof(name), "ws%d", world->nhosts + 1);
        world_host_add(world, name, 1 + (int)world_random(world, SIM_CPUS), joined);
        world->hosts[world->nhosts - 1].memory_bytes = world_random(world, 9);
        world->hosts[world->nhosts - 1].rate = 950 + (int)world_random(world, 101);
    } else if (world->seen_hosts[h].retired || world_chance(world, 200)) {
        world_host_add(world, world->hosts[h].name, 0, joined);
    } else {
        world_retire(world, h);
    }
}

static void report(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);
    double busy[SIM_CPUS], jobs[SIM_CPUS];

    for (int i = 0; i < SIM_CPUS; i++) {
        busy[i] = world_random(world, 101) / 100.0;
        jobs[i] = busy[i] * world_random(world, 101) / 100.0;
    }
    world_report(world, h, busy, jobs, 500 + (int64_t)world_random(world, 2000));
}

static void lose_host(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);
    int64_t give_up = world_chance(world, 800) ? (int64_t)world_random(world, 4000) : -1;

    if (!world->hosts[h].connected)
        return;
    if (world_chance(world, 350))
        world_power_off(world, h, give_up);
    else if (world_chance(world, 400))
        world_cut_half(world, h, (int64_t)world_random(world, 4000));
    else
        world_cut(world, h, give_up);
}

static void disturb_host(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);

    if (!world->hosts[h].connected)
        return;
    if (world_chance(world, 500))
        world_restart_rsd(world, h);
    else
        world_suspect(world, h, (int64_t)world_random(world, 2000));
}

/* Also a reconnect of a host that is up. Seldom it comes with other CPUs, or with such as the configuration does not
 * have. */
static void bring_host(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);
    struct sim_host *host = &world->hosts[h];

    if (!host->powered && world_chance(world, 100)) {
        host->ncpus = 1 + (int)world_random(world, SIM_CPUS);
        for (int i = 0; i < host->ncpus; i++)
            host->cpus[i] = i + 2 * (int)world_random(world, 2) * (i + 1 == host->ncpus);
    }
    host->misfit = world_chance(world, 50);
    if (world_chance(world, 100))
        host->memory_bytes = world_random(world, 9);
    if (host->connected)
        world_cut(world, h, -1);
    world_connect(world, h);
}

static void end_process(struct world *world)
{
    uint32_t rank;
    const struct seen_job *job;

    if (world->nseen == 0)
        return;
    job = &world->seen[world_random(world, (uint32_t)world->nseen)];
    rank = job->each ? world_random(world, job->nprocs) : 0;
    world_end_process(world, job->id, rank, world_chance(world, 700) ? 0 : 3, 0);
}

static void lose_group(struct world *world)
{
    int h = (int)world_random(world, (uint32_t)world->nhosts);

    if (world->hosts[h].ngroups > 0 && !world->hosts[h].groups[0].ending)
        world_lose_group(world, h, 0);
}

static void abort_job(struct world *world)
{
    struct event event = {.type = EVENT_ABORT, .host = -1};

    if (world->nseen == 0)
        return;
    event.job = world->seen[world_random(world, (uint32_t)world->nseen)].id;
    event.attempt = judge_find(world, event.job)->attempt;
    event.u.failed.reason = REASON_HELPER_FAILED;
    event.u.failed.text = "a pvmd died";
    world_step(world, &event);
}

/* Of things that are past or never were, as a confused host could send them. */
static void stray(struct world *world)
{
    static const enum event_type types[] = {EVENT_OPENED,      EVENT_EXITED, EVENT_ORDERED,  EVENT_TICK,
                                            EVENT_OPEN_FAILED, EVENT_EMPTY,  EVENT_LAUNCHED, EVENT_GATHER};
    struct event event = {.type = types[world_random(world, sizeof(types) / sizeof(types[0]))]};

    event.host = (int)world_random(world, (uint32_t)world->nhosts);
    if (!world->hosts[event.host].connected)
        return;
    event.job = 1 + world_random(world, 60);
    event.attempt = 7; /* what a host says of a live job must be true, so: of one that never was */
    if (event.type == EVENT_ORDERED) {
        event.job = 0;
        event.u.generation = world_random(world, 3) == 0 ? UINT64_MAX : 0;
    } else if (event.type == EVENT_EXITED) {
        event.attempt = 1;
        event.u.exited.rank = 1000 + world_random(world, 3);
    }
    world_step(world, &event);
}

void walk_stimulate(struct world *world)
{
    uint32_t dice = world_random(world, 1000);

    world->coverage->stimuli++;
    if (world_chance(world, 15))
        configure(world);
    if (world_chance(world, 20))
        change_hosts(world);
    if (dice < 260)
        submit(world);
    else if (dice < 480)
        report(world);
    else if (dice < 600)
        end_process(world);
    else if (dice < 650)
        by_client(world, EVENT_KILL);
    else if (dice < 700)
        by_client(world, EVENT_HOLD);
    else if (dice < 760)
        by_client(world, EVENT_RELEASE);
    else if (dice < 775)
        by_client(world, EVENT_TOP);
    else if (dice < 790)
        by_client(world, EVENT_CANCEL);
    else if (dice < 810)
        drain(world, true);
    else if (dice < 850)
        drain(world, false);
    else if (dice < 885)
        lose_host(world);
    else if (dice < 945)
        bring_host(world);
    else if (dice < 955)
        disturb_host(world);
    else if (dice < 965)
        lose_group(world);
    else if (dice < 975)
        abort_job(world);
    else if (dice < 994)
        stray(world);
    else if (dice < 996)
        set(world);
    else
        world_restart_core(world);
}
