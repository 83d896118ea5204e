/* test_boost.c - how much CPU time the helpers of virtual machines may use above all jobs, in virtual time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/root/internal.h"

#define MS INT64_C(1000000)

static struct root root;
static pid_t helper; /* uses nothing by itself; charging is by what it had used before */

static int up(void **state)
{
    (void)state;
    root = (struct root){.mode = ORDER_MODE_RT};
    walks_init(&root);
    boost_init(&root, mono_ms(mono_now()));
    helper = fork();
    if (helper == 0) {
        for (;;)
            pause();
    }
    return helper > 0 ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    while (root.job_count > 0)
        job_drop(&root, root.jobs[0]);
    free(root.jobs);
    return 0;
}

static struct root_job *add(uint64_t id, unsigned level)
{
    struct root_job *job = job_add(&root, id, 1);
    assert_non_null(job);
    job_move(job, JOB_OPEN);
    job->ranked = true;
    job->level = level;
    job_helper_add(job, helper);
    return job;
}

/* As if it had spun from one look to the next, as fast as it is looked at; returns what it got until it was ended. */
static int64_t spin_while_boosted(struct root_job *job, int64_t *now)
{
    int64_t used = 0;
    while (job->boost.on) {
        int64_t step = boost_next(&root) - *now;
        *now += step;
        used += step * MS;
        job->helper_cpu_ns[0] -= step * MS;
        boost_check(&root, *now);
    }
    return used;
}

static void wait_until_idle(int64_t *now)
{
    while (*now < root.boost_ms)
        *now = root.boost_ms;
    boost_check(&root, *now);
}

static void test_a_job_has_its_bucket(void **state)
{
    struct root_job *job = add(1, 1);
    int64_t now, used;
    (void)state;
    boost_new(&root, job);
    assert_true(job->boost.on);
    now = job->boost.check_ms - 10;
    used = spin_while_boosted(job, &now);
    assert_in_range((unsigned)(used / MS), 49, 60);
    boost_finish(&root, job);
    assert_false(job->boost.on); /* nothing is left for its end */
}

static void test_the_host_has_one_for_all(void **state)
{
    struct root_job *first = add(1, 1), *second = add(2, 1);
    int64_t now;
    (void)state;
    boost_new(&root, first);
    now = first->boost.check_ms - 10;
    spin_while_boosted(first, &now);
    boost_new(&root, second);
    assert_false(second->boost.on);
}

static void test_nobody_is_above_level_0(void **state)
{
    struct root_job *job = add(1, 0);
    (void)state;
    boost_new(&root, job);
    assert_false(job->boost.on);
}

static void test_without_real_time(void **state)
{
    struct root_job *job = add(1, 1);
    (void)state;
    root.mode = ORDER_MODE_IDLE;
    boost_new(&root, job);
    assert_false(job->boost.on);
}

/* One that uses all that it is given gets 0.2 ms a second in the long run, and never 3 ms at once. */
static void test_starved(void **state)
{
    struct root_job *job = add(1, 1);
    int64_t now = 1000000, begin, total = 0;
    unsigned boosts = 0;
    (void)state;
    root.boost_ms = now;
    job->boost.left.filled_ms = now;
    wait_until_idle(&now);
    begin = now;
    for (int i = 0; i < 1000; i++) {
        wait_until_idle(&now);
        if (!job->boost.on)
            continue;
        int64_t used = spin_while_boosted(job, &now);
        assert_in_range((unsigned)(used / MS), 1, 3);
        total += used;
        boosts++;
    }
    assert_true(now - begin >= INT64_C(9000000));
    assert_true(boosts >= 400); /* and so it is heard of */
    assert_true(total <= (now - begin) / 1000 * MS / 5 + 10 * MS);
}

static void test_who_gets_cpu_is_not_starved(void **state)
{
    struct root_job *job = add(1, 1);
    int64_t now = 1000000;
    (void)state;
    root.boost_ms = now;
    job->boost.left.filled_ms = now;
    for (int i = 0; i < 10; i++) {
        wait_until_idle(&now);
        assert_false(job->boost.on);
        job->helper_seen_ns[0] -= MS;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_a_job_has_its_bucket),
        TEST(test_the_host_has_one_for_all),
        TEST(test_nobody_is_above_level_0),
        TEST(test_without_real_time),
        TEST(test_starved),
        TEST(test_who_gets_cpu_is_not_starved),
    };
    return cmocka_run_group_tests_name("boost", tests, NULL, NULL);
}
