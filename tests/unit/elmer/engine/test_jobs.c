/* test_jobs.c - the table of jobs: by id, by token, what a user's submissions take, those that have ended. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/engine/jobs.h"

static struct jobs jobs;

static int setup(void **state)
{
    (void)state;
    jobs_init(&jobs);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    jobs_fini(&jobs);
    return 0;
}

static struct engine_job *add(uint64_t id, uint32_t uid, const char *token, const char *name)
{
    struct wire_message message = {.type = WIRE_submit, .u.submit = {.token = token, .name = name}}, taken;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &err), 0);
    taken.bytes = 100;
    free(json);
    struct engine_job *job = jobs_add(&jobs, id, uid, "alice", &taken);
    assert_null(taken.memory);
    return job;
}

static void test_tokens(void **state)
{
    (void)state;
    struct engine_job *first = add(1, 5, "a", ""), *second = add(2, 6, "a", ""), *third = add(3, 5, "b", "");
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), first);
    assert_ptr_equal(jobs_by_token(&jobs, 6, "a"), second);
    assert_ptr_equal(jobs_by_token(&jobs, 5, "b"), third);
    assert_null(jobs_by_token(&jobs, 7, "a"));
    assert_null(jobs_by_token(&jobs, 5, ""));
    first->refused = true; /* its token means nothing: the client may use it again */
    assert_null(jobs_by_token(&jobs, 5, "a"));
    struct engine_job *again = add(4, 5, "a", "");
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), again);
    jobs_remove(&jobs, first);
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), again);
    assert_null(jobs_find(&jobs, 1));
    jobs_remove(&jobs, again);
    assert_null(jobs_by_token(&jobs, 5, "a"));
    assert_ptr_equal(jobs_find(&jobs, 3), third);
}

/* The same hash: found all the same, whichever goes first. */
static void test_same_hash(void **state)
{
    (void)state;
    struct engine_job *old[3];
    for (size_t i = 0; i < 3; i++) {
        old[i] = add(i + 1, 5, "a", "");
        old[i]->refused = i < 2;
    }
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), old[2]);
    jobs_remove(&jobs, old[1]);
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), old[2]);
    jobs_remove(&jobs, old[2]);
    assert_null(jobs_by_token(&jobs, 5, "a"));
    old[0]->refused = false;
    assert_ptr_equal(jobs_by_token(&jobs, 5, "a"), old[0]);
}

static void test_bytes(void **state)
{
    (void)state;
    assert_int_equal(jobs_bytes(&jobs, 5), 0);
    assert_int_equal(jobs_bytes_of_all(&jobs), 0);
    struct engine_job *first = add(1, 5, "a", ""), *second = add(2, 5, "b", "");
    add(3, 6, "a", "");
    assert_int_equal(jobs_bytes(&jobs, 5), 200);
    jobs_note_ended(&jobs, first);
    assert_int_equal(jobs_bytes(&jobs, 5), 100);
    jobs_drop(&jobs, first);
    assert_int_equal(jobs_bytes(&jobs, 5), 100);
    jobs_remove(&jobs, second);
    assert_int_equal(jobs_bytes(&jobs, 5), 0);
    assert_int_equal(jobs_bytes(&jobs, 6), 100);
    assert_int_equal(jobs_bytes_of_all(&jobs), 100);
    assert_int_equal(jobs.bytes.count, 1); /* of who has something */
}

static void test_ended(void **state)
{
    (void)state;
    struct engine_job *all[3];
    for (size_t i = 0; i < 3; i++)
        all[i] = add(i + 1, 5, "a", "");
    assert_null(jobs_oldest(&jobs, 0));
    jobs_note_ended(&jobs, all[1]);
    jobs_note_ended(&jobs, all[0]);
    assert_null(jobs_oldest(&jobs, 2));
    assert_ptr_equal(jobs_oldest(&jobs, 1), all[1]); /* in the order of their end */
    jobs_drop(&jobs, all[1]);
    assert_ptr_equal(jobs_oldest(&jobs, 0), all[0]);
    jobs_drop(&jobs, all[0]);
    jobs_note_ended(&jobs, all[2]);
    assert_ptr_equal(jobs_oldest(&jobs, 0), all[2]);
    assert_int_equal(jobs.nended, 1);
}

/* Of an array with a long command many tasks become jobs: no copy of it is made before they have ended, and what each
 * has of its own counts for its user. */
static void test_tasks(void **state)
{
    enum { TASKS = 1000, LONG = 100000 };
    static char text[LONG + 1];
    const char *command[] = {text}, *hosts[] = {"ws1", "ws2", "ws3"};
    struct wire_message message = {.type = WIRE_submit}, taken;
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    (void)state;
    memset(text, 'x', LONG);
    message.u.submit = (struct wire_submit){
        .token = "a", .name = "a", .tasks = "1-1000", .command = {command, 1}, .hosts = {hosts, 3}};
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &err), 0);
    free(json);
    struct engine_job *array = jobs_add(&jobs, 1, 5, "alice", &taken), *last = NULL;
    size_t alone = jobs_bytes(&jobs, 5);
    for (uint64_t i = 1; i <= TASKS; i++) {
        last = jobs_add_task(&jobs, 1 + i, array);
        assert_null(last->end);
        assert_null(last->submission.memory);
        assert_ptr_equal(job_submit(last), job_submit(array));
    }
    assert_int_equal(jobs_bytes(&jobs, 5), alone + TASKS * 3 * sizeof(int));
    assert_int_equal(jobs_bytes_of_all(&jobs), jobs_bytes(&jobs, 5));
    assert_int_equal(job_bytes(last), alone); /* that is shown of it */
    jobs_note_ended(&jobs, last);
    assert_int_equal(jobs_bytes(&jobs, 5), alone + (TASKS - 1) * 3 * sizeof(int));
    assert_null(last->of);
    assert_string_equal(job_submit(last)->command.items[0], text);
    assert_true(jobs.ended_bytes >= LONG); /* now it has one of its own, which counts among those of ended ones */
}

static void test_name_and_usage(void **state)
{
    (void)state;
    struct engine_job *job = add(1, 5, "a", "simulation");
    assert_string_equal(job_submit(job)->name, "simulation");
    assert_ptr_equal(job_submit(job)->name, job->name);
    job_set_usage(job, "ws1", 1, 1, 10);
    job_set_usage(job, "ws2", 1, 2, 20);
    job_set_usage(job, "ws1", 2, 3, 30);
    job_set_usage(job, "ws1", 1, 4, 40); /* replaces */
    assert_int_equal(job->nusage, 3);
    assert_int_equal(job->usage[0].memory_peak_bytes, 40);
    assert_int_equal(job->usage[2].attempt, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_tokens), TEST(test_same_hash), TEST(test_bytes),
                                       TEST(test_ended),  TEST(test_tasks),     TEST(test_name_and_usage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
