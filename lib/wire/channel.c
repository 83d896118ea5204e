#include "config.h"

#include "lib/wire/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"

/* One turn reads at most so much, so that a flooding peer does not hold the caller's loop. */
enum { READ_BYTES = 16 * 1024, READS_PER_TURN = 8 };

int channel_init(struct channel *channel, int fd, unsigned peer, size_t out_max)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -errno;
    *channel = (struct channel){.fd = fd, .minor = WIRE_MINOR_LASTING, .peer = peer, .out_max = out_max};
    frame_reader_init(&channel->in, WIRE_MAX_FRAME);
    return 0;
}

void channel_later(struct channel *channel, unsigned minor)
{
    channel->minor = WIRE_LATER_ONLY | minor;
}

void channel_fini(struct channel *channel)
{
    if (!channel)
        return;
    if (channel->fd >= 0)
        (void)close(channel->fd);
    frame_reader_fini(&channel->in);
    free(channel->out);
    *channel = (struct channel){.fd = -1, .dead = true};
}

static int die(struct channel *channel, int code, struct err *err, const char *what)
{
    channel->dead = true;
    return err_set(err, code, "%s: %s", what, strerror(-code));
}

bool channel_wants_write(const struct channel *channel)
{
    return !channel->dead && channel->out_size > 0;
}

/* Writes what the socket takes of data; the count, or -errno. */
static ssize_t put(int fd, const uint8_t *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = send(fd, data + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int channel_flush(struct channel *channel)
{
    ssize_t n;

    if (channel->dead)
        return -EPIPE;
    if (channel->out_size == 0)
        return 0;
    n = put(channel->fd, channel->out, channel->out_size);
    if (n < 0) {
        channel->dead = true;
        return (int)n;
    }
    assert((size_t)n <= channel->out_size);
    channel->out_size -= (size_t)n;
    memmove(channel->out, channel->out + n, channel->out_size);
    if (channel->out_size == 0) {
        free(channel->out);
        channel->out = NULL;
        channel->out_capacity = 0;
    }
    return 0;
}

static int queue(struct channel *channel, const uint8_t *data, size_t size, struct err *err)
{
    size_t need = channel->out_size + size, capacity = channel->out_capacity;
    uint8_t *grown;

    if (need > channel->out_max) {
        channel->dead = true;
        return err_set(err, -ENOBUFS, "the peer does not read: %zu bytes are waiting for it", need);
    }
    if (need > capacity) {
        capacity = 2 * capacity > need ? 2 * capacity : need;
        grown = realloc(channel->out, capacity);
        if (!grown)
            return die(channel, -ENOMEM, err, "send");
        channel->out = grown;
        channel->out_capacity = capacity;
    }
    memcpy(channel->out + channel->out_size, data, size);
    channel->out_size = need;
    return 0;
}

int channel_send(struct channel *channel, const struct wire_message *message, struct err *err)
{
    uint8_t *frame;
    size_t size;
    ssize_t sent = 0;
    int result;

    if (channel->dead)
        return err_set(err, -EPIPE, "the connection is broken");
    result = wire_encode_frame(message, channel->minor, &frame, &size, err);
    if (result != 0)
        return result;
    if (channel->out_size > 0 && !channel->held)
        result = channel_flush(channel);
    if (result == 0 && channel->out_size == 0 && !channel->held) {
        sent = put(channel->fd, frame, size);
        result = sent < 0 ? (int)sent : 0;
    }
    if (result != 0)
        result = die(channel, result, err, "send");
    else if ((size_t)sent < size)
        result = queue(channel, frame + sent, size - (size_t)sent, err);
    free(frame);
    return result;
}

int channel_fill(struct channel *channel, struct err *err)
{
    uint8_t bytes[READ_BYTES];
    const size_t max = channel->read_max ? channel->read_max : sizeof(bytes);

    assert(max <= sizeof(bytes));
    for (int turn = 0; turn < (channel->read_max ? 1 : READS_PER_TURN); turn++) {
        ssize_t n = recv(channel->fd, bytes, max, MSG_DONTWAIT);
        int result;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0)
            return die(channel, -errno, err, "receive");
        if (n == 0) {
            if (turn > 0)
                return 0; /* the end is seen again in the next call */
            channel->dead = true;
            return err_set(err, -EPIPE, "the other side closed the connection");
        }
        result = frame_reader_push(&channel->in, bytes, (size_t)n);
        if (result == -EMSGSIZE) {
            channel->dead = true;
            return err_set(err, result, "not Elmer's protocol: a frame must have 1 to %d bytes", WIRE_MAX_FRAME);
        }
        if (result != 0)
            return die(channel, result, err, "receive");
        if ((size_t)n < sizeof(bytes))
            return 0;
    }
    return 0;
}

int channel_next(struct channel *channel, struct wire_message *message, struct err *err)
{
    const char *json;
    size_t size;
    int result;

    if (frame_reader_next(&channel->in, &json, &size) == 0)
        return 0;
    result = wire_decode(json, size, channel->minor, message, err);
    if (result == 0 && wire_may_send(message->type, channel->peer))
        return 1;
    channel->dead = true;
    if (result != 0)
        return result;
    wire_message_fini(message);
    return err_set(err, -EBADMSG, "%s: not a message that this peer may send", wire_type_name(message->type));
}

/* Waits until fd is ready; 1, 0 at the deadline, -errno. */
static int wait_for(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        struct pollfd pfd = {.fd = fd, .events = events};
        int64_t left = deadline_ms - mono_ms(mono_now());
        int n = poll(&pfd, 1, left <= 0 ? 0 : left > 60000 ? 60000 : (int)left);

        if (n > 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (left <= 0)
            return 0;
    }
}

int channel_receive(struct channel *channel, struct wire_message *message, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        int result = channel_next(channel, message, err);

        if (result != 0)
            return result;
        if (channel_wants_write(channel))
            (void)channel_flush(channel); /* a broken peer shows when we read */
        result = wait_for(channel->fd, (short)(POLLIN | (channel_wants_write(channel) ? POLLOUT : 0)), deadline_ms);
        if (result == 0)
            return 0;
        if (result < 0)
            return die(channel, result, err, "poll");
        result = channel_fill(channel, err);
        if (result < 0)
            return result;
    }
}

int channel_send_all(struct channel *channel, const struct wire_message *message, int64_t deadline_ms, struct err *err)
{
    int result = channel_send(channel, message, err);

    assert(!channel->held);
    while (result == 0 && channel->out_size > 0) {
        int ready = wait_for(channel->fd, POLLOUT, deadline_ms);

        if (ready <= 0)
            return die(channel, ready == 0 ? -ETIMEDOUT : ready, err, "send");
        result = channel_flush(channel);
        if (result != 0)
            return die(channel, result, err, "send");
    }
    return result;
}

static int hello_answer(struct channel *channel, const struct wire_message *message, struct err *err)
{
    const struct wire_error *error = &message->u.error;
    char shown[512];
    int minor;

    if (message->type == WIRE_error)
        return err_set(err, strcmp(error->code, WIRE_CODE_VERSION) == 0 ? -EPROTONOSUPPORT : -ECONNREFUSED, "%s",
                       str_printable(shown, sizeof(shown), error->text, strlen(error->text)));
    if (message->type != WIRE_hello)
        return err_set(err, -EBADMSG, "%s came where hello was expected", wire_type_name(message->type));
    minor = wire_hello_check(&message->u.hello, err);
    if (minor < 0)
        return minor;
    channel->minor = (unsigned)minor;
    return 0;
}

void channel_hello_say(struct channel *channel, const char *program, const char *capability)
{
    struct wire_message message;
    struct err ignored = ERR_INIT;

    wire_hello_fill(&message, program);
    message.u.hello.capabilities = (struct wire_strs){.items = &capability, .count = capability ? 1 : 0};
    (void)channel_send(channel, &message, &ignored); /* a peer that refuses may have closed: its reason can be read */
}

int channel_hello_take(struct channel *channel, const struct wire_message *message, struct err *err)
{
    int result = hello_answer(channel, message, err);

    if (result < 0)
        channel->dead = true;
    return result;
}

int channel_hello(struct channel *channel, const char *program, int64_t deadline_ms, struct err *err)
{
    struct wire_message message;
    int result;

    channel_hello_say(channel, program, NULL);
    result = channel_receive(channel, &message, deadline_ms, err);
    if (result == 0)
        result = err_set(err, -ETIMEDOUT, "the other side did not answer in time");
    if (result < 0) {
        channel->dead = true;
        return result;
    }
    result = channel_hello_take(channel, &message, err);
    wire_message_fini(&message);
    return result;
}
