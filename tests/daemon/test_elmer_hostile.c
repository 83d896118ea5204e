/* test_elmer_hostile.c - a joined host that lies: about jobs of other hosts, and more than anybody can hear. */
#include "config.h"

#include "tests/daemon/elmer_lab.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* The good host is not heard while the hostile one floods: that may take long. */
#define TWO "name = ws1\nhosts = ws1 ws2\nheartbeat = 1s\nhost_timeout = 60s\nallocator = v1\nlevels = 1\n"

enum { MANY = 1000000, DIFFERENT = 2000, MOST_MB = 64, NOBODY = 65534 };

struct pair {
    struct lab lab;
    struct fake good, hostile;
};

static void begin(struct pair *p)
{
    lab_create(&p->lab, TWO);
    p->lab.memory_counts = true;
    lab_start(&p->lab);
    host_open(&p->good, &p->lab, "ws1", 1, NULL);
    host_open(&p->hostile, &p->lab, "ws2", 1, NULL);
}

static void end(struct pair *p)
{
    fake_close(&p->good);
    fake_close(&p->hostile);
    lab_destroy(&p->lab);
}

/* A job of alice on the host that is good. */
static void run_there(struct fake *host)
{
    static const char *here[] = {"ws1"};
    struct wire_message submission = lab_submission("t1", 1), open, start, jobs;
    submission.u.submit.hosts = (struct wire_strs){here, 1};
    lab_submit(host, &submission, NULL, 0);
    fake_expect(host, WIRE_open, &open);
    host_ordered(host, open.u.open.generation);
    host_event(host, WIRE_opened, 1, 1);
    fake_expect(host, WIRE_start, &start);
    host_started(host, 1, 1, 0);
    lab_query_until(host, 1, "running", &jobs);
    wire_message_fini(&open);
    wire_message_fini(&start);
    wire_message_fini(&jobs);
}

/* It says everything that ends jobs or is written of them, and none of it counts. */
static void test_jobs_of_others(void **state)
{
    struct pair p;
    struct wire_message jobs, end_of_it, forget;
    (void)state;
    begin(&p);
    run_there(&p.good);
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        struct wire_message lost = {.type = WIRE_lost, .u.lost = {.job = 1, .attempt = attempt, .text = "gone"}},
                            failed = {.type = WIRE_open_failed,
                                      .u.open_failed = {.job = 1, .attempt = attempt, .text = "no"}},
                            unstarted = {.type = WIRE_start_failed,
                                         .u.start_failed = {.job = 1, .attempt = attempt, .text = "no"}},
                            pvm = {.type = WIRE_pvm_failed,
                                   .u.pvm_failed = {.job = 1, .attempt = attempt, .reason = "no"}};
        fake_send(&p.hostile, &lost);
        fake_send(&p.hostile, &failed);
        fake_send(&p.hostile, &unstarted);
        fake_send(&p.hostile, &pvm);
        host_event(&p.hostile, WIRE_opened, 1, attempt);
        host_event(&p.hostile, WIRE_pvm_ready, 1, attempt);
        host_started(&p.hostile, 1, attempt, 0);
        host_line(&p.hostile, 1, attempt, 1, "/tmp/pvm");
        host_exited(&p.hostile, 1, attempt, 0, "command", 9, 0);
        host_exited(&p.hostile, 1, attempt, 1, "pvmd", 0, 9);
        host_empty(&p.hostile, 1, attempt, 1e9);
        host_empty(&p.hostile, 77, attempt, 1e9);
    }
    fake_await_ping(&p.hostile); /* elmer has heard all of it */
    fake_await_ping(&p.hostile);
    lab_query(&p.good, 1, &jobs);
    const struct wire_job_view *job = &jobs.u.jobs.jobs.items[0];
    assert_string_equal(job->state, "running");
    assert_int_equal(job->exit_status, -1);
    assert_int_equal(job->usage.count, 0);
    wire_message_fini(&jobs);

    host_exited(&p.good, 1, 1, 0, "command", 0, 0);
    fake_expect(&p.good, WIRE_end, &end_of_it);
    host_empty(&p.good, 1, 1, 1e9); /* and of its own job no more than can be */
    fake_expect(&p.good, WIRE_forget, &forget);
    lab_query_until(&p.good, 1, "done", &jobs);
    job = &jobs.u.jobs.jobs.items[0];
    assert_string_equal(job->reason_code, "exited");
    assert_int_equal(job->usage.count, 1);
    assert_true(job->usage.items[0].cpu_seconds < 60);
    wire_message_fini(&jobs);
    wire_message_fini(&end_of_it);
    wire_message_fini(&forget);
    end(&p);
}

static long peak_mb(pid_t pid)
{
    char path[64], line[200];
    long kb = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmHWM: %ld", &kb);
    fclose(file);
    return kb / 1024;
}

/* All that is said of so many jobs, ready to be written: the caller frees it. What elmer hears in a second must not
 * depend on how fast this end encodes, which is slow under valgrind: a rate that may be kept up for ever ends no link.
 */
static char *encode_flood(struct fake *host, struct wire_message *message, size_t *size)
{
    char *all = NULL;
    FILE *out = open_memstream(&all, size);
    struct err err = ERR_INIT;
    assert_non_null(out);
    for (int i = 0; i < DIFFERENT; i++) {
        uint8_t *frame;
        size_t bytes;
        if (message->type == WIRE_opened)
            message->u.opened.job = 1000 + (uint64_t)i;
        assert_int_equal(wire_encode_frame(message, host->channel.minor, &frame, &bytes, &err), 0);
        assert_int_equal(fwrite(frame, 1, bytes, out), bytes);
        free(frame);
    }
    assert_int_equal(fclose(out), 0);
    return all;
}

/* Whether elmer has closed the link meanwhile. */
static bool flood(struct fake *host, const char *all, size_t size)
{
    bool open = true;
    for (int i = 0; open && i < MANY; i += DIFFERENT)
        for (size_t sent = 0; open && sent < size;) {
            struct pollfd fd = {.fd = host->channel.fd, .events = POLLOUT};
            assert_int_equal(poll(&fd, 1, LAB_WAIT_MS), 1);
            ssize_t got = write(fd.fd, all + sent, size - sent);
            open = got >= 0 || errno == EAGAIN;
            sent += got > 0 ? (size_t)got : 0;
        }
    return !open;
}

static void expect_cut_off(struct pair *p, struct wire_message *message)
{
    struct wire_message jobs;
    size_t size;
    char *all = encode_flood(&p->hostile, message, &size);
    int64_t begin_ms = mono_ms(mono_now());
    bool closed = flood(&p->hostile, all, size);
    free(all);
    print_message("%s: the link ends after %ld ms, elmer has had %ld MB at most\n", wire_type_name(message->type),
                  (long)(mono_ms(mono_now()) - begin_ms), peak_mb(p->lab.pid));
    assert_true(closed || fake_closed(&p->hostile));
    lab_query(&p->good, 1, &jobs); /* the others are served */
    assert_string_equal(jobs.u.jobs.jobs.items[0].state, "running");
    wire_message_fini(&jobs);
    assert_true(peak_mb(p->lab.pid) < MOST_MB);
}

static void test_invented_jobs(void **state)
{
    struct pair p;
    struct wire_message opened = {.type = WIRE_opened, .u.opened = {.attempt = 1}};
    (void)state;
    begin(&p);
    run_there(&p.good);
    expect_cut_off(&p, &opened);
    end(&p);
}

static void test_too_many(void **state)
{
    struct pair p;
    struct wire_message ordered = {.type = WIRE_ordered, .u.ordered = {.generation = 1}};
    (void)state;
    begin(&p);
    run_there(&p.good);
    expect_cut_off(&p, &ordered);
    end(&p);
}

/* Not even a message of his is read: two would do to run a program as somebody else. */
static void test_users_are_no_hosts(void **state)
{
    struct lab lab;
    char told[1000];
    size_t size = 0;
    ssize_t got;
    int fd;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can be another user\n");
        skip();
    }
    lab_create(&lab, TWO);
    lab_start(&lab);
    assert_int_equal(chmod(lab.dir, 0711), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    fd = lab_connect(&lab, "host.sock");
    assert_int_equal(seteuid(0), 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 10}, sizeof(struct timeval)),
                     0);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    while ((got = read(fd, told + size, sizeof(told) - size)) > 0)
        size += (size_t)got;
    assert_int_equal(got, 0);
    assert_non_null(memmem(told, size, WIRE_CODE_NOT_PERMITTED, strlen(WIRE_CODE_NOT_PERMITTED)));
    close(fd);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_are_no_hosts),
        cmocka_unit_test(test_jobs_of_others),
        cmocka_unit_test(test_invented_jobs),
        cmocka_unit_test(test_too_many),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
