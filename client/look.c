/* look.c - look at the terminal of a job: what it shows comes here, what is typed here goes there.
 *
 * FINDING -> DIALLING -> ASKED -> SHOWN (look_link.c has the way there) -> its command has ended: the job's status is
 * ours. A connection that is lost leads from SHOWN to FINDING, and the session goes on where it was: both sides count
 * output and input, so what was underway is said again and nothing twice. Meanwhile what is typed is kept, up to a
 * window. ~. leaves whenever input is read, which is until 128 KiB wait for the other side. Who is ended by a signal
 * leaves, too: a terminal that is not kept ends with him.
 *
 * One thread, one poll(2). What asks elmer or elmer-tickets waits for them, for seconds at most. */
#include "config.h"

#include "client/look.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/common.h"
#include "client/look_internal.h"
#include "client/screen.h"
#include "client/wait.h"
#include "lib/base/clock.h"
#include "libelmer/client.h"

enum { FD_SIGNALS, FD_OUT, FD_IN, FD_LINK, FDS };
enum { FLUSH_MS = 1000, TYPED = 4096 };

/* ---- input ---- */

static void send_input(struct look *look)
{
    size_t had = (size_t)(look->sent - look->in_base);

    if (look->state != LOOK_SHOWN)
        return;
    while (had < look->in_size) {
        size_t size = look->in_size - had < RUN_PIECE ? look->in_size - had : RUN_PIECE;
        run_link_send(&look->link, RUN_IN, 0, look->in + had, size);
        had += size;
    }
    look->sent = look->in_base + had;
    if (look->in_end && !look->in_end_sent)
        run_link_send(&look->link, RUN_IN_END, 0, NULL, 0);
    look->in_end_sent = look->in_end_sent || look->in_end;
}

static void drop_input(struct look *look, size_t size)
{
    assert(size <= look->in_size); /* what the other side has said was judged before */
    look->in_size -= size;
    look->in_base += size;
    memmove(look->in, look->in + size, look->in_size);
}

static void leave(struct look *look)
{
    if (look->state == LOOK_SHOWN)
        run_link_send(&look->link, RUN_LEAVE, 0, NULL, 0);
    for (int64_t until = mono_now_ms() + FLUSH_MS;
         look->linked && look->link.state == RUN_OPEN && run_link_waiting(&look->link) > 0 && mono_now_ms() < until;) {
        struct pollfd fd = {.fd = look->link.fd, .events = POLLOUT};

        if (poll(&fd, 1, FLUSH_MS) > 0)
            run_link_step(&look->link, POLLOUT);
    }
    look_close(look);
    screen_back();
}

/* It stays. */
static void tell_where(const struct look *look)
{
    unsigned long long id = look->job;

    if (look->session != 0)
        say("job %llu goes on: eattach %llu shows its terminal again", id, id);
    else
        say("job %llu stays: eattach %llu shows its terminal, ekill %llu ends it", id, id, id);
}

static void leave_by_hand(struct look *look)
{
    leave(look);
    look->out_size = 0; /* nor is the rest shown */
    look_end(look, EXIT_DONE);
    screen_signals_end();
    if (look->options.keep)
        tell_where(look);
    else
        look->wait_status = true; /* it ends now */
}

static void take_typed(struct look *look, const uint8_t *typed, size_t count)
{
    for (size_t i = 0; i < count && look->state != LOOK_ENDED; i++) {
        uint8_t bytes[2];
        size_t size = 0;
        enum escape_do what = ESCAPE_NOTHING;

        if (screen_is_raw())
            what = escape_take(&look->escape, typed[i], bytes, &size);
        else
            bytes[size++] = typed[i];
        assert(size <= RUN_WINDOW - look->in_size); /* no more is read: room() */
        memcpy(look->in + look->in_size, bytes, size);
        look->in_size += size;
        if (what == ESCAPE_HELP)
            screen_note("behind the begin of a line: ~. leaves, ~~ is ~");
        if (what == ESCAPE_LEAVE) {
            send_input(look);
            leave_by_hand(look);
        }
    }
    send_input(look);
}

static size_t room(const struct look *look)
{
    size_t left = (RUN_WINDOW - look->in_size) / 2; /* a byte may become two */

    return left < TYPED ? left : TYPED;
}

static void read_input(struct look *look)
{
    uint8_t typed[TYPED];
    ssize_t got = read(STDIN_FILENO, typed, room(look));

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got > 0) {
        take_typed(look, typed, (size_t)got);
        return;
    }
    look->in_end = true;
    if (screen_is_raw()) /* our own terminal is gone */
        leave_by_hand(look);
    else
        send_input(look);
}

/* ---- what is said ---- */

static void hear_looking(struct look *look, const struct run_frame *frame)
{
    struct run_looking looking;

    if (look->state != LOOK_ASKED || !run_looking_unpack(frame->data, frame->size, &looking) ||
        looking.went < look->in_base || looking.came > look->in_base + look->in_size) {
        run_link_kill(&look->link, "it says something that cannot be");
        return;
    }
    look->state = LOOK_SHOWN;
    run_link_patient(&look->link);
    look->session = looking.session;
    look->received = look->written = look->acknowledged = looking.from;
    look->out_begin = look->out_size = 0;
    drop_input(look, (size_t)(looking.went - look->in_base));
    look->sent = looking.came;
    look->in_end_sent = false;
    screen_raw();
    if (look->lost_ms != 0)
        screen_note("the connection to %s is back", look->host);
    if (looking.lost > 0)
        screen_note("%llu bytes that nobody has seen are lost; the last %d KiB are kept",
                    (unsigned long long)looking.lost, 1024);
    look->lost_ms = 0;
    send_input(look);
}

static void hear_taken(struct look *look, const struct run_frame *frame)
{
    size_t size = frame->size == 4 ? run_number(frame->data) : RUN_WINDOW + 1;

    if (frame->rank != RUN_IN || size > look->sent - look->in_base)
        run_link_kill(&look->link, "it has taken more than there was");
    else
        drop_input(look, size);
}

static void hear_refused(struct look *look, const struct run_frame *frame)
{
    char text[300];

    snprintf(text, sizeof(text), "%.*s", (int)(frame->size < 250 ? frame->size : 250), (const char *)frame->data);
    look_close(look);
    screen_back();
    say("%s", text);
    look_take_back(look);
    if (look->options.own && look->options.keep && look->session == 0)
        tell_where(look);
    look_end(look, look->session != 0 ? EXIT_REFUSED : EXIT_PERMISSION);
}

static void hear(struct look *look, const struct run_frame *frame)
{
    switch ((int)frame->type) {
    case RUN_LOOKING:
        hear_looking(look, frame);
        break;
    case RUN_OUT:
        look_out_hear(look, frame);
        break;
    case RUN_TAKEN:
        hear_taken(look, frame);
        break;
    case RUN_EXIT:
        look->exited = true;
        break;
    case RUN_REFUSED:
        hear_refused(look, frame);
        break;
    default:
        break; /* what a later one may have to say */
    }
}

static void step_link(struct look *look, short revents)
{
    struct run_frame frame;

    if (look->state == LOOK_DIALLING) {
        look_dial_step(look, revents);
        return;
    }
    run_link_step(&look->link, revents);
    while (look->linked && run_link_next(&look->link, &frame) > 0)
        hear(look, &frame);
    if (look->linked && look->link.state == RUN_DEAD)
        look_lose(look, look->link.text);
}

/* ---- signals ---- */

static void hear_signal(struct look *look, int number)
{
    uint32_t rows, columns;

    switch (number) {
    case SIGCONT:
        screen_again();
        break;
    case SIGTSTP:
        screen_stop();
        break;
    case SIGWINCH:
        break;
    default:
        leave(look);
        look_take_back(look);
        look_end(look, 128 + number);
        screen_signals_end();
        if (look->options.keep && look->session == 0)
            tell_where(look);
        return;
    }
    screen_size(&rows, &columns); /* it may have changed while we were stopped */
    if (look->state == LOOK_SHOWN && rows > 0)
        run_link_send_numbers(&look->link, RUN_SIZE, 0, rows, columns);
}

static void hear_signals(struct look *look, int fd)
{
    struct signalfd_siginfo info;

    while (look->state != LOOK_ENDED && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        hear_signal(look, (int)info.ssi_signo);
}

/* ---- the loop ---- */

static int timeout_of(const struct look *look)
{
    int64_t left = look->next_ms - mono_now_ms();

    if (look->linked && run_link_over(&look->link)) /* noticed in sending: poll(2) says nothing of it */
        return 0;
    if (look->state == LOOK_SHOWN)
        return run_link_underway(&look->link) ? RUN_WATCH_MS : -1;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

static void turn(struct look *look, int signal_fd)
{
    bool reads = look->session != 0 && !look->in_end && room(look) > 0;
    bool writes = look->out_size > 0 && look->state != LOOK_ASKED; /* it is said up to where we have written */
    short events = look->linked ? run_link_events(&look->link) : 0;
    struct pollfd fds[FDS] = {
        [FD_SIGNALS] = {.fd = signal_fd, .events = POLLIN},
        [FD_OUT] = {.fd = writes ? look->out_fd : -1, .events = POLLOUT},
        [FD_IN] = {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
        [FD_LINK] = {.fd = events ? look->link.fd : -1, .events = events},
    };

    if (poll(fds, FDS, timeout_of(look)) < 0)
        return;
    if (fds[FD_SIGNALS].revents)
        hear_signals(look, signal_fd);
    if (fds[FD_OUT].revents && look->state != LOOK_ENDED)
        look_out_write(look);
    if (fds[FD_IN].revents && look->state != LOOK_ENDED)
        read_input(look);
    if (look->linked)
        run_link_watch(&look->link);
    if (look->linked && look->state != LOOK_ENDED && (fds[FD_LINK].revents || run_link_over(&look->link)))
        step_link(look, fds[FD_LINK].revents);
    if (look->state == LOOK_FINDING && mono_now_ms() >= look->next_ms)
        look_find(look);
    else if (look->state == LOOK_DIALLING && look->link.state == RUN_CONNECTING && mono_now_ms() >= look->next_ms)
        look_unanswered(look); /* a kernel answers, also behind a job that spins */
    else if ((look->state == LOOK_DIALLING || look->state == LOOK_ASKED) && mono_now_ms() >= look->next_ms)
        look_late(look, "what holds it does not answer");
}

/* What has come is written, and the job has ended. */
static int finish(struct look *look, int signal_fd)
{
    if (look->wait_status)
        look_out_rest(look, signal_fd);
    look_close(look);
    screen_back();
    if (!look->wait_status || look->code != 0)
        return look->code;
    screen_signals_end();
    if (look->options.own)
        wait_catch_signals(look->job);
    return wait_for_job(look->elmer, look->job);
}

int look_at(struct elmer *elmer, uint64_t job, const struct look_options *options)
{
    struct client_reached reached = {.port = 0};
    struct look look = {.elmer = elmer, .job = job, .options = *options, .reached = &reached};
    int signal_fd = screen_signals(), result;

    if (signal_fd < 0) {
        say("signals cannot be received: %s", strerror(errno));
        return EXIT_REFUSED;
    }
    look.out = must(malloc(RUN_WINDOW));
    look.in = must(malloc(RUN_WINDOW));
    look_out_open(&look);
    while (look.state != LOOK_ENDED)
        turn(&look, signal_fd);
    result = finish(&look, signal_fd);
    look_out_close(&look);
    free(look.out);
    free(look.in);
    close(signal_fd);
    return result;
}
