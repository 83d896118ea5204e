/* test_place.c - a job that is to be opened while the keeper of the scope is gone: a child asks systemd what that
 * means, and the loop does not wait for it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/internal.h"
#include "tests/unit/scratch.h"

enum { JOB = 7, WAIT_MS = 20000 };
enum bus { BUS_SILENT, BUS_NONE, BUS_DEAD };

int __wrap_sd_booted(void);
int __wrap_sd_bus_new(sd_bus **bus);

static struct rsd_config config;
static struct root root;
static char dir[64];
static volatile enum bus *bus_is; /* of the child, too */

int __wrap_sd_booted(void)
{
    return 1;
}

/* In the child. Who dies gives no answer, as one that is killed when its time is over. */
int __wrap_sd_bus_new(sd_bus **bus)
{
    *bus = NULL;
    while (*bus_is == BUS_SILENT)
        poll(NULL, 0, 1);
    if (*bus_is == BUS_DEAD)
        _exit(0);
    return -ECONNREFUSED;
}

static int up(void **state)
{
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    bus_is = mmap(NULL, sizeof(*bus_is), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(bus_is != MAP_FAILED);
    *bus_is = BUS_SILENT;
    snprintf(dir, sizeof(dir), "/tmp/elmer-place-XXXXXX");
    assert_non_null(scratch_dir(dir));
    assert_true(scratch_mkdir(dir, "keeper"));
    assert_true(scratch_put(dir, "keeper/cgroup.events", "populated 0\nfrozen 0\n"));
    config = (struct rsd_config){0};
    root = (struct root){.mode = ORDER_MODE_RT, .config = &config, .net = {.fd = -1}, .spawn_fd = -1, .scope_fd = -1};
    root.groups_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root.groups_fd >= 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    *bus_is = BUS_DEAD;
    close(root.groups_fd);
    if (root.scope_fd >= 0)
        close(root.scope_fd);
    return munmap((void *)(uintptr_t)bus_is, sizeof(*bus_is));
}

static void ask_to_open(void)
{
    const struct wire_message message = {.type = WIRE_open, .u.open = {.job = JOB, .attempt = 1}};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    open_new(&root, &message, &cpus);
    assert_int_equal(root.job_count, 0); /* and nothing is said: it is sent again */
}

static bool answer_within(int ms)
{
    struct pollfd answer = {.fd = root.scope_fd, .events = POLLIN};
    return poll(&answer, 1, ms) > 0;
}

static void test_nobody_waits(void **state)
{
    int asked;
    (void)state;
    ask_to_open();
    asked = root.scope_fd;
    assert_true(asked >= 0);
    assert_false(answer_within(0));
    open_answered(&root); /* woken up for nothing */
    ask_to_open();
    assert_int_equal(root.scope_fd, asked); /* one is asked at a time */
    assert_false(root.stop);
    *bus_is = BUS_NONE; /* nothing is being stopped: the keeper alone is gone */
    assert_true(answer_within(WAIT_MS));
    open_answered(&root);
    assert_int_equal(root.scope_fd, -1);
    assert_true(root.stop);
    assert_int_equal(root.status, 1);
}

static void test_no_answer(void **state)
{
    (void)state;
    *bus_is = BUS_DEAD;
    ask_to_open();
    assert_true(answer_within(WAIT_MS));
    open_answered(&root);
    assert_int_equal(root.scope_fd, -1);
    assert_false(root.stop);
    ask_to_open(); /* again */
    assert_true(root.scope_fd >= 0);
}

static void put_answer(char stops)
{
    int pair[2];
    assert_int_equal(pipe(pair), 0);
    assert_int_equal(write(pair[1], &stops, 1), 1);
    close(pair[1]);
    root.scope_fd = pair[0];
    root.scope_job = JOB;
    open_answered(&root);
    assert_int_equal(root.scope_fd, -1);
}

static void test_being_stopped(void **state)
{
    (void)state;
    put_answer(1);
    assert_false(root.stop); /* it would not be started before the scope is gone */
    put_answer(0);
    assert_true(root.stop);
}

/* cgroup_root is nothing that systemd knows of. */
static void test_nobody_to_ask(void **state)
{
    (void)state;
    snprintf(config.cgroup_root, sizeof(config.cgroup_root), "%s", dir);
    ask_to_open();
    assert_true(root.stop);
    assert_int_equal(root.scope_fd, -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_waits, up, down),
        cmocka_unit_test_setup_teardown(test_no_answer, up, down),
        cmocka_unit_test_setup_teardown(test_being_stopped, up, down),
        cmocka_unit_test_setup_teardown(test_nobody_to_ask, up, down),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
