/* test_elmer.c - the queue daemon as a process, with scripted rsds and clients. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/queued_lines.h"

#define LOCAL "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 3s\nsettle = 0\nallocator = v1\n"

static const struct wire_job_view *only(const struct wire_message *jobs)
{
    return &jobs->u.jobs.jobs.items[0];
}

static const char *find(const struct wire_strs *environment, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < environment->count; i++)
        if (!strncmp(environment->items[i], name, strlen(name)) && environment->items[i][strlen(name)] == '=') {
            assert_null(value); /* only once */
            value = environment->items[i] + strlen(name) + 1;
        }
    return value ? value : "(none)";
}

/* Through order and open; the start that comes is the caller's. */
static void open_job(struct fake *host, uint64_t job, uint32_t attempt, struct wire_message *start)
{
    struct wire_message order, open;
    fake_expect(host, WIRE_open, &open);
    while (open.u.open.job < job) { /* an earlier one, sent again: the machine was slow */
        wire_message_fini(&open);
        fake_expect(host, WIRE_open, &open);
    }
    assert_int_equal(open.u.open.job, job);
    assert_int_equal(open.u.open.attempt, attempt);
    fake_expect(host, WIRE_order, &order);
    while (order.u.order.generation < open.u.open.generation) { /* an earlier one */
        wire_message_fini(&order);
        fake_expect(host, WIRE_order, &order);
    }
    host_ordered(host, order.u.order.generation);
    host_event(host, WIRE_opened, job, attempt);
    wire_message_fini(&order);
    wire_message_fini(&open);
    if (start)
        fake_expect(host, WIRE_start, start);
}

static void end_job(struct fake *host, uint64_t job, uint32_t attempt, double cpu_seconds)
{
    struct wire_message end, forget;
    fake_expect(host, WIRE_end, &end);
    assert_int_equal(end.u.end.job, job);
    assert_int_equal(end.u.end.grace_ms, 500);
    host_empty(host, job, attempt, cpu_seconds);
    fake_expect(host, WIRE_forget, &forget);
    assert_int_equal(forget.u.forget.job, job);
    wire_message_fini(&end);
    wire_message_fini(&forget);
}

/* From hello to done; every step seen, and the view at the end. */
static void test_life(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message start, taken, jobs, submission = lab_submission("t1", 2);
    char answered[16];
    (void)state;
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 2, NULL);

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
    lab_create(&lab, LOCAL "levels = 1\n", false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
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
    host_open(&host, &lab, "host.sock", "ws1", 1, &options);
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
    host_open(&host, &lab, "host.sock", "ws1", 1, &options);
    assert_int_equal(lab_submit(&host, &submission, answered, sizeof(answered)), 1);
    assert_string_equal(answered, "done");
    lab_query(&host, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "done");
    assert_string_equal(only(&jobs)->command.items[0], "/bin/prog");
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

static void query_as(struct fake *host, uint32_t uid, const char *user, uint64_t job, struct wire_message *answer)
{
    uint64_t ids[] = {job};
    struct wire_message query = {.type = WIRE_query, .u.query = {.running = true, .queued = true, .jobs = {ids, 1}}};
    host_relay(host, 100 + uid, uid, user, &query);
    host_expect_relayed(host, 100 + uid, WIRE_jobs, answer);
    assert_int_equal(answer->u.jobs.jobs.count, 1);
}

static void expect_hidden(const struct wire_job_view *v, bool hidden)
{
    assert_string_equal(v->user, "alice");
    assert_string_equal(v->state, "held");
    assert_int_equal(v->nprocs, 1);
    assert_string_equal(v->name, hidden ? "" : "prog");
    assert_string_equal(v->dir, hidden ? "" : "/home/alice");
    assert_int_equal(v->command.count, hidden ? 0 : 2);
    assert_int_equal(v->hidden, hidden);
}

/* Others do not see what a job is, unless the administrator allows it; the owner and root of the queue host do. */
static void test_privacy(void **state)
{
    struct lab lab;
    struct fake host, other;
    struct wire_message jobs, done, hold = {.type = WIRE_hold, .u.hold = {.job = 1}},
                                    wait = {.type = WIRE_wait, .u.wait = {.job = 1, .timeout_ms = 1}},
                                    submission = lab_submission("t1", 1);
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1 ws2\n", true);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&other, &lab, "tcp", "ws2", 1, NULL);
    assert_int_equal(lab_submit(&host, &submission, NULL, 0), 1);
    submission = lab_submission("t2", 2);
    assert_int_equal(lab_submit(&host, &submission, NULL, 0), 2);
    submission = lab_submission("t3", 1);
    hold.u.hold.job = wait.u.wait.job = lab_submit(&host, &submission, NULL, 0);
    host_relay(&host, 7, 2001, "alice", &hold);
    host_expect_relayed(&host, 7, WIRE_done, &done);
    wire_message_fini(&done);

    query_as(&host, 2001, "alice", 3, &jobs);
    expect_hidden(only(&jobs), false);
    wire_message_fini(&jobs);
    query_as(&host, 2002, "bob", 3, &jobs);
    expect_hidden(only(&jobs), true);
    wire_message_fini(&jobs);
    host_relay(&host, 2102, 2002, "bob", &wait);
    host_expect_relayed(&host, 2102, WIRE_jobs, &jobs);
    expect_hidden(only(&jobs), true);
    wire_message_fini(&jobs);
    struct wire_message lines, query_lines = {.type = WIRE_query_lines, .u.query_lines.queued = true};
    host_relay(&host, 2202, 2002, "bob", &query_lines);
    host_expect_relayed(&host, 2202, WIRE_lines, &lines);
    struct queued_line third = {0};
    assert_true(queued_lines_fit(&lines.u.lines));
    for (size_t i = 0; i < queued_lines_count(&lines.u.lines) && third.job != 3; i++)
        third = queued_lines_at(&lines.u.lines, i);
    assert_int_equal(third.job, 3);
    assert_true(third.hidden && third.held);
    assert_string_equal(third.name, "");
    wire_message_fini(&lines);
    query_as(&host, 0, "root", 3, &jobs);
    expect_hidden(only(&jobs), false);
    wire_message_fini(&jobs);
    query_as(&other, 0, "root", 3, &jobs); /* root somewhere else is nobody here */
    expect_hidden(only(&jobs), true);
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGTERM);
    fake_close(&host);
    fake_close(&other);

    snprintf(lab.config, sizeof(lab.config), "%s", LOCAL "levels = 1\nhosts = ws1 ws2\nprivate_jobs = no\n");
    lab_configure(&lab);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    query_as(&host, 2002, "bob", 3, &jobs);
    expect_hidden(only(&jobs), false);
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
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
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
    lab_create(&lab, config, true);
    lab_start(&lab);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(names, 8, "h%d", i);
        host_open(&hosts[i], &lab, "tcp", names, 1, NULL);
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

/* An rsd of minor 0 has clients that are told no more than it knows, and its jobs run as ever. */
static void test_older_rsd(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1);
    (void)state;
    lab_create(&lab, LOCAL, false);
    lab.minor = 0;
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    assert_int_equal(lab_submit(&host, &submission, NULL, 0), 1);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    lab_query_until(&host, 1, "running", &jobs);
    assert_string_equal(only(&jobs)->name, "prog");
    wire_message_fini(&jobs);
    query_as(&host, 2002, "bob", 1, &jobs);
    assert_string_equal(only(&jobs)->name, "");
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

/* A job that runs while elmer is restarted goes on, and its exit is taken. */
static void test_restart_running(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1);
    (void)state;
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
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
    host_open(&host, &lab, "host.sock", "ws1", 1, &options);
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
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, &(struct host_options){.boot = "one"});
    lab_submit(&host, &submission, NULL, 0);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    lab_stop(&lab, SIGKILL);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, &holds);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    lab_stop(&lab, SIGKILL);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, &rebooted);
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
    lab_create(&lab,
               "name = ws1\nhosts = ws1 ws2\nresend = 1s\nheartbeat = 1s\nhost_timeout = 5s\nallocator = v1\n"
               "kill_grace = 500ms\n",
               true);
    lab_start(&lab);
    host_open(&first, &lab, "host.sock", "ws1", 1, &(struct host_options){.boot = "one"});
    host_open(&other, &lab, "tcp", "ws2", 1, &(struct host_options){.boot = "one"});
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
    host_open(&other, &lab, "tcp", "ws2", 1, &holds);
    host_empty(&other, 1, 1, 0.5);
    fake_expect_none(&other, WIRE_forget, 300);
    host_open(&first, &lab, "host.sock", "ws1", 1, &holds);
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

static void refused(struct fake *host, uint32_t uid, struct wire_message *submission, const char *code,
                    const char *words)
{
    struct wire_message answer;
    host_relay(host, 7, uid, uid ? "alice" : "root", submission);
    host_expect_relayed(host, 7, WIRE_error, &answer);
    assert_int_equal(answer.id, submission->id);
    assert_string_equal(answer.u.error.code, code);
    if (!strstr(answer.u.error.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", answer.u.error.text, words);
    wire_message_fini(&answer);
}

static void test_refused(void **state)
{
    static const char *bad_environment[] = {"PATH=/bin", "NOVALUE"}, *hosts[] = {"ws1", "nowhere"}, *empty[] = {""};
    struct lab lab;
    struct fake host;
    struct wire_message m = lab_submission("t", 1);
    (void)state;
    lab_create(&lab, LOCAL "hosts = ws1\nmax_nprocs = 1000\n", false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 2, &(struct host_options){.no_pvm = true});
    m.u.submit.nprocs = 3;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "3 processors are asked for, and the cluster has only 2");
    m.u.submit.nprocs = 0;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "at least one");
    m.u.submit.nprocs = 1001;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "max_nprocs");
    m.u.submit.nprocs = 1;
    refused(&host, 0, &m, WIRE_CODE_NOT_PERMITTED, "root runs no jobs");
    refused(&host, 999, &m, WIRE_CODE_NOT_PERMITTED, "minimum_uid");
    m.u.submit.hosts = (struct wire_strs){hosts, 2};
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "no host \"nowhere\"");
    m.u.submit.hosts.count = 0;
    m.u.submit.pvm = true;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "with PVM");
    m.u.submit.pvm = false;
    m.u.submit.dir = "relative";
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "not absolute");
    m.u.submit.dir = "/";
    m.u.submit.output = "out.%q";
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "unknown pattern");
    m.u.submit.output = "";
    m.u.submit.name = "a/b";
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "leave out '/'");
    m.u.submit.name = "a\033b";
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "control");
    m.u.submit.name = "";
    m.u.submit.environment = (struct wire_strs){bad_environment, 2};
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "\"NOVALUE\" is not of the form");
    m.u.submit.environment.count = 1;
    m.u.submit.command = (struct wire_strs){empty, 1};
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "no command");
    char *large = calloc(1, 300001);
    const char *command[] = {"x", large};
    memset(large, 'y', 300000);
    m.u.submit.command = (struct wire_strs){command, 2};
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "too large");
    free(large);
    fake_close(&host);
    lab_destroy(&lab);
}

static void verb(struct fake *host, enum wire_type type, uint32_t uid, uint64_t job, enum wire_type want,
                 const char *code)
{
    struct wire_message m = {.type = type, .u.cancel.job = job}, answer;
    host_relay(host, 7, uid, "somebody", &m);
    host_expect_relayed(host, 7, want, &answer);
    assert_int_equal(answer.id, m.id);
    if (code)
        assert_string_equal(answer.u.error.code, code);
    wire_message_fini(&answer);
}

/* Who may do what to which job, and wait. */
static void test_verbs(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message start, jobs, a = lab_submission("a", 1), b = lab_submission("b", 1), c = lab_submission("c", 1);
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\n", false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    lab_submit(&host, &a, NULL, 0);
    lab_submit(&host, &b, NULL, 0);
    lab_submit(&host, &c, NULL, 0);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    verb(&host, WIRE_cancel, 2001, 99, WIRE_error, WIRE_CODE_NO_SUCH_JOB);
    verb(&host, WIRE_cancel, 2001, 0, WIRE_error, WIRE_CODE_NO_SUCH_JOB);
    verb(&host, WIRE_cancel, 2002, 2, WIRE_error, WIRE_CODE_NOT_PERMITTED);
    verb(&host, WIRE_cancel, 2001, 1, WIRE_error, WIRE_CODE_WRONG_STATE);
    verb(&host, WIRE_kill, 2001, 2, WIRE_error, WIRE_CODE_WRONG_STATE);
    verb(&host, WIRE_hold, 2001, 2, WIRE_done, NULL);
    lab_query(&host, 2, &jobs);
    assert_string_equal(only(&jobs)->state, "held");
    wire_message_fini(&jobs);
    verb(&host, WIRE_release, 2001, 2, WIRE_done, NULL);
    verb(&host, WIRE_cancel, 0, 3, WIRE_done, NULL); /* root on the queue host */
    verb(&host, WIRE_cancel, 2001, 3, WIRE_error, WIRE_CODE_WRONG_STATE);

    struct wire_message wait = {.type = WIRE_wait, .u.wait = {.job = 1, .timeout_ms = 50}},
                        drain = {.type = WIRE_drain, .u.drain = {.host = "ws1", .drained = true}};
    host_relay(&host, 5, 2002, "bob", &wait);
    host_expect_relayed(&host, 5, WIRE_jobs, &jobs);
    assert_string_equal(only(&jobs)->state, "running");
    wire_message_fini(&jobs);
    host_relay(&host, 5, 2002, "bob", &drain);
    host_expect_relayed(&host, 5, WIRE_error, &jobs);
    assert_string_equal(jobs.u.error.code, WIRE_CODE_NOT_PERMITTED);
    wire_message_fini(&jobs);
    wait.u.wait.timeout_ms = 60000;
    host_relay(&host, 5, 2002, "bob", &wait);
    verb(&host, WIRE_kill, 2001, 1, WIRE_done, NULL);
    host_exited(&host, 1, 1, 0, "command", -1, SIGTERM);
    end_job(&host, 1, 1, 0.1);
    host_expect_relayed(&host, 5, WIRE_jobs, &jobs);
    assert_int_equal(jobs.id, wait.id);
    assert_string_equal(only(&jobs)->state, "done");
    assert_string_equal(only(&jobs)->reason_code, "killed");
    assert_int_equal(only(&jobs)->signal, SIGTERM);
    wire_message_fini(&jobs);
    open_job(&host, 2, 1, &start); /* its turn */
    wire_message_fini(&start);
    fake_close(&host);
    lab_destroy(&lab);
}

/* What a host lacks is told to everybody who asks, in plain text and no more than fits. */
static void test_hosts_lack(void **state)
{
    const char *lacks[] = {"no bread", "no\033butter", "", "4", "5"}, *more = "nothing";
    char long_text[1000];
    struct lab lab;
    struct fake host;
    struct wire_message query = {.type = WIRE_query_hosts}, hosts;
    (void)state;
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    lacks[2] = long_text;
    host_open(&host, &lab, "host.sock", "ws1", 1, &(struct host_options){.lacks = lacks, .nlacks = 5});
    host_relay(&host, 5, 2002, "bob", &query);
    host_expect_relayed(&host, 5, WIRE_hosts, &hosts);
    assert_int_equal(hosts.u.hosts.hosts.count, 1);
    assert_int_equal(hosts.u.hosts.hosts.items[0].lacks.count, 4);
    assert_string_equal(hosts.u.hosts.hosts.items[0].lacks.items[0], "no bread");
    assert_null(strchr(hosts.u.hosts.hosts.items[0].lacks.items[1], '\033'));
    assert_true(strlen(hosts.u.hosts.hosts.items[0].lacks.items[2]) < 200);
    wire_message_fini(&hosts);
    fake_close(&host);
    host_open(&host, &lab, "host.sock", "ws1", 1, &(struct host_options){.lacks = &more, .nlacks = 1});
    query.id = 0;
    host_relay(&host, 5, 2002, "bob", &query);
    host_expect_relayed(&host, 5, WIRE_hosts, &hosts);
    assert_int_equal(hosts.u.hosts.hosts.items[0].lacks.count, 1);
    wire_message_fini(&hosts);
    fake_close(&host);
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
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 2, NULL);
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

static void submit_to_ws2(struct fake *host, const char *token, char *status, size_t size)
{
    static const char *hosts[] = {"ws2"};
    struct wire_message submission = lab_submission(token, 1);
    submission.u.submit.hosts = (struct wire_strs){hosts, 1};
    lab_submit(host, &submission, status, size);
}

/* Its link is open, but it says nothing: no new jobs until it does. */
static void test_host_suspect(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_message start, jobs;
    (void)state;
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nhosts = ws1 ws2\n",
               true);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 1, NULL);
    for (int i = 0; i < 4; i++)
        fake_await_ping(&ws1); /* ws2 answers none */
    submit_to_ws2(&ws1, "t1", NULL, 0);
    lab_query(&ws1, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "queued");
    assert_string_equal(only(&jobs)->reason_code, "waiting");
    assert_non_null(strstr(only(&jobs)->reason, "1 on hosts that are not heard now"));
    wire_message_fini(&jobs);
    open_job(&ws2, 1, 1, &start); /* answers them */
    wire_message_fini(&start);
    fake_close(&ws2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* A host that is started again has nothing of what it had, which is known at once. */
static void test_host_rebooted(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_message start, jobs;
    (void)state;
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nhosts = ws1 ws2\n",
               true);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 1, NULL);
    submit_to_ws2(&ws1, "t1", NULL, 0);
    open_job(&ws2, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&ws2, 1, 1, 0);
    lab_query_until(&ws1, 1, "running", &jobs);
    wire_message_fini(&jobs);
    fake_close(&ws2);
    host_open(&ws2, &lab, "tcp", "ws2", 1, &(struct host_options){.boot = "another boot"});
    host_empty(&ws2, 1, 1, 0);
    lab_query_until(&ws1, 1, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "host-lost");
    wire_message_fini(&jobs);
    fake_close(&ws2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* A host that is gone for longer than host_timeout, and one that comes back in time. */
static void test_host_lost(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_message start, jobs, submission = lab_submission("t1", 1);
    static const char *hosts[] = {"ws2"};
    (void)state;
    submission.u.submit.hosts = (struct wire_strs){hosts, 1};
    lab_create(&lab, LOCAL "hosts = ws1 ws2\n", true);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 1, NULL);
    lab_submit(&ws1, &submission, NULL, 0);
    open_job(&ws2, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&ws2, 1, 1, 0);
    lab_query_until(&ws1, 1, "running", &jobs);
    wire_message_fini(&jobs);
    fake_close(&ws2);
    struct wire_holding holding = {1, 1};
    host_open(&ws2, &lab, "tcp", "ws2", 1,
              &(struct host_options){.generation = 2, .holdings = &holding, .nholdings = 1});
    lab_query(&ws1, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "running");
    wire_message_fini(&jobs);
    fake_close(&ws2);
    lab_query_until(&ws1, 1, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "host-lost");
    wire_message_fini(&jobs);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* Who may be a host. */
static void test_host_identity(void **state)
{
    struct lab lab;
    struct fake ws1, second, stranger;
    struct wire_message hello = {.type = WIRE_host_hello, .u.host_hello = {.host = "ws9", .boot = "b", .mode = "rt"}},
                        error;
    uint64_t cpu = 0;
    (void)state;
    hello.u.host_hello.cpus = (struct wire_uints){&cpu, 1};
    lab_create(&lab, "name = ws1\nhosts = ws1 ws2\nheartbeat = 15s\n[host ws2]\ncpus = 0,3\n", true);
    lab_start(&lab);
    fake_open(&stranger, &lab, "tcp");
    fake_send(&stranger, &hello);
    fake_expect(&stranger, WIRE_error, &error);
    assert_non_null(strstr(error.u.error.text, "elmer.conf"));
    assert_true(fake_closed(&stranger));
    wire_message_fini(&error);
    fake_close(&stranger);
    hello.u.host_hello.host = "ws2"; /* through the socket of ws1 */
    fake_open(&stranger, &lab, "host.sock");
    fake_send(&stranger, &hello);
    assert_true(fake_closed(&stranger));
    fake_close(&stranger);
    /* another boot while the first answers pings: refused; the first lives on */
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    hello.u.host_hello.host = "ws1";
    fake_open(&second, &lab, "tcp");
    fake_send(&second, &hello);
    fake_await_ping(&ws1);
    assert_true(fake_closed(&second));
    fake_close(&second);
    /* another boot and the first is silent: it takes its place */
    host_open(&second, &lab, "tcp", "ws1", 1, &(struct host_options){.boot = "other"});
    assert_true(fake_closed(&ws1));
    fake_close(&ws1);
    /* the same boot: at once */
    host_open(&ws1, &lab, "host.sock", "ws1", 1, &(struct host_options){.boot = "other"});
    assert_true(fake_closed(&second));
    fake_close(&second);
    /* CPUs that do not fit: linked, but no jobs; its users may ask */
    host_open(&second, &lab, "tcp", "ws2", 2, NULL);
    struct wire_message query = {.type = WIRE_query, .u.query.queued = true}, jobs, submission = lab_submission("x", 2);
    host_relay(&second, 3, 2001, "alice", &query);
    host_expect_relayed(&second, 3, WIRE_jobs, &jobs);
    assert_int_equal(jobs.u.jobs.jobs.count, 0);
    wire_message_fini(&jobs);
    char answered[16];
    lab_submit(&second, &submission, answered, sizeof(answered));
    assert_string_equal(answered, "queued");
    fake_close(&second);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* Its CPUs are not those of the configuration any more: what runs goes on if its CPUs are still there, what does not is
 * ended, on the host too, and nothing new comes. */
static void test_host_unusable(void **state)
{
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_message start, jobs, all = lab_submission("all", 2), one = lab_submission("one", 1),
                                     late = lab_submission("late", 1);
    struct wire_holding holdings[] = {{1, 1}, {2, 1}};
    struct host_options holds = {.generation = 9, .holdings = holdings, .nholdings = 2};
    static const char *hosts[] = {"ws2"};
    char answered[16];
    (void)state;
    all.u.submit.hosts = one.u.submit.hosts = late.u.submit.hosts = (struct wire_strs){hosts, 1};
    lab_create(&lab, LOCAL "hosts = ws1 ws2\n[host ws2]\ncpus = 0\n", true);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 2, NULL);
    lab_submit(&ws1, &one, NULL, 0);
    open_job(&ws2, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&ws2, 1, 1, 0);
    lab_query_until(&ws1, 1, "running", &jobs);
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGTERM);
    fake_close(&ws1);
    fake_close(&ws2);
    snprintf(lab.config, sizeof(lab.config), LOCAL "hosts = ws1 ws2\n");
    lab_configure(&lab);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 2,
              &(struct host_options){.generation = 5, .holdings = holdings, .nholdings = 1});
    lab_submit(&ws1, &all, NULL, 0);
    open_job(&ws2, 2, 1, &start);
    wire_message_fini(&start);
    host_started(&ws2, 2, 1, 0);
    lab_query_until(&ws1, 2, "running", &jobs);
    wire_message_fini(&jobs);
    lab_stop(&lab, SIGTERM);
    fake_close(&ws1);
    fake_close(&ws2);
    snprintf(lab.config, sizeof(lab.config), LOCAL "hosts = ws1 ws2\n[host ws2]\ncpus = 0,1\n");
    lab_configure(&lab);
    lab_start(&lab);
    host_open(&ws1, &lab, "host.sock", "ws1", 1, NULL);
    host_open(&ws2, &lab, "tcp", "ws2", 1, &holds); /* CPU 1 is not there any more */
    end_job(&ws2, 2, 1, 0.5);
    lab_query_until(&ws1, 2, "done", &jobs);
    assert_string_equal(only(&jobs)->reason_code, "lost");
    assert_non_null(strstr(only(&jobs)->reason, "ws2 no longer offers the job's processors"));
    wire_message_fini(&jobs);
    lab_submit(&ws1, &late, answered, sizeof(answered));
    assert_string_equal(answered, "queued");
    lab_query(&ws1, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "running");
    wire_message_fini(&jobs);
    host_exited(&ws2, 1, 1, 0, "command", 3, 0);
    end_job(&ws2, 1, 1, 0.5);
    lab_query_until(&ws1, 1, "done", &jobs);
    assert_int_equal(only(&jobs)->exit_status, 3);
    wire_message_fini(&jobs);
    fake_close(&ws2);
    holds.nholdings = 0;
    host_open(&ws2, &lab, "tcp", "ws2", 2, &holds); /* it is right again */
    open_job(&ws2, 3, 1, &start);
    wire_message_fini(&start);
    fake_close(&ws2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

/* A store that cannot be written refuses new jobs with a reason, harms none of the others, and recovers by itself. */
static void expect_not_there(struct fake *host, uint64_t job)
{
    struct wire_message query = {.type = WIRE_query, .u.query.jobs = {&job, 1}};
    struct wire_message history = {.type = WIRE_history, .u.history.user = ""}, answer;
    host_relay(host, 8, 2001, "alice", &query);
    host_expect_relayed(host, 8, WIRE_jobs, &answer);
    assert_int_equal(answer.u.jobs.jobs.count, 0);
    wire_message_fini(&answer);
    host_relay(host, 8, 2001, "alice", &history);
    host_expect_relayed(host, 8, WIRE_jobs, &answer);
    for (size_t i = 0; i < answer.u.jobs.jobs.count; i++)
        assert_int_not_equal(answer.u.jobs.jobs.items[i].job, job);
    wire_message_fini(&answer);
}

/* Start elmer, whose log goes into a pipe (not a file: the tests limit those). Returns the end to read. */
static int start_with_log(struct lab *lab)
{
    int ends[2], kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && pipe2(ends, O_CLOEXEC) == 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    lab_start(lab);
    dup2(kept, STDERR_FILENO);
    close(kept);
    return ends[0];
}

/* To be asked when elmer has ended. */
static void expect_once_each(int log, const char *const *words, size_t count)
{
    char text[65536];
    size_t size = 0;
    for (ssize_t n; (n = read(log, text + size, sizeof(text) - 1 - size)) > 0;)
        size += (size_t)n;
    text[size] = '\0';
    close(log);
    for (size_t i = 0; i < count; i++) {
        const char *first = strstr(text, words[i]);
        if (!first || strstr(first + 1, words[i]))
            fail_msg("\"%s\" is not there once: %s", words[i], text);
    }
}

static void test_full_disk(void **state)
{
    struct lab lab;
    struct fake host;
    int log;
    struct wire_message start, m, jobs, running = lab_submission("r", 1), refused_one = lab_submission("x", 1);
    struct rlimit old, tight;
    (void)state;
    lab_create(&lab, LOCAL "levels = 2\n", false);
    log = start_with_log(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    lab_submit(&host, &running, NULL, 0);
    open_job(&host, 1, 1, &start);
    wire_message_fini(&start);
    host_started(&host, 1, 1, 0);
    lab_query_until(&host, 1, "running", &jobs);
    wire_message_fini(&jobs);
    assert_int_equal(prlimit(lab.pid, RLIMIT_FSIZE, NULL, &old), 0);
    tight = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
    assert_int_equal(prlimit(lab.pid, RLIMIT_FSIZE, &tight, NULL), 0);
    refused(&host, 2001, &refused_one, WIRE_CODE_UNAVAILABLE, "store cannot be written"); /* begun, and undone */
    refused(&host, 2001, &refused_one, WIRE_CODE_UNAVAILABLE, "store cannot be written"); /* at once */
    assert_int_equal(lab_submit(&host, &running, NULL, 0), 1); /* what was accepted before is, and goes on */
    lab_query(&host, 1, &jobs);
    assert_string_equal(only(&jobs)->state, "running");
    wire_message_fini(&jobs);
    fake_expect_none(&host, WIRE_open, 2500); /* it is tried each second */
    struct wire_message kill_it = {.type = WIRE_kill, .u.kill.job = 1};
    host_relay(&host, 7, 2001, "alice", &kill_it);
    fake_expect(&host, WIRE_end, &m); /* a kill does not wait for the disk */
    wire_message_fini(&m);
    assert_int_equal(prlimit(lab.pid, RLIMIT_FSIZE, &old, NULL), 0);
    host_expect_relayed(&host, 7, WIRE_done, &m);
    wire_message_fini(&m);
    host_empty(&host, 1, 1, 1);
    lab_query_until(&host, 1, "done", &jobs);
    wire_message_fini(&jobs);
    host_empty(&host, 2, 1, -1);
    assert_int_equal(lab_submit(&host, &refused_one, NULL, 0), 3); /* the same token, a new job */
    expect_not_there(&host, 2);
    lab_stop(&lab, SIGKILL);
    expect_once_each(log, (const char *[]){"the store cannot be written", "the store can be written again"}, 2);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    expect_not_there(&host, 2);
    fake_close(&host);
    lab_destroy(&lab);
}

static void no_start(struct lab *lab, int status, const char *words)
{
    char out[4096];
    assert_int_equal(lab_run(lab, out, sizeof(out)), status);
    if (!strstr(out, words))
        fail_msg("\"%s\" does not contain \"%s\"", out, words);
}

/* What stops it at the start, and how it says so. */
static void test_no_start(void **state)
{
    struct lab first, second;
    char path[100];
    (void)state;
    lab_create(&second, "levls = 3\n", false);
    no_start(&second, 2, "levels"); /* the nearest known key */
    lab_destroy(&second);
    lab_create(&second, "listen = *:0\n", false);
    no_start(&second, 2, "HOST:PORT");
    snprintf(second.config, sizeof(second.config), "listen = *:%u\npki = %s/pki\n", 7110U, second.dir);
    lab_configure(&second);
    no_start(&second, 2, "eadmin init"); /* and not without TLS instead */
    snprintf(second.config, sizeof(second.config), "listen = *:%u\ntransport = plain\n", 7110U);
    lab_configure(&second);
    no_start(&second, 2, "without TLS only loopback");
    lab_destroy(&second);
    lab_create(&first, LOCAL, true);
    lab_start(&first);
    second = first; /* the same store, the same sockets */
    no_start(&second, 1, "another elmer");
    lab_stop(&first, SIGTERM);
    snprintf(path, sizeof(path), "%s/elmer.db", first.dir);
    FILE *out = fopen(path, "r+");
    assert_non_null(out);
    fputs("no database", out);
    fclose(out);
    no_start(&first, 2, "damaged");
    lab_destroy(&first);
    lab_create(&first, LOCAL, true);
    lab_start(&first);
    lab_create(&second, LOCAL, false);
    second.port = first.port; /* the address is taken */
    lab_configure(&second);
    no_start(&second, 1, "in use");
    lab_destroy(&second);
    lab_destroy(&first);
}

/* ---- lists ---- */

static void test_pages(void **state)
{
    enum { JOBS = 600 };
    struct lab lab;
    struct fake host;
    struct wire_message query = {.type = WIRE_query, .u.query.queued = true}, answer, m;
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1\n", false);
    lab_start(&lab);
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    for (int i = 0; i < JOBS; i++) { /* many outstanding at once */
        char token[20];
        snprintf(token, sizeof(token), "t%d", i);
        m = lab_submission(token, 1);
        host_relay(&host, (uint64_t)i % 10, 2001, "alice", &m);
    }
    for (int i = 0; i < JOBS; i++) {
        host_expect_relayed(&host, (uint64_t)i % 10, WIRE_submitted, &answer);
        wire_message_fini(&answer);
    }
    host_relay(&host, 1, 2001, "alice", &query);
    size_t count = 0;
    uint64_t last = 1; /* job 1 runs */
    for (bool more = true; more; wire_message_fini(&answer)) {
        host_expect_relayed(&host, 1, WIRE_jobs, &answer);
        assert_true(answer.u.jobs.jobs.count <= 256);
        for (size_t i = 0; i < answer.u.jobs.jobs.count; i++)
            assert_int_equal(answer.u.jobs.jobs.items[i].job, ++last);
        count += answer.u.jobs.jobs.count;
        more = answer.u.jobs.more;
    }
    assert_int_equal(count, JOBS - 1);
    /* the same as lines */
    query = (struct wire_message){.type = WIRE_query_lines, .u.query_lines = {.running = true, .queued = true}};
    host_relay(&host, 1, 2001, "alice", &query);
    count = 0, last = 1;
    for (bool more = true; more; wire_message_fini(&answer)) {
        host_expect_relayed(&host, 1, WIRE_lines, &answer);
        const struct wire_lines *lines = &answer.u.lines;
        assert_int_equal(lines->running.count, count == 0);
        if (count == 0) {
            assert_int_equal(lines->running.items[0].job, 1);
            assert_string_equal(lines->running.items[0].user, "alice");
            assert_string_equal(lines->running.items[0].processors.items[0].host, "ws1");
        }
        assert_true(queued_lines_fit(lines));
        for (size_t i = 0; i < queued_lines_count(lines); i++) {
            const struct queued_line line = queued_lines_at(lines, i);
            assert_int_equal(line.job, ++last);
            assert_int_equal(line.ahead, last - 2);
            if (last == 2)
                assert_non_null(strstr(line.reason, "waits for 1 processor: "));
            else
                assert_string_equal(line.reason, "");
            assert_false(line.held || line.hidden);
        }
        count += queued_lines_count(lines);
        more = lines->more;
    }
    assert_int_equal(count, JOBS - 1);
    query = (struct wire_message){.type = WIRE_query, .u.query.queued = true};
    /* large ones: pages by size */
    char *word = calloc(1, 100001);
    memset(word, '"', 60000);
    const char *command[] = {"/bin/x", word};
    for (int i = 0; i < 10; i++) {
        char token[20];
        snprintf(token, sizeof(token), "large%d", i);
        m = lab_submission(token, 1);
        m.u.submit.command = (struct wire_strs){command, 2};
        lab_submit(&host, &m, NULL, 0);
    }
    uint64_t ids[12];
    for (uint64_t i = 0; i < 12; i++)
        ids[i] = 599 + i; /* 599..610 */
    struct wire_message by_id = {.type = WIRE_query, .u.query.jobs = {ids, 12}};
    host_relay(&host, 1, 2001, "alice", &by_id);
    int pages = 0;
    count = 0;
    for (bool more = true; more; pages++, wire_message_fini(&answer)) {
        host_expect_relayed(&host, 1, WIRE_jobs, &answer);
        count += answer.u.jobs.jobs.count;
        more = answer.u.jobs.more;
    }
    assert_int_equal(count, 12);
    assert_true(pages > 3);
    free(word);
    fake_close(&host);
    lab_destroy(&lab);
}

/* ---- bad input ---- */

static void garbage(struct lab *lab, const char *socket_name, const void *bytes, size_t size)
{
    char buffer[65536];
    int fd = lab_connect(lab, socket_name);
    struct timeval timeout = {.tv_sec = 15};
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    assert_true(send(fd, bytes, size, MSG_NOSIGNAL) > 0);
    ssize_t got;
    while ((got = read(fd, buffer, sizeof(buffer))) > 0)
        ;
    assert_true(got == 0); /* closed by elmer, not by our patience */
    close(fd);
}

static void test_bad_input(void **state)
{
    static const char *const sockets[] = {"elmer.sock", "host.sock", "tcp"};
    static const uint8_t oversize[] = {0x7f, 0xff, 0xff, 0xff, '{'}, zero[] = {0, 0, 0, 0}, text[] = "\0\0\0\7garbage";
    struct lab lab;
    struct fake fake, host;
    struct wire_message m = {.type = WIRE_order}, jobs, answer;
    (void)state;
    lab_create(&lab, LOCAL, true);
    lab_start(&lab);
    int idle = lab_connect(&lab, "tcp"); /* half-open: never says anything */
    for (size_t i = 0; i < 3; i++) {
        garbage(&lab, sockets[i], oversize, sizeof(oversize));
        garbage(&lab, sockets[i], zero, sizeof(zero));
        garbage(&lab, sockets[i], text, sizeof(text) - 1);
        fake_open(&fake, &lab, sockets[i]); /* a message that this side may not send */
        fake_send(&fake, &m);
        assert_true(fake_closed(&fake));
        fake_close(&fake);
    }
    host_open(&host, &lab, "host.sock", "ws1", 1, NULL);
    struct wire_message relay = {
        .type = WIRE_relay,
        .u.relay = {.client = 3, .uid = 2001, .user = "alice", .frame = "{\"type\":\"nonsense\",\"id\":1}"}};
    fake_send(&host, &relay);
    host_expect_relayed(&host, 3, WIRE_error, &answer);
    assert_string_equal(answer.u.error.code, WIRE_CODE_BAD_MESSAGE);
    wire_message_fini(&answer);
    relay.u.relay.frame =
        "{\"type\":\"report\",\"id\":1,\"interval_ms\":1,\"busy\":[],\"jobs\":[]}"; /* a host's message from a client */
    fake_send(&host, &relay);
    host_expect_relayed(&host, 3, WIRE_error, &answer);
    wire_message_fini(&answer);
    /* reports about jobs and processes that are not there */
    host_event(&host, WIRE_opened, 77, 1);
    host_started(&host, 77, 1, 0);
    host_exited(&host, 77, 1, 0, "command", 0, 0);
    host_line(&host, 0, 0, 0, "x");
    host_empty(&host, 77, 1, 3);
    fake_expect(&host, WIRE_taken, &answer);
    wire_message_fini(&answer);
    fake_expect(&host, WIRE_forget, &answer);
    wire_message_fini(&answer);
    struct wire_message report = {.type = WIRE_report, .u.report.interval_ms = 1000};
    fake_send(&host, &report); /* no CPUs in it */
    struct wire_message query = {.type = WIRE_query, .u.query.running = true};
    host_relay(&host, 3, 2001, "alice", &query);
    host_expect_relayed(&host, 3, WIRE_jobs, &jobs);
    wire_message_fini(&jobs);
    close(idle);
    fake_close(&host);
    lab_destroy(&lab);
}

/* A submission over elmer's own socket as that user: root may be anybody. */
static void submit_as(const struct lab *lab, uid_t uid, enum wire_type expected, struct wire_message *answer)
{
    struct wire_message m = lab_submission("t", 1);
    struct fake client;
    const uid_t own = geteuid();
    assert_int_equal(chmod(lab->dir, 0755), 0);
    assert_int_equal(seteuid(uid), 0);
    fake_open(&client, lab, "elmer.sock");
    assert_int_equal(seteuid(own), 0);
    fake_send(&client, &m);
    fake_expect(&client, expected, answer);
    assert_int_equal(answer->id, m.id);
    fake_close(&client);
}

/* A client on elmer's own socket: the kernel says who it is. */
static void test_own_socket(void **state)
{
    enum { NOBODY = 65534, MINIMUM_UID = 1000 };
    struct lab lab;
    struct fake client;
    struct wire_message answer, query = {.type = WIRE_query, .u.query.queued = true};
    const uid_t own = geteuid(), user = own == 0 ? NOBODY : own;
    (void)state;
    lab_create(&lab, LOCAL, false);
    lab_start(&lab);
    fake_open(&client, &lab, "elmer.sock");
    fake_send(&client, &query);
    fake_expect(&client, WIRE_jobs, &answer);
    assert_int_equal(answer.id, query.id);
    wire_message_fini(&answer);
    if (own < MINIMUM_UID) { /* root above all */
        submit_as(&lab, own, WIRE_error, &answer);
        assert_string_equal(answer.u.error.code, WIRE_CODE_NOT_PERMITTED);
        wire_message_fini(&answer);
    }
    if (user >= MINIMUM_UID) {
        submit_as(&lab, user, WIRE_submitted, &answer);
        wire_message_fini(&answer);
        fake_send(&client, &query);
        fake_expect(&client, WIRE_jobs, &answer);
        assert_int_equal(answer.u.jobs.jobs.count, 1);
        assert_int_equal(only(&answer)->uid, user);
        wire_message_fini(&answer);
    }
    /* pipelined, and gone before the answers */
    struct wire_message wait = {.type = WIRE_wait, .u.wait = {.job = 1, .timeout_ms = 60000}};
    for (int i = 0; i < 50; i++) {
        fake_send(&client, &query);
        fake_send(&client, &wait);
    }
    fake_close(&client);
    fake_open(&client, &lab, "elmer.sock");
    fake_send(&client, &query);
    fake_expect(&client, WIRE_jobs, &answer);
    wire_message_fini(&answer);
    fake_close(&client);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_token_and_kill),
        cmocka_unit_test(test_restart_running),
        cmocka_unit_test(test_restart_launched),
        cmocka_unit_test(test_result_in_pieces),
        cmocka_unit_test(test_privacy),
        cmocka_unit_test(test_answer_before_opens),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_older_rsd),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_hosts_lack),
        cmocka_unit_test(test_start_failed),
        cmocka_unit_test(test_host_lost),
        cmocka_unit_test(test_host_unusable),
        cmocka_unit_test(test_host_suspect),
        cmocka_unit_test(test_host_rebooted),
        cmocka_unit_test(test_host_identity),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_own_socket),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_start),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
