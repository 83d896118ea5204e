/* test_work.c - lists that take more of elmer's time than their user may have: each goes on in its turn. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/base/thread_time.h"
#include "lib/quota/quota.h"
#include "tests/unit/elmer/requests/bed.h"

enum { JOBS = 900, SLICES = 4, OWED_MS = 1600, PUT_OFF_MAX = 32 /* work.c */ };

/* What a slice takes: the time between two looks. */
static int64_t slice_ms, spent_ns;

int64_t __wrap_thread_time_ns(void);
int64_t __wrap_thread_time_ns(void)
{
    return spent_ns += slice_ms * 1000000;
}

static int setup(void **state)
{
    bed_setup(state);
    bed.settings.user_connections = 100;
    bed_again(3);
    slice_ms = 0;
    for (uint64_t id = 1; id <= JOBS; id++)
        fake_engine_add_job(id, ALICE, JOB_QUEUED);
    return 0;
}

static const struct wire_message list = {.type = WIRE_query, .id = 3, .u.query = {.running = true, .queued = true}};

/* All that bob has at once goes into one list, and what comes back in so many ms, a multiple of 80. */
static void use_up(int64_t more_ms)
{
    int client = bed_client(BOB);
    slice_ms = (QUOTA_WORK_MS + more_ms * QUOTA_WORK_RATE_MS / 1000) / SLICES;
    say(client, &list);
    fake_time_pass(0);
    for (int i = 0; i < SLICES; i++)
        heard(client, WIRE_jobs);
    links_cut((size_t)client);
    slice_ms = 0;
}

/* Its pages come as the time comes back, and then it is whole. */
static void test_goes_on(void **state)
{
    const int64_t page_ms = 2000;
    (void)state;
    use_up(0);
    int bob = bed_client(BOB), alice = bed_client(ALICE);
    slice_ms = page_ms * QUOTA_WORK_RATE_MS / 1000;
    say(bob, &list);
    assert_true(heard(bob, WIRE_jobs)->u.jobs.more); /* nothing is owed yet */
    for (int i = 1; i < SLICES; i++) {
        fake_time_pass(page_ms / 2);
        heard_nothing();
        fake_time_pass(page_ms / 2 + 1);
        assert_int_equal(heard(bob, WIRE_jobs)->u.jobs.more, i < SLICES - 1);
    }
    slice_ms = 1;
    say(bob, &list);
    heard_nothing();
    say(alice, &list); /* others do not mind */
    fake_time_pass(0);
    for (int i = 0; i < SLICES; i++)
        heard(alice, WIRE_jobs);
    heard_nothing();
}

/* A page of each, and then the next of each, wherever they were asked for, and whatever order the timers have. */
static void test_in_turn(void **state)
{
    enum { CLIENTS = 3, PAGE_MS = 2000 };
    int clients[CLIENTS];
    (void)state;
    use_up(OWED_MS);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = bed_client(BOB);
        say(clients[i], &list);
    }
    heard_nothing();
    slice_ms = PAGE_MS * QUOTA_WORK_RATE_MS / 1000;
    fake_time_pass(OWED_MS - PAGE_MS / 2);
    for (int i = 0; i < CLIENTS * SLICES; i++) {
        fake_time_pass(PAGE_MS);
        heard(clients[i % CLIENTS], WIRE_jobs);
        heard_nothing();
    }
    fake_time_pass(60000);
    heard_nothing();
}

/* Who goes, or does not read, holds up nobody. */
static void test_leave(void **state)
{
    enum { PAGE_MS = 2000 };
    (void)state;
    use_up(OWED_MS);
    int gone = bed_client(BOB), slow = bed_client(BOB), next = bed_client(BOB);
    slice_ms = PAGE_MS * QUOTA_WORK_RATE_MS / 1000;
    say(gone, &list);
    say(gone, &list); /* another one of it */
    say(slow, &list);
    say(next, &list);
    links_cut((size_t)gone);
    links_set_unsent((size_t)slow, (1 << 20) + 1);
    fake_time_pass(OWED_MS + PAGE_MS / 2);
    heard(next, WIRE_jobs);
    heard_nothing();
    links_room((size_t)slow);
    fake_time_pass(PAGE_MS);
    heard(next, WIRE_jobs);
    fake_time_pass(PAGE_MS);
    heard(slow, WIRE_jobs);
    heard_nothing();
    links_cut((size_t)next);
    fake_time_pass((SLICES - 1) * (PAGE_MS + 1));
    for (int i = 1; i < SLICES; i++)
        heard(slow, WIRE_jobs);
    heard_nothing();
}

/* The same for room in what is kept for a user: who waits for it first gets it first, a few at a time. */
static void test_room_in_turn(void **state)
{
    enum { CLIENTS = 12, WOKEN = 8 /* WAKE_MAX of clients.c */, PAGE_MS = 2000 };
    int clients[CLIENTS];
    (void)state;
    use_up(OWED_MS);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = bed_client(BOB);
    struct budget *budget = links_budget((size_t)clients[0]);
    assert_true(budget_take(budget, budget->max / 2 + 1)); /* as if much were not read */
    for (int i = 0; i < CLIENTS; i++)
        say(clients[i], &list);
    links_cut((size_t)clients[1]); /* from the middle */
    heard_nothing();
    budget_give(budget, budget->max / 2 + 1);
    links_room((size_t)clients[0]);
    fake_time_pass(0); /* those that are woken stand in line */
    links_room((size_t)clients[WOKEN + 2]);
    slice_ms = PAGE_MS * QUOTA_WORK_RATE_MS / 1000;
    fake_time_pass(OWED_MS + WOKEN * PAGE_MS + PAGE_MS / 2);
    for (int i = 0; i < WOKEN + 2; i++)
        if (i != 1)
            heard(clients[i], WIRE_jobs);
    heard_nothing();
}

static void ask_relayed(uint64_t client)
{
    bed_relay(WS1, client, BOB, "bob", &list);
}

/* So many, and the next is told so at once; the others get their pages. */
static void test_too_many(void **state)
{
    enum { PAGE_MS = 200 };
    const char *frame;
    (void)state;
    use_up(OWED_MS);
    slice_ms = PAGE_MS * QUOTA_WORK_RATE_MS / 1000;
    for (uint64_t client = 1; client <= PUT_OFF_MAX; client++)
        ask_relayed(client);
    heard_nothing();
    ask_relayed(PUT_OFF_MAX + 1);
    frame = bed_relayed(WS1, PUT_OFF_MAX + 1);
    assert_non_null(strstr(frame, "\"error\""));
    assert_non_null(strstr(frame,
                           "too many lists: elmer gives the lists of a user 3 s of its time at once and 50 ms in "
                           "each second, and 32 of yours wait for that"));
    fake_time_pass(OWED_MS + (PUT_OFF_MAX - 1) * PAGE_MS + PAGE_MS / 2);
    for (uint64_t client = 1; client <= PUT_OFF_MAX; client++)
        assert_non_null(strstr(bed_relayed(WS1, client), "\"jobs\""));
    heard_nothing();
    fake_time_pass(PUT_OFF_MAX * (SLICES - 1) * PAGE_MS); /* all of them have ended */
    for (int i = 1; i < SLICES; i++)
        for (uint64_t client = 1; client <= PUT_OFF_MAX; client++)
            assert_null(strstr(bed_relayed(WS1, client), "\"error\""));
    ask_relayed(PUT_OFF_MAX + 1);
    fake_time_pass(PAGE_MS * SLICES);
    for (int i = 0; i < SLICES; i++)
        assert_non_null(strstr(bed_relayed(WS1, PUT_OFF_MAX + 1), "\"jobs\""));
    heard_nothing();
}

/* ---- --dry-run ---- */

static void expect_rehearsed(int client, bool now)
{
    struct wire_message message = bed_submission("dry");
    message.type = WIRE_rehearse;
    say(client, &message);
    fake_work_run();
    if (now)
        heard_error(client, "asked for"); /* the fake core's word */
    else
        assert_string_equal(heard_error(client, "try again"), WIRE_CODE_UNAVAILABLE);
}

/* A tenth of the time for all, and who asks again and again leaves half of it to others. */
static void test_rehearsals(void **state)
{
    enum { TOOK_MS = 100 };
    (void)state;
    int alice = bed_client(ALICE), bob = bed_client(BOB);
    fake_engine.rehearsal_ms = TOOK_MS;
    expect_rehearsed(alice, true);
    fake_time_pass(9 * TOOK_MS - 1);
    expect_rehearsed(bob, false);
    fake_time_pass(1);
    expect_rehearsed(alice, false);
    expect_rehearsed(bob, true);
    fake_time_pass(9 * TOOK_MS);
    expect_rehearsed(bob, false);
    expect_rehearsed(alice, true);
    fake_time_pass(19 * TOOK_MS);
    expect_rehearsed(alice, true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_goes_on),      TEST(test_in_turn),  TEST(test_leave),
                                       TEST(test_room_in_turn), TEST(test_too_many), TEST(test_rehearsals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
