/* test_submit.c - submissions: their checks, the same one again, and a store that cannot be written. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "elmer/engine/launchers.h"
#include "lib/job/terminal.h"
#include "lib/job/variables.h"
#include "tests/unit/elmer/requests/bed.h"

static int alice;

static int setup(void **state)
{
    bed_setup(state);
    alice = bed_client(ALICE);
    return 0;
}

/* Name services have answered. */
static void submit(int link, const struct wire_message *message)
{
    say(link, message);
    fake_work_run();
}

/* As far as the engine: the token is not in the store. */
static struct event begin(const char *token)
{
    struct wire_message message = bed_submission(token);
    submit(alice, &message);
    fake_store_answer(NULL, 0, NULL);
    return *fake_event(EVENT_SUBMIT);
}

/* ---- the normal path ---- */

static void look_at_submit(const struct event *event)
{
    assert_int_equal(event->u.submit.uid, ALICE);
    assert_int_equal(event->u.submit.nprocs, 3);
    assert_true(event->u.submit.each);
    assert_true(event->u.submit.requeue);
    assert_int_equal(event->u.submit.nhosts, 3); /* as they are named: the core counts each once */
    assert_int_equal(event->u.submit.hosts[0], WS2);
    assert_int_equal(event->u.submit.hosts[1], WS1);
}

static void test_accepted(void **state)
{
    const char *hosts[] = {"ws2", "ws1", "ws2"};
    struct wire_message message = bed_submission("t1");
    (void)state;
    message.u.submit.nprocs = 3;
    message.u.submit.each = message.u.submit.requeue = true;
    message.u.submit.hosts = (struct wire_strs){hosts, 3};
    message.u.submit.submit_host = "anywhere";
    message.u.submit.name = "";
    fake_engine.on_event = look_at_submit;
    say(alice, &message);
    assert_int_equal(fake_store.nreads, 0);
    fake_work_run();
    assert_int_equal(fake_store.nreads, 1);
    assert_int_equal(fake_store.reads[0].type, FAKE_READ_TOKEN);
    assert_int_equal(fake_store.reads[0].uid, ALICE);
    assert_string_equal(fake_store.reads[0].text, "t1");
    fake_store_answer(NULL, 0, NULL);
    struct event event = *fake_event(EVENT_SUBMIT);
    assert_string_equal(fake_engine.user, "alice");
    heard_nothing(); /* it is not on disk */
    struct fake_job *job = fake_engine_find(1);
    assert_string_equal(job_submit(&job->job)->submit_host, "queue"); /* from the transport, not the payload */
    assert_string_equal(job_submit(&job->job)->name, "true");
    job->state.ahead = 4;
    job->state.reason = REASON_WAITING;
    bed_answer(&event, ANSWER_OK, 1);
    const struct wire_message *said = heard(alice, WIRE_submitted);
    assert_int_equal(said->id, 3);
    assert_int_equal(said->u.submitted.job, 1);
    assert_string_equal(said->u.submitted.state, "queued");
    assert_int_equal(said->u.submitted.ahead, 4);
    assert_string_equal(said->u.submitted.reason, "");
}

static void test_relayed(void **state)
{
    struct wire_message message = bed_submission("t1");
    (void)state;
    bed_relay(WS1, 9, NOBODY, "dora", &message); /* a user that this host does not know, and no other of that name */
    fake_work_run();
    fake_store_answer(NULL, 0, NULL);
    struct event event = *fake_event(EVENT_SUBMIT);
    assert_int_equal(event.u.submit.uid, NOBODY);
    assert_string_equal(fake_engine.user, "dora");
    assert_string_equal(job_submit(&fake_engine_find(1)->job)->submit_host, "ws1");
    bed_answer(&event, ANSWER_OK, 1);
    assert_non_null(strstr(bed_relayed(WS1, 9), "\"submitted\""));
}

/* ---- checks: nothing has happened ---- */

static void refused(const struct wire_message *message, const char *words)
{
    submit(alice, message);
    heard_error(alice, words);
    assert_int_equal(fake_store.nreads, 0);
    fake_no_event();
    fake_time_skip(1000); /* for the rate */
}

static void test_checks(void **state)
{
    static const char *nothing[] = {""}, *bad_environment[] = {"A=1", "B"}, *bad_name[] = {"A B=1"};
    static const char *terminal[] = {TERMINAL_VARIABLE "=" TERMINAL_PTY}, *holds[] = {JOB_MACHINE};
    const struct wire_strs machine = {holds, 1};
    struct wire_message m;
    (void)state;
#define WRONG(words, ...)                                                                                              \
    do {                                                                                                               \
        m = bed_submission("t1");                                                                                      \
        __VA_ARGS__;                                                                                                   \
        refused(&m, words);                                                                                            \
    } while (0)
    WRONG("at least one processor", m.u.submit.nprocs = 0);
    WRONG("65 processors are asked for, and the configuration allows 64", m.u.submit.nprocs = 65);
    WRONG("there is no command", m.u.submit.command.count = 0);
    WRONG("there is no command", m.u.submit.command.items = nothing);
    WRONG("is not absolute", m.u.submit.dir = "d");
    WRONG("no token", m.u.submit.token = "");
    WRONG("cannot be part of a file name", m.u.submit.name = "a/b");
    WRONG("cannot be part of a file name", m.u.submit.name = "..");
    WRONG("the name contains control characters", m.u.submit.name = "a\x1b");
    WRONG("the comment contains control characters", m.u.submit.comment = "a\nb");
    WRONG("the file name for output contains an unknown pattern", m.u.submit.output = "%q");
    WRONG("the file name for error output contains an unknown pattern", m.u.submit.errors = "%q");
    WRONG("\"B\" is not of the form NAME=VALUE", m.u.submit.environment = (struct wire_strs){bad_environment, 2});
    WRONG("is not of the form", m.u.submit.environment = (struct wire_strs){bad_name, 1});
    WRONG("1048575 bytes of memory for each processor are asked for: at least",
          m.u.submit.memory_bytes = (1 << 20) - 1);
#define TERMINAL(kind) m.u.submit.terminal = (kind), m.u.submit.environment = (struct wire_strs){terminal, 1}
    WRONG("ask for a terminal with --pty", m.u.submit.terminal = TERMINAL_PTY);
    WRONG("ask for a terminal with --pty", m.u.submit.environment = (struct wire_strs){terminal, 1});
    WRONG("ask for a terminal with --pty", TERMINAL(TERMINAL_KEEP));
    WRONG("is for one command, not for one on each", TERMINAL(TERMINAL_PTY), m.u.submit.each = true);
    WRONG("is for one command, not for a virtual machine", TERMINAL(TERMINAL_PTY), m.u.submit.command = machine);
    WRONG("the signal TERM would end a terminal", TERMINAL(TERMINAL_PTY), m.u.submit.time_limit_ms = 9000,
          m.u.submit.warning_ms = 1000, m.u.submit.warning_signal = SIGTERM);
    WRONG("leave out --requeue", TERMINAL(TERMINAL_PTY), m.u.submit.requeue = true);
}

static void test_too_large(void **state)
{
    static char large[257 << 10], half[253 << 10];
    const char *one[] = {large}, *many[] = {half, half};
    struct wire_message m = bed_submission("t1");
    (void)state;
    bed.settings.user_request_bytes = 1 << 20;
    bed_again(0);
    alice = bed_client(ALICE);
    memset(large, 'a', sizeof(large) - 1);
    memset(half, 'a', sizeof(half) - 1);
    half[1] = '=';
    m.u.submit.command.items = one;
    refused(&m, "the command and its environment are too large");
    m = bed_submission("t1");
    m.u.submit.environment = (struct wire_strs){many, 2};
    refused(&m, "the command and its environment are too large");
}

static void look_at_hosts(const struct event *event)
{
    assert_int_equal(event->u.submit.hosts[0], WS2);
    assert_int_equal(event->u.submit.hosts[1], QUEUE);
}

/* The core decides with all that it knows; here is what it is given, and how its refusal is told. */
static void test_hosts_of_it(void **state)
{
    static const char *unknown[] = {"ws1", "ws9"}, *two[] = {"ws2", "queue"};
    struct wire_message m = bed_submission("t1");
    const struct event *event;
    (void)state;
    fake_engine.refuse = true;
#define NOT_THERE(words)                                                                                               \
    do {                                                                                                               \
        submit(alice, &m);                                                                                             \
        fake_store_answer(NULL, 0, NULL);                                                                              \
        event = fake_event(EVENT_SUBMIT);                                                                              \
        heard_error(alice, words);                                                                                     \
    } while (0)
    m.u.submit.nprocs = 7;
    fake_engine.reach = (struct core_reach){.cpus = 6};
    NOT_THERE("7 processors are asked for, and the cluster has only 6: ask for fewer");
    assert_null(event->u.submit.hosts);
    assert_int_equal(event->u.submit.needs, 0);
    m.u.submit.pvm = true;
    m.u.submit.nprocs = 5;
    fake_engine.reach = (struct core_reach){.cpus = 4, .lacking = 1};
    NOT_THERE("the cluster has, with PVM, only 4");
    assert_int_equal(event->u.submit.needs, 1u << LAUNCHER_PVM);
    fake_engine.reach = (struct core_reach){.lacking = 1};
    NOT_THERE("no host of the cluster has PVM, which the job needs: have it installed there");
    m.u.submit.pvm = false;
    m.u.submit.nprocs = 1;
    fake_engine.reach = (struct core_reach){.cpus = 0};
    NOT_THERE("1 processor is asked for, and the cluster has only 0: ask for fewer");
    m = bed_submission("t1");
    m.u.submit.nprocs = 2;
    m.u.submit.memory_bytes = (uint64_t)4 << 30;
    fake_engine.reach = (struct core_reach){.cpus_there = 6, .most_memory_bytes = 3 << 29, .most_memory_host = WS1};
    NOT_THERE("4 GiB of memory are asked for each processor, and no host of the cluster can hold that: ws1 has most of "
              "it for jobs, 1.5 GiB: ask for less");
    assert_int_equal(event->u.submit.needs, OFFERS_MEMORY);
    assert_true(event->u.submit.memory_bytes == (uint64_t)4 << 30);
    fake_engine.reach.most_memory_bytes = (uint64_t)4 << 30;
    fake_engine.reach.cpus = 1;
    NOT_THERE(
        "2 processors with 4 GiB of memory each are asked for, and the cluster can hold 1 at a time (ws1 has most "
        "memory for jobs, 4 GiB): ask for fewer, or for less memory");
    fake_engine.reach = (struct core_reach){.cpus = 1, .lacking = 2, .cpus_there = 1, .most_memory_host = WS1};
    NOT_THERE("the cluster has, with an rsd that says what memory it has (1.10), only 1");
    m.u.submit.memory_bytes = 0;
    m.u.submit.nprocs = 4;
    m.u.submit.per_host = 1;
    fake_engine.reach = (struct core_reach){.cpus = 3, .cpus_there = 6, .most_memory_host = WS1};
    NOT_THERE("4 processors are asked for, at most 1 of each host, and of the cluster that is 3: ask for fewer, or for "
              "more of each host");
    assert_int_equal(event->u.submit.per_host, 1);
    m.u.submit.nprocs = 10; /* hosts that were never up give one, too */
    fake_engine.reach = (struct core_reach){.cpus = 3, .unknown = 2, .cpus_there = 6, .most_memory_host = WS1};
    NOT_THERE("10 processors are asked for, at most 1 of each host");
    m = bed_submission("t1");
    m.u.submit.nprocs = 15;
    m.u.submit.mesh_rows = 5;
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "a mesh is asked for, and the hosts have no shape");
    m.u.submit.mesh_rows = 4;
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "its rows do not divide");
    m.u.submit.mesh_rows = 5;
    fake_engine.cube = 32;
    m.u.submit.memory_bytes = (uint64_t)1 << 30; /* there is enough of that */
    fake_engine.reach = (struct core_reach){
        .cpus = 16, .cpus_there = 16, .most_memory_bytes = (uint64_t)1 << 32, .most_memory_host = WS1};
    NOT_THERE("needs a cube of 32 hosts, and there is none among the hosts of the cluster: ask for another shape");
    assert_int_equal(event->u.submit.mesh_rows, 5);
    fake_engine.cube = 0;
    m = bed_submission("t1");
    m.u.submit.hosts = (struct wire_strs){two, 2};
    m.u.submit.nprocs = 3000;
    fake_engine.on_event = look_at_hosts;
    fake_engine.reach = (struct core_reach){.cpus = 2, .unknown = 1};
    bed.settings.max_nprocs = 4000;
    NOT_THERE("the hosts of --hosts have only 1026: ask for fewer, or name more hosts");
    assert_int_equal(event->u.submit.nhosts, 2);
    fake_engine.on_event = NULL;
    m.u.submit.hosts = (struct wire_strs){unknown, 2};
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "there is no host \"ws9\"");
    fake_no_event();
}

/* ---- who may ---- */

static void test_users(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    int root = bed_client(ROOT), daemon = bed_client(DAEMON), nobody = bed_client(NOBODY);
    submit(root, &m);
    assert_string_equal(heard_error(root, "root runs no jobs"), WIRE_CODE_NOT_PERMITTED);
    submit(daemon, &m);
    assert_string_equal(heard_error(daemon, "they are for uids from 1000 on"), WIRE_CODE_NOT_PERMITTED);
    submit(nobody, &m);
    assert_string_equal(heard_error(nobody, "uid 1009 has no name on this host"), WIRE_CODE_NOT_PERMITTED);
    assert_int_equal(fake_store.nreads, 0);
}

static void test_room(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    fake_engine.queued = 3;
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "user alice has 3 jobs in the queue, and may have 3 (user_queued");
    fake_engine.queued = 2;
    fake_engine.bytes = 1 << 20;
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "(user_memory");
    fake_engine.bytes = 0;
    fake_engine.bytes_of_all = 4 << 20;
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    heard_error(alice, "(4 times user_memory");
    fake_engine.bytes_of_all = 0;
    fake_no_event();
    fake_engine.queued = 3;
    int carol = bed_client(CAROL); /* an administrator */
    submit(carol, &m);
    fake_store_answer(NULL, 0, NULL);
    fake_event(EVENT_SUBMIT);
}

/* ---- the same submission again ---- */

static struct fake_job *job_with_token(uint64_t id, uint32_t uid, const char *token)
{
    struct fake_job *job = fake_engine_add_job(id, uid, JOB_RUNNING);
    job->job.submission.u.submit.token = token;
    return job;
}

static void test_repeated(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    job_with_token(7, ALICE, "t1");
    job_with_token(8, BOB, "t2");
    submit(alice, &m);
    assert_int_equal(fake_store.nreads, 0);
    const struct wire_message *said = heard(alice, WIRE_submitted);
    assert_int_equal(said->u.submitted.job, 7);
    assert_string_equal(said->u.submitted.state, "running");
    m = bed_submission("t2"); /* another user's */
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    fake_event(EVENT_SUBMIT);
}

/* The first one is not on disk yet. */
static void test_repeated_early(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    fake_engine.held = true;
    struct event event = begin("t1");
    submit(alice, &m);
    fake_no_event();
    heard_nothing();
    bed_answer(&event, ANSWER_OK, 1);
    fake_engine_commit();
    assert_int_equal(heard(alice, WIRE_submitted)->u.submitted.job, 1);
    assert_int_equal(heard(alice, WIRE_submitted)->u.submitted.job, 1);
}

/* Both come while the store is asked. */
static void test_twice_at_once(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    submit(alice, &m);
    submit(alice, &m);
    fake_store_answer(NULL, 0, NULL);
    fake_store_answer(NULL, 0, NULL);
    fake_event(EVENT_SUBMIT);
    fake_no_event(); /* one job */
    fake_engine_drop_job(1);
}

static void test_repeated_in_store(void **state)
{
    struct wire_message m = bed_submission("t1");
    struct record *record = fake_store_record(5, ALICE, &m.u.submit);
    (void)state;
    record->state = JOB_DONE;
    record->reason = REASON_EXITED;
    submit(alice, &m);
    fake_store_answer(&record, 1, NULL);
    const struct wire_message *said = heard(alice, WIRE_submitted);
    assert_int_equal(said->u.submitted.job, 5);
    assert_string_equal(said->u.submitted.state, "done");
    submit(alice, &m);
    fake_store_answer(NULL, 0, "I/O error"); /* nobody knows whether it is there: no second job */
    heard_error(alice, "cannot read its store: I/O error; try again with the same token");
    fake_no_event();
}

/* ---- the store cannot be written ---- */

static void test_store_fails(void **state)
{
    struct wire_message m = bed_submission("t2");
    (void)state;
    struct event event = begin("t1");
    bool submission = fake_engine.requests.failed(event.request, false, "disk full", fake_engine.requests_data);
    assert_true(submission); /* so the job is undone */
    assert_string_equal(heard_error(alice, "the job is not accepted: disk full"), WIRE_CODE_UNAVAILABLE);
    assert_false(
        fake_engine.requests.failed(event.request, false, "disk full", fake_engine.requests_data)); /* it has ended */
    fake_engine.failure = "disk full";
    submit(alice, &m);
    assert_string_equal(heard_error(alice, "the job is not accepted: disk full"), WIRE_CODE_UNAVAILABLE);
    assert_int_equal(fake_store.nreads, 0);
    bed_answer(&event, ANSWER_OK, 1); /* when it works again: too late */
    heard_nothing();
}

/* A repeated submission whose job is on disk is answered: what fails is something else. */
static void test_store_fails_later(void **state)
{
    (void)state;
    struct event event = begin("t1");
    assert_false(fake_engine.requests.failed(event.request, true, "disk full", fake_engine.requests_data));
    assert_int_equal(heard(alice, WIRE_submitted)->u.submitted.job, 1);
}

/* A kill waits: it is not answered as a submission, and is told when it is on disk. */
static void test_kill_waits(void **state)
{
    (void)state;
    fake_engine_add_job(7, ALICE, JOB_RUNNING);
    bed_say(alice, WIRE_kill, 7);
    struct event event = *fake_event(EVENT_KILL);
    assert_false(fake_engine.requests.failed(event.request, true, "disk full", fake_engine.requests_data));
    heard_nothing();
    bed_answer(&event, ANSWER_OK, 7);
    assert_string_equal(heard(alice, WIRE_done)->u.done.text, "job 7 is being ended");
    assert_false(fake_engine.requests.failed(99, false, "disk full", fake_engine.requests_data)); /* nobody's */
}

/* ---- the client goes away ---- */

static void test_gone_while_asking(void **state)
{
    struct wire_message m = bed_submission("t1");
    (void)state;
    submit(alice, &m);
    links_cut((size_t)alice);
    fake_store_answer(NULL, 0, NULL);
    fake_no_event(); /* nothing has happened: the token may come again */
}

/* It has become a job, which goes on; refused, it is undone as well. */
static void test_gone_later(void **state)
{
    (void)state;
    struct event event = begin("t1");
    links_cut((size_t)alice);
    assert_true(fake_engine.requests.failed(event.request, false, "disk full", fake_engine.requests_data));
    alice = bed_client(ALICE);
    event = begin("t2");
    links_cut((size_t)alice);
    bed_answer(&event, ANSWER_OK, 2);
    heard_nothing();
}

/* It has ended, and a thousand others since. */
static void test_forgotten(void **state)
{
    (void)state;
    struct event event = begin("t1");
    fake_engine_drop_job(1);
    bed_answer(&event, ANSWER_OK, 1);
    assert_string_equal(heard(alice, WIRE_submitted)->u.submitted.state, "done");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_accepted),
        TEST(test_relayed),
        TEST(test_checks),
        TEST(test_too_large),
        TEST(test_hosts_of_it),
        TEST(test_users),
        TEST(test_room),
        TEST(test_repeated),
        TEST(test_repeated_early),
        TEST(test_twice_at_once),
        TEST(test_repeated_in_store),
        TEST(test_store_fails),
        TEST(test_store_fails_later),
        TEST(test_kill_waits),
        TEST(test_gone_while_asking),
        TEST(test_gone_later),
        TEST(test_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
