/* session.c - one erun, from its connection to the last word about what it has started.
 *
 * Handshake: its pass must be of this very job, attempt and user, and of a host of the job, and elmer-tickets of this
 * host looks at it. rsd may be starting again, so that is asked until it answers, or for HANDSHAKE_MS. Then one
 * RUN_START: its processes are made, and each is told. Output is read while the window of its stream is open, a piece
 * from each process in turn, so one that prints without end neither blocks the others nor grows this process; what erun
 * has written elsewhere opens the window again. Input is taken as far as the process reads it. A process is over when
 * it has been reaped and nobody has its output open any more; then erun gets its status. What ranks of MPI ask goes to
 * erun, and its answers back (talk.h). When the connection ends,
 * whatever the reason, what is not over gets TERM (HUP where it has a terminal), and KILL after KILL_MS, with all that
 * it has started in turn (family.h). What a process that is over has left behind on purpose stays.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/courier/courier.h"
#include "rsd/courier/family.h"

enum { SIGNALS = 64, ASK_AGAIN_MS = 100, FIXED_FDS = 3, FDS_OF_CHILD = 3 };

struct session *session_create(int fd, const struct courier *courier, int64_t now)
{
    struct session *session = calloc(1, sizeof(*session));
    if (!session)
        return NULL;
    session->input = -1;
    session->out_window = session->error_window = RUN_WINDOW;
    session->deadline_ms = now + HANDSHAKE_MS;
    session->stepped_ms = now;
    run_link_init(&session->link, fd, false, &courier->key, courier->text);
    run_link_patient(&session->link); /* its erun may be stopped, or behind a job above */
    return session;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void session_destroy(struct session *session)
{
    for (size_t i = 0; i < session->nchildren; i++)
        child_close(&session->children[i]);
    close_fd(&session->input);
    run_desk_close(&session->desk);
    run_link_fini(&session->link);
    family_fini(&session->family);
    free(session->children);
    typed_fini(&session->typed);
    free(session);
}

/* ---- the other end ---- */

/* Who has shown a pass is told why, sealed with its key, whoever it is. */
static void refuse(struct session *session, struct courier *courier, const char *why)
{
    if (used_by_stranger(&courier->used, session->link.peer.public_key))
        run_link_accept(&session->link);
    if (session->link.state == RUN_OPEN)
        run_link_send(&session->link, RUN_REFUSED, 0, why, strlen(why));
    run_link_kill(&session->link, "%s", why);
}

bool courier_has_host(const struct courier *courier, const char *host)
{
    size_t length = strlen(host);
    if (!courier->hosts)
        return strcmp(host, courier->pass.host) == 0;
    for (const char *at = courier->hosts; at; at = strchr(at, courier->between)) {
        at += *at == courier->between;
        if (strncmp(at, host, length) == 0 && (!at[length] || at[length] == courier->between))
            return true;
    }
    return false;
}

/* What elmer-tickets has said; or nobody: rsd may be starting again. */
static void judged(struct session *session, struct courier *courier, int result, const struct err *err, int64_t now)
{
    if (result > 0 && used_once(&courier->used, session->link.peer.public_key))
        run_link_accept(&session->link);
    else if (result > 0)
        run_link_kill(&session->link, "its key was used before");
    else if (result == -EACCES || result == -EPROTO || (result < 0 && now + ASK_AGAIN_MS >= session->deadline_ms))
        refuse(session, courier, err->text);
    else if (result < 0)
        session->ask_ms = now + ASK_AGAIN_MS;
}

/* The host is looked at because any host of the cluster can sign a pass for this job. At first with time of its own:
 * who has had no CPU until now may have none left. */
static void ask(struct session *session, struct courier *courier, int64_t now)
{
    struct err err = ERR_INIT;
    char text[128];
    if (!pass_is_of_job(&session->link.peer, &courier->pass)) {
        refuse(session, courier, "it is of another job");
        return;
    }
    if (!courier_has_host(courier, session->link.peer.host)) {
        snprintf(text, sizeof(text), "%s is no host of its job", session->link.peer.host);
        refuse(session, courier, text);
        return;
    }
    if (session->ask_ms == 0)
        session->deadline_ms = now + HANDSHAKE_MS;
    judged(session, courier, run_desk_ask_check(&session->desk, session->link.other, &err), &err, now);
}

static void hear_desk(struct session *session, struct courier *courier, int64_t now)
{
    struct err err = ERR_INIT;
    judged(session, courier, run_desk_read(&session->desk, NULL, &err), &err, now);
}

/* ---- start ---- */

static void tell_failed(struct session *session, struct child *child, int error, const char *text)
{
    child->reaped = child->told = true;
    child->status = error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTED;
    run_link_send(&session->link, RUN_FAILED, child->rank, text, strlen(text));
    run_link_send_numbers(&session->link, RUN_EXIT, child->rank, (uint32_t)child->status, 0);
}

static void start_children(struct session *session, const struct courier *courier, const struct run_start *start)
{
    const int64_t until_ms = mono_now_ms() + START_MS;
    for (size_t i = 0; i < start->nranks; i++) {
        struct birth birth = {courier, start, &start->ranks[i], start->input && i == 0, until_ms};
        struct child *child = &session->children[session->nchildren++];
        char text[400];
        int input, error = child_start(&birth, child, &input, text, sizeof(text));
        if (error)
            tell_failed(session, child, error, text);
        else
            run_link_send_number(&session->link, RUN_STARTED, child->rank, (uint32_t)child->pid);
        if (input >= 0)
            session->input = input;
    }
}

/* Nothing is started, and erun is told why before the connection ends. */
static void refuse_start(struct session *session, const char *why)
{
    run_link_send(&session->link, RUN_FAILED, 0, why, strlen(why));
    run_link_kill(&session->link, "%s", why);
}

static void hear_start(struct session *session, const struct courier *courier, const struct run_frame *frame)
{
    struct run_start start;
    void *memory;
    if (session->started || !run_start_unpack(frame->data, frame->size, &start, &memory) ||
        (start.pty && start.nranks > 1)) {
        refuse_start(session, "what is to be started cannot be read; is erun there of another version?");
        return;
    }
    session->started = true;
    session->mpi = start.mpi;
    run_link_send_number(&session->link, RUN_TAKEN, RUN_IN,
                         0); /* a word before the first fork: it is not asked again */
    session->children = calloc(start.nranks, sizeof(*session->children));
    if (session->children && typed_init(&session->typed))
        start_children(session, courier, &start);
    else
        refuse_start(session, "out of memory");
    free(memory);
}

/* ---- input ---- */

static bool has_terminal(const struct session *session)
{
    return session->nchildren == 1 && session->children[0].terminal;
}

/* How much the pipe has taken; all, if nobody reads it any more. */
static size_t write_pipe(struct session *session)
{
    size_t size;
    const uint8_t *bytes = typed_at(&session->typed, &size);
    ssize_t written = size > 0 ? write(session->input, bytes, size) : 0;
    if (written >= 0)
        return typed_take(&session->typed, (size_t)written);
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    close_fd(&session->input);
    return typed_take(&session->typed, size);
}

static bool input_waits(const struct session *session)
{
    size_t size;
    (void)typed_at(&session->typed, &size);
    return size > 0 || (has_terminal(session) && typed_waits(&session->typed));
}

/* What nobody reads any more counts as read: erun need not wait to write it. A terminal's end of input is a character
 * that is typed behind the rest. */
static void write_input(struct session *session)
{
    size_t size, taken;
    (void)typed_at(&session->typed, &size);
    if (session->input < 0)
        taken = typed_take(&session->typed, size);
    else if (has_terminal(session))
        taken = typed_write(&session->typed, session->input);
    else
        taken = write_pipe(session);
    if (taken > 0)
        run_link_send_number(&session->link, RUN_TAKEN, RUN_IN, (uint32_t)taken);
    if (session->typed.ended && !has_terminal(session) && !input_waits(session))
        close_fd(&session->input);
}

static void hear_input(struct session *session, const struct run_frame *frame)
{
    if (session->typed.bytes && typed_put(&session->typed, frame->data, frame->size))
        write_input(session);
    else
        run_link_kill(&session->link, "it sends more than there is room for");
}

static void hear_input_end(struct session *session)
{
    typed_end(&session->typed);
    write_input(session);
}

/* ---- the rest of what it says ---- */

static void hear_taken(struct session *session, const struct run_frame *frame)
{
    size_t *window = frame->rank == RUN_OUT ? &session->out_window : &session->error_window;
    size_t size = frame->size == 4 ? run_number(frame->data) : RUN_WINDOW + 1;
    if ((frame->rank != RUN_OUT && frame->rank != RUN_ERR) || size > RUN_WINDOW - *window)
        run_link_kill(&session->link, "it has taken more than there was");
    else
        *window += size;
}

/* It is waited for, but only others are there. */
static bool left_others(const struct child *child)
{
    return child->reaped && !child->told;
}

static void hear_signal(struct session *session, const struct run_frame *frame)
{
    uint32_t number = frame->size == 4 ? run_number(frame->data) : 0;
    struct family others = {NULL, 0};
    bool left = false;
    if (number == 0 || number > SIGNALS)
        return;
    for (size_t i = 0; i < session->nchildren; i++) {
        child_signal(&session->children[i], (int)number);
        left = left || left_others(&session->children[i]);
    }
    if (!left)
        return;
    family_scan(&others, session->children, session->nchildren, left_others);
    family_signal(&others, session->children, session->nchildren, (int)number);
    family_fini(&others);
}

static void hear_size(struct session *session, const struct run_frame *frame)
{
    struct winsize size = {0};
    if (frame->size != 8 || session->nchildren != 1 || session->children[0].out < 0)
        return;
    size.ws_row = (unsigned short)run_number(frame->data);
    size.ws_col = (unsigned short)run_number(frame->data + 4);
    (void)ioctl(session->children[0].out, TIOCSWINSZ, &size);
}

static void hear_pmi(struct session *session, const struct run_frame *frame)
{
    for (size_t i = 0; i < session->nchildren; i++)
        if (session->children[i].rank == frame->rank) {
            struct talk *talk = &session->children[i].talk;
            if (talk->fd >= 0 && !talk_hear(talk, frame->data, frame->size))
                run_link_kill(&session->link, "its answer to a rank is too long, or none was asked for");
            return;
        }
}

static void hear(struct session *session, const struct courier *courier, const struct run_frame *frame)
{
    switch ((int)frame->type) {
    case RUN_START:
        hear_start(session, courier, frame);
        break;
    case RUN_IN:
        hear_input(session, frame);
        break;
    case RUN_IN_END:
        hear_input_end(session);
        break;
    case RUN_TAKEN:
        hear_taken(session, frame);
        break;
    case RUN_SIGNAL:
        hear_signal(session, frame);
        break;
    case RUN_SIZE:
        hear_size(session, frame);
        break;
    case RUN_PMI:
        hear_pmi(session, frame);
        break;
    default:
        run_link_kill(&session->link, "it says what a courier does not know");
        break;
    }
}

/* ---- output ---- */

static void send_end(struct session *session, struct child *child, enum run_type type)
{
    talk_step(&child->talk, &session->link, child->rank, POLLIN); /* that it aborts, before that it has ended */
    run_link_send_numbers(&session->link, type, child->rank,
                          WIFEXITED(child->status) ? (uint32_t)WEXITSTATUS(child->status) : 0,
                          WIFSIGNALED(child->status) ? (uint32_t)WTERMSIG(child->status) : 0);
}

static void tell_end(struct session *session, struct child *child)
{
    if (child->told || !child->reaped || child->out >= 0 || child->error >= 0)
        return;
    child->told = true;
    send_end(session, child, RUN_EXIT);
}

static bool has_nothing(int fd)
{
    int bytes = 0;
    return fd < 0 || (ioctl(fd, FIONREAD, &bytes) == 0 && bytes == 0);
}

/* Ranks wait for one that is dead, whoever else has its output: when all that was written until now has gone. */
static void tell_death(struct session *session, struct child *child)
{
    if (!session->mpi || !child->reaped || child->status == 0 || child->told || child->told_dead ||
        !has_nothing(child->out) || !has_nothing(child->error))
        return;
    child->told_dead = true;
    send_end(session, child, RUN_DIED);
}

/* A piece of it. */
static void read_output(struct session *session, struct child *child, int *fd, enum run_type type, size_t *window)
{
    static uint8_t piece[RUN_PIECE];
    ssize_t got = read(*fd, piece, *window < sizeof(piece) ? *window : sizeof(piece));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        close_fd(fd);
        tell_end(session, child);
        return;
    }
    *window -= (size_t)got;
    run_link_send(&session->link, type, child->rank, piece, (size_t)got);
    tell_death(session, child);
}

static void read_child(struct session *session, struct child *child, const struct pollfd *fds)
{
    if (fds[0].revents && child->out >= 0 && session->out_window > 0)
        read_output(session, child, &child->out, RUN_OUT, &session->out_window);
    if (fds[1].revents && child->error >= 0 && session->error_window > 0)
        read_output(session, child, &child->error, RUN_ERR, &session->error_window);
    if (fds[2].fd >= 0)
        talk_step(&child->talk, &session->link, child->rank, fds[2].revents);
}

/* ---- its turn ---- */

size_t session_fds_max(const struct session *session)
{
    return FIXED_FDS + FDS_OF_CHILD * session->nchildren;
}

size_t session_fds(const struct session *session, struct pollfd *fds)
{
    bool open = session->link.state == RUN_OPEN && !session->link.ended;
    size_t count = FIXED_FDS;
    fds[0] = (struct pollfd){.fd = run_link_events(&session->link) ? session->link.fd : -1,
                             .events = run_link_events(&session->link)};
    fds[1] = (struct pollfd){.fd = session->desk.open ? session->desk.channel.fd : -1, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = input_waits(session) ? session->input : -1, .events = POLLOUT};
    for (size_t i = 0; i < session->nchildren; i++) {
        const struct child *child = &session->children[i];
        fds[count++] = (struct pollfd){.fd = open && session->out_window > 0 ? child->out : -1, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = open && session->error_window > 0 ? child->error : -1, .events = POLLIN};
        fds[count] = talk_poll(&child->talk);
        fds[count].fd = open ? fds[count].fd : -1;
        count++;
    }
    return count;
}

static void check_time(struct session *session, struct courier *courier, int64_t now)
{
    if (session->ending)
        session_end_rest(session, now);
    else if (session->link.state != RUN_OPEN && now >= session->deadline_ms)
        refuse(session, courier,
               session->link.state == RUN_CHECKING ? "elmer-tickets here has not looked at its pass in time"
                                                   : "it has not said who it is in time");
}

void session_step(struct session *session, struct courier *courier, const struct pollfd *fds, int64_t now)
{
    struct run_frame frame;
    size_t first = session->nchildren > 0 ? session->next_child++ % session->nchildren : 0, count = session->nchildren;
    session->stepped_ms = now;
    run_link_watch(&session->link);
    if (fds[0].fd >= 0)
        run_link_step(&session->link, fds[0].revents);
    if (session->desk.open && fds[1].fd >= 0 && fds[1].revents)
        hear_desk(session, courier, now);
    else if (session->link.state == RUN_CHECKING && !session->desk.open && now >= session->ask_ms)
        ask(session, courier, now);
    while (run_link_next(&session->link, &frame) > 0)
        hear(session, courier, &frame);
    if (fds[2].fd >= 0 && fds[2].revents & POLLHUP) /* nobody has the terminal open any more */
        close_fd(&session->input);
    if (fds[2].fd >= 0 && fds[2].revents)
        write_input(session);
    for (size_t i = 0; i < count && session->link.state == RUN_OPEN; i++) {
        size_t at = (first + i) % count;
        read_child(session, &session->children[at], &fds[FIXED_FDS + FDS_OF_CHILD * at]);
    }
    check_time(session, courier, now);
    if (session->link.state == RUN_DEAD && !session->ending) {
        close_fd(&session->input);
        session_end(session, now);
    }
}

bool session_reaped(struct session *session, pid_t pid, int status)
{
    session->scan = session->ending;
    for (size_t i = 0; i < session->nchildren; i++) {
        struct child *child = &session->children[i];
        if (child->pid != pid || child->reaped)
            continue;
        child->reaped = true;
        child->status = status;
        tell_end(session, child);
        tell_death(session, child);
        return true;
    }
    return false;
}

bool session_over(const struct session *session)
{
    return session->ending && session_all_reaped(session) && !session->scan && session->family.count == 0;
}

int64_t session_next_ms(const struct session *session)
{
    bool over = !session->ending && run_link_over(&session->link); /* noticed in sending */
    bool scan = session->scan && session_all_reaped(session);
    bool waits = session->ending || session->link.state != RUN_OPEN;
    int64_t watch_ms = run_link_underway(&session->link) ? session->stepped_ms + RUN_WATCH_MS : INT64_MAX;
    int64_t next_ms = waits ? session->deadline_ms : INT64_MAX;
    if (session->link.state == RUN_CHECKING && !session->desk.open)
        next_ms = earlier(next_ms, session->ask_ms);
    return over || scan ? 0 : watch_ms < next_ms ? watch_ms : next_ms;
}
