/* test_elmer_links.c - hosts that lack something, fall silent, start again, are lost, or are not who they say. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/daemon/elmer_steps.h"

/* An rsd of minor 0 has clients that are told no more than it knows, and its jobs run as ever. */
static void test_older_rsd(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message jobs, start, submission = lab_submission("t1", 1);
    (void)state;
    lab_create(&lab, LOCAL);
    lab.minor = 0;
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
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

/* What a host lacks is told to everybody who asks, in plain text and no more than fits. */
static void test_hosts_lack(void **state)
{
    const char *lacks[] = {"no bread", "no\033butter", "", "4", "5"}, *more = "nothing";
    char long_text[1000];
    struct lab lab;
    struct fake host;
    struct wire_message query = {.type = WIRE_query_hosts}, hosts;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    lacks[2] = long_text;
    host_open(&host, &lab, "ws1", 1, &(struct host_options){.lacks = lacks, .nlacks = 5});
    host_relay(&host, 5, 2002, "bob", &query);
    host_expect_relayed(&host, 5, WIRE_hosts, &hosts);
    assert_int_equal(hosts.u.hosts.hosts.count, 1);
    assert_int_equal(hosts.u.hosts.hosts.items[0].lacks.count, 4);
    assert_string_equal(hosts.u.hosts.hosts.items[0].lacks.items[0], "no bread");
    assert_null(strchr(hosts.u.hosts.hosts.items[0].lacks.items[1], '\033'));
    assert_true(strlen(hosts.u.hosts.hosts.items[0].lacks.items[2]) < 200);
    wire_message_fini(&hosts);
    fake_close(&host);
    host_open(&host, &lab, "ws1", 1, &(struct host_options){.lacks = &more, .nlacks = 1});
    query.id = 0;
    host_relay(&host, 5, 2002, "bob", &query);
    host_expect_relayed(&host, 5, WIRE_hosts, &hosts);
    assert_int_equal(hosts.u.hosts.hosts.items[0].lacks.count, 1);
    wire_message_fini(&hosts);
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
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nhosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
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
    struct wire_message jobs;
    (void)state;
    lab_create(&lab, "name = ws1\nresend = 1s\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nhosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    submit_to_ws2(&ws1, "t1", NULL, 0);
    run_job(&ws2, &ws1, 1, 1);
    fake_close(&ws2);
    host_open(&ws2, &lab, "ws2", 1, &(struct host_options){.boot = "another boot"});
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
    struct wire_message jobs, submission = lab_submission("t1", 1);
    static const char *hosts[] = {"ws2"};
    (void)state;
    submission.u.submit.hosts = (struct wire_strs){hosts, 1};
    lab_create(&lab, LOCAL "hosts = ws1 ws2\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 1, NULL);
    lab_submit(&ws1, &submission, NULL, 0);
    run_job(&ws2, &ws1, 1, 1);
    fake_close(&ws2);
    struct wire_holding holding = {1, 1};
    host_open(&ws2, &lab, "ws2", 1, &(struct host_options){.generation = 2, .holdings = &holding, .nholdings = 1});
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
    lab_create(&lab, "name = ws1\nhosts = ws1 ws2\nheartbeat = 15s\n[host ws2]\ncpus = 0,3\n");
    lab_start(&lab);
    fake_open(&stranger, &lab, "host.sock");
    fake_send(&stranger, &hello);
    fake_expect(&stranger, WIRE_error, &error);
    assert_non_null(strstr(error.u.error.text, "elmer.conf"));
    assert_true(fake_closed(&stranger));
    wire_message_fini(&error);
    fake_close(&stranger);
    /* another boot while the first answers pings: refused; the first lives on */
    host_open(&ws1, &lab, "ws1", 1, NULL);
    hello.u.host_hello.host = "ws1";
    fake_open(&second, &lab, "host.sock");
    fake_send(&second, &hello);
    fake_await_ping(&ws1);
    assert_true(fake_closed(&second));
    fake_close(&second);
    /* another boot and the first is silent: it takes its place */
    host_open(&second, &lab, "ws1", 1, &(struct host_options){.boot = "other"});
    assert_true(fake_closed(&ws1));
    fake_close(&ws1);
    /* the same boot: at once */
    host_open(&ws1, &lab, "ws1", 1, &(struct host_options){.boot = "other"});
    assert_true(fake_closed(&second));
    fake_close(&second);
    /* CPUs that do not fit: linked, but no jobs; its users may ask */
    host_open(&second, &lab, "ws2", 2, NULL);
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

/* elmer with another configuration; ws1 is linked again. */
static void start_anew(struct lab *lab, struct fake *ws1, struct fake *ws2, const char *config)
{
    lab_stop(lab, SIGTERM);
    fake_close(ws1);
    fake_close(ws2);
    snprintf(lab->config, sizeof(lab->config), "%s", config);
    lab_configure(lab);
    lab_start(lab);
    host_open(ws1, lab, "ws1", 1, NULL);
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
    lab_create(&lab, LOCAL "hosts = ws1 ws2\n[host ws2]\ncpus = 0\n");
    lab_start(&lab);
    host_open(&ws1, &lab, "ws1", 1, NULL);
    host_open(&ws2, &lab, "ws2", 2, NULL);
    lab_submit(&ws1, &one, NULL, 0);
    run_job(&ws2, &ws1, 1, 1);
    start_anew(&lab, &ws1, &ws2, LOCAL "hosts = ws1 ws2\n");
    host_open(&ws2, &lab, "ws2", 2, &(struct host_options){.generation = 5, .holdings = holdings, .nholdings = 1});
    lab_submit(&ws1, &all, NULL, 0);
    run_job(&ws2, &ws1, 2, 1);
    start_anew(&lab, &ws1, &ws2, LOCAL "hosts = ws1 ws2\n[host ws2]\ncpus = 0,1\n");
    host_open(&ws2, &lab, "ws2", 1, &holds); /* CPU 1 is not there any more */
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
    host_open(&ws2, &lab, "ws2", 2, &holds); /* it is right again */
    open_job(&ws2, 3, 1, &start);
    wire_message_fini(&start);
    fake_close(&ws2);
    fake_close(&ws1);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_rsd),     cmocka_unit_test(test_hosts_lack),   cmocka_unit_test(test_host_lost),
        cmocka_unit_test(test_host_unusable), cmocka_unit_test(test_host_suspect), cmocka_unit_test(test_host_rebooted),
        cmocka_unit_test(test_host_identity),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
