/* test_word.c - what root says to rsd at its start (rsd/word.h): each kind of word arrives as it was said, what is done
 * comes with its descriptors, and nothing else is taken for it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/word.h"

enum { SOON_MS = 50, LATE_MS = 10000 };

static int pair[2]; /* root's end, rsd's end */
static struct begin_plan heard;
static char said[4096];
static int said_level;

static void note(enum log_level level, const char *format, const char *text, void *data)
{
    (void)data;
    said_level = (int)level;
    snprintf(said, sizeof(said), "%s|%s", format, text);
}

static int setup(void **state)
{
    (void)state;
    heard = (struct begin_plan){.size = 0};
    said[0] = 0;
    log_divert(note, NULL);
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || !word_open(pair[0]);
}

static int teardown(void **state)
{
    (void)state;
    log_divert(NULL, NULL);
    if (pair[0] >= 0)
        close(pair[0]);
    close(pair[1]);
    return 0;
}

static int hear(int patience_ms, struct err *err)
{
    *err = (struct err)ERR_INIT;
    return word_hear(pair[1], &heard, patience_ms, err);
}

static void test_log(void **state)
{
    struct err err;
    (void)state;
    assert_true(word_log(pair[0], LOG_LEVEL_WARNING, "no %s here: %s", "no tickets here: 100 % of them"));
    assert_int_equal(hear(SOON_MS, &err), -ETIMEDOUT);
    assert_string_equal(said, "no %s here: %s|no tickets here: 100 % of them");
    assert_int_equal(said_level, LOG_LEVEL_WARNING);
}

static void test_failed(void **state)
{
    struct err err;
    (void)state;
    assert_true(word_waits(pair[0], "there is no disk"));
    assert_true(word_waits(pair[0], NULL));
    assert_true(word_failed(pair[0], 2));
    assert_int_equal(hear(LATE_MS, &err), 2);
    assert_true(word_failed(pair[0], 0));
    assert_int_equal(hear(LATE_MS, &err), 1);
}

static bool is_same(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

static void test_done(void **state)
{
    static struct begin_plan plan;
    struct err err;
    int groups = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)state;
    plan.tickets = true;
    plan.config.minimum_uid = 1234;
    plan.facts.spawn_pid = 77;
    plan.facts.groups_fd = groups;
    plan.facts.tmp_fd = tmp;
    snprintf(plan.facts.groups, sizeof(plan.facts.groups), "/groups");
    assert_true(word_reached(pair[0], "7.1", tmp));
    assert_true(word_reached(pair[0], "8.2", groups));
    assert_true(word_done(pair[0], &plan));
    assert_int_equal(hear(LATE_MS, &err), 0);
    assert_int_equal(heard.facts.reached_count, 2);
    assert_string_equal(heard.facts.reached[0].name, "7.1");
    assert_string_equal(heard.facts.reached[1].name, "8.2");
    assert_true(is_same(heard.facts.reached[0].fd, tmp) && is_same(heard.facts.reached[1].fd, groups));
    for (size_t i = 0; i < heard.facts.reached_count; i++)
        close(heard.facts.reached[i].fd);
    free(heard.facts.reached);
    assert_true(heard.tickets);
    assert_int_equal(heard.config.minimum_uid, 1234);
    assert_int_equal(heard.facts.spawn_pid, 77);
    assert_string_equal(heard.facts.groups, "/groups");
    assert_true(is_same(heard.facts.groups_fd, groups) && heard.facts.groups_fd != groups);
    assert_true(is_same(heard.facts.tmp_fd, tmp));
    assert_int_equal(fcntl(heard.facts.tmp_fd, F_GETFD), FD_CLOEXEC);
    close(heard.facts.groups_fd);
    close(heard.facts.tmp_fd);
    close(groups);
    close(tmp);
}

static void test_gone(void **state)
{
    struct err err;
    (void)state;
    close(pair[0]);
    pair[0] = -1;
    assert_int_equal(hear(LATE_MS, &err), -EPIPE);
    assert_non_null(strstr(err.text, "rsd-spawn.service"));
}

/* Another build's words are of another size, or have another version in them; and what is done needs its descriptors.
 */
static void test_other_build(void **state)
{
    char bytes[8192];
    struct err err;
    ssize_t size;
    (void)state;
    assert_int_equal(send(pair[0], "x", 1, 0), 1);
    assert_int_equal(hear(LATE_MS, &err), -EPROTO);
    assert_true(word_log(pair[0], LOG_LEVEL_INFO, "", "x"));
    size = recv(pair[1], bytes, sizeof(bytes), 0);
    assert_true(size > 100 && size < (ssize_t)sizeof(bytes));
    for (ssize_t i = 0; i + 4 < size; i++) {
        if (memcmp(bytes + i, PACKAGE_VERSION, strlen(PACKAGE_VERSION)) == 0) {
            bytes[i] = '~';
            break;
        }
    }
    assert_int_equal(send(pair[0], bytes, (size_t)size, 0), size);
    assert_int_equal(hear(LATE_MS, &err), -EPROTO);
    assert_string_equal(said, "");
}

static void test_done_without(void **state)
{
    static struct begin_plan plan = {.facts = {.groups_fd = -1, .tmp_fd = -1}};
    char bytes[8192];
    struct err err;
    ssize_t size;
    (void)state;
    assert_false(word_done(pair[0], &plan)); /* the kernel passes no descriptor that is none */
    plan.facts.groups_fd = plan.facts.tmp_fd = pair[1];
    assert_true(word_done(pair[0], &plan));
    size = recv(pair[1], bytes, sizeof(bytes), 0); /* without asking for descriptors */
    assert_int_equal(send(pair[0], bytes, (size_t)size, 0), size);
    assert_int_equal(hear(LATE_MS, &err), -EPROTO);
    assert_true(word_reached(pair[0], "7.1", pair[1]));
    size = recv(pair[1], bytes, sizeof(bytes), 0);
    assert_int_equal(send(pair[0], bytes, (size_t)size, 0), size);
    assert_int_equal(hear(LATE_MS, &err), -EPROTO);
}

/* Who does not read keeps root from nothing. */
static void test_full(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        if (!word_log(pair[0], LOG_LEVEL_INFO, "", "x"))
            return;
    }
    fail_msg("it takes everything");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_log),  TEST(test_failed),      TEST(test_done),
                                       TEST(test_gone), TEST(test_other_build), TEST(test_done_without),
                                       TEST(test_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
