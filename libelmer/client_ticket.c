/* client_ticket.c - the ticket of a submission, from the local rsd (rsd/ticket/desk.c).
 *
 * A host without rsd, or with one from before there were tickets, has none: then the submission goes without, and the
 * hosts that run it decide. Where somebody signs it does not go without because he is busy: it would be refused there.
 * rsd makes its own socket before the one of the tickets, so that the times of both tell which rsd runs.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/job/lines.h"
#include "lib/job/tasks.h"
#include "lib/job/variables.h"
#include "lib/wire/channel.h"
#include "libelmer/client.h"

enum { DIAL_AGAIN_MS = 10, DEAF_MS = 500, BOOT_MS = 3000, TICKET_MS = 8000, TICKET_OUT_MAX = 4 << 20 };

/* NAME beside the socket that the caller has named, else where rsd has it. */
static bool address_of(const char *socket, const char *name, struct sockaddr_un *address)
{
    const char *slash = socket ? strrchr(socket, '/') : NULL;
    size_t length = slash ? (size_t)(slash - socket) : 0;
    bool standard = !socket || (length == strlen(ELMER_RUNDIR) && strncmp(socket, ELMER_RUNDIR, length) == 0);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(address->sun_path, sizeof(address->sun_path), "%.*s/%s",
                    standard ? (int)strlen(ELMER_RSD_RUNDIR) : (int)length, standard ? ELMER_RSD_RUNDIR : socket,
                    name) < (int)sizeof(address->sun_path);
}

/* A descriptor or -errno. */
static int connect_to(const struct sockaddr_un *address)
{
    int result, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        if (errno != EINTR) {
            result = -errno;
            close(fd);
            return result;
        }
    return fd;
}

/* 0, -ENOENT: there is no socket; or another -errno, which may pass: rsd starts again, or has no place for a moment. */
static int dial(struct client_desk *desk)
{
    struct sockaddr_un address;
    int fd, result;

    if (!address_of(desk->beside, "ticket.sock", &address))
        return -ENOENT;
    fd = connect_to(&address);
    if (fd < 0)
        return fd;
    result = channel_init(&desk->channel, fd, WIRE_FROM_ROOT, TICKET_OUT_MAX);
    if (result < 0) {
        close(fd);
        return result;
    }
    desk->channel.minor = WIRE_TICKET_MINOR;
    desk->connected = true;
    return 0;
}

/* Users have been signed for here: after a boot, or while it starts again, rsd has no socket for a moment. */
static bool comes_soon(const struct client_desk *desk)
{
    struct sockaddr_un standard, address;
    struct stat st;

    return address_of(NULL, "ticket.sock", &standard) && address_of(desk->beside, "ticket.sock", &address) &&
           strcmp(standard.sun_path, address.sun_path) == 0 && stat(ELMER_TICKET_DIR, &st) == 0;
}

/* An rsd from before there were tickets runs, which may have left the socket of a later one where it was: its own is
 * newer and answers. */
static bool from_before(const struct client_desk *desk)
{
    struct sockaddr_un tickets, rsd;
    struct stat old, new;
    int fd;

    if (!address_of(desk->beside, "ticket.sock", &tickets) || !address_of(desk->beside, "rsd.sock", &rsd) ||
        stat(rsd.sun_path, &new) < 0)
        return false;
    if (stat(tickets.sun_path, &old) < 0)
        old = (struct stat){0};
    if (new.st_mtim.tv_sec < old.st_mtim.tv_sec ||
        (new.st_mtim.tv_sec == old.st_mtim.tv_sec &&new.st_mtim.tv_nsec <= old.st_mtim.tv_nsec))
        return false;
    fd = connect_to(&rsd);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void client_desk_close(struct client_desk *desk)
{
    if (desk->connected)
        channel_fini(&desk->channel);
    desk->connected = false;
}

struct asked {
    struct wire_message message;
    const char **items;
    char *tasks, *lines, *memory;
};

static void asked_fini(struct asked *asked)
{
    free(asked->items);
    free(asked->tasks);
    free(asked->lines);
    free(asked->memory);
}

static bool is_for_desk(const char *entry)
{
    return strncmp(entry, TASKS_VARIABLE "=", sizeof(TASKS_VARIABLE)) == 0 ||
           strncmp(entry, LINES_VARIABLE "=", sizeof(LINES_VARIABLE)) == 0 ||
           strncmp(entry, MEMORY_VARIABLE "=", sizeof(MEMORY_VARIABLE)) == 0;
}

/* As the desk wants it: the tasks of an array, their lines, and memory, are variables there, because it speaks as it
 * did before there were such. false: no memory. */
static bool for_desk(const struct wire_message *submit, struct asked *asked)
{
    const struct wire_submit *s = &submit->u.submit;
    const struct wire_strs *all = &s->environment;
    size_t count = 0;

    *asked = (struct asked){.message = *submit, .items = calloc(all->count + 3, sizeof(*asked->items))};
    asked->tasks = s->tasks && *s->tasks ? str_format("%s=%s", TASKS_VARIABLE, s->tasks) : NULL;
    asked->lines = s->lines && *s->lines ? str_format("%s=%s", LINES_VARIABLE, s->lines) : NULL;
    asked->memory = s->memory_bytes ? str_format("%s=%" PRIu64, MEMORY_VARIABLE, s->memory_bytes) : NULL;
    if (!asked->items || (s->memory_bytes && !asked->memory) || (s->tasks && *s->tasks && !asked->tasks) ||
        (s->lines && *s->lines && !asked->lines))
        return false;
    for (size_t i = 0; i < all->count; i++)
        if (!is_for_desk(all->items[i]))
            asked->items[count++] = all->items[i];
    if (asked->tasks)
        asked->items[count++] = asked->tasks;
    if (asked->lines)
        asked->items[count++] = asked->lines;
    if (asked->memory)
        asked->items[count++] = asked->memory;
    asked->message.u.submit.environment = (struct wire_strs){asked->items, count};
    return true;
}

/* 1: answered, with a ticket or not; 0: nobody signs here; negative: not now. */
static int ask(struct client_desk *desk, const struct wire_message *submit, int64_t deadline_ms,
               struct wire_message *answer)
{
    struct asked asked;
    bool sent;
    int result = desk->connected ? 0 : dial(desk);

    if (result < 0)
        return result == -ENOENT && !comes_soon(desk) ? 0 : result;
    sent = for_desk(submit, &asked) && channel_send_all(&desk->channel, &asked.message, deadline_ms, NULL) == 0;
    asked_fini(&asked);
    if (sent && channel_receive(&desk->channel, answer, deadline_ms, NULL) == 1)
        return 1;
    client_desk_close(desk);
    return -EAGAIN;
}

/* 0: answered; negative: not. */
static int ask_to_sign(struct client_desk *desk, const struct wire_message *question, int64_t deadline_ms,
                       struct wire_message *answer)
{
    int result = desk->connected ? 0 : dial(desk);

    if (result < 0)
        return result;
    if (channel_send_all(&desk->channel, question, deadline_ms, NULL) == 0 &&
        channel_receive(&desk->channel, answer, deadline_ms, NULL) == 1)
        return 0;
    client_desk_close(desk);
    return -EPIPE;
}

int client_warrant(struct client_desk *desk, const struct wire_message *request, unsigned minor, const char *challenge,
                   int64_t deadline_ms, struct wire_message *decide, struct wire_message *answer, char **json,
                   struct elmer_error *error)
{
    struct wire_message question = {.type = WIRE_warrant_ask, .u.warrant_ask.challenge = challenge};
    int64_t most = mono_ms(mono_now()) + TICKET_MS;
    bool kept = desk->connected;
    struct err err = ERR_INIT;
    size_t size;
    int result;

    if (wire_encode(request, minor, json, &size, &err) != 0)
        return client_error(error, ELMER_FAILED, "%s", err.text);
    question.u.warrant_ask.request = *json;
    if (deadline_ms > most)
        deadline_ms = most;
    result = ask_to_sign(desk, &question, deadline_ms, answer);
    if (result < 0 && kept) /* it had been closed while it was not used */
        result = ask_to_sign(desk, &question, deadline_ms, answer);
    if (result < 0)
        return client_error(error, ELMER_NOT_PERMITTED,
                            "rsd of this host does not sign it (%s): it is from before protocol 1.10, or does not run",
                            strerror(-result));
    if (answer->type != WIRE_warrant)
        return client_error(error, ELMER_NOT_PERMITTED, "%s",
                            answer->type == WIRE_error ? answer->u.error.text : "rsd has answered something else");
    *decide = (struct wire_message){
        .type = WIRE_decide, .u.decide = {.request = *json, .minor = minor, .warrant = answer->u.warrant.warrant}};
    return ELMER_OK;
}

static int not_now(int result, struct elmer_error *error)
{
    return result == -ECONNREFUSED
               ? client_error(error, ELMER_UNAVAILABLE,
                              "rsd does not run on this host, so nobody signs the submission: systemctl start rsd")
               : client_error(error, ELMER_UNAVAILABLE,
                              "nobody had the time to sign the submission: much is submitted on this host just now, or "
                              "its rsd does not run well; try again later");
}

int client_ticket(struct client_desk *desk, struct wire_message *submit, int64_t deadline_ms,
                  struct wire_message *answer, struct elmer_error *error)
{
    int64_t begun = mono_ms(mono_now()), most = begun + TICKET_MS;
    bool kept = desk->connected;
    int result;

    if (deadline_ms > most)
        deadline_ms = most;
    *answer = (struct wire_message){.type = WIRE_pong};
    while ((result = ask(desk, submit, deadline_ms, answer)) < 0) {
        int64_t now = mono_ms(mono_now());
        bool absent =
            result == -ENOENT && now - begun >= (deadline_ms < begun + BOOT_MS ? deadline_ms - begun : BOOT_MS);
        if (absent || (result != -EAGAIN && now - begun >= DEAF_MS && from_before(desk)))
            return ELMER_OK;
        if (now >= deadline_ms)
            return not_now(result, error);
        if (!kept)
            poll(NULL, 0, DIAL_AGAIN_MS);
        kept = false; /* it had been closed while it was not used */
    }
    if (result == 1 && answer->type == WIRE_ticket)
        submit->u.submit.ticket = answer->u.ticket.ticket;
    if (result == 1 && answer->type == WIRE_error && strcmp(answer->u.error.code, WIRE_CODE_UNAVAILABLE) == 0)
        return client_error(error, ELMER_UNAVAILABLE, "it cannot be signed now: %s", answer->u.error.text);
    return ELMER_OK;
}
