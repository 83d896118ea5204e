#include "config.h"

#include "lib/run/desk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/hex.h"
#include "lib/base/str.h"

enum { OUT_MAX = 16 << 10 };

/* Beside the socket that a test names. */
static bool address_of(struct sockaddr_un *address)
{
    const char *named = getenv("ELMER_SOCKET"), *slash = named ? strrchr(named, '/') : NULL;
    int length =
        slash ? snprintf(address->sun_path, sizeof(address->sun_path), "%.*s/ticket.sock", (int)(slash - named), named)
              : snprintf(address->sun_path, sizeof(address->sun_path), "%s/ticket.sock", ELMER_RSD_RUNDIR);
    address->sun_family = AF_UNIX;
    return length > 0 && (size_t)length < sizeof(address->sun_path);
}

static int nobody(struct err *err, int code)
{
    return err_set(err, code, "elmer-tickets of this host does not answer (%s): is rsd running?", strerror(-code));
}

static int ask(struct run_desk *desk, const struct wire_message *message, struct err *err)
{
    struct sockaddr_un address = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), result;
    *desk = (struct run_desk){.open = false};
    if (fd < 0)
        return nobody(err, -errno);
    if (!address_of(&address) || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        channel_init(&desk->channel, fd, WIRE_FROM_ROOT, OUT_MAX) < 0) {
        result = -errno;
        close(fd);
        return nobody(err, result);
    }
    desk->channel.minor = WIRE_TICKET_MINOR;
    desk->open = true;
    result = channel_send(&desk->channel, message, err); /* it fits into the socket's buffer */
    if (result < 0)
        run_desk_close(desk);
    return result;
}

int run_desk_ask_pass(struct run_desk *desk, const uint8_t public_key[SEAL_KEY_BYTES], struct err *err)
{
    char key[2 * SEAL_KEY_BYTES + 1];
    struct wire_message message = {.type = WIRE_pass_ask, .id = 1, .u.pass_ask.key = key};
    hex_write(public_key, SEAL_KEY_BYTES, key);
    return ask(desk, &message, err);
}

int run_desk_ask_look(struct run_desk *desk, uint64_t job, const uint8_t public_key[SEAL_KEY_BYTES], struct err *err)
{
    char key[2 * SEAL_KEY_BYTES + 1];
    struct wire_message message = {.type = WIRE_pass_look, .id = 1, .u.pass_look = {.job = job, .key = key}};
    hex_write(public_key, SEAL_KEY_BYTES, key);
    return ask(desk, &message, err);
}

int run_desk_ask_check(struct run_desk *desk, const char *pass, struct err *err)
{
    struct wire_message message = {.type = WIRE_pass_check, .id = 1, .u.pass_check.pass = pass};
    return ask(desk, &message, err);
}

int run_desk_ask_trust(struct run_desk *desk, const char *pass, struct err *err)
{
    struct wire_message message = {.type = WIRE_pass_trust, .id = 1, .u.pass_trust.pass = pass};
    int result = ask(desk, &message, err);
    desk->trust = result == 0 ? pass : NULL;
    return result;
}

static int take(const struct wire_message *answer, char *pass, struct err *err)
{
    char text[500];
    if (answer->type == WIRE_error)
        return err_set(err, strcmp(answer->u.error.code, WIRE_CODE_UNAVAILABLE) == 0 ? -EAGAIN : -EACCES, "%s",
                       str_printable(text, sizeof(text), answer->u.error.text, strlen(answer->u.error.text)));
    if (answer->type == WIRE_done && !pass)
        return 1;
    if (answer->type != WIRE_pass || !pass || strlen(answer->u.pass.pass) > PASS_TEXT_MAX)
        return err_set(err, -EPROTO, "elmer-tickets of this host is of another version");
    snprintf(pass, PASS_TEXT_MAX + 1, "%s", answer->u.pass.pass);
    return 1;
}

int run_desk_read(struct run_desk *desk, char *pass, struct err *err)
{
    struct wire_message answer;
    const char *trust = desk->trust;
    int filled = channel_fill(&desk->channel, err), got = channel_next(&desk->channel, &answer, err), result;
    if (got == 0 && filled == 0)
        return 0;
    if (got > 0) {
        result = take(&answer, pass, err);
        wire_message_fini(&answer);
    } else if (trust) { /* one of before, which does not know the question and asks no list either */
        run_desk_close(desk);
        return run_desk_ask_check(desk, trust, err);
    } else {
        result = nobody(err, -ECONNRESET);
    }
    run_desk_close(desk);
    return result;
}

int run_desk_wait(struct run_desk *desk, char *pass, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        int64_t left = deadline_ms - mono_ms(mono_now());
        struct pollfd fd = {.fd = desk->channel.fd, .events = POLLIN};
        int result = 0, ready = poll(&fd, 1, left > 0 ? (int)left : 0);
        if (ready > 0)
            result = run_desk_read(desk, pass, err);
        else if (left <= 0)
            result = nobody(err, -ETIMEDOUT);
        if (result != 0) {
            run_desk_close(desk);
            return result < 0 ? result : 0;
        }
    }
}

void run_desk_close(struct run_desk *desk)
{
    if (desk->open)
        channel_fini(&desk->channel);
    desk->open = false;
}
