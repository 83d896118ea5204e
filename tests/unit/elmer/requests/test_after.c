/* test_after.c - what a submission waits for: what the core is told, and when the store is asked. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/requests/bed.h"

static int alice;
static char told[200]; /* "ok:7/0 .." with what the store said of each */

static int setup(void **state)
{
    bed_setup(state);
    alice = bed_client(ALICE);
    told[0] = '\0';
    return 0;
}

static void look(const struct event *event)
{
    size_t used = 0;
    if (event->type != EVENT_SUBMIT)
        return;
    for (int i = 0; i < event->u.submit.nafter; i++) {
        const struct core_after *after = &event->u.submit.after[i];
        used += (size_t)snprintf(told + used, sizeof(told) - used, "%s%s:%d/%d", i ? " " : "",
                                 after_kind_name(after->kind), (int)after->job, (int)after->end);
    }
}

/* As far as the token, which is not in the store. */
static void submit(const char *first, const char *second)
{
    const char *items[] = {first, second};
    struct wire_message m = bed_submission("t1");
    m.u.submit.after = (struct wire_strs){items, second ? 2 : 1};
    m.u.submit.keep_never = true;
    fake_engine.on_event = look;
    say(alice, &m);
    fake_work_run();
    fake_store_answer(NULL, 0, NULL);
}

static struct record *ended(uint64_t id, int status)
{
    struct wire_message m = bed_submission("x");
    struct record *record = fake_store_record(id, BOB, &m.u.submit);
    record->state = JOB_DONE;
    record->reason = REASON_EXITED;
    record->exit_status = status;
    record->ran = true;
    return record;
}

static void test_in_memory(void **state)
{
    (void)state;
    fake_engine_add_job(7, BOB, JOB_RUNNING); /* anybody's */
    submit("start:7", "any:7");
    assert_true(fake_event(EVENT_SUBMIT)->u.submit.keep_never);
    assert_string_equal(told, "start:7/0 any:7/0");
}

static void test_in_store(void **state)
{
    (void)state;
    fake_engine_add_job(7, BOB, JOB_RUNNING);
    submit("ok:7", "fail:5");
    fake_no_event();
    assert_int_equal(fake_store.reads[0].count, 1);
    assert_int_equal(fake_store.reads[0].ids[0], 5);
    fake_engine_drop_job(7); /* meanwhile it has ended, and a thousand others since */
    struct record *record = ended(5, 3);
    fake_store_answer(&record, 1, NULL);
    fake_no_event();
    assert_int_equal(fake_store.reads[0].count, 1); /* of 5 it is known */
    assert_int_equal(fake_store.reads[0].ids[0], 7);
    record = ended(7, 0);
    fake_store_answer(&record, 1, NULL);
    fake_event(EVENT_SUBMIT);
    assert_string_equal(told, "ok:7/1 fail:5/2");
}

static void test_forgotten(void **state)
{
    (void)state;
    fake_engine_add_job(7, BOB, JOB_RUNNING);
    submit("ok:5", NULL);
    fake_store_answer(NULL, 0, NULL);
    fake_event(EVENT_SUBMIT);
    assert_string_equal(told, "ok:5/0");
}

static void test_nothing_is_guessed(void **state)
{
    (void)state;
    fake_engine_add_job(7, BOB, JOB_RUNNING);
    submit("ok:5", NULL);
    fake_store_answer(NULL, 0, "I/O error");
    heard_error(alice, "cannot read its store: I/O error");
    submit("ok:8", NULL);
    heard_error(alice, "there is no job 8");
    submit("ok:5", NULL);
    links_cut((size_t)alice); /* nobody waits for the answer: nothing is submitted */
    fake_store_answer(NULL, 0, NULL);
    fake_no_event();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_in_memory), TEST(test_in_store), TEST(test_forgotten),
                                       TEST(test_nothing_is_guessed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
