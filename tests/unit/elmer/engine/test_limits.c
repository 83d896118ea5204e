/* test_limits.c - jobs that have run, or computed, for as long as they may: when it strikes, also after restarts and
 * while hosts have no link, and the signal before. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

enum { MINUTE = 60000 };

static const struct core_job *state_of(uint64_t id)
{
    return core_job(engine_core(bed.engine), id);
}

/* The host has applied its last order, and is not told again. */
static void confirm(void)
{
    struct event event = {.type = EVENT_ORDERED, .u.generation = core_host(engine_core(bed.engine), 0)->generation};
    engine_event(bed.engine, &event);
}

static const struct engine_job *run(uint64_t number)
{
    const struct engine_job *job = bed_running(number);
    confirm();
    bed_forget_log();
    return job;
}

/* The host has nothing of it any more. */
static void empty(uint64_t id)
{
    confirm();
    engine_emptied(bed.engine, 0, id, state_of(id)->attempt, 1, -1);
    confirm();
    fake_store_commit();
}

/* At the time and not before, with the figure in the reason; a job that has ended meanwhile is left alone. */
static void test_time(void **state)
{
    const struct engine_job *job;

    (void)state;
    bed.limits.time_limit_ms = 150 * MINUTE;
    bed_begin(2);
    job = run(1);
    fake_time_pass(150 * MINUTE - 1);
    assert_int_equal(bed_state(job->id), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(job->id), JOB_ENDING);
    fake_store_commit();
    assert_true(bed_told("end ws1 1.1"));
    assert_int_equal(state_of(1)->reason, REASON_TIME_LIMIT);
    assert_string_equal(state_of(1)->text, "it has run for its time limit of 2h30m");
    empty(1);
    assert_int_equal(bed_state(1), JOB_DONE);
    job = run(2);
    bed_exited(job->id, 0);
    empty(2);
    fake_time_pass(300 * MINUTE);
    assert_int_equal(state_of(2)->reason, REASON_EXITED);
}

/* Waiting and starting do not count, and neither does the attempt before. */
static void test_what_counts(void **state)
{
    const struct engine_job *job;

    (void)state;
    bed.limits.time_limit_ms = MINUTE;
    bed.limits.limit_requeue = true;
    bed_begin(1);
    job = bed_submit(1, 1, true);
    confirm();
    fake_time_pass(20000);
    bed_event(EVENT_OPENED, 0, 1, 1, 0);
    bed_event(EVENT_LAUNCHED, 0, 1, 1, 0);
    fake_store_commit();
    fake_time_pass(MINUTE - 1);
    assert_int_equal(bed_state(job->id), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    empty(1);
    assert_int_equal(state_of(1)->attempt, 2); /* back into the queue, and on */
    assert_int_equal(job->started_ms, -1);     /* a restart of elmer reckons from it */
    bed_event(EVENT_OPENED, 0, 1, 2, 0);
    bed_event(EVENT_LAUNCHED, 0, 1, 2, 0);
    fake_store_commit();
    assert_int_equal(job->started_ms, FAKE_WALL_MS + fake_time.passed_ms);
    fake_time_pass(MINUTE - 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    bed_event(EVENT_KILL, 3, 1, 0, 0); /* then it does not go again */
    empty(1);
    assert_int_equal(bed_state(1), JOB_DONE);
    assert_int_equal(state_of(1)->reason, REASON_KILLED);
}

/* What its hosts say together; what they say of another attempt, or of other jobs, counts for nothing. */
static void test_cpu(void **state)
{
    (void)state;
    bed.limits.cpu_limit_ms = 10 * MINUTE;
    bed_begin(2);
    run(1);
    fake_time_pass(20 * MINUTE);
    engine_used(bed.engine, 0, 1, 2, 5000, "");
    engine_used(bed.engine, 0, 7, 1, 5000, "");
    engine_used(bed.engine, 1, 1, 1, 5000, ""); /* no host of it */
    engine_used(bed.engine, 0, 1, 1, 599.9, "");
    assert_int_equal(bed_state(1), JOB_RUNNING);
    engine_used(bed.engine, 0, 1, 1, 600, "");
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_CPU_LIMIT);
    assert_string_equal(state_of(1)->text, "it has used its CPU time limit of 10m");
}

/* Each host of the job once; one that is not up gets nothing, and a job that does not run neither. */
static void test_signal(void **state)
{
    int away = 5;

    (void)state;
    bed_begin(2);
    run(1);
    assert_int_equal(engine_signal(bed.engine, 1, 10, &away), 1);
    assert_int_equal(away, 0);
    bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0);
    assert_int_equal(engine_signal(bed.engine, 1, 10, &away), 0);
    assert_int_equal(away, 1);
    assert_int_equal(engine_signal(bed.engine, 99, 10, &away), -1);
}

/* What a job uses is known while it runs, also of one without a limit, of each host once. */
static void test_cpu_without_limit(void **state)
{
    (void)state;
    bed_begin(2);
    run(1);
    fake_time_pass(MINUTE);
    const struct engine_job *job = engine_job(bed.engine, 1);
    engine_used(bed.engine, 0, 1, 1, 20, "");
    engine_used(bed.engine, 0, 1, 1, 50, "");
    assert_int_equal(job->nusage, 1);
    assert_string_equal(job->usage[0].host, core_host(engine_core(bed.engine), 0)->name);
    assert_true(job->usage[0].cpu_seconds > 49.9 && job->usage[0].cpu_seconds < 50.1);
    assert_int_equal(job->usage[0].memory_peak_bytes, -1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
}

/* More than its processors can have had is not believed. */
static void test_cpu_lie(void **state)
{
    (void)state;
    bed.limits.cpu_limit_ms = 10 * MINUTE;
    bed_begin(1);
    run(1);
    fake_time_pass(MINUTE);
    engine_used(bed.engine, 0, 1, 1, 1e9, "");
    assert_int_equal(bed_state(1), JOB_RUNNING);
}

static void test_warning(void **state)
{
    (void)state;
    bed.limits.time_limit_ms = 10 * MINUTE;
    bed.limits.warning_signal = 10;
    bed.limits.warning_ms = 2 * MINUTE;
    bed_begin(1);
    run(1);
    fake_time_pass(8 * MINUTE - 1);
    bed_expect("");
    fake_time_pass(1);
    bed_expect("signal ws1 1.1 10");
    fake_time_pass(2 * MINUTE - 1);
    assert_false(bed_told("signal")); /* once */
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
}

/* A host without link gets it when it has one again. */
static void test_warning_later(void **state)
{
    struct core_holding holding = {1, 1};

    (void)state;
    bed.limits.time_limit_ms = 10 * MINUTE;
    bed.limits.warning_signal = 10;
    bed.limits.warning_ms = 2 * MINUTE;
    bed_begin(1);
    run(1);
    bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0);
    fake_time_pass(8 * MINUTE + 5000);
    assert_false(bed_told("signal"));
    bed_up(0, 1, &holding, 1);
    bed_forget_log();
    fake_time_pass(1000);
    assert_true(bed_told("signal ws1 1.1 10"));
    fake_time_pass(2 * MINUTE);
    assert_int_equal(bed_state(1), JOB_ENDING);
}

static void test_cpu_warning(void **state)
{
    (void)state;
    bed.limits.cpu_limit_ms = 10 * MINUTE;
    bed.limits.warning_signal = 12;
    bed.limits.warning_ms = MINUTE;
    bed_begin(1);
    run(1);
    fake_time_pass(60 * MINUTE);
    engine_used(bed.engine, 0, 1, 1, 539, "");
    bed_expect("");
    engine_used(bed.engine, 0, 1, 1, 540, "");
    bed_expect("signal ws1 1.1 12");
    engine_used(bed.engine, 0, 1, 1, 550, "");
    bed_expect("");
}

/* Between two reports more went by than it was to be warned of; its processors use that up in no time. */
static void test_cpu_jump(void **state)
{
    (void)state;
    bed.limits.cpu_limit_ms = 10 * MINUTE;
    bed.limits.warning_signal = 12;
    bed.limits.warning_ms = 10000;
    bed_begin(1);
    run(1);
    fake_time_pass(60 * MINUTE);
    engine_used(bed.engine, 0, 1, 1, 500, "");
    bed_expect("");
    engine_used(bed.engine, 0, 1, 1, 700, "");
    bed_expect("signal ws1 1.1 12");
    engine_used(bed.engine, 0, 1, 1, 800, "");
    fake_time_pass(9999);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_CPU_LIMIT);
}

/* A host without link may have the job's end. */
static void test_cpu_silent(void **state)
{
    struct core_holding holding = {1, 1};

    (void)state;
    bed.limits.cpu_limit_ms = 10 * MINUTE;
    bed_begin(1);
    run(1);
    fake_time_pass(60 * MINUTE);
    bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0);
    engine_used(bed.engine, 0, 1, 1, 700, "");
    fake_time_pass(MINUTE);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    bed_up(0, 1, &holding, 1);
    fake_time_pass(2000);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_CPU_LIMIT);
}

/* ---- restarts ---- */

/* It has run for 5 minutes when the row was written, 3 minutes ago. */
static void found_running(uint64_t time_limit_ms, bool same_boot)
{
    static const char *command[] = {"/bin/true"};
    struct wire_submit submit = {
        .nprocs = 1, .time_limit_ms = time_limit_ms, .name = "x", .dir = "/d", .token = "t", .command = {command, 1}};
    struct record *r = fake_store_record(1, 5, &submit);
    struct record_processor *processors = arena_array(&r->memory, 1, sizeof(*processors));

    processors[0] = (struct record_processor){"ws1", 0};
    r->state = JOB_RUNNING;
    r->reason = REASON_NONE;
    r->attempt = 1;
    r->allocation = 1;
    r->level = 0;
    r->processors = processors;
    r->nprocessors = 1;
    r->exited = arena_alloc(&r->memory, 1);
    r->exited_size = 1;
    r->launched = true;
    r->submitted_ms = 1000;
    r->boot = same_boot ? fake_store.boot : fake_store.boot + 1;
    r->accounted_mono_ms = fake_now_ms() - 3 * MINUTE;
    r->accounted_ms = FAKE_WALL_MS + fake_time.passed_ms - 3 * MINUTE;
    r->started_ms = r->accounted_ms - 5 * MINUTE;
    fake_store.jobs[fake_store.njobs++] = r;
    fake_store.next_job = fake_store.next_allocation = 2;
}

static void restart(void)
{
    struct core_holding holding = {1, 1};

    if (bed_create())
        fail_msg("%s", bed.err.text);
    engine_begin(bed.engine);
    bed_up(0, 1, &holding, 1);
    bed_forget_log();
}

static void test_restart(void **state)
{
    (void)state;
    found_running(10 * MINUTE, true);
    fake_time.wall_ms = 100 * MINUTE; /* a clock that is set does not matter within one start of the machine */
    restart();
    fake_time_pass(2 * MINUTE - 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_TIME_LIMIT);
}

/* Nor does one that was set before the row was written. */
static void test_clock_set(void **state)
{
    (void)state;
    bed.limits.time_limit_ms = 10 * MINUTE;
    bed_begin(1);
    run(1);
    fake_time.wall_ms += 120 * MINUTE;
    fake_time_pass(3 * MINUTE);
    bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0); /* a step, up to which its times count */
    struct record *r = job_record(engine_core(bed.engine), engine_job(bed.engine, 1), state_of(1), false);
    assert_int_equal(r->accounted_ms - r->started_ms, 3 * MINUTE);
    record_destroy(r);
    bed_event(EVENT_HOST_HEARD, 0, 0, 0, 0);
    bed_exited(1, 0);
    fake_store_commit();
    int64_t started_ms = engine_job(bed.engine, 1)->started_ms;
    assert_int_equal(FAKE_WALL_MS + fake_time.passed_ms + fake_time.wall_ms - started_ms, 3 * MINUTE);
}

static void test_other_boot(void **state)
{
    (void)state;
    found_running(10 * MINUTE, false);
    restart();
    fake_time_pass(2 * MINUTE - 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
}

/* While elmer was away: at once, but for what its hosts say when they have just come up. */
static void test_overdue(void **state)
{
    (void)state;
    found_running(7 * MINUTE, true);
    restart();
    fake_time_pass(0);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1000);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_TIME_LIMIT);
}

/* A notice asks elmer, so it has its minute from then on, and is said to have begun when it did. */
static void test_notice(void **state)
{
    static const char *const here[] = {"ws1"};
    struct wire_submit *submit;

    (void)state;
    found_running(MINUTE, true);
    submit = (struct wire_submit *)(uintptr_t)fake_store.jobs[0]->submit;
    submit->notice = true;
    fake_store.jobs[0]->hosts = here;
    fake_store.jobs[0]->nhosts = 1;
    restart();
    fake_time_pass(MINUTE - 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_TIME_LIMIT);
    assert_int_equal(engine_job(bed.engine, 1)->started_ms, FAKE_WALL_MS - 8 * MINUTE);
}

/* ---- hosts without link, which may have its result ---- */

static void test_result_awaited(void **state)
{
    struct core_holding holding = {1, 1};

    (void)state;
    found_running(7 * MINUTE, true);
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    fake_time_pass(5 * MINUTE);
    assert_int_equal(core_host(engine_core(bed.engine), 0)->state, CORE_HOST_AWAITED);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    bed_up(0, 1, &holding, 1);
    fake_time_pass(1000); /* it has been looked at meanwhile */
    assert_int_equal(bed_state(1), JOB_RUNNING);
    bed_exited(1, 0);
    fake_time_pass(5000);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_EXITED);
    assert_int_equal(state_of(1)->exit_status, 0);
}

/* Silent over the moment of the limit, twice; then nothing is said of an end. */
static void test_result_silent(void **state)
{
    struct core_holding holding = {1, 1};

    (void)state;
    bed.limits.time_limit_ms = 10 * MINUTE;
    bed.limits.warning_signal = 10;
    bed.limits.warning_ms = MINUTE;
    bed_begin(1);
    run(1);
    for (int i = 0; i < 2; i++) {
        bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0);
        fake_time_pass(11 * MINUTE);
        bed_up(0, 1, &holding, 1);
        fake_time_pass(1000);
        assert_int_equal(bed_state(1), JOB_RUNNING);
    }
    assert_false(bed_told("signal"));
    fake_time_pass(1000); /* it is warned first, and has the time that it has asked for */
    assert_true(bed_told("signal ws1 1.1 10"));
    fake_time_pass(MINUTE - 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    fake_time_pass(1);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_int_equal(state_of(1)->reason, REASON_TIME_LIMIT);
}

/* It ends: its host is given up. */
static void test_result_lost(void **state)
{
    (void)state;
    bed.limits.time_limit_ms = MINUTE;
    bed_begin(1);
    run(1);
    bed_event(EVENT_HOST_SILENT, 0, 0, 0, 0);
    fake_time_pass(2 * MINUTE);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    bed_event(EVENT_HOST_DOWN, 0, 0, 0, 0);
    fake_time_pass(MINUTE);
    assert_int_equal(bed_state(1), JOB_DONE);
    assert_int_equal(state_of(1)->reason, REASON_HOST_LOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_time),          TEST(test_what_counts), TEST(test_cpu),           TEST(test_cpu_without_limit),
        TEST(test_cpu_lie),       TEST(test_warning),     TEST(test_warning_later), TEST(test_signal),
        TEST(test_cpu_warning),   TEST(test_cpu_jump),    TEST(test_cpu_silent),    TEST(test_restart),
        TEST(test_clock_set),     TEST(test_other_boot),  TEST(test_overdue),       TEST(test_result_awaited),
        TEST(test_result_silent), TEST(test_result_lost), TEST(test_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
