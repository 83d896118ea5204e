/* test_pace.c - how long a batch may grow: no longer than nothing at all, until it is known that more will come. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "elmer/store/internal.h"

enum { MS = 1000000 };
static const uint64_t now = 1000 * (uint64_t)MS;

static void test_one_after_the_other(void **state)
{
    struct pace pace = {0};
    (void)state;
    assert_int_equal(pace_gather(&pace, 1, true, now), 0);
    for (uint64_t at = now; at < now + 100 * MS; at += MS) {
        pace_note(&pace, 2, 1, at); /* the end of a job, and a new one */
        assert_int_equal(pace_gather(&pace, 1, true, at), 0);
    }
    assert_int_equal(pace_gather(&pace, 0, false, now), 5 * MS);
}

/* Also when one batch has only one, because they wait for a CPU. */
static void test_several_submit(void **state)
{
    struct pace pace = {0};
    (void)state;
    pace_note(&pace, 2, 2, now);
    assert_int_equal(pace_gather(&pace, 1, true, now + MS), 3 * MS);
    pace_note(&pace, 1, 1, now + 2 * MS);
    assert_int_equal(pace_gather(&pace, 1, true, now + 19 * MS), 3 * MS);
    assert_int_equal(pace_gather(&pace, 1, true, now + 21 * MS), 0);
}

static void test_starts_do_not_wait_for_submissions(void **state)
{
    struct pace pace = {0};
    (void)state;
    pace_note(&pace, 7, 7, now);
    assert_int_equal(pace_gather(&pace, 0, true, now), 0);
}

static void test_many(void **state)
{
    struct pace pace = {0};
    (void)state;
    pace_note(&pace, 8, 0, now);
    assert_int_equal(pace_gather(&pace, 0, true, now + 2 * MS), 3 * MS);
    assert_int_equal(pace_gather(&pace, 0, true, now + 4 * MS), 0);
    pace_note(&pace, 1, 0, now + MS);
    assert_int_equal(pace_gather(&pace, 0, true, now + 2 * MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_several_submit),
        cmocka_unit_test(test_starts_do_not_wait_for_submissions),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
