/* test_why.c - for each host the first rule that keeps a job from it. */
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { WS1, WS2, WS3, WS4 };

static struct core_host_why why_of(struct fixture *f, uint64_t job, int host, const char *rule)
{
    struct core_host_why why;

    assert_true(core_why(f->core, job, host, &why));
    assert_string_equal(core_bar_name(why.bar), rule);
    return why;
}

/* What is known of the hosts themselves comes first. */
static void test_hosts(void **state)
{
    static const int ncpus[] = {2, 2, 2, 2}, some[] = {WS1, WS2, WS3};
    struct core_holding left = {99, 1};
    struct fixture f;
    uint64_t job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, ncpus, 4, true);
    fixture_host(&f, EVENT_DRAIN, 0, WS1);
    job = fixture_submit(&f, 6, some, 3, false);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    why_of(&f, job, WS4, "not-allowed");
    why_of(&f, job, WS1, "drained");
    assert_int_equal(why_of(&f, job, WS2, "ok").usable, 2);
    fixture_host(&f, EVENT_HOST_SILENT, 0, WS1);
    why_of(&f, job, WS1, "silent"); /* nearer than what an administrator has said */
    fixture_host(&f, EVENT_HOST_DOWN, 0, WS2);
    assert_int_equal(why_of(&f, job, WS2, "down").usable, 0);
    fixture_up(&f, WS2, 2, 0, &left, 1);
    why_of(&f, job, WS2, "leftovers");
    fixture_fini(&f);
}

/* Of the processors the verdicts of the allocator, with the figures that it has decided by. */
static void test_processors(void **state)
{
    static const int ncpus[] = {2, 2};
    struct core_host_why why;
    struct fixture f;
    uint64_t waits;

    (void)state;
    fixture_init(&f, ALLOCATOR_V2, 1, ncpus, 2, true);
    waits = fixture_submit(&f, 4, NULL, 0, false);
    why = why_of(&f, waits, WS1, "unmeasured");
    assert_int_equal(why.unmeasured, 2);
    f.now_ms += 3000;
    fixture_report(&f, WS1, 0.93, 0.0, 2000);
    why = why_of(&f, waits, WS1, "busy");
    assert_int_equal(why.busy, 2);
    assert_int_equal(why.foreign, 2);
    assert_true(why.foreign_share > 0.92 && why.foreign_share < 0.94 && why.busy_share == 0);
    assert_true(why.threshold == 0.75 && why.levels == 1);
    fixture_report(&f, WS2, 0.1, 0.0, 2000);
    assert_int_equal(why_of(&f, waits, WS2, "ok").usable, 2);
    fixture_fini(&f);
}

static void test_full(void **state)
{
    static const int ncpus[] = {2}, all[] = {WS1};
    struct core_host_why why;
    struct fixture f;
    uint64_t first, waits;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, ncpus, 1, true);
    first = fixture_submit(&f, 1, all, 1, false);
    waits = fixture_submit(&f, 2, all, 1, false);
    why = why_of(&f, waits, WS1, "ok"); /* one is left, and it needs two */
    assert_int_equal(why.usable, 1);
    assert_int_equal(why.full, 1);
    fixture_submit(&f, 1, all, 1, false);
    assert_false(core_why(f.core, first, WS1, &why)); /* it does not wait */
    assert_false(core_why(f.core, 77, WS1, &why));
    assert_false(core_why(f.core, waits, 1, &why));
    assert_false(core_why(f.core, waits, -1, &why));
    fixture_client(&f, EVENT_CANCEL, waits, 0, true);
    assert_false(core_why(f.core, waits, WS1, &why));
    waits = fixture_submit(&f, 2, all, 1, false);
    assert_int_equal(why_of(&f, waits, WS1, "full").full, 2);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
