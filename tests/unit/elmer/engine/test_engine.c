/* test_engine.c - what an engine does at once, what it does after the commit, in which order; and a store that cannot
 * be written. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

/* ---- at once, and after the commit ---- */

static void test_commit(void **state)
{
    (void)state;
    bed_begin(1);
    size_t before = fake_store.nputs;
    const struct engine_job *job = bed_submit(11, 1, false);
    bed_expect("order ws1"); /* follows from facts: at once */
    assert_true(fake_store.nputs > before);
    assert_int_equal(fake_store.wanted, fake_store.nputs); /* somebody waits */
    assert_non_null(fake_store_last(1)->json);
    assert_false(engine_job_accepted(bed.engine, job));
    fake_store_commit();
    bed_expect("answer 11 ok 1; open ws1 1.1"); /* all that they follow from is on disk */
    assert_true(engine_job_accepted(bed.engine, job));

    before = fake_store.nputs;
    bed_event(EVENT_OPENED, 0, 1, 1, 0);
    assert_true(fake_store.nputs > before); /* that it may have run */
    assert_true(fake_store_last(1)->launched);
    bed_expect("");
    assert_int_equal(fake_store.wanted, fake_store.nputs);
    fake_store_commit();
    bed_expect("launch 1");
    bed_event(EVENT_LAUNCHED, 0, 1, 1, 0);
    assert_int_equal(bed_state(1), JOB_RUNNING);

    before = fake_store.nputs;
    bed_event(EVENT_KILL, 12, 1, 0, 0);
    assert_true(fake_store.nputs > before);
    assert_true(bed_told("end ws1 1.1")); /* at once */
    assert_false(bed_told("answer"));
    fake_store_commit();
    assert_true(bed_told("answer 12 ok 1"));
    assert_null(fake_store_last(1)->json); /* the submission was written once */
}

/* What puts nothing, and waits for nothing, is done at once. */
static void test_nothing_to_write(void **state)
{
    (void)state;
    bed_begin(1);
    size_t before = fake_store.nputs;
    bed_event(EVENT_CANCEL, 5, 99, 0, 0);
    assert_int_equal(fake_store.nputs, before);
    bed_expect("answer 5 no such job 99");
}

/* Of one commit the answers go first, because people wait for them; else the order stays. */
static void test_answers_first(void **state)
{
    (void)state;
    bed_begin(4);
    for (uint64_t i = 1; i <= 3; i++) {
        bed_submit(i, 1, false);
    }
    bed_event(EVENT_HOLD, 4, 1, 0, 0); /* is too late for that: a refusal waits its turn, too */
    bed_forget_log();
    fake_store_commit();
    bed_expect("answer 1 ok 1; answer 2 ok 2; answer 3 ok 3; answer 4 wrong state 1; open ws1 1.1; open ws1 2.1; open "
               "ws1 3.1");
}

/* An open that waits is not sent when the job has been ended meanwhile. */
static void test_ended_meanwhile(void **state)
{
    (void)state;
    bed_begin(1);
    bed_submit(1, 1, false);
    bed_event(EVENT_KILL, 2, 1, 0, 0);
    fake_store_commit();
    assert_false(bed_told("open"));
    assert_true(bed_told("answer 1 ok 1"));
    assert_true(bed_told("answer 2 ok 1"));
}

/* Nobody notices whether these come some milliseconds later: the commit is not asked for. */
static void test_linger(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    uint64_t wanted = fake_store.wanted;
    bed_exited(1, 0);
    assert_true(bed_told("end ws1 1.1"));
    assert_false(bed_told("ack"));
    assert_true(engine_emptied(bed.engine, 0, 1, 1, 2.5, 4096));
    assert_int_equal(bed_state(1), JOB_DONE);
    assert_int_equal(fake_store.wanted, wanted);
    assert_true(fake_store.nputs > fake_store.committed);

    struct record *record = engine_record(bed.engine, job); /* a final state is not shown before it is on disk */
    assert_int_equal(record->state, JOB_ENDING);
    assert_int_equal(record->ended_ms, -1);
    record_destroy(record);
    assert_false(engine_job_settled(bed.engine, job));
    bed_forget_log();
    fake_store_commit();
    bed_expect("ack ws1 1.1 rank 0; ended 1");
    record = engine_record(bed.engine, job);
    assert_int_equal(record->state, JOB_DONE);
    assert_int_equal(record->ended_ms, FAKE_WALL_MS);
    record_destroy(record);
}

/* Somebody waits for the end. */
static void test_watched(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    engine_watch(bed.engine, job->id);
    bed_exited(1, 0);
    assert_int_not_equal(fake_store.wanted, fake_store.nputs);
    engine_emptied(bed.engine, 0, 1, 1, 1, 1);
    assert_true(fake_store.wanted >= job->put);
    fake_store_commit();
    assert_true(bed_told("ended 1"));
    engine_unwatch(bed.engine, job->id);
}

/* The same when he comes after the end was put. */
static void test_watched_later(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    bed_exited(1, 0);
    engine_emptied(bed.engine, 0, 1, 1, 1, 1);
    assert_true(fake_store.wanted < job->put);
    engine_watch(bed.engine, job->id);
    assert_int_equal(fake_store.wanted, job->put);
    engine_unwatch(bed.engine, job->id);
}

/* What other rooms let wait is done after what waits already, with what they gave. */
static void on_wait(const struct engine_wait *wait)
{
    struct engine_job *job = wait->owner;
    assert_int_equal(wait->number, 42);
    assert_int_equal(wait->job, 9);
    assert_int_equal(wait->attempt, 3);
    assert_int_equal(wait->rank, 2);
    assert_int_equal(wait->host, 1);
    size_t length = strlen(bed.log);
    snprintf(bed.log + length, sizeof(bed.log) - length, "; waited");
    job->watchers = 0;
}

static void test_after_commit(void **state)
{
    struct engine_job mark = {.watchers = 1};
    struct engine_wait wait = {.run = on_wait,
                               .owner = &mark,
                               .urgency = ENGINE_WORK,
                               .number = 42,
                               .job = 9,
                               .attempt = 3,
                               .rank = 2,
                               .host = 1};
    (void)state;
    bed_begin(1);
    engine_after_commit(bed.engine, &wait); /* nothing is to be written */
    assert_int_equal(mark.watchers, 0);
    mark.watchers = 1;
    struct certificate certificate = {.serial = "AB", .host = "ws1"};
    uint64_t number = engine_put_certificate(bed.engine, &certificate);
    assert_int_equal(number, fake_store.nputs);
    assert_string_equal(fake_store.puts[fake_store.nputs - 1].certificate.serial, "AB");
    engine_after_commit(bed.engine, &wait);
    assert_int_equal(mark.watchers, 1);
    assert_int_equal(fake_store.wanted, fake_store.nputs);
    bed_forget_log();
    fake_store_commit();
    assert_int_equal(mark.watchers, 0);
}

/* ---- an event that arises while actions are carried out ---- */

static void fail_open(const char *line)
{
    char text[] = "its rsd is too old";
    if (strncmp(line, "open", 4) != 0)
        return;
    struct event event = {.type = EVENT_OPEN_FAILED, .host = 0, .job = 1, .attempt = 1};
    event.u.failed.reason = REASON_START_FAILED;
    event.u.failed.text = text;
    bed.on_note = NULL;
    engine_event(bed.engine, &event);
    assert_int_equal(bed_state(1), JOB_STARTING); /* it waits */
    memset(text, 'x', sizeof(text) - 1);          /* and its text was copied */
}

static void test_event_waits(void **state)
{
    (void)state;
    bed_begin(2);
    bed_submit(1, 1, false);
    bed_submit(2, 1, false);
    bed_forget_log();
    bed.on_note = fail_open;
    fake_store_commit();
    fake_store_commit();
    const char *second = strstr(bed.log, "open ws1 2.1"), *end = strstr(bed.log, "end ws1 1.1");
    assert_non_null(second);
    assert_non_null(end);
    assert_true(second < end);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_string_equal(core_job(engine_core(bed.engine), 1)->text, "its rsd is too old");
}

static void kill_two(const char *line)
{
    if (strcmp(line, "order ws1") != 0)
        return;
    bed.on_note = NULL;
    bed_event(EVENT_KILL, 7, 1, 0, 0);
    bed_event(EVENT_KILL, 8, 1, 0, 0);
    assert_int_equal(bed_state(1), JOB_RUNNING);
}

/* Of a step, not of a commit; several in their order. */
static void test_events_in_step(void **state)
{
    (void)state;
    bed_begin(1);
    bed_running(1);
    bed.on_note = kill_two;
    bed_submit(2, 1, false); /* another level: an order */
    assert_null(bed.on_note);
    assert_int_equal(bed_state(1), JOB_ENDING);
    fake_store_commit();
    const char *submitted = strstr(bed.log, "answer 2"), *first = strstr(bed.log, "answer 7 ok"),
               *second = strstr(bed.log, "answer 8");
    assert_true(submitted && first && second);
    assert_true(submitted < first && first < second);
}

/* ---- the store cannot be written ---- */

static void test_submission_refused(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_submit(1, 1, false);
    bed_forget_log();
    fake_store_fail("disk full");
    assert_non_null(strstr(engine_store_failure(bed.engine), "disk full"));
    assert_true(bed_told("failed 1"));
    assert_false(bed_told("accepted"));
    assert_true(bed_told("end ws1 1.1")); /* undone, at once */
    assert_true(job->refused);
    assert_null(jobs_by_token(engine_jobs(bed.engine), 5, "t1"));
    assert_true(fake_store_last(1)->dropped); /* nothing of it stays in the store */
    bed.submission = false;                   /* the request has ended */
    bed_forget_log();
    fake_store_fail("disk full"); /* a second later */
    assert_false(bed_told("end"));
    fake_store_fail(NULL);
    assert_null(engine_store_failure(bed.engine));
    fake_store_commit();
    assert_false(bed_told("open"));
}

static void test_queued_submission_refused(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_submit(1, 1, false);
    fake_store_commit();
    assert_non_null(job);
    for (int i = 2; i <= 4; i++)
        bed_submit((uint64_t)i, 1, false); /* three levels: the fourth waits */
    assert_int_equal(bed_state(4), JOB_QUEUED);
    fake_store_fail("disk full");
    assert_int_equal(bed_state(4), JOB_CANCELLED);
    assert_true(fake_store_last(4)->dropped);
    assert_int_equal(bed_state(1), JOB_STARTING); /* was accepted */
    assert_false(fake_store_last(1)->dropped);
}

/* ---- what a host has used, and when it may forget ---- */

static void test_emptied(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_running(1);
    fake_time_skip(3000);
    bed_exited(1, 3);
    assert_true(engine_emptied(bed.engine, 0, 1, 1, 2.5, 4096));
    assert_int_equal(job->nusage, 1);
    assert_true(fake_store_last(1)->usage[0].cpu_seconds > 2.4);
    assert_int_equal(fake_store_last(1)->usage[0].memory_peak_bytes, 4096);
    assert_string_equal(fake_store_last(1)->usage[0].host, "ws1");
    fake_store_commit();

    size_t before = fake_store.nputs; /* once more, with other figures: worth a write of its own */
    assert_true(engine_emptied(bed.engine, 0, 1, 1, 3.5, 8192));
    assert_int_equal(fake_store.nputs, before + 1);
    assert_int_equal(job->nusage, 1);
    assert_int_equal(fake_store_last(1)->usage[0].memory_peak_bytes, 8192);
    assert_int_equal(fake_store_last(1)->state, JOB_DONE);

    before = fake_store.nputs;
    assert_true(engine_emptied(bed.engine, 0, 1, 1, -1, -1)); /* it says that it does not know the job */
    assert_true(engine_emptied(bed.engine, 0, 1, 2, 9, 9));   /* another attempt */
    assert_true(engine_emptied(bed.engine, 0, 99, 1, 9, 9));  /* a job that is not known */
    assert_int_equal(fake_store.nputs, before);
    assert_int_equal(job->usage[0].memory_peak_bytes, 8192);
}

/* ---- the history in memory ---- */

static void end_one(uint64_t number)
{
    bed_submit(number, 1, false);
    bed_event(EVENT_HOLD, 0, number, 0, 0);
    bed_event(EVENT_CANCEL, 0, number, 0, 0);
}

static void test_history(void **state)
{
    (void)state;
    bed.names[1] = NULL;
    assert_int_equal(bed_create(), 0); /* no host is up: all are queued */
    engine_begin(bed.engine);
    bed_submit(1, 1, false);
    const struct engine_job *watched = engine_job(bed.engine, 1);
    bed_event(EVENT_CANCEL, 0, 1, 0, 0);
    engine_watch(bed.engine, watched->id);
    fake_store_commit();
    for (uint64_t i = 2; i <= JOBS_ENDED_KEPT; i++) {
        end_one(i);
        if (i % 20 == 0)
            fake_store_commit();
        bed_forget_log();
    }
    fake_time_pass(1);
    assert_int_equal(engine_jobs(bed.engine)->nended, JOBS_ENDED_KEPT);

    end_one(JOBS_ENDED_KEPT + 1);
    fake_time_pass(1);
    assert_non_null(engine_job(bed.engine, 1));
    fake_store_commit(); /* now it counts; but the oldest is watched */
    fake_time_pass(1);
    assert_non_null(engine_job(bed.engine, 1));
    engine_unwatch(bed.engine, watched->id);
    assert_non_null(engine_job(bed.engine, 1)); /* a pointer is good until the next turn */
    fake_time_pass(1);
    assert_null(engine_job(bed.engine, 1));
    assert_null(core_job(engine_core(bed.engine), 1));
    assert_non_null(engine_job(bed.engine, 2));
    assert_int_equal(engine_jobs(bed.engine)->nended, JOBS_ENDED_KEPT);
    assert_null(jobs_by_token(engine_jobs(bed.engine), 5, "t1"));
    assert_non_null(jobs_by_token(engine_jobs(bed.engine), 5, "t2"));
}

static bool has_environment(const struct record *record) /* or its ticket */
{
    return strstr(record->json, "sesame") || strstr(record->json, "f00d");
}

/* It goes with the last state of a job, from the store and from memory; a job that will run again keeps it. */
static void test_environment(void **state)
{
    (void)state;
    bed_begin(1);
    const struct engine_job *job = bed_submit(1, 1, true);
    assert_true(has_environment(fake_store_last(1)));
    fake_store_commit();
    bed_event(EVENT_HOST_DOWN, 0, 0, 0, 0);
    assert_int_equal(bed_state(1), JOB_QUEUED);
    assert_null(fake_store_last(1)->json);
    assert_string_equal(fake_store_last(1)->environment_sha256, "");
    fake_store_commit();
    assert_int_equal(job_submit(job)->environment.count, 1);
    bed_event(EVENT_CANCEL, 0, 1, 0, 0);
    assert_int_equal(fake_store_last(1)->state, JOB_CANCELLED);
    assert_false(has_environment(fake_store_last(1)));
    assert_int_equal(strlen(fake_store_last(1)->environment_sha256), RECORD_DIGEST_SIZE - 1);
    assert_int_equal(job_submit(job)->environment.count, 1); /* the end is not on disk */
    fake_store_commit();
    assert_int_equal(job_submit(job)->environment.count, 0);
    assert_string_equal(job_submit(job)->name, "x");
    assert_string_equal(job_submit(job)->command.items[0], "/bin/true");
    assert_ptr_equal(jobs_by_token(engine_jobs(bed.engine), 5, "t1"), job);
    engine_emptied(bed.engine, 0, 1, 1, 2.5, -1); /* late news change nothing of it */
    assert_null(fake_store_last(1)->json);
    assert_int_equal(strlen(fake_store_last(1)->environment_sha256), RECORD_DIGEST_SIZE - 1);
}

static uint32_t rows_of(uint64_t id)
{
    struct record *r = engine_record(bed.engine, engine_job(bed.engine, id));
    uint32_t rows = r->mesh_rows;
    record_destroy(r);
    return rows;
}

/* Two processors of a cube are a row of two, also of a job that has asked for no mesh, until it has ended. */
static void test_mesh(void **state)
{
    (void)state;
    bed.settings.core.topology = TOPOLOGY_CUBE;
    bed.settings.core.allocator = ALLOCATOR_CUBE_AFL;
    bed.settings.core.levels = 1;
    bed.names[2] = NULL;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    bed_submit(1, 2, false);
    bed_submit(2, 1, false);
    assert_int_equal(rows_of(1), 1);
    assert_int_equal(rows_of(2), 0);
    bed_event(EVENT_CANCEL, 3, 1, 0, -1);
    fake_store_commit();
    assert_int_equal(rows_of(1), 0);
}

/* Large submissions of ended jobs do not stay in memory by the thousand. */
static void test_large_history(void **state)
{
    (void)state;
    bed.names[1] = NULL;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    for (uint64_t id = 1; id <= 3; id++) {
        end_one(id);
        fake_store_commit();
    }
    fake_time_pass(1);
    assert_int_equal(engine_jobs(bed.engine)->nended, 3);
    bed_submit(4, 1, false);
    ((struct jobs *)(uintptr_t)engine_jobs(bed.engine))->ended_bytes += JOBS_ENDED_BYTES; /* as if it were large */
    jobs_find(engine_jobs(bed.engine), 1)->bytes += JOBS_ENDED_BYTES;
    bed_event(EVENT_HOLD, 0, 4, 0, 0);
    bed_event(EVENT_CANCEL, 0, 4, 0, 0);
    fake_store_commit();
    fake_time_pass(1);
    assert_null(engine_job(bed.engine, 1));
    assert_int_equal(engine_jobs(bed.engine)->nended, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_commit),
        TEST(test_nothing_to_write),
        TEST(test_answers_first),
        TEST(test_ended_meanwhile),
        TEST(test_linger),
        TEST(test_watched),
        TEST(test_watched_later),
        TEST(test_after_commit),
        TEST(test_event_waits),
        TEST(test_events_in_step),
        TEST(test_submission_refused),
        TEST(test_queued_submission_refused),
        TEST(test_emptied),
        TEST(test_history),
        TEST(test_environment),
        TEST(test_mesh),
        TEST(test_large_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
