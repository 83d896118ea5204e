/* test_escapes.c - elmer-escapes is started again when it has ended, soon but for one that cannot run. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rsd/root/internal.h"

static struct root *root;
static unsigned started;
static int64_t now;

/* In place of a pidfd: readable when it has ended. */
int spawn_escapes(struct root *asks, int *pidfd)
{
    assert_ptr_equal(asks, root);
    *pidfd = eventfd(0, EFD_CLOEXEC);
    assert_true(*pidfd >= 0);
    started++;
    return 100;
}

static int setup(void **state)
{
    (void)state;
    root = calloc(1, sizeof(*root));
    assert_non_null(root);
    root->mode = ORDER_MODE_RT;
    root->users[0] = '/';
    root->watcher_fd = -1;
    started = 0;
    now = 1000000;
    escapes_init(root, now);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (root->watcher_fd >= 0)
        close(root->watcher_fd);
    free(root);
    return 0;
}

static void pass(unsigned seconds)
{
    for (unsigned i = 0; i < 10 * seconds; i++) {
        escapes_keep(root, now);
        now += 100;
    }
}

static void end(void)
{
    assert_int_equal(eventfd_write(root->watcher_fd, 1), 0);
}

static void test_started_again(void **state)
{
    (void)state;
    pass(5);
    assert_int_equal(started, 1);
    end();
    pass(2);
    assert_int_equal(started, 2);
}

/* It is not installed, say. */
static void test_in_vain(void **state)
{
    (void)state;
    pass(1);
    for (unsigned i = 2; i <= 4; i++) {
        end();
        pass(2);
        assert_int_equal(started, i);
    }
    end();
    pass(55);
    assert_int_equal(started, 4);
    pass(10);
    assert_int_equal(started, 5);
}

/* Who has killed it now and then, over months, does not get the minute. */
static void test_after_a_long_life(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 10; i++) {
        pass(70);
        assert_int_equal(started, i);
        end();
        pass(2);
        assert_int_equal(started, i + 1);
    }
}

static void test_other_modes(void **state)
{
    (void)state;
    root->mode = ORDER_MODE_IDLE;
    pass(5);
    assert_int_equal(started, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_started_again), TEST(test_in_vain), TEST(test_after_a_long_life),
                                       TEST(test_other_modes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
