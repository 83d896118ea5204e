/* judge.c - see judge.h. At open: whose the ticket is, and that nobody has changed it. At start: that the process is
 * what it was signed for, and that the ticket was not used here; from then on it is. */
#include "config.h"

#include "rsd/tickets/judge.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/service.h"

static struct record_user user_of(const struct ticket_ask *ask, const struct ticket *ticket)
{
    struct record_user user = {.counter = ticket_counter_of(ticket), /* of a long array tasks share one */
                               .task = ticket->task,
                               .job = ask->job,
                               .attempt = ask->attempt};
    memcpy(user.key, ticket->key, sizeof(user.key));
    return user;
}

/* It was used by this very start. Such a job is not opened again with it, and rsd says of one that runs (begun). */
static bool is_unsure(const struct judge *judge, const struct ticket_ask *ask, const struct ticket *ticket)
{
    const struct record_user user = user_of(ask, ticket);
    return memcmp(&user, &judge->unsure, sizeof(user)) == 0;
}

/* The recorder has room for the marks of one ticket (PIPE_BUF), or is gone, which writing tells. Asked before anything
 * is marked: what is remembered here is not ahead of the disk, and who is refused may come again. */
static bool can_be_recorded(struct judge *judge)
{
    struct pollfd out = {.fd = judge->record_fd, .events = POLLOUT};
    const bool room = poll(&out, 1, mono_now_ms() < judge->full_until_ms ? 0 : RECORDER_MS) > 0;
    if (!room)
        judge->full_until_ms = mono_now_ms() + FULL_MS;
    return room;
}

/* All that belongs together at once, so that a kill of this process leaves all of it or nothing. */
static bool mark(struct judge *judge, const struct ticket_ask *ask, const struct ticket *ticket)
{
    struct ticket_marks marks;
    struct record records[TICKET_MARKS];
    const struct record_user user = user_of(ask, ticket);
    if (!can_be_recorded(judge) || !ticket_window_mark(judge->window, ticket, ask->attempt, &marks))
        return false;
    memset(records, 0, sizeof(records));
    for (uint32_t i = 0; i < marks.count; i++) {
        records[i].last = user;
        memcpy(records[i].key, ticket->key, sizeof(records[i].key));
        records[i].slot = marks.slots[i];
        memcpy(records[i].block, marks.blocks[i], sizeof(records[i].block));
    }
    const size_t size = marks.count * sizeof(*records);
    if (write(judge->record_fd, records, size) != (ssize_t)size) {
        judge->recorder_gone |= errno == EPIPE;
        return false;
    }
    judge->last = user;
    return true;
}

/* By its key: a host that was installed anew has its earlier one's name, and whoever has the earlier disk that key. */
static bool is_own(const struct judge *judge, const struct ticket *ticket)
{
    return memcmp(ticket->key, judge->trust.own, sizeof(ticket->key)) == 0;
}

static enum ticket_refusal judge_open(struct judge *judge, const struct ticket_ask *ask, const struct ticket *ticket)
{
    enum ticket_refusal why = ticket_check_chain(ticket, &judge->trust);
    if (why == TICKET_OTHER_CLUSTER && !judge->trust.has_authority && judge->keys &&
        ticket_keys_certified(judge->keys)) {
        ticket_keys_trust(judge->keys, &judge->trust);
        why = ticket_check_chain(ticket, &judge->trust);
    }
    if (why == TICKET_GOOD && !is_own(judge, ticket) &&
        !(ticket_is_among(judge->hosts, ticket->host) && ticket_is_among(judge->users, ticket->user)))
        why = TICKET_NOT_VOUCHED;
    if (why == TICKET_GOOD)
        why = ticket_check_open(ticket, ask->uid, ask->user, ask->helpers, ask->processors, ask->memory_bytes);
    return why == TICKET_GOOD ? ticket_window_check(judge->window, ticket, ask->attempt) : why;
}

static enum ticket_refusal judge_start(struct judge *judge, const struct ticket_ask *ask, const struct ticket *ticket)
{
    struct ticket_start start = {.job = ask->job,
                                 .role = (enum ticket_role)ask->role,
                                 .process = ask->process,
                                 .argv = {ask->argv, ask->argc},
                                 .environment = {ask->environment, ask->envc},
                                 .dir = ask->dir,
                                 .output = ask->output,
                                 .errors = ask->errors,
                                 .umask = ask->umask,
                                 .truncate = ask->truncate,
                                 .capture = ask->capture,
                                 .tmpdir = ask->tmpdir};
    enum ticket_refusal why = ticket_check_start(ticket, &start);
    if (why != TICKET_GOOD || ask->begun)
        return why;
    why = ticket_window_check(judge->window, ticket, ask->attempt);
    if (why == TICKET_USED && is_unsure(judge, ask, ticket)) {
        judge->unsure = (struct record_user){.job = 0}; /* once */
        return TICKET_GOOD;
    }
    return why == TICKET_GOOD && !mark(judge, ask, ticket) ? TICKET_NOT_RECORDED : why;
}

/* The newest connection counts: who has begun anew has made it. */
static void find_grantee(struct judge *judge, int wait_ms)
{
    int fd;
    while (judge->next_grantee && (fd = judge->next_grantee(wait_ms)) >= 0) {
        if (judge->grant_fd >= 0)
            close(judge->grant_fd);
        judge->grant_fd = fd;
        wait_ms = 0;
    }
}

static bool send_grant(const struct judge *judge, const struct ticket_grant *grant)
{
    return judge->grant_fd >= 0 &&
           send(judge->grant_fd, grant, sizeof(*grant), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*grant);
}

static bool grant(struct judge *judge, const struct ticket_ask *ask)
{
    const struct ticket_grant grant = {.job = ask->job, .attempt = ask->attempt, .uid = ask->uid};
    if (!judge->next_grantee && judge->grant_fd < 0)
        return true;
    find_grantee(judge, judge->grant_fd < 0 ? GRANTEE_MS : 0);
    if (send_grant(judge, &grant))
        return true;
    find_grantee(judge, GRANTEE_MS);
    return judge->next_grantee && send_grant(judge, &grant);
}

void judge(struct judge *judge, struct ticket_ask *ask, const char *bytes, struct ticket_verdict *verdict)
{
    static const char *list[TICKET_ASK_LIST_MAX];
    static struct ticket ticket;
    enum ticket_refusal why = ticket_asked(ask, bytes, list) ? ticket_decode(ask->ticket, &ticket) : TICKET_GARBLED;
    if (why == TICKET_GOOD)
        why = ask->verb == TICKET_ASK_OPEN ? judge_open(judge, ask, &ticket) : judge_start(judge, ask, &ticket);
    if (why == TICKET_GOOD && ask->verb == TICKET_ASK_OPEN && !grant(judge, ask))
        why = TICKET_NOT_RECORDED;
    *verdict = (struct ticket_verdict){.why = why, .ours = why == TICKET_GOOD && is_own(judge, &ticket)};
    snprintf(verdict->name, sizeof(verdict->name), "%s", ticket_refusal_name(why));
    snprintf(verdict->text, sizeof(verdict->text), "%s", ticket_refusal_text(why));
}

static bool receive(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, (char *)to + done, size - done, 0);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Something is there, or the other side is gone. */
static void await(int fd, const sigset_t *usual)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    int ready = 0;
    while (ready == 0 || (ready < 0 && errno == EINTR)) {
        const int ms = service_alive();
        const struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
        ready = ppoll(&in, 1, ms < 0 ? NULL : &left, usual);
    }
}

void judge_all(struct judge *judge_, int fd)
{
    struct ticket_ask ask;
    struct ticket_verdict verdict;
    char *texts = NULL;
    size_t room = 0;
    sigset_t usual, later;
    judge_->unsure = judge_->last;
    sigemptyset(&later);
    sigaddset(&later, SIGTERM);
    sigaddset(&later, SIGCHLD);
    sigprocmask(SIG_BLOCK, &later, &usual);
    for (;;) {
        await(fd, &usual);
        if (!receive(fd, &ask, sizeof(ask)) || ask.size > TICKET_ASK_BYTES_MAX)
            break;
        char *more = ask.size > room ? realloc(texts, ask.size) : texts;
        if (!more && ask.size > 0)
            break;
        room = ask.size > room ? ask.size : room;
        texts = more;
        if (!receive(fd, texts, ask.size))
            break;
        judge(judge_, &ask, texts, &verdict);
        if (judge_->recorder_gone || send(fd, &verdict, sizeof(verdict), MSG_NOSIGNAL) != (ssize_t)sizeof(verdict))
            break;
    }
    free(texts);
    sigprocmask(SIG_SETMASK, &usual, NULL);
}
