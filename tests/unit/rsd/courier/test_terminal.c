/* test_terminal.c - of a job's terminal what is pure: the ring of its output, and its life. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

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

/* Where it begins for who looks, or comes back. */
static void test_from(void **state)
{
    struct ring ring = {.begin = 100, .end = 200, .seen = 150};
    uint64_t lost;
    (void)state;
    assert_int_equal(ring_from(&ring, &(struct run_look){.seen = RUN_LOOK_ALL}, &lost), 100);
    assert_int_equal(lost, 0);
    assert_int_equal(ring_from(&ring, &(struct run_look){.seen = RUN_LOOK_UNSEEN}, &lost), 150);
    /* he looks at all of it, and is not yet where another one has been */
    assert_int_equal(ring_from(&ring, &(struct run_look){.session = 3, .seen = 120}, &lost), 120);
    assert_int_equal(lost, 0);
    assert_int_equal(ring_from(&ring, &(struct run_look){.session = 3, .seen = 90}, &lost), 100);
    assert_int_equal(lost, 10);
    assert_int_equal(ring_from(&ring, &(struct run_look){.session = 3, .seen = 170}, &lost), 170);
    assert_int_equal(ring_from(&ring, &(struct run_look){.session = 3, .seen = 201}, &lost), 150);
    ring.seen = 60;
    assert_int_equal(ring_from(&ring, &(struct run_look){.seen = RUN_LOOK_UNSEEN}, &lost), 100);
    assert_int_equal(lost, 40);
}

static void test_saved(void **state)
{
    struct ring ring;
    char text[20] = "";
    int fds[2];
    (void)state;
    assert_true(ring_init(&ring, 10));
    ring_put(&ring, "0123456789abc", 13);
    ring.seen = 5;
    assert_int_equal(pipe(fds), 0);
    ring_save(&ring, fds[1], 0);
    assert_int_equal(read(fds[0], text, sizeof(text)), 8);
    assert_string_equal(text, "56789abc");
    assert_int_equal(ring.seen, 5); /* who comes is shown it all the same */
    ring_save(&ring, fds[1], 0);
    ring_put(&ring, "defg", 4);
    ring.seen = 15; /* he has come, and seen a part of what was printed then */
    ring_save(&ring, fds[1], 0);
    memset(text, 0, sizeof(text));
    assert_int_equal(read(fds[0], text, sizeof(text)), 2);
    assert_string_equal(text, "fg");
    ring_put(&ring, "h", 1);
    close(fds[0]);
    close(fds[1]);
    ring_save(&ring, fds[1], -1); /* it cannot be written */
    assert_int_equal(ring.saved, 17);
    ring_fini(&ring);
}

/* A FIFO that nobody reads keeps the holder of a terminal from nothing else. */
static void test_saved_without_a_wait(void **state)
{
    struct ring ring;
    char byte = 0;
    int fds[2];
    (void)state;
    assert_true(ring_init(&ring, 1 << 20));
    for (int i = 0; i < 1 << 20; i++)
        ring_put(&ring, &byte, 1);
    assert_int_equal(pipe(fds), 0);
    ring_save(&ring, fds[1], 0);
    assert_true(ring.saved > 0 && ring.saved < ring.end);
    close(fds[0]);
    close(fds[1]);
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

struct tty {
    int master, slave;
    struct typed typed;
};

static void open_tty(struct tty *t)
{
    assert_int_equal(openpty(&t->master, &t->slave, NULL, NULL, NULL), 0);
    assert_true(typed_init(&t->typed));
}

static void close_tty(struct tty *t)
{
    close(t->master);
    close(t->slave);
    typed_fini(&t->typed);
}

static void reads(struct tty *t, const char *expected)
{
    char text[100] = "";
    struct pollfd fd = {.fd = t->slave, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 5000), 1);
    assert_int_equal(read(t->slave, text, sizeof(text) - 1), strlen(expected));
    assert_string_equal(text, expected);
}

/* Not by lines: what was written twice may come in two parts. */
static void reads_keys(struct tty *t, const char *expected)
{
    char text[100] = "";
    size_t size = 0;
    while (size < strlen(expected)) {
        struct pollfd fd = {.fd = t->slave, .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 5000), 1);
        ssize_t got = read(t->slave, text + size, sizeof(text) - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
    }
    assert_string_equal(text, expected);
}

static bool has_more(const struct tty *t)
{
    struct pollfd fd = {.fd = t->slave, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* An end is an end also behind half a line; who comes back says it again. */
static void test_typed_end(void **state)
{
    struct termios raw;
    struct tty t;
    (void)state;
    open_tty(&t);
    assert_true(typed_put(&t.typed, "half", 4));
    typed_end(&t.typed);
    assert_true(typed_waits(&t.typed));
    assert_int_equal(typed_write(&t.typed, t.master), 4);
    assert_false(typed_waits(&t.typed));
    reads(&t, "half");
    reads(&t, "");
    typed_end(&t.typed);
    assert_false(typed_waits(&t.typed));
    assert_false(typed_put(&t.typed, "x", 1)); /* behind the end */
    typed_begin(&t.typed);
    assert_true(typed_put(&t.typed, "line\r", 5));
    typed_end(&t.typed);
    assert_int_equal(typed_write(&t.typed, t.master), 5);
    reads(&t, "line\n");
    reads(&t, "");
    assert_false(has_more(&t)); /* one end, not two */
    typed_begin(&t.typed);
    assert_int_equal(tcgetattr(t.slave, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(t.slave, TCSANOW, &raw), 0);
    assert_true(typed_put(&t.typed, "half", 4));
    typed_end(&t.typed);
    assert_int_equal(typed_write(&t.typed, t.master), 4);
    reads_keys(&t, "half\004"); /* then it is a key like others */
    close_tty(&t);
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
    assert_int_equal(life_stop(&life), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_OVER);
    life = shown(true);
    assert_int_equal(life_stop(&life), LIFE_HANG_UP);
    assert_true(life.deadline_ms == INT64_MAX);       /* KILL is its supervisor's business */
    assert_int_equal(life_stop(&life), LIFE_NOTHING); /* once */
    life_exited(&life, NOW);
    assert_int_equal(life_stop(&life), LIFE_NOTHING);
    assert_int_equal(life.state, LIFE_LAST);
    life = shown(false); /* TERM that was no end, and a command that goes on: it ends with who looks, as any */
    assert_int_equal(life_stop(&life), LIFE_HANG_UP);
    (void)life_lost(&life, NOW);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
    (void)life_looked(&life, NOW + 1);
    assert_true(life.deadline_ms == INT64_MAX);
    (void)life_left(&life, NOW + 2);
    assert_int_equal(life.deadline_ms, NOW + 2 + LIFE_HANG_MS);
    assert_int_equal(life_time(&life, life.deadline_ms), LIFE_KILL);
    life = shown(false); /* and nobody looks then */
    (void)life_lost(&life, NOW);
    assert_int_equal(life_stop(&life), LIFE_HANG_UP);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS);
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

/* While it gets no CPU nobody can come, which is no fault of his. */
static void test_starved(void **state)
{
    struct life life;
    (void)state;
    (void)life_begin(&life, false, NOW);
    life_starved(&life, 5000);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS + 5000);
    life = shown(false);
    life_starved(&life, 5000);
    assert_true(life.deadline_ms == INT64_MAX);
    (void)life_lost(&life, NOW);
    life_starved(&life, 5000);
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS + 5000);
    (void)life_time(&life, life.deadline_ms);
    life_starved(&life, 5000); /* what is to end is not given more */
    assert_int_equal(life.deadline_ms, NOW + TERMINAL_GRACE_MS + 5000 + LIFE_HANG_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),    cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_typed),   cmocka_unit_test(test_nobody_comes),
        cmocka_unit_test(test_grace),   cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_stop),    cmocka_unit_test(test_last),
        cmocka_unit_test(test_from),    cmocka_unit_test(test_saved_without_a_wait),
        cmocka_unit_test(test_saved),   cmocka_unit_test(test_typed_end),
        cmocka_unit_test(test_starved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
