/* test_service.c - how jobs would run alone: what is found from what they used, alone and below others, and a replay of
 * jobs whose share and work are known. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "esim/history.h"
#include "esim/keys.h"
#include "esim/random.h"
#include "esim/run.h"
#include "esim/service.h"
#include "lib/memory/mem.h"

enum { ROOM = 1000 };

static double series[ROOM];
static char fault[500];

static void expect_near(double value, double expected, double most)
{
    if (!(fabs(value - expected) <= most))
        fail_msg("%g is not within %g of %g", value, most, expected);
}

/* ---- how jobs would run alone ---- */

static void test_service(void **state)
{
    static const uint32_t both[] = {1, 2}, one[] = {2};
    struct history_job jobs[] = {
        {.allocated_ms = 0, .ended_ms = 6000, .nprocs = 2, .cpu_s = 7.2, .at = both, .allocation = 1},
        /* 4 s with 0.4 left, 4 s alone: a share of 0.8 */
        {.allocated_ms = 2000, .ended_ms = 10000, .nprocs = 1, .cpu_s = 4.8, .at = one, .allocation = 2},
        /* slept below these two */
        {.allocated_ms = 2000, .ended_ms = 8000, .nprocs = 2, .cpu_s = 0, .at = both, .allocation = 3},
        /* took all that was left: 0 until 6 s, 0.2 then, 1 from 10 s on */
        {.allocated_ms = 3000, .ended_ms = 12000, .nprocs = 1, .cpu_s = 2.8, .at = one, .allocation = 4},
        {.allocated_ms = 20000, .ended_ms = 21000, .nprocs = 1, .cpu_s = -1, .at = one, .allocation = 5},
        {.allocated_ms = 30000, .ended_ms = 30000, .nprocs = 1, .cpu_s = 0, .at = one, .allocation = 6},
    };

    (void)state;
    service_estimate(jobs, 6);
    expect_near(jobs[0].share, 0.6, 1e-6);
    expect_near(jobs[0].work_ms, 6000, 1e-3);
    expect_near(jobs[1].share, 0.8, 1e-6);
    expect_near(jobs[1].work_ms, 6000, 1e-3);
    expect_near(jobs[2].share, 0, 0);
    expect_near(jobs[2].work_ms, 6000, 0);
    expect_near(jobs[3].share, 1, 0);
    expect_near(jobs[3].work_ms, 2800, 20);
    expect_near(jobs[4].share, 1, 0);
    expect_near(jobs[4].work_ms, 1000, 1e-6);
    expect_near(jobs[5].work_ms, 1, 0);
}

/* ---- there and back ---- */

struct draw {
    struct source source;
    struct stream stream;
    struct history_job *jobs;
    uint64_t count;
    int64_t now_ms;
};

static const uint32_t all_four[] = {0, 1, 2, 3};

static bool next_drawn(struct source *source, struct sim_job *job)
{
    struct draw *d = (struct draw *)source;

    if (d->count == ROOM)
        return false;
    d->now_ms += (int64_t)stream_exponential(&d->stream, 9000);
    *job = (struct sim_job){.number = d->count + 1,
                            .index = d->count + 1,
                            .submit_ms = d->now_ms,
                            .work_ms = 1 + (int64_t)stream_exponential(&d->stream, 10000),
                            .nprocs = 4,
                            .share = 0.1 + 0.6 * stream_unit(&d->stream)};
    d->jobs[d->count++] = (struct history_job){.id = job->number,
                                               .nprocs = 4,
                                               .at = all_four,
                                               .user = "alice",
                                               .submitted_ms = job->submit_ms,
                                               .measured = true,
                                               .share = job->share,
                                               .work_ms = (double)job->work_ms};
    return true;
}

static void note(const struct sim_job *job, void *data)
{
    struct history_job *h = &((struct history_job *)data)[job->number - 1];

    h->allocated_ms = job->start_ms;
    h->ended_ms = job->end_ms;
    h->cpu_s = 4 * job->share * (double)job->work_ms / 1000;
    h->allocation = job->number;
}

/* What is known afterwards of jobs that share a machine is enough to replay them. */
static void test_there_and_back(void **state)
{
    static int cpus[] = {4};
    static const char *names[] = {"ws1"};
    struct history_job *jobs = mem_array(ROOM, sizeof(*jobs));
    struct draw draw = {.source = {.next = next_drawn}, .jobs = jobs};
    struct history h = {.jobs = jobs,
                        .njobs = ROOM,
                        .measured = ROOM,
                        .cpus = cpus,
                        .hosts = names,
                        .nhosts = 1,
                        .levels = 3,
                        .allocator = ALLOCATOR_V1,
                        .policy = POLICY_COUNT};
    struct config config;
    struct result result;
    struct world *world;
    double *was = mem_array(ROOM, sizeof(*was)), *now = mem_array(ROOM, sizeof(*now));

    (void)state;
    keys_default(&config);
    config.history = &h;
    config.whole = config.exactly = true;
    config.jobs_max = ROOM;
    assert_true(keys_complete(&config, fault, sizeof(fault)));
    assert_int_equal(config.world.model, MODEL_SHARED);
    assert_int_equal(config.world.core.levels, 3);
    assert_int_equal(world_processors(&config.world), 4);
    stream_init(&draw.stream, 5, 1);
    world = world_create(&config.world, &draw.source, note, jobs);
    assert_non_null(world);
    assert_true(world_run(world, ROOM));
    world_destroy(world);
    service_estimate(jobs, ROOM);
    run(&config, &result, series, ROOM, 1, NULL);
    assert_int_equal(result.jobs, ROOM);
    for (int i = 0; i < ROOM; i++) {
        was[i] = (double)(jobs[i].ended_ms - jobs[i].submitted_ms) / 1000;
        now[i] = series[i];
    }
    expect_near(stats_quantile(now, ROOM, 0.5), stats_quantile(was, ROOM, 0.5), 0.02 * was[ROOM / 2]);
    expect_near(stats_quantile(now, ROOM, 0.95), was[ROOM * 95 / 100], 0.05 * was[ROOM * 95 / 100]);
    free(was);
    free(now);
    free(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
