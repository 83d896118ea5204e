/* test_agreement.c - esim and the simulated cluster of tests/sim do the same with 1,000 small workloads: each job
 * starts and ends at the same time, on the same processors. In a third of them hosts have different speeds, in a fifth
 * jobs compute and wait in turn. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "esim/random.h"
#include "esim/world.h"
#include "tests/unit/esim/agreement.h"

enum { CASES = 1000, CPUS_MAX = 4 };

struct list {
    struct source source;
    const struct agreement_case *of;
    int at;
};

static bool next(struct source *source, struct sim_job *job)
{
    struct list *list = (struct list *)source;

    if (list->at == AGREEMENT_JOBS)
        return false;
    *job = list->of->jobs[list->at++];
    return true;
}

static void note(const struct sim_job *job, void *data)
{
    struct outcome *outcomes = data;

    outcomes[job->number - 1] = (struct outcome){job->start_ms, job->end_ms, job->place};
}

static void play_in_esim(const struct agreement_case *of, struct outcome *outcomes)
{
    struct list list = {.source = {.next = next}, .of = of};
    struct world_settings settings = {.core = of->core,
                                      .nhosts = of->nhosts,
                                      .ncpus = of->ncpus,
                                      .model = MODEL_SHARED,
                                      .by_itself = of->by_itself,
                                      .period_ms = of->period,
                                      .report_ms = of->reports ? REPORT_UNITS : 0};
    struct world *world;

    for (int h = 0; h < of->nhosts; h++)
        settings.speeds[settings.nspeeds++] = (struct speeds){of->speeds[h], 1};
    world = world_create(&settings, &list.source, note, outcomes);

    assert_non_null(world);
    assert_true(world_run(world, AGREEMENT_JOBS));
    world_destroy(world);
}

static void draw(struct agreement_case *c, uint64_t seed)
{
    static const enum core_allocator allocators[] = {ALLOCATOR_V1, ALLOCATOR_V2, ALLOCATOR_SPREAD, ALLOCATOR_PACK};
    struct stream stream;
    int64_t at = 0;

    stream_init(&stream, seed, 77);
    memset(c, 0, sizeof(*c));
    core_options_default(&c->core);
    c->core.allocator = allocators[seed % 4];
    c->core.levels = (int)stream_between(&stream, 1, 4);
    c->core.seed = seed;
    c->core.settle_ms = SETTLE_UNITS;
    c->core.fresh_ms = FRESH_UNITS;
    c->nhosts = (int)stream_between(&stream, 1, AGREEMENT_HOSTS);
    c->ncpus = (int)stream_between(&stream, 1, CPUS_MAX);
    c->by_itself = stream_between(&stream, 0, 1) == 1;
    c->reports = c->core.allocator == ALLOCATOR_V2 || c->core.allocator == ALLOCATOR_SPREAD;
    for (int h = 0; h < AGREEMENT_HOSTS; h++)
        c->speeds[h] = seed % 3 == 0 ? stream_between(&stream, 1, 4) / 2.0 : 1;
    for (int i = 0; i < AGREEMENT_JOBS; i++) {
        at += stream_between(&stream, 0, 11);
        c->jobs[i] = (struct sim_job){.number = (uint64_t)i + 1,
                                      .submit_ms = at,
                                      .work_ms = stream_between(&stream, 3, 40),
                                      .nprocs = stream_between(&stream, 1, (uint32_t)(c->nhosts * c->ncpus)),
                                      .uid = 1000,
                                      .share = stream_between(&stream, 1, 8) / 8.0,
                                      .start_ms = -1,
                                      .end_ms = -1};
    }
    c->period = seed % 5 == 0 ? stream_between(&stream, 2, 16) : 0;
}

static void run_case(uint64_t seed)
{
    struct outcome here[AGREEMENT_JOBS], there[AGREEMENT_JOBS];
    struct agreement_case c;
    char text[600];

    draw(&c, seed);
    memset(here, 0xff, sizeof(here));
    memset(there, 0xff, sizeof(there));
    play_in_esim(&c, here);
    if (!agreement_play(&c, there, text, sizeof(text)))
        fail_msg("case %llu: %s", (unsigned long long)seed, text);
    for (int i = 0; i < AGREEMENT_JOBS; i++)
        if (here[i].start != there[i].start || here[i].end != there[i].end || here[i].place != there[i].place)
            fail_msg("case %llu (%s, %d levels), job %d: esim %lld to %lld, cluster %lld to %lld%s",
                     (unsigned long long)seed, core_allocator_name(c.core.allocator), c.core.levels, i + 1,
                     (long long)here[i].start, (long long)here[i].end, (long long)there[i].start,
                     (long long)there[i].end, here[i].place != there[i].place ? ", on others" : "");
}

static void test_agreement(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++)
        run_case(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agreement)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
