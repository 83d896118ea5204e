/* test_rest.c - a loop that always has something to do sleeps now and then, and one that waits does not sleep more. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "lib/base/thread_time.h"
#include "lib/net/rest.h"

enum { RUN_MS = 1000 };

static long sleeps(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static int64_t end_ns;

/* A callback of each turn: the loop never waits. */
static void on_idle(uv_idle_t *idle)
{
    if (thread_time_ns() >= end_ns)
        uv_close((uv_handle_t *)idle, NULL);
}

static void run(uv_loop_t *loop)
{
    uv_idle_t idle;
    end_ns = thread_time_ns() + RUN_MS * INT64_C(1000000);
    uv_idle_init(loop, &idle);
    uv_idle_start(&idle, on_idle);
    uv_run(loop, UV_RUN_DEFAULT);
}

static void test_busy(void **state)
{
    uv_loop_t loop;
    struct rest rest = {0};
    long before;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(rest_begin(&rest, &loop), 0);
    before = sleeps();
    run(&loop);
    assert_in_range(sleeps() - before, RUN_MS / 100 - 1, RUN_MS / 100 + 1);
    rest_end(&rest);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void on_timer(uv_timer_t *timer)
{
    const int64_t until = thread_time_ns() + 3000000;
    while (thread_time_ns() < until) {
    }
    if (uv_timer_get_repeat(timer) && uv_now(timer->loop) >= (uint64_t)end_ns)
        uv_close((uv_handle_t *)timer, NULL);
}

/* It sleeps in its poll, so not in addition. */
static void test_waits(void **state)
{
    uv_loop_t loop;
    uv_timer_t timer;
    struct rest rest = {0};
    int64_t since_ns;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(rest_begin(&rest, &loop), 0);
    uv_timer_init(&loop, &timer);
    uv_update_time(&loop);
    end_ns = (int64_t)uv_now(&loop) + RUN_MS;
    uv_timer_start(&timer, on_timer, 10, 10);
    uv_run(&loop, UV_RUN_DEFAULT);
    since_ns = rest.since_ns;
    assert_true(thread_time_ns() - since_ns < 100 * INT64_C(1000000)); /* it has always slept since a moment before */
    rest_end(&rest);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_busy), cmocka_unit_test(test_waits)};
    return cmocka_run_group_tests_name("rest", tests, NULL, NULL);
}
