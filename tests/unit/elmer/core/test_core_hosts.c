/* test_core_hosts.c - what hosts say: exits, what they hold when they return, reports; and what is chosen of them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "elmer/core/internal.h"
#include "tests/unit/elmer/core/core_fixture.h"

static const int one_each[] = {1, 1, 1, 1};

/* ---- exits ---- */

static void test_exits(void **state)
{
    static const int two[] = {2, 2};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 2, true);
    job = fixture_submit(&f, 4, NULL, 0, true);
    fixture_run(&f, job);
    assert_int_equal(core_job(f.core, job)->exit_status, -1);
    fixture_exited(&f, job, 1, 3, 5, 0);
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 1);
    assert_int_equal(fixture_find(&f, ACTION_ACKNOWLEDGE, 1)->rank, 3);
    fixture_exited(&f, job, 1, 3, 6, 0); /* again, and differently: taken, but the first counts */
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    assert_int_equal(core_job(f.core, job)->exit_status, 5);
    fixture_exited(&f, job, 1, 0, 9, 0); /* rank 0 is not on ws2 */
    fixture_exited(&f, job, 1, 4, 9, 0); /* nobody is rank 4 */
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1);
    assert_int_equal(core_job(f.core, job)->exits, 1);
    fixture_exited(&f, job, 0, 0, 0, 0);
    fixture_exited(&f, job, 0, 1, -1, 15);
    assert_int_equal(core_job(f.core, job)->signal, 15);
    assert_int_equal(core_job(f.core, job)->exit_status, -1);
    assert_int_equal(core_job(f.core, job)->failed_rank, 1);
    assert_int_equal(core_job(f.core, job)->exited[0], 0x0b);
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    fixture_exited(&f, job, 1, 2, 0, 0);
    assert_int_equal(fixture_count(&f, ACTION_END), 2);
    fixture_empty(&f, job);
    assert_int_equal(core_job(f.core, job)->reason, REASON_EXITED);
    assert_non_null(core_job(f.core, job)->processors);
    fixture_exited(&f, job, 1, 2, 0, 0); /* past */
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1);
    core_forget(f.core, job);
    assert_null(core_job(f.core, job));
    fixture_exited(&f, job, 1, 2, 0, 0); /* unknown */
    assert_int_equal(fixture_count(&f, ACTION_ACKNOWLEDGE), 1);
    fixture_fini(&f);
}

static void test_first_reason_stays(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_ABORT, .host = -1};
    char text[3000];
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    fixture_run(&f, job);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    event.job = job;
    event.attempt = 1;
    event.u.failed.reason = REASON_HELPER_FAILED;
    event.u.failed.text = text;
    fixture_step(&f, event);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(strlen(core_job(f.core, job)->text), 1000); /* bounded */
    fixture_client(&f, EVENT_KILL, job, 2001, false);
    fixture_exited(&f, job, 0, 0, -1, 9);
    fixture_empty(&f, job);
    assert_int_equal(core_job(f.core, job)->reason, REASON_HELPER_FAILED);
    assert_int_equal(core_job(f.core, job)->signal, 9); /* recorded all the same */
    fixture_fini(&f);
}

/* ---- hosts that return ---- */

static void test_holdings(void **state)
{
    struct fixture f;
    uint64_t job;
    struct core_holding holdings[5] = {{77, 1}, {0, 0}, {77, 1}, {78, 2}, {0, 0}};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    fixture_run(&f, job);
    holdings[1] = holdings[4] = (struct core_holding){job, 1}; /* said twice: still the same job */
    assert_int_equal(fixture_up(&f, 0, 1, 9, holdings, 5), 0);
    assert_int_equal(fixture_state(&f, job), JOB_RUNNING);
    assert_int_equal(fixture_count(&f, ACTION_END), 2); /* 77.1 and 78.2 */
    assert_int_equal(core_host(f.core, 0)->leftovers, 2);
    assert_int_equal(fixture_find(&f, ACTION_ORDER, 0)->nentries, 1);
    fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_state(&f, job + 1), JOB_QUEUED); /* no work while there are leftovers */
    fixture_host(&f, EVENT_EMPTY, 77, 0);
    assert_int_equal(fixture_state(&f, job + 1), JOB_QUEUED);
    fixture_step(&f, (struct event){.type = EVENT_EMPTY, .job = 78, .attempt = 2});
    assert_int_equal(fixture_state(&f, job + 1), JOB_STARTING);
    holdings[0] = (struct core_holding){job, 2}; /* another attempt is another thing */
    assert_int_equal(fixture_up(&f, 0, 1, 10, holdings, 1), 0);
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(core_job(f.core, job)->reason, REASON_LOST);
    fixture_fini(&f);
}

static void test_cpus_change(void **state)
{
    static const int two[] = {2};
    struct fixture f;
    struct core_holding holdings[2];
    uint64_t small, wide;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, two, 1, true);
    wide = fixture_submit(&f, 2, NULL, 0, false);
    fixture_run(&f, wide);
    holdings[0] = (struct core_holding){wide, 1};
    assert_int_equal(fixture_up(&f, 0, 1, 3, holdings, 1), 0); /* one CPU has gone */
    assert_int_equal(core_job(f.core, wide)->reason, REASON_LOST);
    small = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(core_job(f.core, small)->level, 1);
    fixture_empty(&f, wide);
    assert_int_equal(core_job(f.core, small)->level, 0);
    assert_int_equal(fixture_submit(&f, 2, NULL, 0, false), 0); /* refused: only one exists now */
    fixture_fini(&f);
}

static void test_unasked_empty(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, true);
    fixture_run(&f, job);
    fixture_host(&f, EVENT_EMPTY, job, 1); /* with a rank that has not exited */
    assert_int_equal(fixture_state(&f, job), JOB_ENDING);
    assert_int_equal(core_job(f.core, job)->reason, REASON_LOST);
    assert_non_null(fixture_find(&f, ACTION_END, 0));
    assert_non_null(fixture_find(&f, ACTION_END, 1)); /* an OPEN may be under way: END is final */
    fixture_empty(&f, job);
    fixture_fini(&f);
}

static void test_down_hosts_are_not_heard(void **state)
{
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, one_each, 2, true);
    job = fixture_submit(&f, 2, NULL, 0, false);
    fixture_run(&f, job);
    fixture_step(&f, (struct event){.type = EVENT_HOST_DOWN, .host = 1, .u.down.what = "was removed by carol"});
    assert_int_equal(fixture_count(&f, ACTION_END), 1);
    assert_string_equal(core_job(f.core, job)->text, "ws2 was removed by carol");
    fixture_exited(&f, job, 1, 0, 0, 0);
    assert_int_equal(f.actions.count, 0);
    fixture_host(&f, EVENT_OPENED, job, 1);
    assert_int_equal(f.actions.count, 0);
    fixture_host(&f, EVENT_EMPTY, job, 0);
    assert_int_equal(fixture_state(&f, job), JOB_DONE);
    fixture_fini(&f);
}

/* ---- reports ---- */

static void test_reports(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_REPORT, .host = 0};
    double busy[2] = {0, 0}, jobs[2] = {0, 0};
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 3, one_each, 1, true);
    job = fixture_submit(&f, 1, NULL, 0, false);
    event.u.report =
        (struct core_report){.begin_ms = f.now_ms - 10, .end_ms = f.now_ms, .busy = busy, .jobs = jobs, .ncpus = 2};
    fixture_step(&f, event); /* of another number of CPUs */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.ncpus = 1;
    event.u.report.end_ms = f.now_ms + 1;
    fixture_step(&f, event); /* of the future */
    event.u.report.end_ms = event.u.report.begin_ms;
    fixture_step(&f, event); /* of no time */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.end_ms = f.now_ms;
    busy[0] = (double)NAN;
    fixture_step(&f, event); /* of nonsense */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    f.now_ms += 1000;
    fixture_report(&f, 0, 0.76, 0, 500);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    event.u.report.end_ms = f.now_ms - 1;
    busy[0] = 0;
    fixture_step(&f, event); /* ends before the last one */
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    f.now_ms += 1000;
    fixture_report(&f, 0, 0.75, 0, 500); /* at most the threshold */
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

static void test_settle_counts_from_launch(void **state)
{
    struct fixture f;
    uint64_t first, second;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 3, one_each, 1, true);
    fixture_report(&f, 0, 0, 0, 100);
    first = fixture_submit(&f, 1, NULL, 0, false);
    second = fixture_submit(&f, 1, NULL, 0, false);
    f.now_ms += 20000;
    fixture_report(&f, 0, 0, 0, 2000); /* it starts slowly, and shows nothing yet */
    assert_int_equal(fixture_state(&f, second), JOB_QUEUED);
    fixture_run(&f, first);
    f.now_ms += 3999;
    fixture_report(&f, 0, 0, 0, 2000);
    assert_int_equal(fixture_state(&f, second), JOB_QUEUED);
    f.now_ms += 1;
    fixture_report(&f, 0, 0, 0, 2000);
    assert_int_equal(fixture_state(&f, second), JOB_STARTING);
    fixture_fini(&f);
}

static void test_survey_says_why_the_head_waits(void **state)
{
    const int ncpus[] = {1, 1, 1, 1};
    struct core_survey survey;
    struct fixture f;
    uint64_t sharer, behind;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 1, ncpus, 4, true);
    fixture_report(&f, 0, 0, 0, 100);
    sharer = fixture_submit(&f, 1, NULL, 0, false); /* ws1 is full */
    fixture_report(&f, 1, 0.9, 0, 100);             /* ws2 is too busy */
    fixture_report(&f, 2, 0.1, 0, 100);             /* ws3 would do; ws4 has not reported */
    assert_false(core_survey(f.core, sharer, &survey));
    sharer = fixture_submit(&f, 2, NULL, 0, false);
    behind = fixture_submit(&f, 1, NULL, 0, false);
    assert_true(core_survey(f.core, sharer, &survey));
    assert_int_equal(survey.up, 4);
    assert_int_equal(survey.full, 1);
    assert_int_equal(survey.busy, 1);
    assert_int_equal(survey.unmeasured, 1);
    assert_int_equal(survey.allocator, ALLOCATOR_V2);
    assert_false(core_survey(f.core, behind, &survey));
    assert_false(core_survey(f.core, 99, &survey));
    fixture_fini(&f);
}

/* ---- the allocator's choice ---- */

static void test_choice_is_even(void **state)
{
    struct core_options options;
    int counts[4][4] = {{0}};
    uint64_t seed;

    (void)state;
    core_options_default(&options);
    for (seed = 1; seed <= 3000; seed++) {
        struct fixture f;
        uint64_t job;
        fixture_init(&f, ALLOCATOR_V1, 1, one_each, 0, false);
        core_destroy(f.core);
        options.allocator = ALLOCATOR_V1;
        options.seed = seed;
        f.core = core_create(&options);
        core_add_host(f.core, "ws1");
        fixture_up(&f, 0, 4, 0, NULL, 0);
        job = fixture_submit(&f, 2, NULL, 0, false);
        counts[core_job(f.core, job)->processors[0].cpu][core_job(f.core, job)->processors[1].cpu]++;
        fixture_fini(&f);
    }
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++) /* 500 expected, standard deviation 20 */
            assert_in_range(counts[a][b], 400, 600);
}

/* In any order of names; the depth is what a look-up costs. */
static void test_names(void **state)
{
    enum { HOSTS = 5000, DEEP = 60 };
    struct core_options options;
    struct core *core;
    char name[40];

    (void)state;
    core_options_default(&options);
    core = core_create(&options);
    assert_int_equal(core_host_by_name(core, "h0"), -1);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(name, sizeof(name), "h%d.example.org", i);
        assert_int_equal(core_add_host(core, name), i);
    }
    for (int i = 0; i < HOSTS; i++) {
        int deep = 0, at = 0;
        snprintf(name, sizeof(name), "h%d.example.org", i);
        assert_int_equal(core_host_by_name(core, name), i);
        assert_int_equal(core_add_host(core, name), -EEXIST);
        for (; at != i; deep++)
            at = core->hosts[at]->below[core->hosts[i]->hash >= core->hosts[at]->hash];
        assert_in_range(deep, 0, DEEP);
    }
    assert_int_equal(core_host_by_name(core, "h0.example.or"), -1);
    assert_int_equal(core_host_by_name(core, ""), -1);
    core_destroy(core);
}

/* A host says which users it has: there are as many as it likes, one for each job. Who has a job that is known stays.
 */
static void test_users_of_forgotten_jobs_are_forgotten(void **state)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    struct fixture f;
    uint64_t kept, last;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one_each, 1, true);
    kept = fixture_submit(&f, 1, NULL, 0, false); /* the others wait for it */
    event.u.submit.nprocs = 1;
    for (uint32_t uid = 100000; uid < 100100; uid++) {
        uint64_t job = core_next_id(f.core);
        event.u.submit.uid = uid;
        assert_int_equal(fixture_step(&f, event), 0);
        assert_non_null(user_find(f.core, uid));
        assert_int_equal(fixture_client(&f, EVENT_CANCEL, job, uid, false), ANSWER_OK);
        core_forget(f.core, job);
        assert_null(user_find(f.core, uid));
    }
    assert_int_equal(f.core->nusers, 1);
    last = fixture_submit(&f, 1, NULL, 0, false);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, last, 2001, false), ANSWER_OK);
    core_forget(f.core, last);
    assert_non_null(core_job(f.core, kept));
    assert_int_equal(user_find(f.core, 2001)->njobs, 1);
    fixture_step(&f, (struct event){.type = EVENT_TICK, .host = -1}); /* with all checks */
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_first_reason_stays),
        cmocka_unit_test(test_holdings),
        cmocka_unit_test(test_cpus_change),
        cmocka_unit_test(test_unasked_empty),
        cmocka_unit_test(test_down_hosts_are_not_heard),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_settle_counts_from_launch),
        cmocka_unit_test(test_survey_says_why_the_head_waits),
        cmocka_unit_test(test_choice_is_even),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_users_of_forgotten_jobs_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
