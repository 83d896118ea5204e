/* test_elmer_pvm.c - the launch of a job with PVM, with scripted rsds: master, agent, slaves, command, finish; and what
 * goes wrong on the way. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define CONFIG                                                                                                         \
    "name = ws1\nhosts = ws1 ws2\nheartbeat = 5s\nhost_timeout = 10s\nallocator = v1\n[host "                          \
    "ws1]\naddress = 10.0.0.1\n"

struct pair {
    struct lab lab;
    struct fake ws1, ws2;
};

static const char *find(const struct wire_strs *environment, const char *name)
{
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->items[i], name, strlen(name)) == 0 && environment->items[i][strlen(name)] == '=')
            return environment->items[i] + strlen(name) + 1;
    return "(none)";
}

static int setup(void **state)
{
    static struct pair pair;
    lab_create(&pair.lab, CONFIG);
    lab_start(&pair.lab);
    host_open(&pair.ws1, &pair.lab, "ws1", 1, NULL);
    host_open(&pair.ws2, &pair.lab, "ws2", 1, NULL);
    *state = &pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    fake_close(&pair->ws1);
    fake_close(&pair->ws2);
    lab_destroy(&pair->lab);
    return 0;
}

static void open_on(struct fake *host)
{
    struct wire_message order, open;
    fake_expect(host, WIRE_order, &order);
    host_ordered(host, order.u.order.generation);
    wire_message_fini(&order);
    fake_expect(host, WIRE_open, &open);
    assert_true(open.u.open.pvm);
    assert_int_equal(open.u.open.uid, 2001);
    assert_string_equal(open.u.open.user, "alice");
    host_event(host, WIRE_opened, open.u.open.job, (uint32_t)open.u.open.attempt);
    wire_message_fini(&open);
}

/* Submitted and opened on both; the master's start is checked. */
static void to_master(struct pair *p)
{
    struct wire_message start, submission = lab_submission("pvm", 2);
    submission.u.submit.pvm = true;
    assert_int_equal(lab_submit(&p->ws1, &submission, NULL, 0), 1);
    open_on(&p->ws1);
    fake_expect_none(&p->ws1, WIRE_start, 50); /* not before all are open */
    open_on(&p->ws2);
    fake_expect(&p->ws1, WIRE_start, &start);
    const struct wire_start *s = &start.u.start;
    assert_int_equal(s->process, 2);
    assert_string_equal(s->role, "pvmd");
    assert_int_equal(s->argv.count, 2);
    assert_string_equal(s->argv.items[0], "pvmd");
    assert_string_equal(s->argv.items[1], "-nws1");
    assert_true(s->capture);
    assert_string_equal(s->output, "");
    assert_string_equal(find(&s->environment, "PVM_TMP"), "/tmp/jobs/1.1");
    assert_string_equal(find(&s->environment, "PVM_WD"), "/home/alice");
    assert_string_equal(find(&s->environment, "PVM_RSH"), "/bin/false");
    assert_string_equal(find(&s->environment, "PVMSOCK"), "(none)");
    assert_string_equal(find(&s->environment, "ELMER_HOSTS"), "ws1:ws2");
    wire_message_fini(&start);
}

static void to_agent(struct pair *p)
{
    struct wire_message start;
    to_master(p);
    host_started(&p->ws1, 1, 1, 2);
    host_line(&p->ws1, 1, 1, 2, "/tmp/jobs/1.1/pvmtmp1");
    fake_expect(&p->ws1, WIRE_start, &start);
    const struct wire_start *s = &start.u.start;
    assert_int_equal(s->process, 3);
    assert_string_equal(s->role, "agent");
    assert_int_equal(s->argv.count, 4);
    assert_non_null(strstr(s->argv.items[0], "/elmer-pvm-agent"));
    assert_string_equal(s->argv.items[1], "--wd");
    assert_string_equal(s->argv.items[2], "/home/alice");
    assert_string_equal(s->argv.items[3], "ws2"); /* on loopback there is no address to tell */
    assert_string_equal(find(&s->environment, "PVMSOCK"), "/tmp/jobs/1.1/pvmtmp1");
    assert_string_equal(s->output, "elmer-1.out");
    wire_message_fini(&start);
    host_started(&p->ws1, 1, 1, 3);
}

static void spawn(struct pair *p, uint32_t request, const char *host, const char *command)
{
    struct wire_message m = {
        .type = WIRE_pvm_spawn,
        .u.pvm_spawn = {.job = 1, .attempt = 1, .request = request, .host = host, .command = command}};
    fake_send(&p->ws1, &m);
}

static void expect_spawned(struct pair *p, uint32_t request, const char *line)
{
    struct wire_message m;
    fake_expect(&p->ws1, WIRE_pvm_spawned, &m);
    assert_int_equal(m.u.pvm_spawned.request, request);
    assert_string_equal(m.u.pvm_spawned.line, line);
    wire_message_fini(&m);
}

static void to_running(struct pair *p)
{
    struct wire_message start;
    to_agent(p);
    spawn(p, 1, "ws7", "pvmd -s");
    expect_spawned(p, 1, "PvmNoHost");
    spawn(p, 2, "ws2", "pvmd -s -d0x0 -nws2 1 0a4d0001:c198 4080 2 0a4d0002:0000");
    fake_expect(&p->ws2, WIRE_start, &start);
    const struct wire_start *s = &start.u.start;
    assert_int_equal(s->process, 4);
    assert_string_equal(s->role, "pvmd");
    assert_int_equal(s->argv.count, 10);
    assert_string_equal(s->argv.items[3], "-nws2");
    assert_string_equal(s->argv.items[9], "-f");
    assert_true(s->capture);
    assert_int_equal(s->cpus.count, 1);
    wire_message_fini(&start);
    host_started(&p->ws2, 1, 1, 4);
    host_line(&p->ws1, 1, 1, 4, "forged by the wrong host");
    host_line(&p->ws2, 1, 1, 4, "ddpro<2316> arch<LINUX64>");
    expect_spawned(p, 2, "ddpro<2316> arch<LINUX64>");
    spawn(p, 3, "ws2", "pvmd -s");
    expect_spawned(p, 3, "PvmDupHost");
    host_event(&p->ws1, WIRE_pvm_ready, 1, 1);
    fake_expect(&p->ws1, WIRE_start, &start);
    assert_int_equal(start.u.start.process, 0);
    assert_string_equal(start.u.start.role, "command");
    assert_string_equal(find(&start.u.start.environment, "PVMSOCK"), "/tmp/jobs/1.1/pvmtmp1");
    wire_message_fini(&start);
    host_started(&p->ws1, 1, 1, 0);
}

static void end_both(struct pair *p)
{
    struct wire_message m;
    fake_expect(&p->ws1, WIRE_end, &m);
    wire_message_fini(&m);
    fake_expect(&p->ws2, WIRE_end, &m);
    wire_message_fini(&m);
    host_empty(&p->ws1, 1, 1, 1);
    host_empty(&p->ws2, 1, 1, 2);
}

static void expect_done(struct pair *p, const char *reason_code, const char *words, int status)
{
    struct wire_message jobs;
    end_both(p);
    lab_query_until(&p->ws1, 1, "done", &jobs);
    const struct wire_job_view *view = &jobs.u.jobs.jobs.items[0];
    assert_string_equal(view->reason_code, reason_code);
    if (!strstr(view->reason, words))
        fail_msg("\"%s\" does not contain \"%s\"", view->reason, words);
    assert_int_equal(view->exit_status, status);
    assert_int_equal(view->usage.count, 2);
    wire_message_fini(&jobs);
}

/* The exit of the command waits for the agent's, which has the tasks' last output. */
static void test_whole(void **state)
{
    struct pair *p = *state;
    struct wire_message m;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 0, "command", 5, 0);
    fake_expect(&p->ws1, WIRE_pvm_finish, &m);
    wire_message_fini(&m);
    fake_expect_none(&p->ws1, WIRE_end, 100);
    host_exited(&p->ws1, 1, 1, 0, "command", 5, 0); /* said again */
    host_exited(&p->ws1, 1, 1, 3, "agent", 0, 0);
    host_exited(&p->ws1, 1, 1, 2, "pvmd", 0, 0);
    host_exited(&p->ws2, 1, 1, 4, "pvmd", 0, 0);
    expect_done(p, "exited", "status 5", 5);
    fake_expect(&p->ws2, WIRE_taken, &m); /* also helpers' exits are taken */
    assert_int_equal(m.u.taken.process, 4);
    wire_message_fini(&m);
}

/* An agent that hangs costs two seconds, not the job. */
static void test_agent_hangs(void **state)
{
    struct pair *p = *state;
    struct wire_message m;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 0, "command", 0, 0);
    fake_expect(&p->ws1, WIRE_pvm_finish, &m);
    wire_message_fini(&m);
    expect_done(p, "exited", "status 0", 0);
}

/* A kill while the agent drains keeps the status that the command had. */
static void test_kill_in_finish(void **state)
{
    struct pair *p = *state;
    struct wire_message m, kill_it = {.type = WIRE_kill, .u.kill.job = 1};
    to_running(p);
    host_exited(&p->ws1, 1, 1, 0, "command", 9, 0);
    fake_expect(&p->ws1, WIRE_pvm_finish, &m);
    wire_message_fini(&m);
    host_relay(&p->ws1, 1, 2001, "alice", &kill_it);
    host_expect_relayed(&p->ws1, 1, WIRE_done, &m);
    wire_message_fini(&m);
    expect_done(p, "killed", "ekill", 9);
}

static void test_pvmd_dies(void **state)
{
    struct pair *p = *state;
    to_running(p);
    host_exited(&p->ws2, 1, 1, 4, "pvmd", -1, SIGKILL);
    expect_done(p, "pvm-failed", "ws2: its PVM daemon ended by signal 9", -1);
}

/* The command notices before we do, and its exit comes first. */
static void test_pvmd_dies_and_the_command_of_it(void **state)
{
    struct pair *p = *state;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 0, "command", 1, 0);
    host_exited(&p->ws1, 1, 1, 3, "agent", 3, 0);
    host_exited(&p->ws1, 1, 1, 2, "pvmd", -1, SIGKILL);
    expect_done(p, "pvm-failed", "ws1: its PVM daemon ended by signal 9", -1);
}

/* A program that halts its virtual machine as its last act has not failed. */
static void test_halted_by_the_command(void **state)
{
    struct pair *p = *state;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 3, "agent", 3, 0);
    host_exited(&p->ws1, 1, 1, 2, "pvmd", 0, 0);
    fake_expect_none(&p->ws1, WIRE_end, 100);
    host_exited(&p->ws1, 1, 1, 0, "command", 4, 0);
    expect_done(p, "exited", "status 4", 4);
}

/* A daemon that is killed closes its sockets before its end is told: agent and command may be first. */
static void test_pvmd_dies_last(void **state)
{
    struct pair *p = *state;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 3, "agent", 1, 0);
    host_exited(&p->ws1, 1, 1, 0, "command", 1, 0);
    host_exited(&p->ws1, 1, 1, 2, "pvmd", -1, 9);
    expect_done(p, "pvm-failed", "ws1: its PVM daemon ended by signal 9", -1);
}

/* One that goes on without it has. */
static void test_halted_and_goes_on(void **state)
{
    struct pair *p = *state;
    to_running(p);
    host_exited(&p->ws1, 1, 1, 2, "pvmd", 0, 0);
    expect_done(p, "pvm-failed", "ws1: its PVM daemon ended with status 0", -1);
}

static void test_master_says_nonsense(void **state)
{
    struct pair *p = *state;
    to_master(p);
    host_line(&p->ws1, 1, 1, 2, "libpvm: mksocs() \033[31mfailed");
    expect_done(p, "pvm-failed", "libpvm: mksocs() \\x1B[31mfailed", -1);
}

static void test_slave_fails(void **state)
{
    struct pair *p = *state;
    struct wire_message m;
    to_agent(p);
    spawn(p, 1, "ws2", "pvmd -s");
    fake_expect(&p->ws2, WIRE_start, &m);
    wire_message_fini(&m);
    struct wire_message failed = {
        .type = WIRE_start_failed,
        .u.start_failed = {.job = 1, .attempt = 1, .process = 4, .text = "pvmd: command not found"}};
    fake_send(&p->ws2, &failed);
    expect_done(p, "pvm-failed", "ws2: its PVM daemon could not be started: pvmd: command not found", -1);
}

static void test_agent_gives_up(void **state)
{
    struct pair *p = *state;
    to_agent(p);
    struct wire_message failed = {.type = WIRE_pvm_failed,
                                  .u.pvm_failed = {.job = 1, .attempt = 1, .reason = "the master does not answer"}};
    fake_send(&p->ws2, &failed); /* not from where the agent is */
    fake_expect_none(&p->ws1, WIRE_end, 50);
    fake_send(&p->ws1, &failed);
    expect_done(p, "pvm-failed", "the master does not answer", -1);
}

/* The link breaks between the start and its answer: the start is sent again, with the same numbers. */
static void test_relink(void **state)
{
    struct pair *p = *state;
    struct wire_message start;
    struct wire_holding holding = {1, 1};
    to_master(p);
    fake_close(&p->ws1);
    host_open(&p->ws1, &p->lab, "ws1", 1,
              &(struct host_options){.generation = 9, .holdings = &holding, .nholdings = 1});
    fake_expect(&p->ws1, WIRE_start, &start);
    assert_int_equal(start.u.start.process, 2);
    assert_int_equal(start.u.start.attempt, 1);
    wire_message_fini(&start);
}

/* END had gone out, and elmer died before it was in the store that the command had ended: both are said again. */
static void test_ended_before_a_restart(void **state)
{
    struct pair *p = *state;
    struct wire_holding holding = {1, 1};
    struct host_options holds = {.generation = 9, .holdings = &holding, .nholdings = 1};
    struct wire_message m;
    to_running(p);
    lab_query_until(&p->ws1, 1, "running", &m);
    wire_message_fini(&m);
    lab_stop(&p->lab, SIGKILL);
    fake_close(&p->ws1);
    fake_close(&p->ws2);
    lab_start(&p->lab);
    host_open(&p->ws1, &p->lab, "ws1", 1, &holds);
    host_open(&p->ws2, &p->lab, "ws2", 1, &holds);
    host_exited(&p->ws1, 1, 1, 0, "command", 5, 0);
    host_empty(&p->ws1, 1, 1, 1);
    expect_done(p, "exited", "status 5", 5);
}

static void test_lost(void **state)
{
    struct pair *p = *state;
    to_running(p);
    struct wire_message lost = {.type = WIRE_lost,
                                .u.lost = {.job = 1, .attempt = 1, .text = "its supervisor was killed"}};
    fake_send(&p->ws2, &lost);
    expect_done(p, "lost", "ws2: its supervisor was killed", -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(test_whole),
        CASE(test_agent_hangs),
        CASE(test_kill_in_finish),
        CASE(test_pvmd_dies),
        CASE(test_pvmd_dies_and_the_command_of_it),
        CASE(test_halted_by_the_command),
        CASE(test_halted_and_goes_on),
        CASE(test_pvmd_dies_last),
        CASE(test_master_says_nonsense),
        CASE(test_slave_fails),
        CASE(test_agent_gives_up),
        CASE(test_relink),
        CASE(test_ended_before_a_restart),
        CASE(test_lost),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
