/* test_reach.c - which hosts a submission may ever use, from the facts that hosts tell when they come up and from what
 * the configuration says of those that have not been up.
 */
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { RED = 1, BLUE = 2 }; /* what a host may offer */

static void up(struct fixture *f, int host, int ncpus, uint32_t offers)
{
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct event event = {
        .type = EVENT_HOST_UP, .host = host, .u.up = {.cpus = cpus, .ncpus = ncpus, .offers = offers}};

    assert_int_equal(fixture_step(f, event), 0);
    assert_int_equal(core_host(f->core, host)->offers, offers);
}

/* The answer. */
static enum answer submit(struct fixture *f, uint32_t nprocs, const int *hosts, int nhosts, uint32_t needs)
{
    struct event event = {.type = EVENT_SUBMIT,
                          .host = -1,
                          .request = 1,
                          .u.submit = {.nprocs = nprocs, .hosts = hosts, .nhosts = nhosts, .needs = needs}};

    assert_int_equal(fixture_step(f, event), 0);
    return fixture_find(f, ACTION_ANSWER, -1)->answer;
}

/* Of the last job that was accepted: the hosts that it may use, as "0 2"; "all". */
static const char *chosen(const struct fixture *f)
{
    static char text[100];
    const struct core_job *job = core_job(f->core, core_next_id(f->core) - 1);
    size_t used = 0;

    assert_non_null(job);
    if (!job->hosts)
        return "all";
    text[0] = '\0';
    for (int i = 0; i < job->nhosts; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i > 0 ? " " : "", job->hosts[i]);
    return text;
}

/* ws1 2 cpus, red; ws2 3 cpus, red and blue; ws3 4 cpus, nothing. */
static void begin(struct fixture *f)
{
    static const int ncpus[] = {2, 3, 4};

    fixture_init(f, ALLOCATOR_V1, 3, ncpus, 3, false);
    up(f, 0, 2, RED);
    up(f, 1, 3, RED | BLUE);
    up(f, 2, 4, 0);
}

static void test_needs(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_int_equal(submit(&f, 9, NULL, 0, 0), ANSWER_OK);
    assert_string_equal(chosen(&f), "all");
    assert_int_equal(submit(&f, 10, NULL, 0, 0), ANSWER_REFUSED_SIZE);
    assert_int_equal(submit(&f, 5, NULL, 0, RED), ANSWER_OK);
    assert_string_equal(chosen(&f), "0 1");
    assert_int_equal(submit(&f, 6, NULL, 0, RED), ANSWER_REFUSED_HOSTS);
    assert_int_equal(submit(&f, 3, NULL, 0, RED | BLUE), ANSWER_OK);
    assert_string_equal(chosen(&f), "1");
    assert_int_equal(submit(&f, 1, NULL, 0, 4), ANSWER_REFUSED_HOSTS); /* nobody has it */
    assert_int_equal(submit(&f, 0, NULL, 0, RED), ANSWER_REFUSED_SIZE);
    fixture_fini(&f);
}

static void test_named_and_needs(void **state)
{
    static const int named[] = {2, 1, 2, 1}, only[] = {2};
    struct fixture f;

    (void)state;
    begin(&f);
    assert_int_equal(submit(&f, 7, named, 4, 0), ANSWER_OK); /* each counts once */
    assert_string_equal(chosen(&f), "1 2");
    assert_int_equal(submit(&f, 8, named, 4, 0), ANSWER_REFUSED_HOSTS);
    assert_int_equal(submit(&f, 3, named, 4, BLUE), ANSWER_OK);
    assert_string_equal(chosen(&f), "1");
    assert_int_equal(submit(&f, 4, named, 4, BLUE), ANSWER_REFUSED_HOSTS);
    assert_int_equal(submit(&f, 1, only, 1, RED), ANSWER_REFUSED_HOSTS);
    assert_int_equal(submit(&f, 1, only, 0, 0), ANSWER_REFUSED_HOSTS);
    fixture_fini(&f);
}

/* What a job got when it was accepted stays, whatever hosts offer later; the next one is judged by what is known then.
 */
static void test_offers_change(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    assert_int_equal(submit(&f, 1, NULL, 0, BLUE), ANSWER_OK);
    assert_string_equal(chosen(&f), "1");
    up(&f, 0, 2, BLUE);
    up(&f, 1, 3, RED);
    assert_string_equal(chosen(&f), "1");
    assert_int_equal(submit(&f, 1, NULL, 0, BLUE), ANSWER_OK);
    assert_string_equal(chosen(&f), "0");
    up(&f, 1, 3, BLUE);
    up(&f, 2, 4, BLUE);
    assert_int_equal(submit(&f, 1, NULL, 0, BLUE), ANSWER_OK);
    assert_string_equal(chosen(&f), "all");
    fixture_fini(&f);
}

/* A host that has not been up may offer anything, and have as many processors as the configuration says, or any
 * number. */
static void test_not_up_yet(void **state)
{
    static const int ncpus[] = {2, 3}, second[] = {1};
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, ncpus, 2, false);
    core_expect_cpus(f.core, 0, 5);
    assert_int_equal(submit(&f, 5 + CORE_MAX_CPUS, NULL, 0, RED), ANSWER_OK);
    assert_string_equal(chosen(&f), "all");
    assert_int_equal(submit(&f, 6 + CORE_MAX_CPUS, NULL, 0, 0), ANSWER_REFUSED_SIZE);
    core_expect_cpus(f.core, 1, 2);
    assert_int_equal(submit(&f, 7, NULL, 0, 0), ANSWER_OK);
    assert_int_equal(submit(&f, 8, NULL, 0, 0), ANSWER_REFUSED_SIZE);
    assert_int_equal(submit(&f, 3, second, 1, 0), ANSWER_REFUSED_HOSTS);
    up(&f, 1, 3, 0); /* then it is as it says */
    assert_int_equal(submit(&f, 3, second, 1, 0), ANSWER_OK);
    assert_int_equal(submit(&f, 8, NULL, 0, 0), ANSWER_OK);
    assert_int_equal(submit(&f, 9, NULL, 0, 0), ANSWER_REFUSED_SIZE);
    assert_int_equal(submit(&f, 5, NULL, 0, RED), ANSWER_OK);
    assert_string_equal(chosen(&f), "0");
    fixture_fini(&f);
}

static void test_core_reach(void **state)
{
    static const int named[] = {3, 0, 3, 1};
    static const int ncpus[] = {2, 3, 4, 1, 1};
    static const struct core_demand nothing = {.memory_bytes = 0};
    struct core_reach reach;
    struct fixture f;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, ncpus, 5, false);
    up(&f, 0, 2, RED);
    up(&f, 1, 3, 0);
    core_expect_cpus(f.core, 2, 4);
    core_reach(f.core, NULL, 0, 0, &nothing, &reach);
    assert_int_equal(reach.cpus, 9);
    assert_int_equal(reach.unknown, 2);
    assert_int_equal(reach.lacking, 0);
    core_reach(f.core, NULL, 0, RED, &nothing, &reach);
    assert_int_equal(reach.cpus, 6);
    assert_int_equal(reach.unknown, 2);
    assert_int_equal(reach.lacking, 1);
    core_reach(f.core, named, 4, RED, &nothing, &reach);
    assert_int_equal(reach.cpus, 2);
    assert_int_equal(reach.unknown, 1);
    assert_int_equal(reach.lacking, 1);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_needs),      cmocka_unit_test(test_named_and_needs), cmocka_unit_test(test_offers_change),
        cmocka_unit_test(test_not_up_yet), cmocka_unit_test(test_core_reach),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
