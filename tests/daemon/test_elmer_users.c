/* test_elmer_users.c - what users ask of the queue daemon: who may what, who sees what, lists in pages. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/wire/queued_lines.h"
#include "tests/daemon/elmer_steps.h"

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
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1 ws2\nadmin_hosts = ws1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    host_open(&other, &lab, "ws2", 1, NULL);
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
    host_open(&host, &lab, "ws1", 1, NULL);
    query_as(&host, 2002, "bob", 3, &jobs);
    expect_hidden(only(&jobs), false);
    wire_message_fini(&jobs);
    fake_close(&host);
    lab_destroy(&lab);
}

static void test_refused(void **state)
{
    static const char *bad_environment[] = {"PATH=/bin", "NOVALUE"}, *hosts[] = {"ws1", "nowhere"}, *empty[] = {""};
    struct lab lab;
    struct fake host;
    struct wire_message m = lab_submission("t", 1);
    (void)state;
    lab_create(&lab, LOCAL "hosts = ws1\nmax_nprocs = 1000\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, &(struct host_options){.no_pvm = true});
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
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "no host of the cluster has PVM, which the job needs");
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
    lab_create(&lab, LOCAL "levels = 1\nadmin_hosts = ws1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
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
    /* Root on the queue host, as its rsd alone says: it would have to be signed. */
    verb(&host, WIRE_cancel, 0, 3, WIRE_error, WIRE_CODE_NOT_PERMITTED);
    verb(&host, WIRE_cancel, 2001, 3, WIRE_done, NULL);
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

/* ---- lists ---- */

static void test_pages(void **state)
{
    enum { JOBS = 600 };
    struct lab lab;
    struct fake host;
    struct wire_message query = {.type = WIRE_query, .u.query.queued = true}, answer, m;
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1\n");
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
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
    lab_create(&lab, LOCAL);
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

/* Who is known where a job was submitted, and where it may run, need not be known on the queue host: name, uid and the
 * submitting host go to the executing one, which judges. What it refuses ends the job, and is not tried again. */
static void test_user_of_other_hosts(void **state)
{
    enum { STRANGER = 3123456789 };
    static const char *on[] = {"ws1"};
    static const char text[] = "jobs of group sudo from other hosts are refused (deny_groups in rsd.conf)";
    struct lab lab;
    struct fake ws1, ws2;
    struct wire_message m = lab_submission("t1", 1), answer, open, end,
                        failed = {.type = WIRE_open_failed, .u.open_failed = {.job = 1, .attempt = 1, .text = text}};
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    m.u.submit.hosts = (struct wire_strs){on, 1};
    m.u.submit.requeue = true;
    host_relay(&ws2, 7, STRANGER, "nobody-has-this-name", &m);
    host_expect_relayed(&ws2, 7, WIRE_submitted, &answer);
    wire_message_fini(&answer);
    fake_expect(&ws1, WIRE_open, &open);
    assert_int_equal(open.u.open.uid, STRANGER);
    assert_string_equal(open.u.open.user, "nobody-has-this-name");
    assert_string_equal(open.u.open.submit_host, "ws2");
    wire_message_fini(&open);
    fake_send(&ws1, &failed);
    fake_expect(&ws1, WIRE_end, &end);
    wire_message_fini(&end);
    host_empty(&ws1, 1, 1, -1);
    lab_query_until(&ws1, 1, "done", &answer);
    wire_message_fini(&answer);
    query_as(&ws2, STRANGER, "nobody-has-this-name", 1, &answer);
    assert_int_equal(only(&answer)->attempt, 1);
    assert_string_equal(only(&answer)->reason_code, "start-failed");
    if (!strstr(only(&answer)->reason, "ws1: jobs of group sudo from other hosts are refused"))
        fail_msg("%s", only(&answer)->reason);
    wire_message_fini(&answer);
    fake_expect_none(&ws1, WIRE_open, 300);
    fake_expect_none(&ws2, WIRE_open, 1);
    fake_close(&ws1);
    fake_close(&ws2);
    lab_destroy(&lab);
}

/* An rsd from before the submitting host was said gets no such field. */
static void test_rsd_of_before(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = lab_submission("t1", 1), open;
    (void)state;
    lab_create(&lab, LOCAL "levels = 1\nhosts = ws1\n");
    lab_start(&lab);
    lab.minor = 4;
    host_open(&host, &lab, "ws1", 1, NULL);
    lab_submit(&host, &m, NULL, 0);
    fake_expect(&host, WIRE_open, &open);
    assert_string_equal(open.u.open.submit_host, "");
    wire_message_fini(&open);
    fake_close(&host);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_privacy),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_verbs),         cmocka_unit_test(test_pages),
        cmocka_unit_test(test_own_socket),    cmocka_unit_test(test_user_of_other_hosts),
        cmocka_unit_test(test_rsd_of_before),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
