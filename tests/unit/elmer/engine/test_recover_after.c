/* test_recover_after.c - jobs that wait for others, taken back from the store. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"

/* It waits for these; what was decided when its row was written is in verdicts. */
static struct record *found_after(uint64_t id, const char *const *items, const struct core_after *verdicts,
                                  size_t count)
{
    struct wire_submit submit = {.nprocs = 1, .name = "x", .dir = "/d", .token = items[0]};
    submit.after = (struct wire_strs){(const char **)(uintptr_t)items, count};
    struct record *record = fake_store_record(id, 5, &submit);
    record->state = JOB_QUEUED;
    record->reason = REASON_AFTER;
    record->after = verdicts;
    record->nafter = (uint32_t)count;
    fake_store.jobs[fake_store.njobs++] = record;
    if (id >= fake_store.next_job)
        fake_store.next_job = id + 1;
    return record;
}

/* It is in the queue again, and has run before. */
static void found_ran(uint64_t id)
{
    static const char *command[] = {"/bin/true"};
    struct wire_submit submit = {
        .nprocs = 1, .requeue = true, .name = "x", .dir = "/d", .token = "r", .command = {command, 1}};
    struct record *record = fake_store_record(id, 5, &submit);
    record->state = JOB_QUEUED;
    record->reason = REASON_WAITING;
    record->attempt = 1;
    record->ran = true;
    fake_store.jobs[fake_store.njobs++] = record;
}

static void create(void)
{
    if (bed_create())
        fail_msg("%s", bed.err.text);
}

static const struct core_job *state_of(uint64_t id)
{
    return core_job(engine_core(bed.engine), id);
}

/* Of those that have ended the store knows how, where it was not decided already; others are there. */
static void test_who_waits_for_others(void **state)
{
    static const char *const for_running[] = {"start:4", "any:4"}, *const for_ended[] = {"ok:1", "fail:2", "ok:3"},
                             *const for_waiting[] = {"ok:6"}, *const never[] = {"ok:2"};
    static const struct core_after open[3], decided[] = {{.verdict = CORE_MET}, {0}, {.verdict = CORE_MET}};
    (void)state;
    found_after(5, for_running, open, 2);
    found_after(6, for_ended, decided, 3);
    found_after(7, for_waiting, open, 1);
    found_after(8, never, open, 1);
    found_ran(4);
    fake_store.ends[fake_store.nends++] = (struct fake_end){1, CORE_END_BADLY}; /* decided otherwise: it stays so */
    fake_store.ends[fake_store.nends++] = (struct fake_end){2, CORE_END_UNSTARTED};
    create();
    assert_int_equal(state_of(5)->after[0].verdict, CORE_MET);
    assert_int_equal(state_of(5)->after[1].verdict, CORE_OPEN);
    for (int i = 0; i < 3; i++)
        assert_int_equal(state_of(6)->after[i].verdict, CORE_MET);
    assert_int_equal(state_of(7)->after[0].verdict, CORE_OPEN);
    assert_int_equal(state_of(8)->after[0].verdict, CORE_NEVER);
    engine_begin(bed.engine);
    assert_int_equal(state_of(8)->state, JOB_CANCELLED);
    assert_int_equal(fake_store_last(8)->reason, REASON_NEVER);
}

/* A row that no elmer has written is damage, and one whose ends cannot be read is no reason to guess. */
static void test_who_waits_cannot_be_read(void **state)
{
    static const char *const item[] = {"ok:1"}, *const wrong[] = {"ok:"};
    static const struct core_after open[1];
    (void)state;
    found_after(5, item, open, 1);
    fake_store.load_ends_code = -EIO;
    assert_int_equal(bed_create(), -EIO);
    bed_destroy();
    bed_teardown(NULL);
    bed_setup(NULL);
    fake_store.load_ends_code = 0;
    found_after(5, wrong, open, 1);
    assert_int_equal(bed_create(), -EUCLEAN);
    bed_destroy();
    bed_teardown(NULL);
    bed_setup(NULL);
    found_after(5, item, open, 1)->nafter = 0;
    assert_int_equal(bed_create(), -EUCLEAN);
}

/* An array has waited, and one of its tasks is held alone: that waits for nothing, and its row says nothing of it. */
static void test_task_of_who_has_waited(void **state)
{
    static const char *const for_ended[] = {"ok:1"};
    static const struct core_after met[] = {{.verdict = CORE_MET}};
    static const struct core_range gone[] = {{0, 1}};
    (void)state;
    struct record *array = found_after(5, for_ended, met, 1), *task = found_after(6, for_ended, NULL, 0);
    array->ntasks = 2;
    array->place = 7;
    array->gone = gone;
    array->ngone = 1;
    task->array = 5;
    task->task = 1;
    task->state = JOB_HELD;
    task->reason = REASON_HELD;
    create();
    assert_int_equal(state_of(5)->state, JOB_QUEUED);
    assert_int_equal(state_of(6)->state, JOB_HELD);
    assert_int_equal(state_of(6)->nafter, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {TEST(test_who_waits_for_others), TEST(test_task_of_who_has_waited),
                                       TEST(test_who_waits_cannot_be_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
