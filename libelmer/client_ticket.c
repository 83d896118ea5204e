/* client_ticket.c - the ticket of a submission, from the local rsd (rsd/ticket/desk.c), and what administrators decide.
 *
 * A question waits for its turn (TURN: the connection is used for one at a time), is written, and gets its answer
 * (ANSWER). Where nobody listens, or the connection ends, it is dialled again after a PAUSE; at once if the connection
 * was one that had been kept: it may have been closed while it was not used. A hang of the other side ends with the
 * deadline; so does the wait for a turn.
 *
 * A host that has no key for tickets, or an rsd from before there were any, has none: then the submission goes without,
 * and the hosts that run it decide. Where somebody signs it does not go without because he is busy, or because rsd is
 * not there, for a moment or for long, or because he says that he cannot sign it: it would be refused there, and nobody
 * would know why.
 * rsd makes its own socket before the one of the tickets, as systemd does (rsd-tickets.socket), so that the times of
 * both tell which rsd runs.
 */
#include "config.h"

#include <assert.h>
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

enum { DIAL_AGAIN_MS = 10, DEAF_MS = 500, SOCKETS_S = 5, TICKET_MS = 8000, TICKET_OUT_MAX = 4 << 20 };

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

/* Users are signed for here, though there is no socket: rsd has none after a boot or while it starts again. */
static bool has_key(const struct client_desk *desk)
{
    struct sockaddr_un standard, address;
    struct stat st;

    return address_of(NULL, "ticket.sock", &standard) && address_of(desk->beside, "ticket.sock", &address) &&
           strcmp(standard.sun_path, address.sun_path) == 0 && stat(ELMER_TICKET_DIR, &st) == 0;
}

/* An rsd from before there were tickets runs, which may have left the socket of a later one where it was: its own is
 * newer and answers. Not one that has just come, with the socket of the tickets to follow: systemd listens on one after
 * the other. */
static bool from_before(const struct client_desk *desk)
{
    struct sockaddr_un tickets, rsd;
    struct stat old, new;
    int64_t age_s;
    int fd;

    if (!address_of(desk->beside, "ticket.sock", &tickets) || !address_of(desk->beside, "rsd.sock", &rsd) ||
        stat(rsd.sun_path, &new) < 0)
        return false;
    age_s = wall_now().ms / 1000 - new.st_mtim.tv_sec;
    if (age_s >= 0 && age_s < SOCKETS_S)
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
    if (desk->connected) {
        client_watch_end(&desk->watch);
        channel_fini(&desk->channel);
    }
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

/* ---- one question after the other ---- */

static void end_first(struct client_desk *desk, int result)
{
    struct client_signing *signing = desk->first;

    desk->first = signing->next;
    signing->next = NULL;
    signing->result = result;
    signing->state = SIGNING_DONE;
}

/* It was not answered: result says why. */
static void failed(struct client_desk *desk, int result)
{
    struct client_signing *signing = desk->first;
    int64_t now = mono_now_ms(), asked_ms = now - signing->begun_ms;
    bool again = signing->kept;

    signing->kept = false;
    client_desk_close(desk);
    if (signing->is_submission &&
        ((result == -ENOENT && !has_key(desk)) || (result != -EAGAIN && asked_ms >= DEAF_MS && from_before(desk))))
        end_first(desk, 0); /* nobody signs here */
    else if (now >= signing->deadline_ms || (!signing->is_submission && !again))
        end_first(desk, result);
    else {
        signing->state = SIGNING_PAUSE;
        signing->pause_until_ms = again ? now : now + DIAL_AGAIN_MS;
    }
}

static int say(struct client_desk *desk, const struct client_signing *signing)
{
    struct asked asked;
    bool said;

    if (!signing->is_submission)
        return channel_send(&desk->channel, signing->question, NULL);
    said = for_desk(signing->question, &asked) && channel_send(&desk->channel, &asked.message, NULL) == 0;
    asked_fini(&asked);
    return said ? 0 : -EAGAIN;
}

static void ask(struct client_desk *desk)
{
    struct client_signing *signing = desk->first;
    int result = desk->connected ? 0 : dial(desk);

    if (result == 0 && say(desk, signing) < 0)
        result = signing->is_submission ? -EAGAIN : -EPIPE;
    if (result < 0)
        failed(desk, result);
    else
        signing->state = SIGNING_ANSWER;
}

/* Whether that was the end of the wait. */
static bool hear(struct client_desk *desk, bool readable)
{
    struct client_signing *signing = desk->first;
    int result = channel_flush(&desk->channel), got;

    if (result == 0 && readable)
        result = channel_fill(&desk->channel, NULL);
    got = channel_next(&desk->channel, &signing->answer, NULL);
    if (got == 1)
        end_first(desk, 1);
    else if (result < 0 || got < 0 || mono_now_ms() >= signing->deadline_ms)
        failed(desk, signing->is_submission ? -EAGAIN : -EPIPE);
    return signing->state != SIGNING_ANSWER;
}

/* Whose turn does not come in time. */
static void end_late(struct client_desk *desk)
{
    int64_t now = mono_now_ms();

    for (struct client_signing **at = &desk->first; *at;) {
        struct client_signing *signing = *at;

        if (signing->state != SIGNING_TURN || now < signing->deadline_ms || at == &desk->first) {
            at = &signing->next;
            continue;
        }
        *at = signing->next;
        signing->next = NULL;
        signing->result = -EAGAIN;
        signing->state = SIGNING_DONE;
    }
}

void client_desk_step(struct client_desk *desk, bool readable)
{
    struct client_signing *signing;

    end_late(desk);
    while ((signing = desk->first)) {
        if (signing->state == SIGNING_TURN) {
            signing->begun_ms = mono_now_ms();
            signing->deadline_ms = earlier(signing->deadline_ms, signing->begun_ms + TICKET_MS);
            signing->kept = desk->connected;
            ask(desk);
        } else if (signing->state == SIGNING_PAUSE && mono_now_ms() >= signing->pause_until_ms) {
            ask(desk);
        } else if (signing->state != SIGNING_ANSWER || !hear(desk, readable)) {
            return;
        }
        readable = false; /* it was read, or belongs to a connection that is not there any more */
    }
}

short client_desk_events(const struct client_desk *desk)
{
    if (!desk->first || desk->first->state != SIGNING_ANSWER)
        return 0;
    return (short)(POLLIN | (channel_wants_write(&desk->channel) ? POLLOUT : 0));
}

int64_t client_desk_until_ms(const struct client_desk *desk)
{
    int64_t until = INT64_MAX;

    for (const struct client_signing *signing = desk->first; signing; signing = signing->next)
        until = earlier(until, signing->state == SIGNING_PAUSE ? signing->pause_until_ms : signing->deadline_ms);
    return until;
}

static void begin(struct client_desk *desk, struct client_signing *signing, int64_t deadline_ms)
{
    struct client_signing **at = &desk->first;

    while (*at)
        at = &(*at)->next;
    signing->deadline_ms = deadline_ms;
    signing->state = SIGNING_TURN;
    signing->answer = (struct wire_message){.type = WIRE_pong};
    signing->next = NULL;
    *at = signing;
    client_desk_step(desk, false);
}

void client_signing_drop(struct client_desk *desk, struct client_signing *signing)
{
    struct client_signing **at = &desk->first;

    while (*at && *at != signing)
        at = &(*at)->next;
    if (*at) {
        *at = signing->next;
        if (signing->state == SIGNING_ANSWER) /* which comes for nobody, or has been written in part */
            client_desk_close(desk);
    }
    wire_message_fini(&signing->answer);
    free(signing->json);
    *signing = (struct client_signing){.state = SIGNING_NONE};
}

/* ---- submissions ---- */

void client_ticket_begin(struct client_desk *desk, struct client_signing *signing, const struct wire_message *submit,
                         int64_t deadline_ms)
{
    assert(signing->state == SIGNING_NONE);
    *signing = (struct client_signing){.question = submit, .is_submission = true};
    begin(desk, signing, deadline_ms);
}

static int not_now(int result, struct elmer_error *error)
{
    return result == -ECONNREFUSED || result == -ENOENT
               ? client_error(error, ELMER_UNAVAILABLE,
                              "rsd does not run on this host, so nobody signs the submission: systemctl start rsd")
               : client_error(error, ELMER_UNAVAILABLE,
                              "nobody had the time to sign the submission: much is submitted on this host just now, or "
                              "its rsd does not run well; try again later");
}

int client_ticket_take(struct client_signing *signing, struct wire_message *submit, struct elmer_error *error)
{
    const struct wire_message *answer = &signing->answer;

    assert(signing->state == SIGNING_DONE);
    if (signing->result < 0)
        return not_now(signing->result, error);
    if (signing->result == 1 && answer->type == WIRE_ticket)
        submit->u.submit.ticket = answer->u.ticket.ticket;
    if (signing->result != 1 || answer->type != WIRE_error)
        return ELMER_OK;
    return strcmp(answer->u.error.code, WIRE_CODE_UNAVAILABLE) == 0
               ? client_error(error, ELMER_UNAVAILABLE, "it cannot be signed now: %s", answer->u.error.text)
               : client_error(error, ELMER_REFUSED, "it cannot be signed: %s", answer->u.error.text);
}

/* ---- decisions of administrators ---- */

int client_warrant_begin(struct client_desk *desk, struct client_signing *signing, const struct wire_message *request,
                         unsigned minor, const char *challenge, int64_t deadline_ms, struct elmer_error *error)
{
    struct err err = ERR_INIT;
    size_t size;

    assert(signing->state == SIGNING_NONE);
    *signing = (struct client_signing){.state = SIGNING_NONE};
    if (wire_encode(request, minor, &signing->json, &size, &err) != 0)
        return client_error(error, ELMER_FAILED, "%s", err.text);
    signing->asks = (struct wire_message){.type = WIRE_warrant_ask,
                                          .u.warrant_ask = {.challenge = challenge, .request = signing->json}};
    signing->question = &signing->asks;
    begin(desk, signing, deadline_ms);
    return ELMER_OK;
}

int client_warrant_take(struct client_signing *signing, unsigned minor, struct wire_message *decide,
                        struct elmer_error *error)
{
    const struct wire_message *answer = &signing->answer;

    assert(signing->state == SIGNING_DONE);
    if (signing->result < 0)
        return client_error(error, ELMER_NOT_PERMITTED,
                            "rsd of this host does not sign it (%s): it is from before protocol 1.10, or does not run",
                            strerror(-signing->result));
    if (answer->type != WIRE_warrant)
        return client_error(error, ELMER_NOT_PERMITTED, "%s",
                            answer->type == WIRE_error ? answer->u.error.text : "rsd has answered something else");
    *decide = (struct wire_message){
        .type = WIRE_decide,
        .u.decide = {.request = signing->json, .minor = minor, .warrant = answer->u.warrant.warrant}};
    return ELMER_OK;
}
