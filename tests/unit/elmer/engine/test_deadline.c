/* test_deadline.c - many deadlines on one timer, which is a fake, as is the time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "elmer/engine/deadline.h"
#include "tests/unit/elmer/fakes/fake_time.h"

/* ---- the timer ---- */

static struct timer {
    uv_timer_cb fire; /* NULL: stopped */
    uint64_t in_ms;
    int closed;
} timer;

int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *handle);
int __wrap_uv_timer_init(uv_loop_t *loop, uv_timer_t *handle)
{
    handle->loop = loop;
    timer = (struct timer){0};
    return 0;
}

int __wrap_uv_timer_start(uv_timer_t *handle, uv_timer_cb fire, uint64_t in_ms, uint64_t repeat_ms);
int __wrap_uv_timer_start(uv_timer_t *handle, uv_timer_cb fire, uint64_t in_ms, uint64_t repeat_ms)
{
    (void)handle;
    assert_int_equal(repeat_ms, 0);
    timer.fire = fire;
    timer.in_ms = in_ms;
    return 0;
}

int __wrap_uv_timer_stop(uv_timer_t *handle);
int __wrap_uv_timer_stop(uv_timer_t *handle)
{
    (void)handle;
    timer.fire = NULL;
    return 0;
}

void __wrap_uv_update_time(uv_loop_t *loop);
void __wrap_uv_update_time(uv_loop_t *loop)
{
    (void)loop;
}

void __wrap_uv_close(uv_handle_t *handle, uv_close_cb closed);
void __wrap_uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    (void)handle;
    assert_null(closed);
    timer.closed++;
}

/* The loop sleeps until the timer, and late_ms longer; then the timer fires. */
static void turn(struct deadlines *all, int64_t late_ms)
{
    uv_timer_cb fire = timer.fire;
    assert_non_null(fire);
    fake_time_skip((int64_t)timer.in_ms + late_ms);
    timer.fire = NULL;
    fire(&all->timer);
}

/* ---- deadlines ---- */

struct item {
    struct deadline deadline; /* first */
    struct deadlines *all;
    int again;
};
static struct item items[200];
static uv_loop_t loop;
static struct deadlines all;
static int64_t last_fired;
static int fired;

static void fire(struct deadline *deadline)
{
    struct item *item = (struct item *)deadline;
    assert_true(deadline->at_ms <= fake_now_ms());
    assert_true(deadline->at_ms >= last_fired);
    assert_int_equal(deadline->slot, 0);
    last_fired = deadline->at_ms;
    fired++;
    if (item->again-- > 0)
        deadline_set(item->all, deadline, fake_now_ms());
}

static void arm(int item, int64_t in_ms)
{
    items[item].all = &all;
    items[item].deadline.fire = fire;
    deadline_set(&all, &items[item].deadline, fake_now_ms() + in_ms);
}

static int setup(void **state)
{
    (void)state;
    fake_time_begin();
    for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++)
        items[i] = (struct item){0};
    last_fired = 0;
    fired = 0;
    deadlines_init(&all, &loop);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    deadlines_fini(&all);
    assert_int_equal(timer.closed, 1);
    return 0;
}

/* Also moved and cleared ones fire in the order of time, once. */
static void test_order(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        arm(i, (i * 37) % 101);
    for (int i = 1; i < 200; i += 2)
        deadline_clear(&all, &items[i].deadline);
    for (int i = 2; i < 200; i += 4)
        arm(i, 5 + i % 7);
    deadline_clear(&all, &items[1].deadline); /* not armed */
    assert_int_equal(all.count, 100);
    for (int turns = 0; timer.fire && turns < 200; turns++)
        turn(&all, 0);
    assert_int_equal(fired, 100);
    assert_int_equal(all.count, 0);
    assert_null(timer.fire);
}

static void test_timer(void **state)
{
    (void)state;
    assert_null(timer.fire);
    arm(0, 50);
    assert_int_equal(timer.in_ms, 50);
    arm(1, 80);
    assert_int_equal(timer.in_ms, 50);
    arm(2, 20);
    assert_int_equal(timer.in_ms, 20);
    arm(2, 60);    /* moved: the timer fires for nothing, */
    turn(&all, 0); /* after 20 ms */
    assert_int_equal(fired, 0);
    assert_int_equal(timer.in_ms, 30);
    deadline_clear(&all, &items[0].deadline);
    assert_int_equal(timer.in_ms, 40);
    arm(3, -5); /* past */
    assert_int_equal(timer.in_ms, 0);
    deadline_clear(&all, &items[3].deadline);
    deadline_clear(&all, &items[2].deadline);
    deadline_clear(&all, &items[1].deadline);
    assert_null(timer.fire);
}

/* One that arms itself again for now does not hold the loop. */
static void test_again(void **state)
{
    (void)state;
    items[0].again = 3;
    arm(0, 10);
    for (int i = 1; i <= 4; i++) {
        turn(&all, 0);
        assert_int_equal(fired, i);
    }
    assert_null(timer.fire);
}

/* The owner may be gone with it. */
static void fire_and_free(struct deadline *deadline)
{
    fired++;
    test_free(deadline);
}

static void test_free_in_fire(void **state)
{
    struct deadline *deadline = test_calloc(1, sizeof(*deadline));
    (void)state;
    deadline->fire = fire_and_free;
    deadline_set(&all, deadline, fake_now_ms());
    arm(0, 0);
    turn(&all, 0);
    assert_int_equal(fired, 2);
}

static int stalls;
static int64_t stalled_ms;

static void on_stalled(struct deadlines *deadlines, int64_t late_ms)
{
    assert_ptr_equal(deadlines, &all);
    assert_int_equal(fired, 0);
    stalls++;
    stalled_ms = late_ms;
}

/* When the process did not run, sockets are read before any deadline fires: once for each stall. */
static void test_stalled(void **state)
{
    (void)state;
    all.stalled = on_stalled;
    stalls = 0;
    arm(0, 100);
    turn(&all, DEADLINE_LATE_MS);
    assert_int_equal(stalls, 1);
    assert_int_equal(stalled_ms, DEADLINE_LATE_MS);
    assert_int_equal(fired, 0);
    assert_int_equal(timer.in_ms, 1); /* the next turn, not this one */
    turn(&all, 0);
    assert_int_equal(stalls, 1);
    assert_int_equal(fired, 1);

    arm(1, 100); /* a little late is no stall */
    turn(&all, DEADLINE_LATE_MS - 1);
    assert_int_equal(stalls, 1);
    assert_int_equal(fired, 2);
}

static void test_fini(void **state)
{
    (void)state;
    arm(0, 10);
    arm(1, 20);
    deadlines_fini(&all);
    assert_int_equal(items[0].deadline.slot, 0);
    assert_int_equal(items[1].deadline.slot, 0);
    deadline_clear(&all, &items[0].deadline); /* of an owner that outlives it */
    deadlines_init(&all, &loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_in_fire, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stalled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fini, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
