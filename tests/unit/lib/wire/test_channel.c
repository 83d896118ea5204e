/* test_channel.c - frames from bytes, and channels over socketpairs with peers that live, die and do not read. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"

static int64_t in_ms(int64_t ms)
{
    return mono_ms(mono_now()) + ms;
}

/* ---- frame reader ---- */

static void frames_are_found_whatever_the_pieces(void **state)
{
    const char stream[] = "\0\0\0\x03"
                          "abc"
                          "\0\0\0\x01"
                          "d"
                          "\0\0\0\x05"
                          "efghi";
    const size_t size = sizeof(stream) - 1;

    (void)state;
    for (size_t piece = 1; piece <= size; piece++) {
        struct frame_reader reader;
        char found[32] = "";
        const char *json;
        size_t length;

        frame_reader_init(&reader, 5);
        for (size_t at = 0; at < size; at += piece) {
            assert_int_equal(
                frame_reader_push(&reader, (const uint8_t *)stream + at, at + piece > size ? size - at : piece), 0);
            while (frame_reader_next(&reader, &json, &length) == 1)
                (void)snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s,", (int)length, json);
        }
        assert_string_equal(found, "abc,d,efghi,");
        assert_int_equal(frame_reader_next(&reader, &json, &length), 0);
        frame_reader_fini(&reader);
    }
}

static void a_wrong_length_is_refused_before_allocation(void **state)
{
    const char *const wrong[] = {"\0\0\0\0", "\0\x10\0\x01", "\xFF\xFF\xFF\xFF", "\x80\0\0\0", "GET "};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct frame_reader reader;
        uint8_t bytes[4096] = {0};
        const char *json;
        size_t size;

        /* behind a good frame, and alone with much behind it */
        frame_reader_init(&reader, WIRE_MAX_FRAME);
        assert_int_equal(frame_reader_push(&reader, (const uint8_t *)"\0\0\0\x01x", 5), 0);
        assert_int_equal(frame_reader_push(&reader, (const uint8_t *)wrong[i], 3), 0);
        assert_int_equal(frame_reader_push(&reader, (const uint8_t *)wrong[i] + 3, 1), -EMSGSIZE);
        assert_int_equal(frame_reader_next(&reader, &json, &size), 1);
        assert_int_equal(size, 1);
        frame_reader_fini(&reader);

        memcpy(bytes, wrong[i], 4);
        assert_int_equal(frame_reader_push(&reader, bytes, sizeof(bytes)), -EMSGSIZE);
        assert_true(reader.capacity <= 512);
        frame_reader_fini(&reader);
    }
}

/* What a header claims costs nothing; only what has come is kept, and a large buffer is given back. */
static void memory_follows_the_bytes(void **state)
{
    struct frame_reader reader;
    uint8_t *bytes = calloc(1, WIRE_MAX_FRAME);
    const char *json;
    size_t size;

    (void)state;
    assert_non_null(bytes);
    frame_reader_init(&reader, WIRE_MAX_FRAME);
    assert_int_equal(frame_reader_push(&reader, (const uint8_t *)"\0\x10\0\0abc", 7), 0);
    assert_true(reader.capacity <= 512);
    assert_int_equal(frame_reader_push(&reader, bytes, WIRE_MAX_FRAME - 4), 0);
    assert_int_equal(frame_reader_next(&reader, &json, &size), 0);
    assert_int_equal(frame_reader_push(&reader, bytes, 1), 0);
    assert_int_equal(frame_reader_next(&reader, &json, &size), 1);
    assert_int_equal(size, WIRE_MAX_FRAME);
    assert_memory_equal(json, "abc", 3);
    assert_int_equal(frame_reader_next(&reader, &json, &size), 0);
    assert_int_equal(reader.capacity, 0);
    frame_reader_fini(&reader);
    free(bytes);
}

/* ---- channel ---- */

struct pair {
    struct channel elmer, client; /* named after what they are to their peers */
};

static int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    int fds[2];

    (void)signal(SIGPIPE, SIG_DFL); /* the channel must not need it ignored */
    assert_non_null(pair);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(channel_init(&pair->elmer, fds[0], WIRE_FROM_CLIENT, 1 << 16), 0);
    assert_int_equal(channel_init(&pair->client, fds[1], WIRE_FROM_ELMER, 1 << 16), 0);
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;

    channel_fini(&pair->elmer);
    channel_fini(&pair->client);
    channel_fini(&pair->client); /* harmless */
    free(pair);
    return 0;
}

static void messages_pass(void **state)
{
    struct pair *pair = *state;
    struct wire_message message = {.type = WIRE_kill, .u.kill = {.job = 42}}, got;
    struct err err = ERR_INIT;

    for (uint64_t id = 1; id <= 100; id++) {
        message.id = id;
        assert_int_equal(channel_send(&pair->client, &message, &err), 0);
    }
    for (uint64_t id = 1; id <= 100; id++) {
        assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), 1);
        assert_int_equal(got.type, WIRE_kill);
        assert_int_equal(got.id, id);
        assert_int_equal(got.u.kill.job, 42);
        wire_message_fini(&got);
    }
    assert_int_equal(channel_fill(&pair->elmer, &err), 0); /* nothing there is no error */
    assert_int_equal(channel_next(&pair->elmer, &got, &err), 0);
    assert_string_equal(err.text, "");
}

static void receiving_ends_at_the_deadline(void **state)
{
    struct pair *pair = *state;
    struct wire_message got;
    int64_t begin = mono_ms(mono_now());

    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(50), NULL), 0);
    assert_in_range(mono_ms(mono_now()) - begin, 50, 10000);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(-5), NULL), 0);
    assert_false(pair->elmer.dead);
}

static void what_came_before_the_end_is_delivered(void **state)
{
    struct pair *pair = *state;
    struct wire_message message = {.type = WIRE_ping, .id = 1}, got;
    struct err err = ERR_INIT;

    assert_int_equal(channel_send(&pair->client, &message, &err), 0);
    assert_int_equal(channel_send(&pair->client, &message, &err), 0);
    channel_fini(&pair->client);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), 1);
    wire_message_fini(&got);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), 1);
    wire_message_fini(&got);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), -EPIPE);
    assert_non_null(strstr(err.text, "closed the connection"));
    assert_true(pair->elmer.dead);
}

static void a_dead_peer_is_no_signal(void **state)
{
    struct pair *pair = *state;
    struct wire_message message = {.type = WIRE_pong};
    struct err err = ERR_INIT;

    channel_fini(&pair->client);
    assert_int_equal(channel_send(&pair->elmer, &message, &err), -EPIPE);
    assert_true(pair->elmer.dead);
    assert_false(channel_wants_write(&pair->elmer));
    assert_int_equal(channel_flush(&pair->elmer), -EPIPE);
    assert_int_equal(channel_send(&pair->elmer, &message, &err), -EPIPE);
}

static void a_peer_may_send_only_its_own(void **state)
{
    struct pair *pair = *state;
    struct wire_message message = {.type = WIRE_jobs}, got;
    struct err err = ERR_INIT;

    assert_int_equal(channel_send(&pair->client, &message, &err), 0);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), -EBADMSG);
    assert_non_null(strstr(err.text, "jobs: not a message that this peer may send"));
    assert_true(pair->elmer.dead);
}

static void raw(struct pair *pair, const char *bytes, size_t size)
{
    assert_int_equal(send(pair->client.fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void garbage_kills_the_channel(void **state)
{
    struct pair *pair = *state;
    struct wire_message got;
    struct err err = ERR_INIT;

    raw(pair, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "not Elmer's protocol"));
    assert_true(pair->elmer.dead);
}

static void an_undecodable_frame_kills_the_channel(void **state)
{
    struct pair *pair = *state;
    struct wire_message got;
    struct err err = ERR_INIT;

    raw(pair, "\0\0\0\x02{}", 6);
    assert_int_equal(channel_receive(&pair->elmer, &got, in_ms(2000), &err), -EBADMSG);
    assert_true(pair->elmer.dead);
}

static struct wire_message large(char *text, size_t size)
{
    struct wire_message message = {.type = WIRE_done, .id = 1};

    memset(text, 'x', size - 1);
    text[size - 1] = '\0';
    message.u.done.text = text;
    return message;
}

static void a_peer_that_does_not_read_is_given_up(void **state)
{
    struct pair *pair = *state;
    char text[1025];
    struct wire_message message = large(text, sizeof(text));
    struct err err = ERR_INIT;
    int result = 0;

    for (int i = 0; i < 100000 && result == 0; i++)
        result = channel_send(&pair->elmer, &message, &err);
    assert_int_equal(result, -ENOBUFS);
    assert_non_null(strstr(err.text, "does not read"));
    assert_true(pair->elmer.dead);
    assert_true(pair->elmer.out_size <= pair->elmer.out_max);
}

static void a_slow_peer_gets_everything(void **state)
{
    struct pair *pair = *state;
    char text[1025];
    struct wire_message message = large(text, sizeof(text)), got;
    struct err err = ERR_INIT;
    unsigned sent = 0;

    while (!channel_wants_write(&pair->elmer) || pair->elmer.out_size < 30000) {
        assert_int_equal(channel_send(&pair->elmer, &message, &err), 0);
        sent++;
    }
    for (unsigned i = 0; i < sent; i++) {
        assert_int_equal(channel_flush(&pair->elmer), 0);
        assert_int_equal(channel_receive(&pair->client, &got, in_ms(2000), &err), 1);
        assert_string_equal(got.u.done.text, text);
        wire_message_fini(&got);
    }
    assert_false(channel_wants_write(&pair->elmer));
    assert_int_equal(pair->elmer.out_capacity, 0);
}

static void sending_all_ends_at_the_deadline(void **state)
{
    struct pair *pair = *state;
    char text[1025];
    struct wire_message message = large(text, sizeof(text));
    struct err err = ERR_INIT;
    int64_t begin;
    int result = 0;

    while (!channel_wants_write(&pair->elmer))
        assert_int_equal(channel_send(&pair->elmer, &message, &err), 0);
    begin = mono_ms(mono_now());
    result = channel_send_all(&pair->elmer, &message, in_ms(50), &err);
    assert_int_equal(result, -ETIMEDOUT);
    assert_in_range(mono_ms(mono_now()) - begin, 50, 10000);
    assert_true(pair->elmer.dead);
}

static void an_invalid_message_leaves_the_channel(void **state)
{
    struct pair *pair = *state;
    struct wire_message message = {.type = WIRE_done, .u.done = {.text = "\xFF"}};
    struct err err = ERR_INIT;

    assert_int_equal(channel_send(&pair->elmer, &message, &err), -EILSEQ);
    assert_non_null(strstr(err.text, "done: text"));
    assert_false(pair->elmer.dead);
}

/* A flood is read in portions, so that the caller's loop goes on. */
static void one_fill_is_bounded(void **state)
{
    struct pair *pair = *state;
    int size = 1 << 20;
    char zeros[4096];
    ssize_t n;

    memset(zeros, 0, sizeof(zeros));
    (void)setsockopt(pair->client.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    raw(pair, "\0\x10\0\0", 4);
    do
        n = send(pair->client.fd, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n > 0);
    assert_int_equal(channel_fill(&pair->elmer, NULL), 0);
    assert_in_range(pair->elmer.in.size, 4096, 128 * 1024);
}

/* ---- hello ---- */

static void hello_from(struct pair *pair, const char *json)
{
    uint8_t header[WIRE_FRAME_HEADER];

    wire_frame_header(header, strlen(json));
    raw(pair, (const char *)header, sizeof(header));
    raw(pair, json, strlen(json));
}

static void hellos_agree(void **state)
{
    struct pair *pair = *state;
    struct wire_message got;

    hello_from(pair, "{\"type\":\"hello\",\"id\":0,\"program\":\"x\",\"major\":1,\"minor\":99,\"capabilities\":[]}");
    assert_int_equal(channel_hello(&pair->elmer, "test", in_ms(2000), NULL), 0);
    assert_int_equal(pair->elmer.minor, WIRE_MINOR);
    assert_int_equal(channel_receive(&pair->client, &got, in_ms(2000), NULL), 1);
    assert_int_equal(got.type, WIRE_hello);
    assert_string_equal(got.u.hello.program, "test");
    assert_int_equal(got.u.hello.major, WIRE_MAJOR);
    wire_message_fini(&got);
}

static void another_major_is_a_sentence(void **state)
{
    struct pair *pair = *state;
    struct err err = ERR_INIT;

    hello_from(pair, "{\"type\":\"hello\",\"id\":0,\"program\":\"x\",\"major\":9,\"minor\":0,\"capabilities\":[]}");
    assert_int_equal(channel_hello(&pair->elmer, "test", in_ms(2000), &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "x speaks version 9"));
    assert_true(pair->elmer.dead);
}

/* Also when the peer has closed by then: what it said is there to be read. */
static void a_refusal_is_read(void **state)
{
    struct pair *pair = *state;
    struct err err = ERR_INIT;

    hello_from(pair, "{\"type\":\"error\",\"id\":0,\"code\":\"refused\",\"text\":\"too many connections\"}");
    channel_fini(&pair->client);
    assert_int_equal(channel_hello(&pair->elmer, "test", in_ms(2000), &err), -ECONNREFUSED);
    assert_string_equal(err.text, "too many connections");
}

static void silence_is_a_timeout(void **state)
{
    struct pair *pair = *state;
    struct err err = ERR_INIT;

    assert_int_equal(channel_hello(&pair->elmer, "test", in_ms(50), &err), -ETIMEDOUT);
    assert_true(pair->elmer.dead);
}

static void another_message_is_no_hello(void **state)
{
    struct pair *pair = *state;
    struct err err = ERR_INIT;

    hello_from(pair, "{\"type\":\"ping\",\"id\":0}");
    assert_int_equal(channel_hello(&pair->elmer, "test", in_ms(2000), &err), -EBADMSG);
}

#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_found_whatever_the_pieces),
        cmocka_unit_test(a_wrong_length_is_refused_before_allocation),
        cmocka_unit_test(memory_follows_the_bytes),
        PAIR_TEST(messages_pass),
        PAIR_TEST(receiving_ends_at_the_deadline),
        PAIR_TEST(what_came_before_the_end_is_delivered),
        PAIR_TEST(a_dead_peer_is_no_signal),
        PAIR_TEST(a_peer_may_send_only_its_own),
        PAIR_TEST(garbage_kills_the_channel),
        PAIR_TEST(an_undecodable_frame_kills_the_channel),
        PAIR_TEST(a_peer_that_does_not_read_is_given_up),
        PAIR_TEST(a_slow_peer_gets_everything),
        PAIR_TEST(sending_all_ends_at_the_deadline),
        PAIR_TEST(an_invalid_message_leaves_the_channel),
        PAIR_TEST(one_fill_is_bounded),
        PAIR_TEST(hellos_agree),
        PAIR_TEST(another_major_is_a_sentence),
        PAIR_TEST(a_refusal_is_read),
        PAIR_TEST(silence_is_a_timeout),
        PAIR_TEST(another_message_is_no_hello),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
