/* desk.c - the process that signs, with the socket RUNDIR/ticket.sock.
 *
 * A user connects, sends a submission as he will send it to elmer, gets the message ticket or error, and may send the
 * next. A process of a job asks for its pass, who wants to see a terminal for his, and both whether another's is good
 * (passes.c). An administrator has signed what he asks of elmer. Who he is says the kernel.
 * Connections are bounded, for each user and in all; they end after ANSWER_MS without an answer, IDLE_MS after one, and
 * earlier when another needs the place: of those that are idle, then of those that wait because their user has had too
 * many tickets. A user who wants more tickets than he could use waits for them: the numbers of a key are shared by all
 * users, and what hosts remember of them ends a million back. */
#include "config.h"

#include "rsd/tickets/desk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/ticket/pass.h"
#include "lib/ticket/warrant.h"
#include "lib/wire/channel.h"
#include "rsd/tickets/users.h"

enum {
    CLIENTS = 768,
    OF_A_USER = 256, /* threads of a program that submits have one each, and who is put out has to come again */
    ANSWER_MS = 15000,
    IDLE_MS = 5000,
    OUT_MAX = 64 << 10
};
/* A request of a megabyte is one with a line for each task. Of so large ones only these are read at a time, the others
 * stay with the kernel: a small one takes 96 KiB here, with the message and the answer, a large one 2 MiB. */
enum { SMALL_BYTES = 32 << 10, LARGE = 32, LARGE_OF_A_USER = 8 };

struct client {
    bool here, answered, last; /* answered: to be written yet; last: he has closed his side */
    bool idle;                 /* nothing of his is underway */
    bool large, waits;         /* his request is; it is not read yet, because others' are */
    struct channel channel;
    uint32_t uid;
    pid_t pid;
    int64_t end_ms;
    bool asked; /* waits for its turn: */
    struct wire_message request;
};

struct desk {
    struct ticket_keys *keys;
    struct desk_believes believes;
    struct ticket_counter counter;
    int listener;
    struct client clients[CLIENTS];
    size_t top; /* no place from here on is taken */
    struct desk_users users;
};

/* ---- clients ---- */

static void drop(struct client *client)
{
    channel_fini(&client->channel);
    wire_message_fini(&client->request);
    *client = (struct client){.here = false};
}

static enum wire_type answer_to(enum wire_type request)
{
    return request == WIRE_pass_ask || request == WIRE_pass_look      ? WIRE_pass
           : request == WIRE_pass_check || request == WIRE_pass_trust ? WIRE_done
           : request == WIRE_warrant_ask                              ? WIRE_warrant
                                                                      : WIRE_ticket;
}

/* result: 0, with what was asked for; otherwise with a sentence, as desk_sign(). */
static void answer(struct client *client, int result, const char *text)
{
    struct wire_message message = {.type = result == 0 ? answer_to(client->request.type) : WIRE_error,
                                   .id = client->request.id};
    if (result == 0 && message.type == WIRE_pass) {
        message.u.pass.pass = text;
    } else if (result == 0 && message.type == WIRE_warrant) {
        message.u.warrant.warrant = text;
    } else if (result == 0 && message.type == WIRE_ticket) {
        message.u.ticket.ticket = text;
    } else if (result != 0) {
        message.u.error.code = result == -EINVAL ? WIRE_CODE_REFUSED : WIRE_CODE_UNAVAILABLE;
        message.u.error.text = text;
    }
    client->answered = true;
    client->asked = false;
    (void)channel_send(&client->channel, &message, NULL);
}

/* Where jobs run without a ticket a submission that can have none gets an empty one. */
static void refuse(const struct desk *desk, struct client *client, int result, const char *text)
{
    const bool goes_without = result == -EINVAL && client->request.type == WIRE_submit && !desk->believes.required;
    answer(client, goes_without ? 0 : result, goes_without ? "" : text);
}

/* These have no number, so nobody has another's forgotten by them. */
static void serve_pass(struct desk *desk, struct client *client, const struct desk_user *user)
{
    const struct desk_asker asker = {client->channel.fd, client->pid, client->uid, user->name};
    char text[PASS_TEXT_MAX + 1] = "";
    struct err err = ERR_INIT;
    const struct wire_pass_look *look = &client->request.u.pass_look;
    int result = client->request.type == WIRE_pass_ask
                     ? desk_pass(desk->keys, &asker, client->request.u.pass_ask.key, text, &err)
                 : client->request.type == WIRE_pass_look
                     ? desk_pass_to_look(desk->keys, &asker, look->job, look->key, text, &err)
                 : client->request.type == WIRE_pass_trust
                     ? desk_pass_trust(desk->keys, &desk->believes, client->request.u.pass_trust.pass, &err)
                     : desk_pass_check(desk->keys, &desk->believes, client->request.u.pass_check.pass, &err);
    answer(client, result, result == 0 ? text : err.text);
}

static void serve_warrant(const struct desk *desk, struct client *client, const struct desk_user *user)
{
    char text[WARRANT_TEXT_MAX + 1];
    struct err err = ERR_INIT;
    int result = desk->believes.required
                     ? desk_warrant(desk->keys, &client->request.u.warrant_ask, client->uid, user->name, text, &err)
                     : err_set(&err, -EINVAL,
                               "this host runs jobs that no user has signed, so who asks here is not certain: write "
                               "tickets = require in its rsd.conf, or do it on the queue host");
    answer(client, result, result == 0 ? text : err.text);
}

/* It waits where its user has had too many, or too many without a name were looked up. */
static void serve(struct desk *desk, struct client *client, int64_t now)
{
    struct desk_user *user = desk_user_of(&desk->users, client->uid, now);
    char text[TICKET_TEXT_MAX + 1];
    struct err err = ERR_INIT;
    int result;
    (void)ticket_keys_certified(desk->keys); /* as soon as it is, its tickets say so */
    if (!user) {
        client->asked = true;
        return;
    }
    if (!user->name[0]) {
        refuse(desk, client, user->unsure ? -EAGAIN : -EINVAL,
               user->unsure ? "the name of its user cannot be found out"
                            : "elmer-tickets of this host finds no name for its user (journalctl -xu rsd-tickets)");
    } else if (client->request.type == WIRE_warrant_ask) {
        serve_warrant(desk, client, user);
    } else if (client->request.type != WIRE_submit) {
        serve_pass(desk, client, user);
    } else if (!bucket_take_if(&user->bucket, now, TICKETS_PER_SECOND, TICKETS_AT_ONCE,
                               desk_cost(&client->request.u.submit))) {
        client->asked = true;
    } else {
        result = desk_sign(desk->keys, &desk->counter, &client->request.u.submit, client->uid, user->name, text, &err);
        refuse(desk, client, result, result == 0 ? text : err.text);
    }
}

static bool is_request(enum wire_type type)
{
    return type == WIRE_submit || type == WIRE_pass_ask || type == WIRE_pass_look || type == WIRE_pass_check ||
           type == WIRE_pass_trust || type == WIRE_warrant_ask;
}

/* As far as that has come. */
static bool announces_large(const struct client *client)
{
    const struct frame_reader *in = &client->channel.in;
    size_t had = in->size < WIRE_FRAME_HEADER ? in->size : WIRE_FRAME_HEADER, size = WIRE_FRAME_HEADER - had;
    uint8_t header[WIRE_FRAME_HEADER];
    if (had > 0)
        memcpy(header, in->data, had);
    if (size > 0 && recv(client->channel.fd, header + had, size, MSG_PEEK | MSG_DONTWAIT) != (ssize_t)size)
        return false;
    return wire_frame_length(header) > SMALL_BYTES - WIRE_FRAME_HEADER;
}

static int large_of(const struct desk *desk, int64_t uid)
{
    int count = 0;
    for (size_t i = 0; i < desk->top; i++)
        count += desk->clients[i].large && (uid < 0 || desk->clients[i].uid == uid);
    return count;
}

/* Of the users who have more than this one: what of theirs has not come whole, or waits for its turn because he has had
 * too many, for the longest time. */
static struct client *large_to_drop(struct desk *desk, int more_than)
{
    struct client *found = NULL;
    for (size_t i = 0; i < desk->top; i++) {
        struct client *client = &desk->clients[i];
        if (client->large && (client->idle || client->asked) && (!found || client->end_ms < found->end_ms) &&
            large_of(desk, client->uid) > more_than + 1)
            found = client;
    }
    return found;
}

/* Who has few is not kept out by those who have many and do not go on. */
static bool may_be_large(struct desk *desk, const struct client *client)
{
    int of_user = large_of(desk, client->uid);
    struct client *other;
    if (client->large || of_user >= LARGE_OF_A_USER)
        return client->large;
    if (large_of(desk, -1) >= LARGE && (other = large_to_drop(desk, of_user)))
        drop(other);
    return large_of(desk, -1) < LARGE;
}

/* Those that wait are asked again in each turn, and put out when their time is over. */
static bool may_be_read(struct desk *desk, struct client *client)
{
    bool large = client->large || announces_large(client);
    client->waits = large && !may_be_large(desk, client);
    client->large = large && !client->waits;
    return !client->waits;
}

/* A request at a time: who sends the next one before he has the answer is put out. */
static void hear(struct desk *desk, struct client *client, int64_t now)
{
    struct err err = ERR_INIT;
    const struct frame_reader *in = &client->channel.in;
    int filled, got;
    if (!may_be_read(desk, client))
        return;
    filled = channel_fill(&client->channel, &err);
    if (in->capacity > SMALL_BYTES && !may_be_large(desk, client)) { /* its header came in the meantime */
        client->channel.dead = true;
        return;
    }
    client->large = client->large || in->capacity > SMALL_BYTES;
    got = channel_next(&client->channel, &client->request, &err);
    client->idle = got <= 0;
    client->last = filled < 0;
    if (got > 0 && (!is_request(client->request.type) || in->begin < in->size))
        got = -EPROTO;
    if (got > 0) {
        frame_reader_fini(&client->channel.in); /* it may wait for its turn, and the message has all of it */
        serve(desk, client, now);
    }
    if (got < 0 || (client->last && !client->answered))
        client->channel.dead = true;
}

static size_t count_of(const struct desk *desk, uint32_t uid)
{
    size_t count = 0;
    for (size_t i = 0; i < desk->top; i++)
        count += desk->clients[i].here && desk->clients[i].uid == uid;
    return count;
}

/* Of this user, or of all with -1: who has waited for the longest time to say something. */
static struct client *idle_one(struct desk *desk, int64_t uid)
{
    struct client *found = NULL;
    for (size_t i = 0; i < desk->top; i++) {
        struct client *client = &desk->clients[i];
        if (client->here && client->idle && (uid < 0 || client->uid == uid) &&
            (!found || client->end_ms < found->end_ms))
            found = client;
    }
    return found;
}

/* What was asked is written: the next may come. */
static void rest(struct client *client, int64_t now)
{
    wire_message_fini(&client->request);
    client->answered = client->large = false;
    client->idle = true;
    client->end_ms = now + IDLE_MS;
    client->channel.dead = client->channel.dead || client->last;
}

/* Of those who wait because they have had too many: of the user who has the most, the oldest. He comes again. */
static struct client *asked_one(struct desk *desk)
{
    struct client *found = NULL;
    uint32_t uids[CLIENTS]; /* of all: close together */
    size_t most = 0, all = 0;
    for (size_t i = 0; i < desk->top; i++)
        if (desk->clients[i].here)
            uids[all++] = desk->clients[i].uid;
    for (size_t i = 0; i < desk->top; i++) {
        struct client *client = &desk->clients[i];
        size_t count = 0;
        for (size_t k = 0; k < all && client->asked; k++)
            count += uids[k] == client->uid;
        if (count > most || (found && count == most && client->end_ms < found->end_ms)) {
            found = client;
            most = count;
        }
    }
    return found;
}

static bool has_asked(const struct desk *desk)
{
    for (size_t i = 0; i < desk->top; i++)
        if (desk->clients[i].asked)
            return true;
    return false;
}

static bool make_room(struct desk *desk, int64_t uid)
{
    struct client *client = idle_one(desk, uid);
    if (!client && uid < 0)
        client = asked_one(desk);
    if (client)
        drop(client);
    return client;
}

static struct client *free_place(struct desk *desk)
{
    for (size_t i = 0; i < desk->top; i++)
        if (!desk->clients[i].here)
            return &desk->clients[i];
    return desk->top < CLIENTS ? &desk->clients[desk->top] : NULL;
}

/* Who has as many as he may makes no room but of his own. */
static struct client *place_for(struct desk *desk, uint32_t uid)
{
    if ((count_of(desk, uid) >= OF_A_USER && !make_room(desk, uid)) || (!free_place(desk) && !make_room(desk, -1)))
        return NULL;
    return free_place(desk);
}

static void let_in(struct desk *desk, int64_t now)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int fd = accept4(desk->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *client;
    if (fd < 0)
        return;
    client = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? place_for(desk, peer.uid) : NULL;
    if (!client || channel_init(&client->channel, fd, WIRE_FROM_CLIENT, OUT_MAX) < 0) {
        close(fd);
        return;
    }
    client->channel.minor = WIRE_TICKET_MINOR;
    client->here = client->idle = true; /* who is put out before he has asked comes again */
    client->uid = peer.uid;
    client->pid = peer.pid;
    client->end_ms = now + ANSWER_MS;
}

static void note_top(struct desk *desk)
{
    if (desk->top < CLIENTS && desk->clients[desk->top].here) /* free_place() was there */
        desk->top++;
    while (desk->top > 0 && !desk->clients[desk->top - 1].here)
        desk->top--;
}

static void turn(struct desk *desk)
{
    struct pollfd fds[CLIENTS + 1];
    bool room = free_place(desk) || idle_one(desk, -1) || has_asked(desk);
    const size_t top = desk->top;
    int64_t now;
    int timeout = -1;
    fds[top] = (struct pollfd){.fd = room ? desk->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < top; i++) {
        const struct client *client = &desk->clients[i];
        bool writes = client->here && channel_wants_write(&client->channel);
        const bool pauses = client->asked || client->waits;
        fds[i] = (struct pollfd){.fd = client->here && !pauses ? client->channel.fd : -1,
                                 .events = client->answered ? writes ? POLLOUT : 0 : POLLIN};
        if (client->here && (pauses || timeout < 0))
            timeout = pauses ? 100 : 1000;
    }
    if (poll(fds, top + 1, timeout) < 0)
        return;
    now = mono_ms(mono_now());
    for (size_t i = 0; i < top; i++) {
        struct client *client = &desk->clients[i];
        if (!client->here)
            continue;
        if (fds[i].revents & POLLOUT)
            channel_flush(&client->channel);
        if (client->answered && (fds[i].revents & (POLLHUP | POLLERR)))
            client->channel.dead = true;
        else if (!client->answered && (fds[i].revents || client->waits))
            hear(desk, client, now);
        else if (client->asked)
            serve(desk, client, now);
        if (client->answered && !channel_wants_write(&client->channel))
            rest(client, now);
        if (client->channel.dead || now >= client->end_ms)
            drop(client);
    }
    if (fds[top].revents)
        let_in(desk, now);
    note_top(desk);
}

/* ---- the process ---- */

static _Noreturn void work(const struct ticket_keys *keys, const struct desk_believes *believes, int listener,
                           pid_t parent)
{
    struct ticket_keys own = *keys;
    struct desk *desk = calloc(1, sizeof(*desk));
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent || !desk)
        _exit(1);
    prctl(PR_SET_NAME, "elmer-desk", 0, 0, 0);
    signal(SIGCHLD, SIG_DFL);
    (void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    listener = fcntl(listener, F_DUPFD_CLOEXEC, 10);
    own.dir = fcntl(own.dir, F_DUPFD_CLOEXEC, 10);
    (void)dup3(listener, 3, O_CLOEXEC);
    (void)dup3(own.dir, 4, O_CLOEXEC);
    own.dir = 4;
    (void)syscall(SYS_close_range, 5U, ~0U, 0U);
    *desk = (struct desk){.keys = &own, .believes = *believes, .listener = 3};
    for (;;)
        turn(desk);
}

pid_t desk_start(const struct ticket_keys *keys, const struct desk_believes *believes, int listener)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        work(keys, believes, listener, parent);
    return pid < 0 ? (pid_t)-errno : pid;
}
