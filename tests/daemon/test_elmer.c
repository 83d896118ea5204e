/* test_elmer.c - the queue daemon as a process, with scripted rsds and clients: the life of a job. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/elmer_steps.h"

static const char *find(const struct wire_strs *environment, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], name, strlen(name)) == 0 && environment->items[i][strlen(name)] == '=') {
            assert_null(value); /* only once */
            value = environment->items[i] + strlen(name) + 1;
        }
    return value ? value : "(none)";
}

/* From hello to done; every step seen, and the view at the end. */
static void test_life(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message start, taken, jobs, submission = lab_submission("t1", 2);
    char answered[16];
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);

    assert_int_equal(lab_submit(&host, &submission, answered, sizeof(answered)), 1);
    assert_string_equal(answered, "starting");
    open_job(&host, 1, 1, &start);
    const struct wire_start *s = &start.u.start;
    assert_int_equal(s->process, 0);
    assert_string_equal(s->role, "command");
    assert_int_equal(s->argv.count, 2);
    assert_string_equal(s->argv.items[1], "arg");
    assert_string_equal(s->output, "elmer-1.out");
    assert_string_equal(s->errors, "elmer-1.out");
    assert_string_equal(s->dir, "/home/alice");
    assert_int_equal(s->umask, 022);
    assert_int_equal(s->cpus.count, 2);
    assert_string_equal(find(&s->environment, "PATH"), "/usr/bin:/bin");
    assert_string_equal(find(&s->environment, "ELMER_RANK"), "0");
    assert_string_equal(find(&s->environment, "ELMER_HOSTS"), "ws1:ws1");
    assert_string_equal(find(&s->environment, "ELMER_NPROCS"), "2");
    assert_string_equal(find(&s->environment, "ELMER_JOB_NAME"), "prog");
    assert_string_equal(find(&s->environment, "ELMER_SUBMIT_HOST"), "ws1");
    assert_string_equal(find(&s->environment, "ELMER_TMPDIR"), "/tmp/jobs/1.1");
    assert_string_equal(find(&s->environment, "PVM_TMP"), "(none)");
    wire_message_fini(&start);

    host_started(&host, 1, 1, 0);
    lab_query_until(&host, 1, "running", &jobs);
    assert_int_equal(only(&jobs)->level, 0);
    assert_true(only(&jobs)->started_ms >= only(&jobs)->submitted_ms);
    assert_int_equal(only(&jobs)->exit_status, -1);
    wire_message_fini(&jobs);

    host_exited(&host, 1, 1, 0, "command", 3, 0);
    fake_expect(&host, WIRE_taken, &taken);
    assert_int_equal(taken.u.taken.process, 0);
    wire_message_fini(&taken);
    end_job(&host, 1, 1, 1.5);
    lab_query_until(&host, 1, "done", &jobs);
    const struct wire_job_view *v = only(&jobs);
    assert_string_equal(v->user, "alice");
    assert_int_equal(v->uid, 2001);
    assert_int_equal(v->exit_status, 3);
    assert_int_equal(v->signal, -1);
    assert_string_equal(v->reason_code, "exited");
    assert_string_equal(v->reason, "the command ended with status 3");
    assert_int_equal(v->processors.count, 2);
    assert_int_equal(v->usage.count, 1);
    assert_true(v->usage.items[0].cpu_seconds > 1.4 && v->usage.items[0].cpu_seconds < 1.6);
    assert_true(v->ended_ms >= v->started_ms && v->started_ms > 0);
    assert_int_equal(v->level_seconds.count, 3);
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The same token: the same id, also after kill -9 right behind the answer, and after the job has left the memory of a
 * new elmer. */
static void test_token_and_kill(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1), second = lab_submission("t2", 1), held;
    char answered[16];
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    assert_int_equal(lab_submit(&host, &submission, NULL, 0), 1);
    assert_int_equal(lab_submit(&host, &submission, NULL, 0), 1);
    /* another user may use the same token */
    host_relay(&host, 9, 2002, "bob", &submission);
    host_expect_relayed(&host, 9, WIRE_submitted, &held);
    assert_int_equal(held.u.submitted.job, 2);
    assert_string_equal(held.u.submitted.state, "queued");
    wire_message_fini(&held);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    assert_int_equal(lab_submit(&host, &second, answered, sizeof(answered)), 3);
    assert_string_equal(answered, "queued");
    lab_stop(&lab, SIGKILL);
    fake_close(&host);

    lab_start(&lab);
    struct wire_holding holding = {1, 1};
    struct host_options options = {.generation = 5, .holdings = &holding, .nholdings = 1};
    host_open(&host, &lab, "ws1", 1, &options);
    assert_int_equal(lab_submit(&host, &second, answered, sizeof(answered)), 3);
    assert_string_equal(answered, "queued");
    lab_query(&host, 2, &jobs);
    assert_string_equal(only(&jobs)->state, "queued");
    assert_string_equal(only(&jobs)->user, "bob");
    assert_int_equal(only(&jobs)->ahead, 0);
    wire_message_fini(&jobs);
    /* job 1 was starting: it is opened and started again, with the same attempt */
    open_job(&host, 1, 1, &start);
    assert_int_equal(start.u.start.attempt, 1);
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    host_exited(&host, 1, 1, 0, "command", 0, 0);
    end_job(&host, 1, 1, 0.1);
    lab_query_until(&host, 1, "done", &jobs);
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGTERM);
    fake_close(&host);

    lab_start(&lab);
    options.nholdings = 0;
    host_open(&host, &lab, "ws1", 1, &options);
    assert_int_equal(lab_submit(&host, &submission, answered, sizeof(answered)), 1);
    assert_string_equal(answered, "done");
    lab_query(&host, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "done");
    assert_string_equal(only(&jobs)->command.items[0], "/bin/prog");
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

/* Both wait for the same commit. */
static void test_answer_before_opens(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = lab_submission("t1", 1);
    enum wire_type seen = WIRE_TYPE_COUNT;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    host_relay(&host, 7, 2001, "alice", &m);
    for (bool opened = false; !opened; wire_message_fini(&m)) {
        struct err err = ERR_INIT;
        if (channel_receive(&host.channel, &m, mono_ms(mono_now()) + 10000, &err) != 1)
            fail_msg("no open: %s", err.text);
        opened = m.type == WIRE_open;
        seen = m.type == WIRE_relayed ? m.type : seen;
    }
    assert_int_equal(seen, WIRE_relayed);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The next frame that is not about heartbeats. */
static enum wire_type next_type(struct fake *host, struct wire_message *m)
{
    do {
        struct err err = ERR_INIT;
        if (channel_receive(&host->channel, m, mono_ms(mono_now()) + 20000, &err) != 1)
            fail_msg("nothing comes: %s", err.text);
        struct wire_message pong = {.type = WIRE_pong, .id = m->id};
        if (m->type == WIRE_ping)
            assert_int_equal(channel_send(&host->channel, &pong, NULL), 0);
    } while (m->type == WIRE_ping || m->type == WIRE_pong);
    return m->type;
}

/* More hosts than a turn has messages for: each gets all of its own, once and in order. */
static void test_many_hosts(void **state)
{
    enum { HOSTS = 600 };
    static struct fake hosts[HOSTS];
    struct lab lab;
    struct wire_message m, submission = lab_submission("t1", HOSTS);
    char *names = calloc(HOSTS + 1, 8), *config = NULL;
    (void)state;
    assert_non_null(names);
    for (int i = 0, at = 0; i < HOSTS; i++)
        at += snprintf(names + at, (size_t)(8 * HOSTS - at), " h%d", i);
    assert_true(asprintf(&config,
                         "resend = 60s\nheartbeat = 20s\nhost_timeout = 60s\nsettle = 0\nallocator = v1\nhosts =%s\n",
                         names) > 0);
    lab_create(&lab, config);
    lab_start(&lab);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(names, 8, "h%d", i);
        host_open(&hosts[i], &lab, names, 1, NULL);
    }
    assert_int_equal(lab_submit(&hosts[0], &submission, NULL, 0), 1);
    for (int i = 0; i < HOSTS; i++) {
        uint64_t generation = 0;
        if (i == 0) { /* some of its orders have been taken with the answer */
            fake_expect(&hosts[0], WIRE_open, &m);
        } else {
            for (; next_type(&hosts[i], &m) == WIRE_order; wire_message_fini(&m)) {
                assert_true(m.u.order.generation > generation);
                generation = m.u.order.generation;
            }
            assert_int_equal(m.type, WIRE_open);
            assert_int_equal(m.u.open.generation, generation);
        }
        wire_message_fini(&m);
    }
    for (int i = 0; i < HOSTS; i++)
        fake_close(&hosts[i]);
    free(names);
    free(config);
    lab_destroy(&lab);
}

/* A job that runs while elmer is restarted goes on, and its exit is taken. */
static void test_restart_running(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1);
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    lab_submit(&host, &submission, NULL, 0);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    lab_query_until(&host, 1, "running", &jobs);
    int64_t started = only(&jobs)->started_ms;
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGTERM);
    fake_close(&host);
    lab_start(&lab);
    struct wire_holding holding = {1, 1};
    struct host_options options = {.generation = 3, .holdings = &holding, .nholdings = 1};
    host_open(&host, &lab, "ws1", 1, &options);
    lab_query(&host, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "running");
    assert_int_equal(only(&jobs)->started_ms, started);
    wire_message_fini(&jobs);
    fake_expect_none(&host, WIRE_start, 200);
    host_exited(&host, 1, 1, 0, "command", -1, SIGSEGV);
    end_job(&host, 1, 1, 0.1);
    lab_query_until(&host, 1, "done", &jobs);
    assert_int_equal(only(&jobs)->signal, SIGSEGV);
    assert_int_equal(only(&jobs)->exit_status, -1);
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

/* elmer dies when the start is out and nothing has come back. The host still has it: started again, which is
 * idempotent. It has not, because it was started again, too: the command may have run, so nothing is opened anew. */
static void test_restart_launched(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1);
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.boot = "one", .generation = 3, .holdings = &holding, .nholdings = 1},
                        rebooted = {.boot = "two"};
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, &(struct host_options){.boot = "one"});
    lab_submit(&host, &submission, NULL, 0);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    lab_stop(&lab, SIGKILL);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, &holds);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    lab_stop(&lab, SIGKILL);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, &rebooted);
    end_job(&host, 1, 1, -1);
    lab_query_until(&host, 1, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "lost");
    wire_message_fini(&jobs);
    fake_expect_none(&host, WIRE_open, 200);
    fake_close(&host);
    lab_destroy(&lab);
}

static void forgotten(struct fake *host)
{
    struct wire_message forget;
    fake_expect(host, WIRE_forget, &forget);
    assert_int_equal(forget.u.forget.job, 1);
    wire_message_fini(&forget);
}

/* elmer is killed when a job has ended everywhere and nothing of it is on disk. The host that had none of its processes
 * is there first: it is not told to forget the job, which another start of its rsd would make lost. */
static void test_result_in_pieces(void **state)
{
    struct lab lab;
    struct fake first, other;
    struct wire_message jobs, message, submission = lab_submission("t1", 2);
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.boot = "one", .generation = 3, .holdings = &holding, .nholdings = 1};
    (void)state;
    lab_create(&lab, "name = ws1\nhosts = ws1 ws2\nresend = 1s\nheartbeat = 1s\nhost_timeout = 5s\nallocator = v1\n"
                     "kill_grace = 500ms\n");
    lab_start(&lab);
    host_open(&first, &lab, "ws1", 1, &(struct host_options){.boot = "one"});
    host_open(&other, &lab, "ws2", 1, &(struct host_options){.boot = "one"});
    lab_submit(&first, &submission, NULL, 0);
    open_job(&first, 1, 1, NULL);
    open_job(&other, 1, 1, NULL);
    fake_expect(&first, WIRE_start, &message);
    wire_message_fini(&message);
    host_started(&first, 1, 1, 0);
    lab_query_until(&first, 1, "running", &jobs);
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGKILL);
    fake_close(&first);
    fake_close(&other);
    lab_start(&lab);
    host_open(&other, &lab, "ws2", 1, &holds);
    host_empty(&other, 1, 1, 0.5);
    fake_expect_none(&other, WIRE_forget, 300);
    host_open(&first, &lab, "ws1", 1, &holds);
    host_exited(&first, 1, 1, 0, "command", 7, 0);
    host_empty(&first, 1, 1, 1.5);
    forgotten(&first);
    fake_expect(&other, WIRE_end, &message);
    wire_message_fini(&message);
    host_empty(&other, 1, 1, 0.5);
    forgotten(&other);
    lab_query_until(&first, 1, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "exited");
    assert_int_equal(only(&jobs)->exit_status, 7);
    assert_int_equal(only(&jobs)->usage.count, 2);
    wire_message_fini(&jobs);
    fake_close(&first);
    fake_close(&other);
    lab_destroy(&lab);
}

/* Processes that cannot be started end the job with a reason that a query shows. */
static void test_start_failed(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message start, jobs, submission = lab_submission("t1", 2);
    (void)state;
    submission.u.submit.each = true;
    submission.u.submit.output = "%x-%u-%j.%r%%";
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    lab_submit(&host, &submission, NULL, 0);
    open_job(&host, 1, 1, &start);
    assert_string_equal(start.u.start.output, "prog-alice-1.0%");
    assert_int_equal(start.u.start.cpus.count, 1);
    assert_int_equal(start.u.start.cpus.items[0], 0);
    wire_message_fini(&start);
    fake_expect(&host, WIRE_start, &start);
    assert_int_equal(start.u.start.process, 1);
    assert_int_equal(start.u.start.cpus.items[0], 1);
    assert_string_equal(start.u.start.output, "prog-alice-1.1%");
    assert_string_equal(find(&start.u.start.environment, "ELMER_RANK"), "1");
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    struct wire_message failed = {
        .type = WIRE_start_failed,
        .u.start_failed = {.job = 1, .attempt = 1, .process = 1, .text = "/bin/prog: no such file"}};
    fake_send(&host, &failed);
    end_job(&host, 1, 1, 0);
    lab_query_until(&host, 1, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "start-failed");
    assert_string_equal(only(&jobs)->reason, "ws1: /bin/prog: no such file");
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

/* The only host that a job may use leaves the configuration and comes back: the job waits for it and runs there. */
static void test_waits_for_its_host(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    const char *on = "ws2";
    struct wire_message submission = lab_submission("t1", 1), change = {.type = WIRE_hold}, start, jobs;
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    submission.u.submit.hosts = (struct wire_strs){&on, 1};
    assert_int_equal(lab_submit(&ws1, &submission, NULL, 0), 1);
    for (int round = 0; round < 2; round++) { /* the second from what was written in the first */
        fake_close(&ws1);
        lab_stop(&lab, SIGTERM);
        snprintf(strstr(lab.config, "hosts ="), 30, "hosts = ws1\n");
        lab_configure(&lab);
        lab_start(&lab);
        host_open(&ws1, &lab, "ws1", 1, NULL);
        fake_expect_none(&ws1, WIRE_open, 100);
        change.type = round ? WIRE_release : WIRE_hold;
        change.u.hold.job = 1; /* of release as well */
        host_relay(&ws1, 1, 2001, "alice", &change);
        host_expect_relayed(&ws1, 1, WIRE_done, &start);
        wire_message_fini(&start);
    }
    lab_query(&ws1, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "queued");
    assert_string_equal(only(&jobs)->reason_code, "too-few-up");
    wire_message_fini(&jobs);
    submission = lab_submission("t2", 1);
    assert_int_equal(lab_submit(&ws1, &submission, NULL, 0), 2);
    open_job(&ws1, 2, 1, &start); /* who waits for a host holds nobody up */
    wire_message_fini(&start);
    fake_close(&ws1);
    lab_stop(&lab, SIGTERM);
    snprintf(strstr(lab.config, "hosts ="), 30, "hosts = ws2 ws1\n");
    lab_configure(&lab);
    lab_start(&lab);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    open_job(&ws2, 1, 1, &start);
    wire_message_fini(&start);
    fake_close(&ws2);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_token_and_kill),
        cmocka_unit_test(test_restart_running),
        cmocka_unit_test(test_restart_launched),
        cmocka_unit_test(test_waits_for_its_host),
        cmocka_unit_test(test_result_in_pieces),
        cmocka_unit_test(test_answer_before_opens),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_start_failed),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
