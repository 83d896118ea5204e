/* erun.c - start processes of the job that this is a process of, on any of its hosts, and be there for them.
 *
 * A plan (erun_plan.c), a pass, a connection to the courier of each host (erun_links.c); from then on streams in both
 * directions, signals, and the size of the terminal, until the last process has ended and all that it has printed is
 * written. Who ends us ends what we have started: the couriers see the connection end. A connection that is lost ends
 * all of it, with status 255.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/common.h"
#include "client/erun.h"
#include "lib/base/clock.h"

static const struct command command = {
    "erun",
    "Usage: erun [-n N] [--host HOST | --rank R | --each] [--mpi=pmi1 | --pty] COMMAND [ARG...]\n"
    "       erun [options of ssh] HOST [COMMAND [ARG...]]\n"
    "Inside a job: start COMMAND on hosts of the job, with this directory and environment; input,\n"
    "output, signals and the exit status are as if it ran here.\n"
    "\n",
    erun_options,
    "\n"
    "With a host of the job as the first word, as ssh and rsh are called, the rest is a line for\n"
    "the shell there.\n"
    "\n"
    "Exit status: that of the command, the highest of several, 128+N if it died by signal N; 127\n"
    "not found, 126 not executable, 2 usage, 255 a host or a connection was lost.\n",
};

enum { AGAIN_MS = 1000, TURN_MS = 20, MPIEXEC_TURNS = 50, NOT_EXECUTED = 126 };
static struct termios terminal_before;
static bool terminal_is_raw, told_to_end /* by a signal */, is_not_read;

/* ---- the terminal ---- */

static void terminal_back(void)
{
    if (terminal_is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
    terminal_is_raw = false;
}

static void terminal_raw(const struct erun_plan *plan)
{
    struct termios raw;
    if (!plan->pty || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &terminal_before) < 0)
        return;
    raw = terminal_before;
    cfmakeraw(&raw);
    terminal_is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    (void)atexit(terminal_back);
}

/* ---- what couriers say ---- */

static void take_exit(struct erun *erun, struct target *target, const struct run_frame *frame)
{
    int status, number;
    if (frame->size != 8 || target->left == 0)
        return;
    number = (int)run_number(frame->data + 4);
    status = number ? 128 + number : (int)run_number(frame->data);
    if (status > erun->status)
        erun->status = status;
    target->left -= frame->type == RUN_EXIT;
    mpi_ended(erun, target, frame->rank, status, number);
}

/* `erun ws9 date` may mean a host that the job does not have. */
static void take_failed(const struct erun *erun, const struct target *target, const struct run_frame *frame)
{
    static const char missing[] = "command not found: ";
    char text[500];
    snprintf(text, sizeof(text), "%.*s", (int)(frame->size < 450 ? frame->size : 450), (const char *)frame->data);
    if (erun->plan->bare && strncmp(text, missing, sizeof(missing) - 1) == 0)
        say("%s: %s, which is no host of job %llu either", target->part->host, text, (unsigned long long)erun->job->id);
    else
        say("%s: %s", target->part->host, text);
}

static void take_taken(struct erun *erun, const struct run_frame *frame)
{
    if (frame->rank == RUN_IN && frame->size == 4)
        erun->input_window += run_number(frame->data);
}

static void take_refused(struct erun *erun, const struct target *target, const struct run_frame *frame)
{
    say("%s refuses this process: %.*s", target->part->host, (int)(frame->size < 450 ? frame->size : 450),
        (const char *)frame->data);
    erun->lost = ERUN_LOST;
}

static void hear(struct erun *erun, struct target *target, const struct run_frame *frame)
{
    switch ((int)frame->type) {
    case RUN_OUT:
    case RUN_ERR:
        if (frame->size <= RUN_WINDOW)
            streams_put(frame->type == RUN_OUT ? STDOUT_FILENO : STDERR_FILENO, target, frame->data, frame->size);
        break;
    case RUN_DIED:
    case RUN_EXIT:
        take_exit(erun, target, frame);
        break;
    case RUN_FAILED:
        take_failed(erun, target, frame);
        break;
    case RUN_TAKEN:
        take_taken(erun, frame);
        break;
    case RUN_REFUSED:
        take_refused(erun, target, frame);
        break;
    case RUN_PMI:
        mpi_hear(erun, target, frame);
        break;
    default:
        break; /* RUN_STARTED; and what a later courier may have to say */
    }
}

/* Its first word: it has started something. */
static void begin(struct target *target)
{
    if (target->begun)
        return;
    target->begun = true;
    for (uint32_t number = 1; number < 32; number++)
        if (target->signals & 1U << number)
            run_link_send_number(&target->link, RUN_SIGNAL, 0, number);
}

/* A host that does not answer ends what runs there when it notices the same. */
static void lose(struct erun *erun, struct target *target)
{
    terminal_back();
    if (!target->begun && !target->link.silent) {
        if (!target_again(erun, target, false))
            erun->lost = ERUN_LOST;
        return;
    }
    if (target->link.silent)
        say("the connection to %s is lost (%s): what runs there ends within %d s", target->part->host,
            target->link.text, RUN_SILENT_MS / 1000);
    else
        say("the connection to %s is lost (%s): what ran there is told to end", target->part->host, target->link.text);
    erun->lost = ERUN_LOST;
}

static void step(struct erun *erun, struct target *target, short revents)
{
    struct run_frame frame;
    if (!target->ready) {
        if (!target_step(erun, target, revents))
            erun->lost = ERUN_LOST;
        else if (target->ready)
            terminal_raw(erun->plan);
        return;
    }
    run_link_step(&target->link, revents);
    while (!erun->lost && run_link_next(&target->link, &frame) > 0) {
        begin(target);
        hear(erun, target, &frame);
    }
    if (!erun->lost && target->link.state == RUN_DEAD && target->left > 0)
        lose(erun, target);
}

/* ---- input ---- */

static bool input_waits(const struct erun *erun)
{
    const struct target *first = &erun->targets[0];
    return erun->input >= 0 && erun->input_window > 0 && first->begun && first->left > 0;
}

static void read_input(struct erun *erun)
{
    static uint8_t piece[RUN_PIECE];
    struct target *first = &erun->targets[0];
    ssize_t got =
        streams_read(erun->input, piece, erun->input_window < sizeof(piece) ? erun->input_window : sizeof(piece));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got > 0) {
        erun->input_window -= (size_t)got;
        run_link_send(&first->link, RUN_IN, 0, piece, (size_t)got);
        return;
    }
    erun->input = ERUN_INPUT_ENDED;
    run_link_send(&first->link, RUN_IN_END, 0, NULL, 0);
}

/* The other end of a pipe cannot, and poll(2) says nothing of it. */
static bool can_be_read(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
}

/* Nothing is to come: say so as soon as somebody listens. */
static void say_no_input(struct erun *erun)
{
    struct target *first = &erun->targets[0];
    if (erun->input != ERUN_NO_INPUT || !first->begun)
        return;
    erun->input = ERUN_INPUT_ENDED;
    run_link_send(&first->link, RUN_IN_END, 0, NULL, 0);
}

/* ---- signals ---- */

static bool ends(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

static void send_size(struct erun *erun)
{
    struct winsize size;
    struct target *first = &erun->targets[0];
    if (erun->plan->pty && first->ready && erun_size(&size))
        run_link_send_numbers(&first->link, RUN_SIZE, 0, size.ws_row, size.ws_col);
}

bool erun_signal(struct erun *erun, int number)
{
    bool told = false;
    for (size_t i = 0; i < erun->ntargets; i++) {
        struct target *target = &erun->targets[i];
        if (target->left == 0)
            continue;
        if (target->begun)
            run_link_send_number(&target->link, RUN_SIGNAL, 0, (uint32_t)number);
        else
            target->signals |= 1U << number;
        told = told || target->begun;
    }
    return told;
}

/* Who has had it once and is asked to end again, at once perhaps ignores it. */
static void pass_signal(struct erun *erun, int number)
{
    static int64_t last_ms;
    static int last;
    int64_t now = mono_ms(mono_now());
    bool told = erun_signal(erun, number);
    if (ends(number) && (!told || (last == number && now - last_ms < AGAIN_MS))) {
        told_to_end = true;
        erun->lost = 128 + number;
    }
    last = number;
    last_ms = now;
}

static void hear_signals(struct erun *erun, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGWINCH)
            send_size(erun);
        else
            pass_signal(erun, (int)info.ssi_signo);
    }
}

/* What is ignored, as nohup(1) does, stays so. */
static int open_signals(struct erun *erun)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    sigemptyset(&erun->ending);
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        struct sigaction now;
        if (passed[i] == SIGWINCH || (sigaction(passed[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN))
            sigaddset(&set, passed[i]);
        if (ends(passed[i]))
            sigaddset(&erun->ending, passed[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void erun_asks(const struct erun *erun, bool asks)
{
    for (size_t i = 0; asks && i < erun->ntargets; i++)
        if (erun->targets[i].ready)
            return;
    sigprocmask(asks ? SIG_UNBLOCK : SIG_BLOCK, &erun->ending, NULL);
}

/* ---- the loop ---- */

size_t erun_left(const struct erun *erun)
{
    size_t count = 0;
    for (size_t i = 0; i < erun->ntargets; i++)
        count += erun->targets[i].left;
    return count;
}

/* It was noticed in sending, or by run_link_watch(): poll(2) says nothing of that. */
static bool is_over(const struct target *target)
{
    return target->left > 0 && run_link_over(&target->link);
}

static int timeout_of(const struct erun *erun)
{
    int timeout = mpi_timeout(erun, mono_now_ms());
    for (size_t i = 0; i < erun->ntargets; i++) {
        if (is_over(&erun->targets[i]))
            return 0;
        if (erun->targets[i].left > 0 && run_link_underway(&erun->targets[i].link))
            timeout = timeout < 0 || timeout > RUN_WATCH_MS ? RUN_WATCH_MS : timeout;
    }
    return timeout;
}

static void turn(struct erun *erun, struct pollfd *fds, int signal_fd)
{
    size_t count = 4;
    fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = streams_wait(1), .events = POLLOUT};
    fds[2] = (struct pollfd){.fd = streams_wait(2), .events = POLLOUT};
    fds[3] = (struct pollfd){.fd = input_waits(erun) ? STDIN_FILENO : -1, .events = POLLIN}; /* see streams_own() */
    for (size_t i = 0; i < erun->ntargets; i++, count++) {
        const struct target *target = &erun->targets[i];
        short events = run_link_events(&target->link);
        fds[count] = (struct pollfd){.fd = events ? target->link.fd : -1, .events = events};
    }
    if (poll(fds, count, timeout_of(erun)) < 0)
        return;
    if (fds[0].revents)
        hear_signals(erun, signal_fd);
    for (int stream = 1; stream <= 2; stream++)
        if (fds[stream].revents && !streams_write(stream)) {
            say("standard %s cannot be written: %s", stream == 1 ? "output" : "error", strerror(errno));
            erun->lost = EXIT_REFUSED;
            is_not_read = true;
        }
    if (fds[3].revents)
        read_input(erun);
    for (size_t i = 0; i < erun->ntargets && !erun->lost; i++) {
        run_link_watch(&erun->targets[i].link);
        if (fds[4 + i].revents || is_over(&erun->targets[i]))
            step(erun, &erun->targets[i], fds[4 + i].revents);
    }
    say_no_input(erun);
    mpi_check_time(erun, mono_now_ms());
}

/* Something is lost. What has come is still written, when all that runs has been told to end. */
static void finish(struct erun *erun)
{
    for (size_t i = 0; i < erun->ntargets; i++)
        if (erun->targets[i].linked)
            run_link_fini(&erun->targets[i].link);
    sigprocmask(SIG_UNBLOCK, &erun->ending, NULL);
    streams_finish();
}

static int run(struct erun *erun)
{
    struct pollfd *fds = must(calloc(erun->ntargets + 4, sizeof(*fds)));
    int signal_fd = open_signals(erun);
    if (signal_fd < 0) {
        say("signals cannot be received: %s", strerror(errno));
        return ERUN_LOST;
    }
    for (size_t i = 0; i < erun->ntargets && !erun->lost; i++)
        if (!target_dial(erun, &erun->targets[i]))
            erun->lost = ERUN_LOST;
    while (!erun->lost && (erun_left(erun) > 0 || streams_wait(1) >= 0 || streams_wait(2) >= 0))
        turn(erun, fds, signal_fd);
    terminal_back();
    if (erun->lost && !told_to_end && !is_not_read)
        finish(erun);
    free(fds);
    return erun->mpi.status ? erun->mpi.status : erun->lost ? erun->lost : erun->status;
}

static int start(const struct erun_job *job, const struct erun_plan *plan)
{
    struct erun erun = {.job = job,
                        .plan = plan,
                        .ntargets = plan->nparts,
                        .input = plan->input && can_be_read(STDIN_FILENO) ? streams_own(STDIN_FILENO, O_RDONLY)
                                                                          : ERUN_NO_INPUT,
                        .input_window = RUN_WINDOW};
    int result;
    erun.elmer = open_elmer();
    if (!erun.elmer)
        return ERUN_LOST;
    erun.targets = must(calloc(plan->nparts, sizeof(*erun.targets)));
    for (size_t i = 0; i < plan->nparts; i++)
        erun.targets[i] = (struct target){
            .part = &plan->parts[i], .left = plan->parts[i].nranks, .link = {.fd = -1, .state = RUN_DEAD}};
    result = erun_get_pass(&erun);
    if (result == 0) {
        mpi_init(&erun);
        result = run(&erun);
    }
    for (size_t i = 0; i < plan->nparts; i++)
        if (erun.targets[i].linked)
            run_link_fini(&erun.targets[i].link);
    mpi_fini(&erun);
    free(erun.targets);
    elmer_close(erun.elmer);
    return result;
}

/* The mpiexec of MPICH and Intel waits for ever for a host that it cannot start its daemon on, or whose daemon is
 * killed: its ranks hold the connection by which it would learn of that. Also after TERM, which it passes on to ranks.
 * Open MPI's hears of it by our exit status.
 *
 * Its time is counted in turns of ours: a job that is stopped, or gets hardly any CPU, has as many as one that is
 * alone, and so has mpiexec, which is of the same job on the same host, to pass TERM on. By the clock KILL came at once
 * then. */
static void end_mpiexec(int status)
{
    static const char name[] = "/mpiexec.hydra";
    const pid_t parent = getppid();
    char path[40], program[4096];
    ssize_t length;
    size_t size = sizeof(name) - 1;
    /* Not understood, not executed, ended by a signal, or on a host that is lost. */
    bool failed = (status == EXIT_USAGE || status >= NOT_EXECUTED) && !told_to_end;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)parent);
    length = failed ? readlink(path, program, sizeof(program)) : -1;
    if (length < (ssize_t)size || memcmp(program + length - size, name, size) != 0)
        return;
    (void)kill(parent, SIGTERM);
    for (int i = 0; i < MPIEXEC_TURNS && getppid() == parent; i++)
        poll(NULL, 0, TURN_MS);
    if (getppid() == parent)
        (void)kill(parent, SIGKILL);
}

/* Of a process of a job, what it should have and has not; NULL: nothing. */
static const char *removed(void)
{
    if (!getenv("ELMER_JOB_ID"))
        return "ELMER_JOB_ID";
    return getenv("ELMER_HOSTS") || getenv("ELMER_HOSTFILE") ? NULL : "ELMER_HOSTS";
}

static bool read_job(struct erun_job *job)
{
    const char *name = removed();
    uint64_t id = name ? erun_inside() : 0;
    if (id == 0)
        return erun_job_read(job);
    say("%s has been removed from the environment of this process of job %llu, as by env -i: erun needs it", name,
        (unsigned long long)id);
    return false;
}

int main(int argc, char **argv)
{
    static const char *const first[] = {"-h", "--help", "-V", "--version"};
    struct erun_job job = {.id = 0};
    struct erun_plan plan = {.nparts = 0};
    int result = -1;
    command_begin(&command);
    for (size_t i = 0; argc > 1 && i < sizeof(first) / sizeof(first[0]); i++)
        if (strcmp(argv[1], first[i]) == 0)
            return common_option(i < 2 ? 'h' : 'V', argv);
    if (!read_job(&job))
        result = ERUN_LOST;
    if (result < 0)
        result = erun_plan_read(&plan, &job, argc, argv, isatty(STDIN_FILENO));
    if (result < 0 && (plan.help || plan.version))
        result = common_option(plan.help ? 'h' : 'V', argv);
    if (result < 0)
        result = start(&job, &plan);
    erun_plan_fini(&plan);
    erun_job_fini(&job);
    end_mpiexec(result);
    return result;
}
