/* fuzz_link.c - links as their owners use them, over real sockets: what comes before the hello, the hello, frames of
 * any type, garbage, ends at any place. The owner hears only what its peer may say, and only between ready and closed;
 * it is told the end once, in words that can be printed. With TLS the peer stays a stranger (fuzz_tls does the rest).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/net/link.h"
#include "lib/wire/channel.h"
#include "tests/fuzz/cluster.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_TURNS = 64, HELLO_MS = 60000, OUT_MAX = 256 * 1024 };

static const unsigned peers[] = {WIRE_FROM_CLIENT, WIRE_FROM_HOST, WIRE_FROM_ELMER, WIRE_FROM_SIGNER};

static struct {
    struct link *link;
    unsigned peer;
    bool ready, closed;
} owner;

/* ---- the owner ---- */

static void on_ready(struct link *link, void *data)
{
    FUZZ_CHECK(data == &owner && !owner.ready && !owner.closed, "ready twice");
    owner.ready = true;
    FUZZ_CHECK(link_ready(link) && link_minor(link) <= WIRE_MINOR, "minor %u", link_minor(link));
}

/* Answers what is asked, ends with who wants it. */
static void on_message(struct link *link, struct wire_message *message, void *data)
{
    struct wire_message pong = {.type = WIRE_pong, .id = message->id};

    (void)data;
    FUZZ_CHECK(owner.ready && !owner.closed, "%s at the wrong time", wire_type_name(message->type));
    FUZZ_CHECK(wire_may_send(message->type, owner.peer), "%s, which it may not say", wire_type_name(message->type));
    if (message->type == WIRE_ping)
        (void)link_send(link, &pong);
    else if (message->id == 13)
        link_refuse(link, WIRE_CODE_REFUSED, "thirteen");
    else if (message->id == 14)
        link_close(link, NULL);
}

static void on_close(struct link *link, const char *text, void *data)
{
    (void)link;
    (void)data;
    FUZZ_CHECK(!owner.closed, "closed twice");
    for (const char *c = text; *c != '\0'; c++)
        FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7F, "a control character in \"%s\"", text);
    owner.closed = true;
    owner.link = NULL;
}

static const struct link_callbacks callbacks = {.on_ready = on_ready, .on_message = on_message, .on_close = on_close};

static void *on_accept(struct link *link, void *data)
{
    owner.link = link;
    return data;
}

/* ---- its two ways to get a link ---- */

static void turn(uv_loop_t *loop)
{
    (void)uv_run(loop, UV_RUN_NOWAIT);
}

static int around_a_socket(uv_loop_t *loop, bool no_hello)
{
    const struct link_options options = {
        .program = "fuzz", .peer = owner.peer, .out_max = OUT_MAX, .hello_timeout_ms = HELLO_MS, .no_hello = no_hello};
    struct err err = ERR_INIT;
    int pair[2];

    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0, "%s", strerror(errno));
    FUZZ_CHECK(link_open_fd(loop, pair[0], &options, &callbacks, &owner, &owner.link, &err) == 0, "%s", err.text);
    return pair[1];
}

/* Bound by the kernel to a name of its own, so that no file is made. */
static int listen_anywhere(struct sockaddr_un *address, socklen_t *size)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *size = sizeof(*address);
    FUZZ_CHECK(fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)) == 0 &&
                   getsockname(fd, (struct sockaddr *)address, size) == 0,
               "%s", strerror(errno));
    return fd;
}

static int accepted(uv_loop_t *loop, struct listener **listener, bool tls)
{
    const struct link_options options = {.program = "fuzz",
                                         .peer = owner.peer,
                                         .out_max = OUT_MAX,
                                         .hello_timeout_ms = HELLO_MS,
                                         .tls = tls ? cluster_get()->server : NULL};
    struct err err = ERR_INIT;
    struct sockaddr_un address;
    socklen_t size;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), bound = listen_anywhere(&address, &size);

    FUZZ_CHECK(listener_create_fd(loop, bound, 4, &options, &callbacks, on_accept, &owner, listener, &err) == 0, "%s",
               err.text);
    FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0, "%s", strerror(errno));
    FUZZ_CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "%s", strerror(errno));
    return fd;
}

/* ---- the peer ---- */

static void put(int fd, const void *bytes, size_t size)
{
    (void)send(fd, bytes, size, MSG_NOSIGNAL); /* it may have been shown the door */
}

static void put_message(int fd, const struct wire_message *message, unsigned minor)
{
    uint8_t *frame;
    size_t size;

    if (wire_encode_frame(message, minor, &frame, &size, NULL) != 0)
        return;
    put(fd, frame, size);
    free(frame);
}

static void put_hello(struct input *input, int fd)
{
    struct wire_message hello;
    uint8_t how = input_byte(input);

    wire_hello_fill(&hello, "fuzz");
    if (how >= 0xE0)
        hello.u.hello.minor = input_number(input, 1000);
    if (how >= 0xF0)
        hello.u.hello.major = input_number(input, 1000);
    put_message(fd, &hello, 0);
}

static void put_any(struct input *input, int fd, unsigned sender)
{
    struct wire_message message;

    input_message(input, input_type(input, sender), &message);
    put_message(fd, &message, WIRE_MINOR);
    wire_message_fini(&message);
}

/* A frame with any bytes in it, or bytes without a frame. */
static void put_bytes(struct input *input, int fd, bool framed)
{
    size_t size = input_byte(input);
    uint8_t header[WIRE_FRAME_HEADER];

    size = size < input->left ? size : input->left;
    wire_frame_header(header, size);
    if (framed)
        put(fd, header, sizeof(header));
    put(fd, input->at, size);
    input->at += size;
    input->left -= size;
}

static void act(struct input *input, int fd)
{
    uint8_t what = input_byte(input), drain[4096];

    if (what < 0x40)
        put_hello(input, fd);
    else if (what < 0x80)
        put_any(input, fd, owner.peer);
    else if (what < 0x90)
        put_any(input, fd, WIRE_FROM_ANY);
    else if (what < 0xB0)
        put_bytes(input, fd, true);
    else if (what < 0xD0)
        put_bytes(input, fd, false);
    else if (what < 0xE0)
        (void)recv(fd, drain, sizeof(drain), 0);
    else if (what < 0xF0)
        (void)shutdown(fd, SHUT_WR);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t how = input_byte(&input);
    struct listener *listener = NULL;
    uv_loop_t loop;
    int fd;

    owner.link = NULL;
    owner.ready = owner.closed = false;
    owner.peer = peers[(how >> 2) % 4];
    FUZZ_CHECK(uv_loop_init(&loop) == 0, "no loop");
    fd = how & 1 ? accepted(&loop, &listener, how & 2) : around_a_socket(&loop, how & 2);
    turn(&loop);
    for (int i = 0; i < MAX_TURNS && input.left > 0; i++) {
        act(&input, fd);
        turn(&loop);
    }
    FUZZ_CHECK(!(how & 1 && how & 2 && owner.ready), "a stranger is ready");
    (void)close(fd);
    if (listener)
        listener_close(listener);
    for (int i = 0; i < MAX_TURNS && uv_loop_alive(&loop); i++)
        turn(&loop);
    FUZZ_CHECK(!owner.link || owner.closed, "the link is still there");
    FUZZ_CHECK(uv_loop_close(&loop) == 0, "the loop is still busy");
    return 0;
}
