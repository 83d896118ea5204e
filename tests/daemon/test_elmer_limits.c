/* test_elmer_limits.c - what one user may do, and who may be whom. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* The hosts are not heard while a test sends many questions: that may take long. */
#define LOCAL "name = ws1\nhosts = ws1 ws2\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nlevels = 1\n"

struct pair {
    struct lab lab;
    struct fake host, other;
};

static void start(struct pair *p)
{
    lab_start(&p->lab);
    host_open(&p->host, &p->lab, "ws1", 1, NULL);
    host_open(&p->other, &p->lab, "ws2", 1, NULL);
}

static void begin(struct pair *p, const char *config)
{
    lab_create(&p->lab, config);
    start(p);
}

static void end(struct pair *p)
{
    fake_close(&p->host);
    fake_close(&p->other);
    lab_destroy(&p->lab);
}

static void refused(struct fake *host, uint64_t client, const char *code, const char *words)
{
    struct wire_message answer;
    host_expect_relayed(host, client, WIRE_error, &answer);
    assert_string_equal(answer.u.error.code, code);
    if (!strstr(answer.u.error.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", answer.u.error.text, words);
    wire_message_fini(&answer);
}

static void submit(struct fake *host, uint32_t uid, const char *user, const char *token, uint64_t nprocs)
{
    struct wire_message submission = lab_submission(token, nprocs);
    host_relay(host, uid, uid, user, &submission);
}

static void taken(struct fake *host, uint64_t client)
{
    struct wire_message answer;
    host_expect_relayed(host, client, WIRE_submitted, &answer);
    wire_message_fini(&answer);
}

static void test_queued(void **state)
{
    struct pair p;
    struct wire_message done, cancel = {.type = WIRE_cancel, .u.cancel = {.job = 3}};
    (void)state;
    begin(&p, LOCAL "user_queued = 2\n");
    for (int i = 1; i <= 3; i++) { /* one runs, two wait: for both processors, or behind that */
        char token[8];
        snprintf(token, sizeof(token), "t%d", i);
        submit(&p.host, 2001, "alice", token, 2);
        taken(&p.host, 2001);
    }
    submit(&p.other, 2001, "alice", "t4", 1); /* wherever he asks */
    refused(&p.other, 2001, WIRE_CODE_REFUSED,
            "user alice has 2 jobs in the queue, and may have 2 (user_queued in elmer.conf)");
    submit(&p.other, 2001, "alice", "t3", 2); /* a retry is no new job */
    taken(&p.other, 2001);
    submit(&p.host, 2002, "bob", "t4", 1);
    taken(&p.host, 2002);
    host_relay(&p.host, 2001, 2001, "alice", &cancel);
    host_expect_relayed(&p.host, 2001, WIRE_done, &done);
    wire_message_fini(&done);
    submit(&p.host, 2001, "alice", "t5", 1);
    taken(&p.host, 2001);
    end(&p);
}

static void test_running(void **state)
{
    struct pair p;
    struct wire_message jobs;
    (void)state;
    begin(&p, LOCAL "user_running = 1\n");
    submit(&p.host, 2001, "alice", "t1", 1);
    taken(&p.host, 2001);
    submit(&p.host, 2001, "alice", "t2", 1);
    taken(&p.host, 2001);
    submit(&p.host, 2002, "bob", "t1", 1);
    taken(&p.host, 2002);
    lab_query(&p.host, 2, &jobs);
    assert_string_equal(jobs.u.jobs.jobs.items[0].state, "queued");
    assert_string_equal(jobs.u.jobs.jobs.items[0].reason_code, "at-limit");
    assert_non_null(strstr(jobs.u.jobs.jobs.items[0].reason, "user_running"));
    wire_message_fini(&jobs);
    lab_query(&p.host, 3, &jobs);
    assert_string_equal(jobs.u.jobs.jobs.items[0].state, "starting");
    wire_message_fini(&jobs);
    end(&p);
}

static void test_memory(void **state)
{
    static char large[300 << 10];
    struct pair p;
    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "X=", 2);
    begin(&p, LOCAL "user_memory = 1\n");
    for (int i = 1; i <= 4; i++) {
        struct wire_message submission = lab_submission("t", 2);
        const char *environment[] = {large};
        char token[8];
        snprintf(token, sizeof(token), "t%d", i);
        submission.u.submit.token = token;
        submission.u.submit.environment.items = environment;
        submission.u.submit.environment.count = 1;
        host_relay(&p.host, 2001, 2001, "alice", &submission);
        if (i < 4)
            taken(&p.host, 2001);
    }
    refused(&p.host, 2001, WIRE_CODE_REFUSED, "may take 1 (user_memory in elmer.conf)");
    end(&p);
}

static void test_requests(void **state)
{
    struct pair p;
    struct wire_message kill = {.type = WIRE_kill, .u.kill = {.job = 99}};
    (void)state;
    begin(&p, LOCAL "admin_hosts = ws1\nuser_requests = 1\nuser_requests_burst = 10\nuser_request_bytes = 20000\n");
    for (int i = 0; i < 5; i++) { /* over all hosts */
        host_relay(&p.host, 1, 2001, "alice", &kill);
        refused(&p.host, 1, WIRE_CODE_NO_SUCH_JOB, "99");
        host_relay(&p.other, 1, 2001, "alice", &kill);
        refused(&p.other, 1, WIRE_CODE_NO_SUCH_JOB, "99");
    }
    for (int i = 0; i < 3; i++)
        host_relay(&p.host, 1, 2001, "alice", &kill);
    refused(&p.host, 1, WIRE_CODE_REFUSED,
            "a user may send 1 in a second (user_requests in elmer.conf) and 10 at once");
    host_relay(&p.host, 2, 2002, "bob", &kill);
    refused(&p.host, 2, WIRE_CODE_NO_SUCH_JOB, "99");
    for (int i = 0; i < 50; i++) { /* root of this host may do what he likes */
        struct wire_message answer;
        lab_ask_as_root(&p.lab, &kill, WIRE_error, &answer);
        assert_string_equal(answer.u.error.code, WIRE_CODE_NO_SUCH_JOB);
        wire_message_fini(&answer);
    }
    struct wire_message submission = lab_submission("t", 1);
    static char large[20000];
    memset(large, 'x', sizeof(large) - 1);
    const char *arguments[] = {"/bin/prog", large};
    submission.u.submit.command.items = arguments;
    host_relay(&p.host, 2, 2002, "bob", &submission);
    refused(&p.host, 2, WIRE_CODE_REFUSED, "and may have 20000 (user_request_bytes in elmer.conf)");
    end(&p);
}

/* A connection to elmer's own socket as a user who is not root. */
static bool connect_as(const struct lab *lab, uid_t uid, struct channel *client, struct err *err)
{
    assert_int_equal(chmod(lab->dir, 0755), 0);
    assert_int_equal(seteuid(uid), 0);
    int fd = lab_connect(lab, "elmer.sock");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(channel_init(client, fd, WIRE_FROM_ELMER, 1 << 20), 0);
    return channel_hello(client, "test", mono_ms(mono_now()) + LAB_WAIT_MS, err) == 0;
}

static void test_connections(void **state)
{
    struct pair p;
    struct channel first, second, third;
    struct wire_message query = {.type = WIRE_query, .u.query = {.queued = true}};
    struct err err = ERR_INIT;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    begin(&p, LOCAL "user_connections = 2\n");
    assert_true(connect_as(&p.lab, 1, &first, &err));
    assert_true(connect_as(&p.lab, 1, &second, &err));
    assert_false(connect_as(&p.lab, 1, &third, &err));
    assert_non_null(strstr(err.text, "too many connections: a user may have 2 (user_connections in elmer.conf)"));
    channel_fini(&third);
    host_relay(&p.other, 5, 1, "daemon", &query); /* they count over all hosts */
    refused(&p.other, 5, WIRE_CODE_REFUSED, "user_connections");
    err_clear(&err);
    assert_true(connect_as(&p.lab, 2, &third, &err));
    channel_fini(&third);
    for (int i = 0; i < 5; i++) {
        struct fake root;
        fake_open(&root, &p.lab, "elmer.sock");
        fake_close(&root);
    }
    channel_fini(&first);
    channel_fini(&second);
    end(&p);
}

/* Asks as much as is taken, and reads nothing. */
static void ask_and_not_read(struct fake *fake, bool host, unsigned times)
{
    struct err err = ERR_INIT;
    for (unsigned i = 0; i < times && !fake->channel.dead; i++) {
        struct wire_message query = {
            .type = WIRE_query, .id = ++fake->ids, .u.query = {.running = true, .queued = true}};
        struct wire_message relay = {.type = WIRE_relay, .u.relay = {.client = 7, .uid = 2003, .user = "carol"}};
        char *json = NULL;
        size_t size;
        if (channel_wants_write(&fake->channel) && channel_flush(&fake->channel) == 0 &&
            channel_wants_write(&fake->channel))
            return; /* elmer takes no more of it */
        assert_int_equal(wire_encode(&query, fake->channel.minor, &json, &size, &err), 0);
        relay.u.relay.frame = json;
        (void)channel_send(&fake->channel, host ? &relay : &query, &err);
        free(json);
    }
}

static bool unread(const struct fake *fake)
{
    int bytes = 0;
    return fake->channel.dead || (ioctl(fake->channel.fd, FIONREAD, &bytes) == 0 && bytes > 0);
}

static int64_t answer_ms(struct pair *p, uint64_t job)
{
    struct wire_message jobs;
    int64_t begin_ms = mono_ms(mono_now());
    lab_query(&p->host, job, &jobs); /* within LAB_WAIT_MS, or the test fails */
    assert_int_equal(jobs.u.jobs.jobs.count, 1);
    wire_message_fini(&jobs);
    return mono_ms(mono_now()) - begin_ms;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One that does not read, a client or a workstation, keeps nobody else waiting: asked while it goes on asking. */
static void test_deaf_peers(void **state)
{
    enum { JOBS = 300, ROUNDS = 100, ASKS = 200, SLOWER = 10, SLACK_MS = 2000 };
    struct pair p;
    struct fake client;
    int64_t worst = 0, in_peace = 0;
    (void)state;
    begin(&p, LOCAL);
    for (int i = 1; i <= JOBS; i++) {
        char token[8];
        snprintf(token, sizeof(token), "t%d", i);
        submit(&p.host, 2001, "alice", token, 1);
        taken(&p.host, 2001);
    }
    for (int round = 0; round < ROUNDS; round++)
        in_peace = later(in_peace, answer_ms(&p, JOBS));
    fake_open(&client, &p.lab, "elmer.sock");
    for (int round = 0; round < ROUNDS; round++) {
        ask_and_not_read(&client, false, ASKS);
        ask_and_not_read(&p.other, true, ASKS);
        worst = later(worst, answer_ms(&p, JOBS));
        assert_true(round == 0 || (unread(&client) && unread(&p.other))); /* what they have been answered */
    }
    print_message("others were answered in %d ms at most, %d before, beside %d questions of each\n", (int)worst,
                  (int)in_peace, (int)client.ids);
    assert_true(worst <= SLOWER * in_peace + SLACK_MS);
    fake_close(&client);
    end(&p);
}

static long resident_kb(pid_t pid)
{
    char path[40], line[200];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) && sscanf(line, "VmRSS: %ld", &kb) != 1) {
    }
    fclose(file);
    return kb;
}

static long cpu_ms(pid_t pid)
{
    unsigned long user = 0, system = 0;
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    fclose(file);
    return (long)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

/* Many links of a user, with many questions on each, none of whose answers he reads: elmer keeps a bounded amount of
 * them, does not look at them again and again, and goes on when he reads. */
static void test_deaf_user(void **state)
{
#ifdef __SANITIZE_ADDRESS__ /* more lists take more CPU time than a user has at once, on a slow machine as well */
    enum { JOBS = 20 };
#else
    enum { JOBS = 50 };
#endif
    enum { USERS = 60, ASKS = 100, GROWTH_KB = 48 << 10 };
    static struct channel links[USERS];
    struct pair p;
    struct wire_message jobs, answer;
    struct err err = ERR_INIT;
    unsigned finals = 0;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can connect as somebody else\n");
        skip();
    }
    lab_create(&p.lab, LOCAL "private_jobs = no\n");
    p.lab.memory_counts = true;
    start(&p);
    for (int i = 1; i <= JOBS; i++) {
        char token[8];
        snprintf(token, sizeof(token), "t%d", i);
        submit(&p.host, 2001, "alice", token, 1);
        taken(&p.host, 2001);
    }
    lab_query(&p.host, JOBS, &jobs);
    wire_message_fini(&jobs);
    long before_kb = resident_kb(p.lab.pid);
    for (int i = 0; i < USERS; i++) {
        assert_true(connect_as(&p.lab, 1, &links[i], &err));
        for (uint64_t id = 1; id <= ASKS; id++) {
            struct wire_message query = {.type = WIRE_query, .id = id, .u.query = {.running = true, .queued = true}};
            assert_int_equal(channel_send_all(&links[i], &query, mono_ms(mono_now()) + LAB_WAIT_MS, &err), 0);
        }
    }
    lab_query(&p.host, JOBS, &jobs); /* behind all of them */
    wire_message_fini(&jobs);
    long begin_ms = cpu_ms(p.lab.pid), grown_kb = resident_kb(p.lab.pid) - before_kb;
    usleep(1000000); /* how much it works when it has nothing to do */
    long spent_ms = cpu_ms(p.lab.pid) - begin_ms;
    print_message("%d deaf links with %d questions each: %ld KB, and %ld ms of CPU time in a second\n", USERS, ASKS,
                  grown_kb, spent_ms);
    assert_true(grown_kb < GROWTH_KB);
    assert_true(spent_ms < 100);
    while (finals < USERS * ASKS) { /* now he reads: as long as it takes, if only something comes in time */
        struct pollfd fds[USERS];
        for (int i = 0; i < USERS; i++)
            fds[i] = (struct pollfd){.fd = links[i].fd, .events = POLLIN};
        assert_true(poll(fds, USERS, LAB_WAIT_MS) > 0);
        for (int i = 0; i < USERS; i++) {
            if (!fds[i].revents)
                continue;
            assert_int_equal(channel_fill(&links[i], &err), 0);
            while (channel_next(&links[i], &answer, &err) == 1) {
                finals += answer.type == WIRE_jobs && !answer.u.jobs.more;
                if (answer.type == WIRE_error)
                    fail_msg("answered with: %s", answer.u.error.text);
                wire_message_fini(&answer);
            }
        }
    }
    for (int i = 0; i < USERS; i++)
        channel_fini(&links[i]);
    end(&p);
}

/* The uid counts, and the name must be the one that the queue host has for it, if it has any. */
static void test_names(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, LOCAL "minimum_uid = 1\n");
    submit(&p.other, 1, "alice", "t1", 1);
    refused(&p.other, 1, WIRE_CODE_NOT_PERMITTED,
            "user alice has uid 1 on ws2, which is the uid of daemon on the queue host");
    submit(&p.other, 2009, "daemon", "t1", 1);
    refused(&p.other, 2009, WIRE_CODE_NOT_PERMITTED,
            "user daemon has uid 2009 on ws2, and another one on the queue host");
    submit(&p.other, 1, "daemon", "t1", 1);
    taken(&p.other, 1);
    submit(&p.other, 2009, "nobody-here", "t1", 1); /* unknown here: a host that knows him will run it */
    taken(&p.other, 2009);
    submit(&p.other, 0, "root", "t1", 1);
    refused(&p.other, 0, WIRE_CODE_NOT_PERMITTED, "root runs no jobs");
    end(&p);
}

static void test_root_if_allowed(void **state)
{
    struct pair p;
    (void)state;
    begin(&p, LOCAL "minimum_uid = 0\n");
    submit(&p.other, 0, "root", "t1", 1);
    taken(&p.other, 0);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queued),          cmocka_unit_test(test_running),     cmocka_unit_test(test_memory),
        cmocka_unit_test(test_requests),        cmocka_unit_test(test_connections), cmocka_unit_test(test_names),
        cmocka_unit_test(test_root_if_allowed), cmocka_unit_test(test_deaf_peers),  cmocka_unit_test(test_deaf_user),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
