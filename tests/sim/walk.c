/* walk.c - random walks. A walk draws a cluster (hosts, CPUs, D, allocator, faults), disturbs it by a number of
 * stimuli, then leaves it in peace: first processes do not end, and every host must come to have exactly what the table
 * says; then they end, and so must every job.
 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = WALK_KINDS }; /* a seed has always the same */

struct walk_options {
    uint64_t seed, walks, events;
    bool hash, trace;
};

static const char *const event_names[EVENT_TYPE_COUNT] = {
    "submit",        "cancel",    "kill",      "hold",     "release",     "top",         "drain",
    "undrain",       "set",       "configure", "host-add", "host-retire", "host-up",     "host-silent",
    "host-heard",    "host-down", "report",    "ordered",  "opened",      "open-failed", "launched",
    "launch-failed", "exited",    "abort",     "empty",    "tick",        "gather"};
static const char *const action_names[ACTION_TYPE_COUNT] = {
    "answer", "persist", "persist-host", "persist-setting", "order", "open",
    "launch", "end",     "acknowledge",  "host-gone",       "timer"};
static const char *const answer_names[ANSWER_COUNT] = {"ok",          "refused-size",  "refused-hosts", "no-such-job",
                                                       "wrong-state", "not-permitted", "too-many"};

/* ---- for a look at a failing seed ---- */

static void show_event(struct world *world, const struct event *event)
{
    printf("%7" PRId64 " %s", world->now_ms, event_names[event->type]);
    if (event->host >= 0 && event->type != EVENT_TICK)
        printf(" ws%d", event->host + 1);
    if (event->job != 0)
        printf(" job %" PRIu64 ".%u", event->job, event->attempt);
    printf("\n");
}

static void show_action(struct world *world, const struct action *action)
{
    (void)world;
    printf("        -> %s", action_names[action->type]);
    if (action->host >= 0)
        printf(" ws%d", action->host + 1);
    if (action->job != 0)
        printf(" job %" PRIu64 ".%u", action->job, action->attempt);
    if (action->generation != 0)
        printf(" generation %" PRIu64, action->generation);
    for (int i = 0; i < action->nentries; i++)
        printf(" %" PRIu64 "/%d%s", action->entries[i].job, action->entries[i].level,
               action->entries[i].lowest ? "*" : "");
    if (action->type == ACTION_ANSWER)
        printf(" %s", answer_names[action->answer]);
    printf("\n");
}

static void show_change(struct world *world, const struct seen_job *before, const struct core_job *now)
{
    (void)world;
    printf("        == job %" PRIu64 " %s/%d -> %s/%d %s\n", now->id, job_state_name(before->state), before->level,
           job_state_name(now->state), now->level, reason_name(now->reason));
}

/* ---- a walk ---- */

static void draw_options(struct core_options *options, uint64_t seed, uint64_t walk)
{
    core_options_default(options);
    options->levels = 1 + (int)(walk % KINDS) % 4;
    options->allocator = (enum core_allocator)(walk % KINDS / 4);
    options->seed = seed;
    options->fresh_ms = 3000 + (int64_t)(seed % 5000);
    options->settle_ms = (int64_t)(seed / 7 % 1500);
    options->start_timeout_ms = 4000;
    options->user_running = seed / 13 % 3 == 0 ? 1 + (uint32_t)(seed / 39 % 4) : 0;
    options->resend_ms = 500 + (int64_t)(seed / 11 % 2000);
    options->lease_ms = 1500 + (int64_t)(seed / 13 % 3000);
    options->gather_ms = (int64_t)(seed / 17 % 6000);
}

static void draw_world(struct world *world)
{
    int nhosts = 1 + (int)world_random(world, 5), ncpus;
    char name[16];

    for (int h = 0; h < nhosts; h++) {
        snprintf(name, sizeof(name), "ws%d", h + 1);
        ncpus = 1 + (int)world_random(world, SIM_CPUS); /* not in the call: the order of drawing must be defined */
        world_add_host(world, name, ncpus, (int)world_random(world, 3));
        world->hosts[h].rate = 950 + (int)world_random(world, 101);
        world->hosts[h].old = world_chance(world, 60);
        world->hosts[h].memory_bytes = world_random(world, 9);
    }
    world->run_ms = 4000;
    world->faults.lost = (int)world_random(world, 150);
    world->faults.doubled = (int)world_random(world, 100);
    world->faults.open_fails = (int)world_random(world, 20);
    world->faults.launch_fails = (int)world_random(world, 20);
    world->faults.late_launched = (int)world_random(world, 300);
    world->faults.never_launched = (int)world_random(world, 10);
    world->faults.delay_ms = 1 + (int)world_random(world, 400);
    world->faults.late = (int)world_random(world, 20);
    world->faults.disk_ms = (int)world_random(world, 200);
}

/* No new faults, all hosts there, nobody held. */
static void make_peace(struct world *world)
{
    struct event event = {.host = -1};
    const struct core_job *job;

    world->faults = (struct sim_faults){.delay_ms = 20};
    world->frozen = true;
    for (int h = 0; h < world->nhosts; h++) {
        if (world->hosts[h].misfit && world->hosts[h].connected)
            world_cut(world, h, -1);
        world->hosts[h].misfit = false;
        if (!world->hosts[h].connected)
            world_connect(world, h);
        event.type = EVENT_UNDRAIN;
        event.host = h;
        world->hosts[h].drained = false;
        world_step(world, &event);
        world_host_add(world, world->hosts[h].name, 0, false);
    }
    event = (struct event){.type = EVENT_RELEASE, .host = -1};
    event.u.by.admin = true;
    while ((job = core_next_job(world->core, &event.job)))
        if (job->state == JOB_HELD)
            world_step(world, &event);
    world_start_idle_reports(world);
}

/* Jobs that ask more than all hosts have wait for ever, rightly, and so do those that can never run and were to stay.
 */
static void cancel_hopeless(struct world *world)
{
    struct event event = {.type = EVENT_CANCEL, .host = -1};
    const struct core_job *job;

    event.u.by.admin = true;
    while ((job = core_next_job(world->core, &event.job)))
        if (job->state == JOB_QUEUED && (job->reason == REASON_TOO_FEW_UP || job->reason == REASON_NEVER))
            world_step(world, &event);
}

/* NULL: all have ended. */
static const struct seen_job *not_ended(const struct world *world)
{
    for (int i = 0; i < world->nseen; i++)
        if (world->seen[i].state != JOB_DONE && world->seen[i].state != JOB_CANCELLED)
            return &world->seen[i];
    return NULL;
}

static void end_all(struct world *world)
{
    world->frozen = false;
    world->run_ms = 100;
    for (int i = 0; i < 2000 && not_ended(world) && !world_failed(world); i++, cancel_hopeless(world))
        world_run_until(world, world->now_ms + 500);
    if (not_ended(world))
        world_fail(world, "quiet for 1000 s, but job %" PRIu64 " is %s", not_ended(world)->id,
                   job_state_name(not_ended(world)->state));
    world_run_until(world, world->now_ms + 5000);
    judge_quiet(world);
}

/* Returns the hash of the walk; sets error. */
static uint64_t walk(const struct walk_options *options, uint64_t number, struct sim_coverage *coverage,
                     char error[512])
{
    static struct world world; /* large */
    struct core_options core;
    uint64_t seed = (options->seed + number) * 0x9e3779b97f4a7c15u, hash;

    draw_options(&core, seed >> 8, options->seed + number);
    if (world_init(&world, &core, seed, coverage) != 0)
        abort();
    draw_world(&world);
    if (options->trace) {
        world.on_event = show_event;
        world.on_action = show_action;
        world.on_change = show_change;
    }
    for (int h = 0; h < world.nhosts; h++)
        if (world_chance(&world, 850))
            world_connect(&world, h);
    for (uint64_t i = 0; i < options->events && !world_failed(&world); i++) {
        world_run_until(&world, world.now_ms + (int64_t)world_random(&world, world_chance(&world, 800) ? 100 : 3000));
        walk_stimulate(&world);
    }
    make_peace(&world);
    world_run_until(&world, world.now_ms + 15000);
    judge_quiet(&world);
    end_all(&world);
    judge_all_ended(&world);
    coverage->walks++;
    hash = world.hash;
    snprintf(error, 512, "%s", world.error);
    world_fini(&world);
    return hash;
}

/* ---- the program ---- */

static void print_counts(const char *what, const char *const *names, const uint64_t *counts, int n)
{
    printf("# %s:", what);
    for (int i = 0; i < n; i++)
        printf(" %s %" PRIu64, names[i], counts[i]);
    printf("\n");
}

static void print_coverage(const struct sim_coverage *coverage)
{
    int pairs = 0;
    const char *reasons[REASON_COUNT], *allocators[ALLOCATOR_ANYWHERE];

    for (int e = 0; e < EVENT_TYPE_COUNT; e++)
        for (int s = 0; s < SIM_STATES; s++)
            pairs += coverage->pairs[e][s] > 0;
    for (int i = 0; i < REASON_COUNT; i++)
        reasons[i] = i == 0 ? "none" : reason_name((enum reason)i);
    printf("# walks %" PRIu64 ", stimuli %" PRIu64 ", events %" PRIu64 " (each followed by all checks)\n",
           coverage->walks, coverage->stimuli, coverage->steps);
    print_counts("events", event_names, coverage->events, EVENT_TYPE_COUNT);
    print_counts("actions", action_names, coverage->actions, ACTION_TYPE_COUNT);
    print_counts("answers", answer_names, coverage->answers, ANSWER_COUNT);
    for (int i = 0; i < ALLOCATOR_ANYWHERE; i++)
        allocators[i] = core_allocator_name((enum core_allocator)i);
    print_counts("jobs allocated by", allocators, coverage->allocators, ALLOCATOR_ANYWHERE);
    print_counts("jobs ended", reasons, coverage->reasons, REASON_COUNT);
    printf("# messages lost %" PRIu64 ", doubled %" PRIu64 "; restarts of the core %" PRIu64
           "; jobs below others %" PRIu64 ", moves up %" PRIu64 ", of them by several levels %" PRIu64
           "; (event, state) pairs met %d\n",
           coverage->lost, coverage->doubled, coverage->restarts, coverage->shared, coverage->moves_up,
           coverage->moves_up_far, pairs);
    printf("# places changed %" PRIu64 "; jobs that ran after others %" PRIu64
           ", cancelled as they never could %" PRIu64 "; steps in which one stayed that never could %" PRIu64 "\n",
           coverage->topped, coverage->waited, coverage->never, coverage->kept);
    printf("# jobs accepted %" PRIu64 ", ended %" PRIu64 "; put back %" PRIu64 ", of them to wait for a lease %" PRIu64
           "; attempts ended by their host %" PRIu64 "; half-open links %" PRIu64 ", restarts of rsd %" PRIu64
           ", reboots %" PRIu64 ", rows lost before the commit %" PRIu64 "\n",
           coverage->accepted, coverage->ended, coverage->again, coverage->lease_waits, coverage->lapses,
           coverage->half_open, coverage->rsd_restarts, coverage->reboots, coverage->undone);
}

/* A walk that never loses, shares or moves up proves nothing. */
static bool vacuous(const struct sim_coverage *coverage)
{
    for (int i = 0; i < EVENT_TYPE_COUNT; i++)
        if (coverage->events[i] == 0)
            return true;
    for (int i = 0; i < ACTION_TYPE_COUNT; i++)
        if (coverage->actions[i] == 0)
            return true;
    for (int i = 0; i < ALLOCATOR_ANYWHERE; i++)
        if (coverage->allocators[i] == 0)
            return true;
    if (coverage->topped == 0 || coverage->waited == 0 || coverage->never == 0 || coverage->kept == 0 ||
        coverage->roomy == 0)
        return true;
    if (coverage->lease_waits == 0 || coverage->lapses == 0 || coverage->half_open == 0 || coverage->undone == 0)
        return true;
    return coverage->lost == 0 || coverage->doubled == 0 || coverage->shared == 0 || coverage->moves_up_far == 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim walk [--seed S] [--walks N] [--events M] [--hash] [--trace]\n");
    return 2;
}

static int parse(int argc, char **argv, struct walk_options *options)
{
    for (int i = 0; i < argc; i++) {
        uint64_t *number = strcmp(argv[i], "--seed") == 0     ? &options->seed
                           : strcmp(argv[i], "--walks") == 0  ? &options->walks
                           : strcmp(argv[i], "--events") == 0 ? &options->events
                                                              : NULL;
        char *end;
        if (strcmp(argv[i], "--hash") == 0 || strcmp(argv[i], "--trace") == 0) {
            *(argv[i][2] == 'h' ? &options->hash : &options->trace) = true;
            continue;
        }
        if (!number || ++i == argc)
            return -1;
        *number = strtoull(argv[i], &end, 10);
        if (*end != '\0' || end == argv[i])
            return -1;
    }
    return 0;
}

/* The walks with number % step == first. Returns their hash; *failed tells whether one broke a rule. */
static uint64_t run_walks(const struct walk_options *options, uint64_t first, uint64_t step,
                          struct sim_coverage *coverage, bool *failed)
{
    uint64_t hash = 0;
    char error[512];

    *failed = false;
    for (uint64_t i = first; i < options->walks && !*failed; i += step) {
        hash = hash * 31 + walk(options, i, coverage, error);
        if (error[0] == '\0')
            continue;
        printf("# sim walk --walks 1 --seed %" PRIu64 " --events %" PRIu64 ": %s\n", options->seed + i, options->events,
               error);
        coverage->ended = coverage->accepted; /* what it left undone is not the next one's fault */
        *failed = true;
    }
    return hash;
}

static bool report_case(bool good, int test)
{
    printf("%s %d - ", good ? "ok" : "not ok", test);
    return good;
}

/* A kind of cluster after the other, then what all walks together have met, then that a seed repeats. */
bool walk_tests(uint64_t walks, uint64_t events, int first_test)
{
    static struct sim_coverage coverage, again;
    struct walk_options options = {.seed = 1, .walks = walks, .events = events};
    struct walk_options short_run = {.seed = 77, .walks = 40, .events = events};
    bool good = true, failed;
    uint64_t hashes[3];
    int test = first_test;

    for (uint64_t kind = 0; kind < KINDS; kind++) {
        struct core_options core;
        uint64_t before = coverage.walks;
        run_walks(&options, kind, KINDS, &coverage, &failed);
        draw_options(&core, 1, options.seed + kind);
        good &= report_case(!failed, test++);
        printf("%" PRIu64 " walks, D = %d, %s\n", coverage.walks - before, core.levels,
               core_allocator_name(core.allocator));
    }
    print_coverage(&coverage);
    good &= report_case(walks < 500 || !vacuous(&coverage), test++);
    printf("the walks meet everything\n");
    for (int i = 0; i < 3; i++) {
        short_run.seed = i == 2 ? 78 : 77;
        hashes[i] = run_walks(&short_run, 0, 1, &again, &failed);
    }
    good &= report_case(hashes[0] == hashes[1], test++);
    printf("a seed repeats its run exactly (%016" PRIx64 ")\n", hashes[0]);
    good &= report_case(hashes[0] != hashes[2], test++);
    printf("another seed is another run (%016" PRIx64 ")\n", hashes[2]);
    return good;
}

int walk_main(int argc, char **argv)
{
    static struct sim_coverage coverage;
    struct walk_options options = {.seed = 1, .walks = 100, .events = 200};
    uint64_t hash;
    bool failed;

    if (parse(argc, argv, &options) != 0)
        return usage();
    hash = run_walks(&options, 0, 1, &coverage, &failed);
    if (options.hash)
        printf("%016" PRIx64 "\n", hash);
    else
        print_coverage(&coverage);
    return failed;
}
