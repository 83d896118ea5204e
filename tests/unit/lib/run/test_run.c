/* test_run.c - what is said between two processes of a job: seals, and the link over a socket pair. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/hex.h"
#include "lib/run/link.h"
#include "lib/ticket/keys.h"

/* ---- seals ---- */

struct ends {
    struct seal_key a, b;
    struct seal a_out, a_in, b_out, b_in;
};

static void agree(struct ends *e, const char *b_sees)
{
    assert_true(seal_key_make(&e->a) && seal_key_make(&e->b));
    assert_true(seal_agree(&e->a, e->b.public_key, "dials", "listens", true, &e->a_out, &e->a_in));
    assert_true(seal_agree(&e->b, e->a.public_key, b_sees, "listens", false, &e->b_out, &e->b_in));
}

static void part(struct ends *e)
{
    seal_fini(&e->a_out);
    seal_fini(&e->a_in);
    seal_fini(&e->b_out);
    seal_fini(&e->b_in);
}

static void test_seals(void **state)
{
    static const uint8_t words[] = "from a to b";
    uint8_t one[64], two[64], plain[64];
    struct ends e;
    (void)state;
    agree(&e, "dials");
    seal_put(&e.a_out, words, sizeof(words), one);
    seal_put(&e.a_out, words, sizeof(words), two);
    assert_memory_not_equal(one, two, sizeof(words)); /* the same words are never the same bytes */
    assert_true(seal_open(&e.b_in, one, sizeof(words) + SEAL_TAG_BYTES, plain));
    assert_memory_equal(plain, words, sizeof(words));
    assert_true(seal_open(&e.b_in, two, sizeof(words) + SEAL_TAG_BYTES, plain));
    seal_put(&e.b_out, words, sizeof(words), one); /* the other direction has a key of its own */
    assert_false(seal_open(&e.b_in, one, sizeof(words) + SEAL_TAG_BYTES, plain));
    assert_true(seal_open(&e.a_in, one, sizeof(words) + SEAL_TAG_BYTES, plain));
    part(&e);
}

/* What other versions make of the same keys and passes, by OpenSSL some of them. */
static void test_seals_of_other_versions(void **state)
{
    static const char *const frames[] = {"f677d68a348cdde5db9b67da0002258ed74b8be3f61b73b018da3b14",
                                         "409fe01dff987dfa48e2d9de36ef3c58b07fdf465542e702640bdf4c"};
    static const uint8_t words[] = "from a to b", other[SEAL_KEY_BYTES] = {9};
    struct seal_key own;
    struct seal out, in;
    (void)state;
    for (size_t i = 0; i < SEAL_KEY_BYTES; i++)
        own.secret[i] = (uint8_t)(7 * i + 1);
    assert_true(seal_agree(&own, other, "dials", "listens", true, &out, &in));
    for (size_t i = 0; i < 2; i++) {
        uint8_t sealed[sizeof(words) + SEAL_TAG_BYTES];
        char text[2 * sizeof(sealed) + 1];
        seal_put(&out, words, sizeof(words), sealed);
        hex_write(sealed, sizeof(sealed), text);
        assert_string_equal(text, frames[i]);
    }
    seal_fini(&out);
    seal_fini(&in);
}

/* Points with which any key gives the same. */
static void test_keys_that_are_none(void **state)
{
    struct seal_key own;
    struct seal out, in;
    (void)state;
    assert_true(seal_key_make(&own));
    for (uint8_t first = 0; first <= 1; first++) {
        uint8_t other[SEAL_KEY_BYTES] = {first};
        assert_false(seal_agree(&own, other, "dials", "listens", true, &out, &in));
        seal_fini(&out);
        seal_fini(&in);
    }
}

static void test_seals_that_do_not_hold(void **state)
{
    static const uint8_t words[] = "words";
    uint8_t sealed[64], plain[64];
    struct ends e;
    (void)state;
    for (size_t i = 0; i < sizeof(words) + SEAL_TAG_BYTES; i++) { /* any bit that is changed */
        agree(&e, "dials");
        seal_put(&e.a_out, words, sizeof(words), sealed);
        sealed[i] ^= 1;
        assert_false(seal_open(&e.b_in, sealed, sizeof(words) + SEAL_TAG_BYTES, plain));
        part(&e);
    }
    agree(&e, "dials"); /* one said again, and one too short */
    seal_put(&e.a_out, words, sizeof(words), sealed);
    assert_true(seal_open(&e.b_in, sealed, sizeof(words) + SEAL_TAG_BYTES, plain));
    assert_false(seal_open(&e.b_in, sealed, sizeof(words) + SEAL_TAG_BYTES, plain));
    assert_false(seal_open(&e.b_in, sealed, SEAL_TAG_BYTES - 1, plain));
    part(&e);
    agree(&e, "somebody else"); /* who was shown another pass has another key */
    seal_put(&e.a_out, words, sizeof(words), sealed);
    assert_false(seal_open(&e.b_in, sealed, sizeof(words) + SEAL_TAG_BYTES, plain));
    part(&e);
    memset(&e, 0, sizeof(e)); /* a key of which nothing follows */
    assert_true(seal_key_make(&e.a));
    assert_false(seal_agree(&e.a, e.b.public_key, "", "", true, &e.a_out, &e.a_in));
    part(&e);
}

/* ---- links ---- */

static void make_pass(struct seal_key *key, const char *host, char *text)
{
    uint8_t public_key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    struct pass pass = {.job = 7, .attempt = 1, .uid = 1000, .user = "alice"};
    snprintf(pass.host, sizeof(pass.host), "%s", host);
    assert_true(seal_key_make(key));
    memcpy(pass.public_key, key->public_key, sizeof(pass.public_key));
    assert_true(ticket_key_create(secret, public_key) && pass_sign(&pass, public_key, secret));
    pass_encode(&pass, text);
}

enum { MANY_FRAMES = 16000, FEW_FRAMES = 100 }; /* half a megabyte, which is read at once */
struct pair {
    struct run_link dialler, listener;
};

static void step(struct run_link *link)
{
    struct pollfd fd = {.fd = link->fd, .events = run_link_events(link)};
    if (fd.events && poll(&fd, 1, 0) > 0)
        run_link_step(link, fd.revents);
}

static void make_pair(struct pair *p, int fds[2])
{
    struct seal_key one, two;
    char a[PASS_TEXT_MAX + 1], b[PASS_TEXT_MAX + 1];
    make_pass(&one, "ws1", a);
    make_pass(&two, "ws2", b);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    run_link_init(&p->dialler, fds[0], true, &one, a);
    run_link_init(&p->listener, fds[1], false, &two, b);
}

static void open_pair(struct pair *p)
{
    int fds[2];
    make_pair(p, fds);
    for (int i = 0; i < 10; i++) {
        step(&p->dialler);
        step(&p->listener);
    }
    assert_int_equal(p->dialler.state, RUN_CHECKING);
    assert_int_equal(p->listener.state, RUN_CHECKING);
    assert_string_equal(p->listener.peer.host, "ws1");
    run_link_accept(&p->dialler);
    run_link_accept(&p->listener);
    assert_int_equal(p->dialler.state, RUN_OPEN);
    assert_int_equal(p->listener.state, RUN_OPEN);
}

static void close_pair(struct pair *p)
{
    run_link_fini(&p->dialler);
    run_link_fini(&p->listener);
}

static void test_frames(void **state)
{
    static uint8_t large[1 << 20];
    struct run_frame frame;
    struct pair p;
    int got = 0;
    (void)state;
    open_pair(&p);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (uint8_t)(i * 7);
    run_link_send(&p.dialler, RUN_START, 3, large, sizeof(large));
    run_link_send_numbers(&p.dialler, RUN_SIZE, 4, 24, 80);
    for (int i = 0; i < 1000 && got < 2; i++) {
        step(&p.dialler);
        step(&p.listener);
        while (run_link_next(&p.listener, &frame) > 0) {
            if (got++ == 0) {
                assert_int_equal(frame.type, RUN_START);
                assert_int_equal(frame.rank, 3);
                assert_int_equal(frame.size, sizeof(large));
                assert_memory_equal(frame.data, large, sizeof(large));
            } else {
                assert_int_equal(run_number(frame.data), 24);
                assert_int_equal(run_number(frame.data + 4), 80);
            }
        }
    }
    assert_int_equal(got, 2);
    close_pair(&p);
}

/* What was said before the end is heard. */
static void test_the_end_loses_nothing(void **state)
{
    struct run_frame frame;
    struct pair p;
    int got = 0;
    (void)state;
    open_pair(&p);
    for (uint32_t i = 0; i < 100; i++)
        run_link_send_number(&p.listener, RUN_OUT, i, i);
    run_link_fini(&p.listener);
    for (int i = 0; i < 10 && p.dialler.state == RUN_OPEN; i++) {
        step(&p.dialler);
        while (run_link_next(&p.dialler, &frame) > 0)
            assert_int_equal(run_number(frame.data), got++);
    }
    assert_int_equal(got, 100);
    assert_int_equal(p.dialler.state, RUN_DEAD);
    assert_string_equal(p.dialler.text, "the other side has ended");
    close_pair(&p);
}

/* Lengths are in the clear, so anybody on the way can change one, and then end the connection. */
static void test_a_wrong_length_before_the_end(void **state)
{
    static const uint8_t zeros[4];
    struct run_frame frame;
    struct pair p;
    (void)state;
    open_pair(&p);
    assert_int_equal(send(p.dialler.fd, zeros, sizeof(zeros), 0), sizeof(zeros));
    assert_int_equal(shutdown(p.dialler.fd, SHUT_WR), 0);
    step(&p.listener); /* both at once, or one after the other */
    step(&p.listener);
    assert_int_equal(run_link_next(&p.listener, &frame), 0);
    assert_int_equal(p.listener.state, RUN_DEAD);
    assert_string_equal(p.listener.text, "what has come is not of Elmer's");
    close_pair(&p);
}

/* Also where it is noticed because something is to be sent: what the other side has said before is heard, and then the
 * end. */
static void test_an_end_within_a_send(void **state)
{
    struct run_frame frame;
    struct pair p;
    (void)state;
    open_pair(&p);
    run_link_send_numbers(&p.listener, RUN_EXIT, 0, 3, 0);
    run_link_fini(&p.listener);
    run_link_send_number(&p.dialler, RUN_TAKEN, RUN_OUT, 1);
    assert_int_equal(run_link_waiting(&p.dialler), 0);
    assert_int_equal(run_link_next(&p.dialler, &frame), 0);
    assert_true(run_link_over(&p.dialler) || run_link_events(&p.dialler) & POLLIN); /* its owner comes to it again */
    step(&p.dialler);
    assert_int_equal(run_link_next(&p.dialler, &frame), 1);
    assert_int_equal(frame.type, RUN_EXIT);
    run_link_send_number(&p.dialler, RUN_TAKEN, RUN_OUT, 1);
    step(&p.dialler);
    assert_int_equal(run_link_next(&p.dialler, &frame), 0);
    assert_true(run_link_over(&p.dialler));
    assert_string_equal(p.dialler.text, "Broken pipe");
    close_pair(&p);
}

/* CPU time for that many frames of a number, so many of which have come when the owner looks. */
static int64_t frames_ns(int count, int together)
{
    struct run_frame frame;
    struct timespec begin, end;
    struct pair p;
    int64_t ns = 0;
    open_pair(&p);
    for (int sent = 0, got = 0; sent < count;) {
        for (int i = 0; i < together; i++, sent++)
            run_link_send_number(&p.dialler, RUN_OUT, 0, (uint32_t)sent);
        while (got < sent) { /* the kernel has less room than that */
            step(&p.dialler);
            step(&p.listener);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
            for (; (run_link_waiting(&p.dialler) == 0) && run_link_next(&p.listener, &frame) > 0; got++)
                assert_int_equal(run_number(frame.data), got);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
            ns += (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
        }
    }
    close_pair(&p);
    return ns;
}

/* A program that writes a byte at a time makes many: what one costs does not grow with how many have come with it. */
static void test_many_small_frames(void **state)
{
    int64_t few = frames_ns(MANY_FRAMES, FEW_FRAMES), together = frames_ns(MANY_FRAMES, MANY_FRAMES);
    (void)state;
    print_message("# %d frames: %lld ns where %d have come, %lld ns together\n", MANY_FRAMES, (long long)few,
                  FEW_FRAMES, (long long)together);
    assert_true(together < 4 * few);
}

static void test_strangers(void **state)
{
    static const char *const said[] = {"GET / HTTP/1.0\r\n\r\n", "\0\0\0\1x", "\0\0\1\0elmer run 1\nwhat is no pass",
                                       "\0\0\0\0", "\377\377\377\377"};
    (void)state;
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct pair p;
        char bytes[400] = "";
        int fds[2];
        make_pair(&p, fds);
        memcpy(bytes, said[i], i == 0 ? 18 : i == 2 ? 22 : 5);
        assert_int_equal(send(fds[0], bytes, sizeof(bytes), 0), sizeof(bytes));
        for (int k = 0; k < 5; k++)
            step(&p.listener);
        if (p.listener.state != RUN_DEAD)
            fail_msg("word %zu of a stranger is heard", i);
        assert_true(p.listener.in_capacity <= RUN_HELLO_MAX + 4);
        close_pair(&p);
    }
}

/* However much a stranger says, with a size that might be a pass's: the kernel keeps it. */
static void test_a_flood_of_a_stranger(void **state)
{
    static const char flood[64 << 10] = "\0\0\10";
    struct pair p;
    int fds[2];
    (void)state;
    make_pair(&p, fds);
    assert_true(send(fds[0], flood, sizeof(flood), MSG_DONTWAIT) > 2 * RUN_HELLO_MAX);
    for (int k = 0; k < 5; k++) {
        step(&p.listener);
        assert_true(p.listener.in_capacity <= RUN_HELLO_MAX + 4);
    }
    assert_int_equal(p.listener.state, RUN_DEAD);
    close_pair(&p);
}

static void test_a_reflection_is_no_peer(void **state)
{
    struct pair p;
    char bytes[RUN_HELLO_MAX];
    int fds[2];
    ssize_t got;
    (void)state;
    make_pair(&p, fds);
    got = recv(fds[0], bytes, sizeof(bytes), 0); /* its own pass, sent back to it */
    assert_true(got > 0 && send(fds[0], bytes, (size_t)got, 0) == got);
    step(&p.listener);
    assert_int_equal(p.listener.state, RUN_DEAD);
    close_pair(&p);
}

static void test_changed_on_the_way(void **state)
{
    struct run_frame frame;
    struct pair p;
    uint8_t bytes[64];
    (void)state;
    open_pair(&p);
    run_link_send_number(&p.dialler, RUN_SIGNAL, 0, 15);
    ssize_t got = recv(p.listener.fd, bytes, sizeof(bytes), 0);
    bytes[8] ^= 1;
    assert_true(got > 8 && send(p.dialler.fd, bytes, (size_t)got, 0) == got);
    step(&p.listener);
    assert_int_equal(run_link_next(&p.listener, &frame), 0);
    assert_int_equal(p.listener.state, RUN_DEAD);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seals),
        cmocka_unit_test(test_seals_of_other_versions),
        cmocka_unit_test(test_keys_that_are_none),
        cmocka_unit_test(test_seals_that_do_not_hold),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_the_end_loses_nothing),
        cmocka_unit_test(test_a_wrong_length_before_the_end),
        cmocka_unit_test(test_an_end_within_a_send),
        cmocka_unit_test(test_many_small_frames),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_a_flood_of_a_stranger),
        cmocka_unit_test(test_a_reflection_is_no_peer),
        cmocka_unit_test(test_changed_on_the_way),
    };
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
