/* test_top.c - the order of one's own jobs: places change hands among the jobs of one user, and nobody else notices. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { JOBS = 60, USERS = 4, STEPS = 2000 };

static const int one[] = {1};

/* Of a job, before and after. */
struct seen {
    uint64_t id, place;
    uint32_t uid, ahead;
};

static int look(struct fixture *f, struct seen *seen)
{
    const struct core_job *job;
    uint64_t cursor = 0;
    int n = 0;

    while ((job = core_next_job(f->core, &cursor)))
        if (job->state == JOB_QUEUED || job->state == JOB_HELD)
            seen[n++] = (struct seen){job->id, job->place, job->uid, job->ahead};
    return n;
}

static unsigned draw(uint64_t *random, unsigned n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*random >> 33) % n;
}

/* The order of all others, and the places of the user, are the same; the job is his first, the rest in their order. */
static void compare(const struct seen *before, const struct seen *after, int n, uint64_t top, uint32_t uid)
{
    for (int i = 0; i < n; i++) {
        bool there = false;
        assert_int_equal(before[i].id, after[i].id);
        if (before[i].uid != uid) {
            assert_int_equal(before[i].place, after[i].place);
            assert_int_equal(before[i].ahead, after[i].ahead);
            continue;
        }
        for (int k = 0; k < n; k++)
            there |= after[k].uid == uid && after[k].place == before[i].place && after[k].ahead == before[i].ahead;
        assert_true(there);
        for (int k = 0; k < n; k++) {
            if (before[k].uid != uid || k == i)
                continue;
            if (before[i].id == top)
                assert_true(after[i].ahead < after[k].ahead);
            else if (before[k].id != top)
                assert_int_equal(before[i].ahead < before[k].ahead, after[i].ahead < after[k].ahead);
        }
    }
}

static void test_permutation(void **state)
{
    struct seen before[JOBS], after[JOBS];
    struct fixture f;
    uint64_t random = 3;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false); /* it has never been up: all wait */
    for (int i = 0; i < JOBS; i++)
        fixture_submit_as(&f, 1 + draw(&random, USERS), true);
    for (int i = 0; i < STEPS; i++) {
        uint64_t id = 1 + draw(&random, JOBS);
        uint32_t uid = core_job(f.core, id)->uid;
        int n = look(&f, before);
        if (draw(&random, 5) == 0) {
            fixture_client(&f, core_job(f.core, id)->state == JOB_HELD ? EVENT_RELEASE : EVENT_HOLD, id, uid, false);
            continue;
        }
        assert_int_equal(fixture_client(&f, EVENT_TOP, id, uid, false), ANSWER_OK);
        assert_int_equal(look(&f, after), n);
        compare(before, after, n, id, uid);
    }
    fixture_fini(&f);
}

static void test_who_may(void **state)
{
    struct fixture f;
    uint64_t jobs[3];

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    for (int i = 0; i < 3; i++)
        jobs[i] = fixture_submit_as(&f, 5, true);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 6, false), ANSWER_NOT_PERMITTED);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[0], 5, false), ANSWER_WRONG_STATE); /* it has processors */
    assert_int_equal(fixture_client(&f, EVENT_TOP, 99, 5, false), ANSWER_NO_SUCH_JOB);
    assert_int_equal(core_job(f.core, jobs[2])->ahead, 1);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 6, true), ANSWER_OK);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 2);
    assert_int_equal(core_job(f.core, jobs[2])->ahead, 0);
    assert_int_equal(fixture_client(&f, EVENT_TOP, jobs[2], 5, false), ANSWER_OK); /* it is the first already */
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), 0);
    fixture_fini(&f);
}

static void test_too_many(void **state)
{
    struct event event = {.type = EVENT_TOP, .host = -1, .request = 1};
    struct fixture f;
    uint64_t last = 0;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    for (int i = 0; i < CORE_MAX_TOP + 2; i++)
        last = fixture_submit_as(&f, 5, false);
    event.u.by.uid = 5;
    event.job = last;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_TOO_MANY);
    assert_int_equal(core_job(f.core, last)->place, last);
    event.job = last - 1;
    assert_int_equal(fixture_step(&f, event), 0);
    assert_int_equal(fixture_find(&f, ACTION_ANSWER, -1)->answer, ANSWER_OK);
    assert_int_equal(fixture_count(&f, ACTION_PERSIST), CORE_MAX_TOP + 1);
    assert_int_equal(core_job(f.core, last - 1)->place, 1);
    fixture_fini(&f);
}

/* Whether a job has its turn is asked with this, too: it counts the jobs that are looked at. */
struct core;
struct owner;
bool __real_user_at_limit(const struct core *core, const struct owner *user);
bool __wrap_user_at_limit(const struct core *core, const struct owner *user);
static unsigned looked_at;

bool __wrap_user_at_limit(const struct core *core, const struct owner *user)
{
    looked_at++;
    return __real_user_at_limit(core, user);
}

/* However many wait behind the two that change places, and cannot start either. */
static void test_search(void **state)
{
    struct fixture f;
    uint64_t first, second;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false);
    first = fixture_submit_as(&f, 5, false);
    second = fixture_submit_as(&f, 5, false);
    for (int i = 0; i < 1000; i++)
        fixture_submit_as(&f, 6, false);
    looked_at = 0;
    assert_int_equal(fixture_client(&f, EVENT_TOP, second, 5, false), ANSWER_OK);
    assert_int_equal(core_job(f.core, first)->ahead, 1);
    assert_in_range(looked_at, 0, 20);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_permutation), cmocka_unit_test(test_who_may),
                                       cmocka_unit_test(test_too_many), cmocka_unit_test(test_search)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
