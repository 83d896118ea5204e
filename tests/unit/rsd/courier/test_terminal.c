/* test_terminal.c - of a job's terminal what is pure: the ring of its output, and its life. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/job/terminal.h"
#include "lib/run/link.h"
#include "rsd/courier/life.h"
#include "rsd/courier/ring.h"
#include "rsd/courier/typed.h"

/* ---- the ring ---- */

static void check_from(const struct ring *ring, uint64_t place, const char *all)
{
    char got[100] = "";
    size_t used = 0;
    for (uint64_t at = place; at < ring->end;) {
        size_t size;
        const uint8_t *bytes = ring_at(ring, at, &size);
        assert_true(size > 0 && used + size < sizeof(got));
        memcpy(got + used, bytes, size);
        used += size;
        at += size;
    }
    assert_string_equal(got, all + place);
}

static void test_ring(void **state)
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    (void)state;
    for (size_t piece = 1; piece <= 20; piece++) { /* also longer than the ring */
        struct ring ring;
        assert_true(ring_init(&ring, 10));
        for (size_t at = 0; at < strlen(all); at += piece) {
            size_t size = strlen(all) - at < piece ? strlen(all) - at : piece;
            ring_put(&ring, all + at, size);
            assert_int_equal(ring.end, at + size);
            assert_int_equal(ring.begin, ring.end > 10 ? ring.end - 10 : 0);
        }
        for (uint64_t place = ring.begin; place <= ring.end; place++)
            check_from(&ring, place, all);
        ring_fini(&ring);
    }
}

static void test_unseen(void **state)
{
    struct ring ring;
    (void)state;
    assert_true(ring_init(&ring, 10));
    assert_int_equal(ring_lost(&ring), 0);
    assert_int_equal(ring_unseen(&ring), 0);
    ring_put(&ring, "0123456", 7);
    ring.seen = 5;
    ring_put(&ring, "789", 3);
    assert_int_equal(ring_lost(&ring), 0);
    assert_int_equal(ring_unseen(&ring), 5);
    ring_put(&ring, "abcdefg", 7); /* 17 in all: 7 to 16 are kept */
    assert_int_equal(ring_lost(&ring), 2);
    assert_int_equal(ring_unseen(&ring), 7);
    ring.seen = 17;
    assert_int_equal(ring_lost(&ring), 0);
    assert_int_equal(ring_unseen(&ring), 17);
    ring_fini(&ring);
}

/* ---- what was typed ---- */

static void test_typed(void **state)
{
    static uint8_t many[RUN_WINDOW + 1];
    struct typed typed;
    size_t size;
    (void)state;
    assert_true(typed_init(&typed));
    assert_false(typed_waits(&typed));
    assert_false(typed_put(&typed, many, RUN_WINDOW + 1)); /* more than a window */
    assert_true(typed_put(&typed, "abc", 3));
    assert_memory_equal(typed_at(&typed, &size), "abc", 3);
    assert_int_equal(size, 3);
    assert_int_equal(typed_take(&typed, 2), 2);
    assert_true(typed.came == 3 && typed.went == 2);
    typed_begin(&typed); /* the c goes on first, and counts for nobody */
    assert_true(typed.came == 0 && typed.went == 0);
    assert_true(typed_put(&typed, many, RUN_WINDOW));
    assert_false(typed_put(&typed, "x", 1));
    assert_int_equal(*typed_at(&typed, &size), 'c');
    assert_int_equal(size, RUN_WINDOW + 1);
    assert_int_equal(typed_take(&typed, 1), 0);
    assert_int_equal(typed_take(&typed, 5), 5);
    assert_true(typed_put(&typed, "xyzuv", 5));
    typed_begin(&typed);
    for (int round = 0; round < 3; round++) { /* of sessions that nobody reads a window stays */
        assert_true(typed_put(&typed, many, RUN_WINDOW));
        typed_begin(&typed);
        (void)typed_at(&typed, &size);
        assert_int_equal(size, RUN_WINDOW);
    }
    assert_int_equal(typed_take(&typed, RUN_WINDOW), 0);
    assert_false(typed_waits(&typed));
    typed_fini(&typed);
}

/* ---- its life ---- */

enum { NOW = 1000 };

static void test_nobody_comes(void **state)
{
    struct life life;
    (void)state;
    assert_int_equal(life_begin(&life, false, NOW), LIFE_NOTHING);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    assert_int_equal(life_time(&life, life.deadline_ms), LIFE_NOTHING); /* its command is never run */
    assert_int_equal(life.state, LIFE_OVER);
}

static struct life shown(bool keep)
{
    struct life life;
    enum life_do begun = life_begin(&life, keep, NOW), looked = life_looked(&life, NOW);
    assert_int_equal(begun, keep ? LIFE_START : LIFE_NOTHING);
    assert_int_equal(looked, keep ? LIFE_NOTHING : LIFE_START);
    assert_int_equal(life.state, LIFE_RUNS);
    assert_true(life.deadline_ms == INT64_MAX);
    return life;
}

static void test_grace(void **state)
{
    struct life life = shown(false);
    (void)state;
    assert_int_equal(life_lost(&life, NOW), LIFE_NOTHING);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    assert_int_equal(life_looked(&life, NOW + 100), LIFE_NOTHING); /* back in time */
    assert_true(life.deadline_ms == INT64_MAX);
    (void)life_lost(&life, NOW + 200);
    assert_int_equal(life_time(&life, life.deadline_ms), LIFE_HANG_UP);
    assert_int_equal(life.state, LIFE_HUNG);
    assert_int_equal(life.deadline_ms, NOW + 200 + TERMINAL_GRACE_MS + LIFE_HANG_MS);
    assert_int_equal(life_time(&life, life.deadline_ms), LIFE_KILL);
    assert_true(life.deadline_ms == INT64_MAX);
    life_exited(&life, NOW);
    assert_int_equal(life.state, LIFE_LAST);
    assert_false(life.returns);
}

static void test_leaves(void **state)
{
    struct life life = shown(false);
    (void)state;
    assert_int_equal(life_left(&life, NOW), LIFE_HANG_UP);
    assert_int_equal(life.state, LIFE_HUNG);
    life = shown(true);
    assert_int_equal(life_left(&life, NOW), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_RUNS);
    assert_true(life.deadline_ms == INT64_MAX);
    (void)life_looked(&life, NOW);
    assert_int_equal(life_lost(&life, NOW), LIFE_NOTHING);
    assert_true(life.deadline_ms == INT64_MAX); /* nobody needs to look at one that is kept */
}

static void test_stop(void **state)
{
    struct life life;
    (void)state;
    (void)life_begin(&life, false, NOW);
    assert_int_equal(life_stop(&life, NOW), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_OVER);
    life = shown(true);
    assert_int_equal(life_stop(&life, NOW), LIFE_HANG_UP);
    assert_int_equal(life_stop(&life, NOW), LIFE_NOTHING); /* once */
    life_exited(&life, NOW);
    assert_int_equal(life_stop(&life, NOW), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_LAST);
}

static void test_last(void **state)
{
    struct life life = shown(false);
    (void)state;
    life_exited(&life, NOW); /* he looks: he takes what is left, or his time is over */
    assert_int_equal(life.deadline_ms, NOW + LIFE_LAST_MS);
    assert_int_equal(life_lost(&life, NOW), LIFE_NOTHING);
    assert_true(life.returns);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    life_taken(&life, NOW + 4); /* from a connection that is gone */
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    assert_int_equal(life_looked(&life, NOW + 5), LIFE_NOTHING);
    assert_int_equal(life.deadline_ms, NOW + 5 + LIFE_LAST_MS);
    life_taken(&life, NOW + 500); /* however long it is */
    assert_int_equal(life.deadline_ms, NOW + 500 + LIFE_LAST_MS);
    life_told(&life);
    assert_int_equal(life.state, LIFE_OVER);
    life = shown(false);
    (void)life_lost(&life, NOW);
    life_exited(&life, NOW + 10); /* he may be on his way back */
    assert_true(life.returns);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    assert_int_equal(life_left(&life, NOW + 20), LIFE_NOTHING);
    assert_int_equal(life_time(&life, life.deadline_ms), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_OVER);
    life = shown(true);
    (void)life_lost(&life, NOW);
    life_exited(&life, NOW);
    assert_false(life.returns); /* nobody is waited for */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),         cmocka_unit_test(test_unseen), cmocka_unit_test(test_typed),
        cmocka_unit_test(test_nobody_comes), cmocka_unit_test(test_grace),  cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_stop),         cmocka_unit_test(test_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
