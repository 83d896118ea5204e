/* test_link_reader.c - peers that do not read: how long, how much of a user's links together, and who is told that
 * there is room. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/link.h"

enum { DEADLINE_MS = 60000, LINKS = 2, PAGE = 300 << 10 };

struct end {
    struct link *link;
    int fd; /* of the peer */
    unsigned closed, room;
    char text[512];
};

static uv_loop_t loop;
static uv_timer_t timer;
static struct end ends[LINKS];

static void on_close(struct link *link, const char *text, void *data)
{
    struct end *end = data;

    (void)link;
    end->closed++;
    end->link = NULL;
    (void)snprintf(end->text, sizeof(end->text), "%s", text);
}

static void on_room(struct link *link, void *data)
{
    struct end *end = data;

    assert_true(link_unsent(link) <= LINK_LITTLE);
    end->room++;
}

static void tick(uv_timer_t *handle)
{
    (void)handle;
}

#define RUN_UNTIL(condition)                                                                                           \
    do {                                                                                                               \
        int64_t end_ = mono_ms(mono_now()) + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            assert_true(mono_ms(mono_now()) < end_);                                                                   \
            (void)uv_run(&loop, UV_RUN_ONCE);                                                                          \
        }                                                                                                              \
    } while (0)

static int setup(void **state)
{
    (void)state;
    memset(ends, 0, sizeof(ends));
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, tick, 2, 2);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (struct end *end = ends; end < ends + LINKS; end++) {
        if (end->link)
            link_close(end->link, "the end of the test");
        RUN_UNTIL(!end->link);
        if (end->fd > 0)
            (void)close(end->fd);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    RUN_UNTIL(!uv_loop_alive(&loop));
    return uv_loop_close(&loop);
}

static void begin(struct end *end, unsigned stall_ms)
{
    static const struct link_callbacks callbacks = {.on_close = on_close, .on_room = on_room};
    struct link_options options = {
        .program = "x", .peer = WIRE_FROM_CLIENT, .out_max = 64 << 20, .stall_ms = stall_ms, .no_hello = true};
    struct err err = ERR_INIT;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    end->fd = fds[1];
    assert_int_equal(link_open_fd(&loop, fds[0], &options, &callbacks, end, &end->link, &err), 0);
    RUN_UNTIL(link_ready(end->link));
}

static int say(struct end *end)
{
    static char page[PAGE];

    memset(page, ' ', sizeof(page));
    return link_send_json(end->link, page, sizeof(page));
}

static size_t hear(struct end *end, size_t most)
{
    static char bytes[1 << 16];
    ssize_t n = recv(end->fd, bytes, most < sizeof(bytes) ? most : sizeof(bytes), MSG_DONTWAIT);

    return n > 0 ? (size_t)n : 0;
}

/* Reads slowly: it stays. Then it does not read. */
static void a_reader_that_stops(void **state)
{
    enum { STALL_MS = 1000 };
    size_t heard = 0;

    (void)state;
    begin(&ends[0], STALL_MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(say(&ends[0]), 0);
    int64_t begin_ms = mono_ms(mono_now());
    while (mono_ms(mono_now()) < begin_ms + 3 * STALL_MS) {
        heard += hear(&ends[0], 1 << 12); /* in each turn, of some ms */
        (void)uv_run(&loop, UV_RUN_ONCE);
        if (heard > PAGE)
            break; /* a machine that has time */
    }
    assert_int_equal(ends[0].closed, 0);
    assert_true(link_unsent(ends[0].link) > 0);
    begin_ms = mono_ms(mono_now());
    RUN_UNTIL(ends[0].closed);
    assert_true(mono_ms(mono_now()) - begin_ms >= STALL_MS / 2);
    assert_non_null(strstr(ends[0].text, "the other side has read nothing for 1 s"));
}

/* As esubmit -w, for a day. */
static void nothing_to_read_is_no_stall(void **state)
{
    (void)state;
    begin(&ends[0], 50);
    assert_int_equal(say(&ends[0]), 0);
    RUN_UNTIL(hear(&ends[0], SIZE_MAX) == 0 && link_unsent(ends[0].link) == 0);
    int64_t begin_ms = mono_ms(mono_now());
    RUN_UNTIL(mono_ms(mono_now()) > begin_ms + 300);
    assert_int_equal(ends[0].closed, 0);
}

static void a_budget_of_two(void **state)
{
    struct budget all = {.max = 100 << 20}, budget = {.max = 1 << 20, .all = &all};

    (void)state;
    for (struct end *end = ends; end < ends + LINKS; end++) {
        begin(end, 0);
        link_set_budget(end->link, &budget);
    }
    assert_int_equal(say(&ends[0]), 0);
    assert_int_equal(say(&ends[1]), 0);
    assert_int_equal(say(&ends[1]), 0);
    (void)uv_run(&loop, UV_RUN_ONCE);
    assert_true(budget.used > 2 * PAGE && all.used == budget.used);
    assert_int_equal(ends[0].room + ends[1].room, 0);
    assert_int_equal(say(&ends[1]), -ENOBUFS); /* the one that wants more than there is */
    RUN_UNTIL(ends[1].closed);
    assert_non_null(strstr(ends[1].text, "the programs of this user do not read"));
    assert_true(budget.used >= PAGE && budget.used < PAGE + 100); /* its own bytes are there again */
    RUN_UNTIL(hear(&ends[0], SIZE_MAX) == 0 && ends[0].room > 0);
    assert_int_equal(ends[0].closed, 0);
    assert_int_equal(budget.used, 0);
    assert_int_equal(all.used, 0);
}

/* What the kernel takes in the call waits for nothing and counts as nothing. */
static void taken_at_once(void **state)
{
    struct budget all = {.max = 100 << 20}, budget = {.max = 10, .all = &all};

    (void)state;
    begin(&ends[0], 50);
    link_set_budget(ends[0].link, &budget);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(link_send_json(ends[0].link, "{\"a\":1}", 7), 0);
        assert_int_equal(link_unsent(ends[0].link), 0);
        assert_int_equal(budget.used, 0);
        assert_int_equal(hear(&ends[0], SIZE_MAX), 4 + 7);
    }
    assert_int_equal(say(&ends[0]), -ENOBUFS); /* of this a part waits */
    RUN_UNTIL(ends[0].closed);
    assert_int_equal(budget.used, 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {T(a_reader_that_stops), T(nothing_to_read_is_no_stall), T(a_budget_of_two),
                                       T(taken_at_once)};

    (void)signal(SIGPIPE, SIG_IGN);
    log_open("test_link_reader", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
