/* test_explain.c - why a job waits, in words, as those may know it who ask. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/requests/bed.h"

static struct fake_job *queued(uint64_t id, enum reason reason, uint32_t ahead)
{
    struct fake_job *job = fake_engine_add_job(id, ALICE, JOB_QUEUED);
    job->state.reason = reason;
    job->state.ahead = ahead;
    return job;
}

static const struct wire_explained *explained(int link, uint64_t job)
{
    bed_say(link, WIRE_explain, job);
    return &heard(link, WIRE_explained)->u.explained;
}

static void test_hosts(void **state)
{
    (void)state;
    queued(7, REASON_TOO_FEW_UP, 0);
    fake_engine.why[QUEUE] = (struct core_host_why){
        .bar = CORE_BAR_BUSY, .cpus = 2, .busy = 2, .foreign = 2, .foreign_share = 0.93, .threshold = 0.75};
    fake_engine.why[WS1] = (struct core_host_why){.bar = CORE_BAR_DRAINED, .cpus = 2};
    fake_hosts.hosts[WS1].drained_by = "carol";
    fake_hosts.hosts[WS1].drained_for = "disk";
    fake_engine.why[WS2] = (struct core_host_why){
        .bar = CORE_BAR_NONE, .cpus = 3, .usable = 1, .full = 1, .unmeasured = 1, .levels = 3, .threshold = 0.75};
    const struct wire_explained *e = explained(bed_client(ALICE), 7);
    assert_string_equal(e->state, "queued");
    assert_string_equal(e->reason, "waits for ws1 (drained by carol): 1 processor asked, 5 usable");
    assert_false(e->more);
    assert_int_equal(e->hosts.count, 3);
    assert_string_equal(e->hosts.items[QUEUE].text,
                        "2 of 2 up to 93 % busy with programs outside Elmer (threshold 75 %)");
    assert_string_equal(e->hosts.items[QUEUE].help, "the programs outside Elmer have to end or to pause");
    assert_string_equal(e->hosts.items[WS1].rule, "drained");
    assert_string_equal(e->hosts.items[WS1].text, "drained by carol: disk: it takes no new jobs");
    assert_string_equal(e->hosts.items[WS1].help, "an administrator lets it take jobs again: eadmin resume ws1");
    assert_int_equal(e->hosts.items[WS2].usable, 1);
    assert_string_equal(e->hosts.items[WS2].text, "1 of 3 processors full: jobs on all 3 levels; 1 of 3 not measured "
                                                  "since the last change there");
    assert_string_equal(e->hosts.items[WS2].help, "");
}

static void test_only_level(void **state)
{
    (void)state;
    queued(7, REASON_TOO_FEW_UP, 0);
    fake_engine.why[WS1] = (struct core_host_why){.bar = CORE_BAR_FULL, .cpus = 2, .full = 2, .levels = 1};
    const struct wire_explained *e = explained(bed_client(ALICE), 7);
    assert_string_equal(e->hosts.items[WS1].text, "2 of 2 processors full: jobs on the only level");
}

/* With figures; and a host that would not hold it to what it asks for is named as one. */
static void test_memory(void **state)
{
    const uint64_t gib = (uint64_t)1 << 30;
    (void)state;
    queued(7, REASON_TOO_FEW_UP, 0)->job.submission.u.submit.memory_bytes = 4 * gib;
    fake_hosts.hosts[WS1].facts.limits_memory = fake_hosts.hosts[QUEUE].facts.limits_memory = true;
    fake_engine.why[QUEUE] = (struct core_host_why){
        .bar = CORE_BAR_MEMORY, .cpus = 2, .memory_bytes = 3 * gib, .left_bytes = 3 * gib, .asked_bytes = 4 * gib};
    fake_engine.why[WS1] = (struct core_host_why){
        .bar = CORE_BAR_MEMORY, .cpus = 4, .memory_bytes = 8 * gib, .left_bytes = 2 * gib, .asked_bytes = 4 * gib};
    fake_engine.why[WS2] = (struct core_host_why){.bar = CORE_BAR_NONE,
                                                  .cpus = 3,
                                                  .usable = 1,
                                                  .beyond = 2,
                                                  .levels = 3,
                                                  .memory_bytes = 8 * gib,
                                                  .left_bytes = 5 * gib,
                                                  .asked_bytes = 4 * gib};
    const struct wire_explained *e = explained(bed_client(ALICE), 7);
    assert_string_equal(e->reason, "waits for queue (memory): 1 processor asked, 4 usable");
    assert_string_equal(e->hosts.items[QUEUE].rule, "memory");
    assert_string_equal(e->hosts.items[QUEUE].help, "it never has so much: ask for less");
    assert_string_equal(e->hosts.items[WS1].text, "ws1 has 2 GiB left of 8 GiB: 4 GiB asked for each processor");
    assert_string_equal(e->hosts.items[WS1].help, "a job there that has asked for memory has to end");
    assert_string_equal(e->hosts.items[WS2].text,
                        "2 of 3 without memory for it: 5 GiB left of 8 GiB, 4 GiB asked for each (without the "
                        "controller memory nothing holds the job to its memory)");
}

/* What keeps the first one is told to those who wait behind it, and of another user's job no more than a list has. */
static void test_behind_another(void **state)
{
    (void)state;
    fake_engine_add_job(5, BOB, JOB_HELD)->state.reason = REASON_HELD;
    queued(7, REASON_WAITING, 1);
    fake_engine.refused = 5;
    const struct wire_explained *e = explained(bed_client(ALICE), 7);
    assert_int_equal(e->ahead, 1);
    assert_int_equal(e->first, 5);
    assert_string_equal(e->first_reason, "held: it stays in the queue until it is released");
    assert_string_equal(e->help, "the jobs ahead have to start; etop 7 moves it before other jobs of its owner");
}

/* One that runs has nothing to wait for: it is said below whom it does. */
static void test_running(void **state)
{
    (void)state;
    struct fake_job *job = fake_engine_add_job(7, ALICE, JOB_RUNNING);
    job->state.level = 1;
    job->job.submission.u.submit.nprocs = 3;
    fake_engine.above = 5;
    const struct wire_explained *e = explained(bed_client(BOB), 7);
    assert_string_equal(e->state, "running");
    assert_int_equal(e->level, 1);
    assert_int_equal(e->hosts.count, 0);
    assert_int_equal(e->above.count, 1); /* once, though it is above two of its ranks */
    assert_int_equal(e->above.items[0], 5);
}

static void test_not_there(void **state)
{
    (void)state;
    int link = bed_client(ALICE);
    fake_engine.next_id = 9;
    bed_say(link, WIRE_explain, 8);
    assert_string_equal(heard_error(link, "job 8 has ended: equery shows how"), WIRE_CODE_NO_SUCH_JOB);
    bed_say(link, WIRE_explain, 9);
    assert_string_equal(heard_error(link, "there is no job 9"), WIRE_CODE_NO_SUCH_JOB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hosts, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_only_level, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_memory, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_behind_another, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_running, bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_not_there, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
