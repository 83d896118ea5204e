/* test_elmer_outside.c - the queue daemon and a full disk, a bad store, a bad configuration, bytes that are no
 * messages. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/elmer_steps.h"

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
    uint64_t again, undone;
    struct wire_message m, jobs, running = lab_submission("r", 1), refused_one = lab_submission("x", 1);
    struct rlimit old, tight;
    (void)state;
    lab_create(&lab, LOCAL "levels = 2\n");
    log = start_with_log(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    lab_submit(&host, &running, NULL, 0);
    run_job(&host, &host, 1, 1);
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
    again = lab_submit(&host, &refused_one, NULL, 0); /* the same token, a new job */
    assert_in_range(again, 2, 3); /* 2: another write of elmer had found the disk full before the first was begun */
    undone = again == 3 ? 2 : 3;
    expect_not_there(&host, undone);
    lab_stop(&lab, SIGKILL);
    expect_once_each(log, (const char *[]){"the store cannot be written", "the store can be written again"}, 2);
    fake_close(&host);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 1, NULL);
    expect_not_there(&host, undone);
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

/* What ends it at the start, and how it says so; what it waits for is in test_elmer_waits.c. */
static void test_no_start(void **state)
{
    struct lab first, second;
    char path[100];
    (void)state;
    lab_create(&second, "levls = 3\n");
    no_start(&second, 2, "levels"); /* the nearest known key */
    lab_destroy(&second);
    lab_create(&second, "listen = *:0\n");
    no_start(&second, 2, "HOST:PORT");
    snprintf(second.config, sizeof(second.config), "listen = 127.0.0.1:%u\ntransport = plain\n", 7110U);
    lab_configure(&second);
    no_start(&second, 2, "take this line out");
    lab_destroy(&second);
    lab_create(&first, LOCAL);
    lab_start(&first);
    lab_stop(&first, SIGTERM);
    snprintf(path, sizeof(path), "%s/elmer.db", first.dir);
    FILE *out = fopen(path, "r+");
    assert_non_null(out);
    fputs("no database", out);
    fclose(out);
    no_start(&first, 2, "damaged");
    lab_destroy(&first);
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
    static const char *const sockets[] = {"elmer.sock", "host.sock"};
    static const uint8_t oversize[] = {0x7f, 0xff, 0xff, 0xff, '{'}, zero[] = {0, 0, 0, 0}, text[] = "\0\0\0\7garbage";
    struct lab lab;
    struct fake fake, host;
    struct wire_message m = {.type = WIRE_order}, jobs, answer;
    (void)state;
    lab_create(&lab, LOCAL);
    lab_start(&lab);
    int idle = lab_connect(&lab, "host.sock"); /* half-open: never says anything */
    for (size_t i = 0; i < 2; i++) {
        garbage(&lab, sockets[i], oversize, sizeof(oversize));
        garbage(&lab, sockets[i], zero, sizeof(zero));
        garbage(&lab, sockets[i], text, sizeof(text) - 1);
        fake_open(&fake, &lab, sockets[i]); /* a message that this side may not send */
        fake_send(&fake, &m);
        assert_true(fake_closed(&fake));
        fake_close(&fake);
    }
    host_open(&host, &lab, "ws1", 1, NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_start),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
