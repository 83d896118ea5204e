/* holder.c - holds the terminal of a job (esubmit --pty), as the job's first process, in the place of its command.
 *
 * Started by the supervisor as the command would be: the user, in the job's group, at its rank. It makes a terminal,
 * starts the command as the leader of a session in it, says where it listens, and shows who may look what the terminal
 * prints (lookers.c says who may; life.c what follows from it). Its end is the command's: the same status or signal.
 *
 * Output is kept in a ring, of which the last TERMINAL_KEPT bytes are there. While somebody looks the terminal is read
 * only as far as he takes it, so nothing is dropped, and a command that prints without end waits for him; while nobody
 * looks it is read at once, and what nobody has seen is dropped beyond the ring, oldest first, which the next who looks
 * is told. What nobody has seen at the end goes to standard error, the job's output file; as soon as the job is to end,
 * as KILL may come before its command has ended. Input that has come is not lost with its connection, and how much has
 * come is said to who comes back, so nothing is typed twice.
 *
 * One looks at a time; a later one takes it from him. Whoever is at the other end of a connection, his messages are
 * bounded: input by its window, all else by its size. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/job/terminal.h"
#include "rsd/courier/courier.h"
#include "rsd/courier/life.h"
#include "rsd/courier/lookers.h"
#include "rsd/courier/ring.h"
#include "rsd/courier/typed.h"

enum { FD_LISTEN, FD_SIGNALS, FD_VIEWER, FD_OUTPUT, FD_INPUT, FD_LOOKERS, FDS = FD_LOOKERS + LOOKERS_FDS };
enum { ROWS = 24, COLUMNS = 80, AGAIN_MS = 50, TURN_MS = 60000, LATE_MS = 1000, SIGNAL_BASE = 128, REST = 128 << 10 };

struct holder {
    struct courier courier;
    struct lookers lookers;
    struct life life;
    struct ring ring;
    char **argv;
    struct child child;
    int input; /* of the terminal; -1: it is closed */
    int listener, signal_fd;
    struct winsize size;
    bool started, exited, drained, told_exit;
    bool stopped; /* by TERM: KILL may come at any time */
    size_t rest;  /* exited: so much is read yet, which is more than a terminal holds; others may print for ever */
    int status;   /* of waitpid(2) */
    int64_t silent_until_ms; /* nobody has the terminal open: it is read again then */
    /* who looks */
    struct run_link viewer;
    bool viewed;
    uint64_t session, sent, taken; /* output: up to where it was sent, and he has it */
    struct typed typed;
};

/* ---- the command ---- */

static size_t count_of(char **argv)
{
    size_t count = 0;
    while (argv[count])
        count++;
    return count;
}

static void exited(struct holder *h, int status, int64_t now)
{
    h->exited = true;
    h->status = status;
    h->rest = REST;
    life_exited(&h->life, now);
}

/* One that cannot be started has printed why. */
static void start_command(struct holder *h, int64_t now)
{
    const mode_t mask = umask(0);
    struct run_start start = {.pty = true,
                              .input = true,
                              .umask = mask,
                              .rows = h->size.ws_row,
                              .columns = h->size.ws_col,
                              .dir = ".",
                              .argv = {(const char **)h->argv, count_of(h->argv)},
                              .environment = courier_environment(TERMINAL_VARIABLE)};
    const struct run_rank rank = {0, RUN_NO_CPU};
    const struct birth birth = {&h->courier, &start, &rank, true, now + START_MS};
    char text[400], line[450];
    int error;
    (void)umask(mask);
    h->started = true;
    error = start.environment.items ? child_start(&birth, &h->child, &h->input, text, sizeof(text)) : ENOMEM;
    free(start.environment.items);
    if (error == 0)
        return;
    snprintf(line, sizeof(line), "elmer: %s\r\n", start.environment.items ? text : strerror(error));
    ring_put(&h->ring, line, strlen(line));
    h->drained = true;
    exited(h, (error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTED) << 8, now);
}

/* To its session's first group and to what is in the foreground. */
static void signal_all(const struct holder *h, int number)
{
    pid_t front = h->child.out >= 0 ? tcgetpgrp(h->child.out) : -1;
    if (h->exited || h->child.pid <= 0)
        return;
    if (front > 1 && front != h->child.pid)
        (void)kill(-front, number);
    child_signal(&h->child, number);
}

static void do_it(struct holder *h, enum life_do what, int64_t now)
{
    if (what == LIFE_START)
        start_command(h, now);
    if (what == LIFE_HANG_UP) {
        signal_all(h, SIGHUP);
        signal_all(h, SIGCONT);
    }
    if (what == LIFE_KILL)
        signal_all(h, SIGKILL);
}

/* ---- its output ---- */

static bool may_read(const struct holder *h, int64_t now)
{
    return h->child.out >= 0 && now >= h->silent_until_ms && (!h->viewed || h->ring.end - h->taken < RUN_WINDOW);
}

static void push(struct holder *h)
{
    while (h->viewed && h->viewer.state == RUN_OPEN && !h->viewer.ended && h->sent < h->ring.end &&
           h->sent - h->taken < RUN_WINDOW) {
        size_t size, window = RUN_WINDOW - (size_t)(h->sent - h->taken);
        const uint8_t *bytes = ring_at(&h->ring, h->sent, &size);
        size = size < window ? size : window;
        size = size < RUN_PIECE ? size : RUN_PIECE;
        run_link_send(&h->viewer, RUN_OUT, 0, bytes, size);
        h->sent += size;
    }
}

/* A piece. EIO: nobody has it open; while its command lives somebody may open it again. */
static void read_output(struct holder *h, int64_t now)
{
    static uint8_t piece[RUN_PIECE];
    ssize_t got = read(h->child.out, piece, sizeof(piece));
    if (got < 0 && errno == EINTR)
        return;
    if (got > 0) {
        ring_put(&h->ring, piece, (size_t)got);
        push(h);
        h->rest -= (size_t)got < h->rest ? (size_t)got : h->rest;
        h->drained = h->exited && h->rest == 0;
        return;
    }
    h->drained = h->exited;
    if (!h->exited && (got == 0 || errno != EAGAIN))
        h->silent_until_ms = now + AGAIN_MS;
}

/* ---- its input ---- */

/* When its terminal is closed nobody reads it any more. */
static void write_input(struct holder *h)
{
    size_t size, own = 0;
    (void)typed_at(&h->typed, &size);
    if (h->input >= 0)
        own = typed_write(&h->typed, h->input);
    else if (h->started && size > 0)
        own = typed_take(&h->typed, size);
    if (own > 0 && h->viewed)
        run_link_send_number(&h->viewer, RUN_TAKEN, RUN_IN, (uint32_t)own);
}

static void hear_input(struct holder *h, const struct run_frame *frame)
{
    if (typed_put(&h->typed, frame->data, frame->size))
        write_input(h);
    else
        run_link_kill(&h->viewer, "it sends more than there is room for");
}

/* ---- who looks ---- */

static void resize(struct holder *h, uint32_t rows, uint32_t columns)
{
    if (rows == 0 || columns == 0 || rows > TERMINAL_SIDE_MAX || columns > TERMINAL_SIDE_MAX)
        return;
    h->size = (struct winsize){.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    if (h->child.out >= 0)
        (void)ioctl(h->child.out, TIOCSWINSZ, &h->size);
}

static void hear_taken(struct holder *h, const struct run_frame *frame, int64_t now)
{
    size_t size = frame->size == 4 ? run_number(frame->data) : RUN_WINDOW + 1;
    if (frame->rank != RUN_OUT || size > h->sent - h->taken) {
        run_link_kill(&h->viewer, "it has taken more than there was");
        return;
    }
    h->taken += size;
    if (h->taken > h->ring.seen)
        h->ring.seen = h->taken;
    life_taken(&h->life, now);
    push(h);
}

static void part(struct holder *h)
{
    if (h->viewed)
        run_link_fini(&h->viewer);
    h->viewed = false;
}

static void hear(struct holder *h, const struct run_frame *frame, int64_t now)
{
    switch ((int)frame->type) {
    case RUN_IN:
        hear_input(h, frame);
        break;
    case RUN_IN_END:
        typed_end(&h->typed);
        write_input(h);
        break;
    case RUN_TAKEN:
        hear_taken(h, frame, now);
        break;
    case RUN_SIZE:
        if (frame->size == 8)
            resize(h, run_number(frame->data), run_number(frame->data + 4));
        break;
    case RUN_LEAVE:
        part(h);
        do_it(h, life_left(&h->life, now), now);
        break;
    default:
        run_link_kill(&h->viewer, "it says what a holder does not know");
        break;
    }
}

static void step_viewer(struct holder *h, short revents, int64_t now)
{
    struct run_frame frame;
    run_link_step(&h->viewer, revents);
    while (h->viewed && run_link_next(&h->viewer, &frame) > 0)
        hear(h, &frame, now);
    if (!h->viewed || h->viewer.state != RUN_DEAD)
        return;
    part(h);
    do_it(h, life_lost(&h->life, now), now);
}

static void refuse(struct run_link *link)
{
    static const char text[] = "another one looks at the terminal now";
    run_link_send(link, RUN_REFUSED, 0, text, sizeof(text) - 1);
    run_link_fini(link);
}

static void show(struct holder *h, struct run_link *link, const struct run_look *look, int64_t now)
{
    struct run_looking looking;
    uint8_t bytes[RUN_LOOKING_BYTES];
    if (look->session != 0 && look->session != h->session) {
        refuse(link);
        return;
    }
    if (h->viewed) /* what he has said before his connection ended */
        step_viewer(h, POLLIN, now);
    if (h->viewed)
        refuse(&h->viewer);
    h->viewer = *link;
    h->viewed = true;
    run_link_patient(&h->viewer);
    if (look->session == 0) {
        typed_begin(&h->typed);
        h->session++;
    }
    looking = (struct run_looking){.session = h->session, .came = h->typed.came, .went = h->typed.went};
    looking.from = ring_from(&h->ring, look, &looking.lost);
    h->sent = h->taken = looking.from;
    if (h->ring.seen < h->ring.begin || h->ring.seen < looking.from)
        h->ring.seen = looking.from; /* he is told what was lost */
    resize(h, look->rows, look->columns);
    run_looking_pack(&looking, bytes);
    run_link_send(&h->viewer, RUN_LOOKING, 0, bytes, sizeof(bytes));
    if (h->started && look->session == 0)
        signal_all(h, SIGWINCH); /* what fills the screen draws it again */
    do_it(h, life_looked(&h->life, now), now);
    push(h);
}

/* ---- the end ---- */

/* LAST: he has it all and is told how it ended; or there is nothing to wait for. */
static void finish(struct holder *h)
{
    if (h->life.state != LIFE_LAST || !h->drained)
        return;
    if (!h->viewed) {
        if (h->ring.seen == h->ring.end || !h->life.returns)
            life_told(&h->life);
        return;
    }
    if (h->taken < h->ring.end)
        return;
    if (!h->told_exit)
        run_link_send_numbers(&h->viewer, RUN_EXIT, 0, WIFEXITED(h->status) ? (uint32_t)WEXITSTATUS(h->status) : 0,
                              WIFSIGNALED(h->status) ? (uint32_t)WTERMSIG(h->status) : 0);
    h->told_exit = true;
    if (run_link_waiting(&h->viewer) == 0)
        life_told(&h->life);
}

static int end_as(const struct holder *h)
{
    const struct rlimit none = {0, 0};
    sigset_t set;
    int number = h->exited && WIFSIGNALED(h->status) ? WTERMSIG(h->status) : 0;
    if (!h->exited)
        number = SIGHUP; /* it has not begun: nobody has come */
    if (number == 0)
        return WEXITSTATUS(h->status);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    (void)kill(getpid(), number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return SIGNAL_BASE + number;
}

/* ---- the loop ---- */

static void hear_signals(struct holder *h, int64_t now)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;
    while (read(h->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGTERM) {
            h->stopped = true;
            do_it(h, life_stop(&h->life), now);
        }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == h->child.pid && !h->exited) {
            h->child.reaped = true;
            h->silent_until_ms = 0;
            exited(h, status, now);
        }
}

/* It was noticed in sending: poll(2) says nothing of it. */
static bool is_over(const struct holder *h)
{
    return h->viewed && run_link_over(&h->viewer);
}

static int timeout_of(const struct holder *h, int64_t now)
{
    int64_t next = now + TURN_MS, lookers = lookers_next_ms(&h->lookers);
    next = h->life.deadline_ms < next ? h->life.deadline_ms : next;
    if (h->viewed && now + RUN_WATCH_MS < next && run_link_underway(&h->viewer))
        next = now + RUN_WATCH_MS;
    if (h->life.deadline_ms != INT64_MAX && now + LATE_MS < next) /* time without a CPU is noticed */
        next = now + LATE_MS;
    next = lookers < next ? lookers : next;
    if (h->child.out >= 0 && h->silent_until_ms > now && h->silent_until_ms < next)
        next = h->silent_until_ms;
    return next <= now ? 0 : (int)(next - now);
}

static void turn(struct holder *h)
{
    struct pollfd fds[FDS], others[FDS];
    struct run_link link;
    struct run_look look;
    int64_t now = mono_ms(mono_now()), due;
    short events = h->viewed ? run_link_events(&h->viewer) : 0;
    bool reads = may_read(h, now) && !h->drained,
         writes = h->input >= 0 && !h->exited && now >= h->silent_until_ms && typed_waits(&h->typed);
    fds[FD_LISTEN] = (struct pollfd){.fd = lookers_take(&h->lookers) ? h->listener : -1, .events = POLLIN};
    fds[FD_SIGNALS] = (struct pollfd){.fd = h->signal_fd, .events = POLLIN};
    fds[FD_VIEWER] = (struct pollfd){.fd = events ? h->viewer.fd : -1, .events = events};
    fds[FD_OUTPUT] = (struct pollfd){.fd = reads ? h->child.out : -1, .events = POLLIN};
    fds[FD_INPUT] = (struct pollfd){.fd = writes ? h->input : -1, .events = POLLOUT};
    lookers_fds(&h->lookers, fds + FD_LOOKERS);
    due = (reads && h->exited) || is_over(h) ? now : now + timeout_of(h, now);
    if (courier_poll(fds, others, FDS, (int)(due - now)) < 0)
        return;
    now = mono_ms(mono_now());
    if (now > due + LATE_MS)
        life_starved(&h->life, now - due);
    if (fds[FD_SIGNALS].revents)
        hear_signals(h, now);
    if (fds[FD_OUTPUT].revents || (reads && h->exited))
        read_output(h, now);
    if (fds[FD_INPUT].revents)
        write_input(h);
    if (fds[FD_INPUT].revents & POLLHUP && !h->exited) /* nobody has it open, and it takes no more */
        h->silent_until_ms = now + AGAIN_MS;
    if (h->viewed)
        run_link_watch(&h->viewer);
    if (h->viewed && (fds[FD_VIEWER].revents || is_over(h)))
        step_viewer(h, fds[FD_VIEWER].revents, now);
    lookers_step(&h->lookers, fds + FD_LOOKERS, now);
    while (lookers_next(&h->lookers, &link, &look)) {
        show(h, &link, &look, now);
        if (h->viewed)
            step_viewer(h, 0, now); /* what came right behind it */
    }
    if (fds[FD_LISTEN].revents)
        lookers_let_in(&h->lookers, h->listener, now);
    finish(h);
    if (now >= h->life.deadline_ms)
        do_it(h, life_time(&h->life, now), now);
    if (h->stopped && !h->viewed)
        ring_save(&h->ring, STDERR_FILENO, 0);
}

/* Of all that may come to every process of a job, TERM is for us: the job is to end. */
static int open_signals(void)
{
    static const int ours[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGCHLD, SIGTERM};
    sigset_t set;
    for (int number = 1; number < NSIG; number++) {
        bool is_ours = false;
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
            is_ours = is_ours || ours[i] == number;
        if (!is_ours)
            (void)signal(number, SIG_IGN);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Said in the place of a port, so that who waits for it learns why there is none. */
static int die(const char *text)
{
    char line[600];
    snprintf(line, sizeof(line), "%.500s\n", text);
    fprintf(stderr, "elmer-courier: the terminal: %s", line);
    (void)courier_say(line);
    return 1;
}

int hold_terminal(char **argv)
{
    static struct holder h;
    const char *mode = getenv(TERMINAL_VARIABLE);
    struct err err = ERR_INIT;
    int64_t now;
    h = (struct holder){.argv = argv, .input = -1, .child = {.out = -1, .error = -1}, .size = {ROWS, COLUMNS, 0, 0}};
    h.lookers.courier = &h.courier;
    if (!typed_init(&h.typed) || !ring_init(&h.ring, TERMINAL_KEPT))
        return die("out of memory");
    h.signal_fd = open_signals();
    if (h.signal_fd < 0)
        return die(strerror(errno));
    if (courier_begin(&h.courier, &h.listener, &err) < 0)
        return die(err.text);
    now = mono_ms(mono_now());
    do_it(&h, life_begin(&h.life, mode && strcmp(mode, TERMINAL_KEEP) == 0, now), now);
    while (h.life.state != LIFE_OVER)
        turn(&h);
    part(&h);
    lookers_fini(&h.lookers);
    used_fini(&h.courier.used);
    ring_save(&h.ring, STDERR_FILENO, -1);
    return end_as(&h);
}
