/* process.c - life of one process: BORN between fork and exec, RUNNING, EXITED until elmer has acknowledged its status
 * (the message `taken`), then ACKNOWLEDGED for good; or FAILED with a sentence. A number is started once: asked again,
 * the same answers are given again.
 *
 * What is asserted here and in supervisor.c follows from this code alone, whatever rsd, an agent or a process says: a
 * supervisor that ends takes its job with it. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/job/lines.h"
#include "lib/job/terminal.h"
#include "lib/job/variables.h"
#include "rsd/root/cpus.h"
#include "rsd/root/group.h"
#include "rsd/root/reaper.h"
#include "rsd/root/sched.h"
#include "rsd/sup/arguments.h"
#include "rsd/sup/environment.h"
#include "rsd/sup/polling.h"
#include "rsd/sup/sup.h"

enum { AGENT_OUT_MAX = 4 << 20, DRAIN_READS = 64, CAPTURE_BYTES = 64 << 10 };

/* A daemon says one line. One that floods its output waits in its pipe. */
static const struct pace_limit capture_limit = {8, 100};

struct process *process_find(const struct sup *sup, uint32_t number)
{
    for (size_t i = 0; i < sup->count; i++) {
        if (sup->processes[i]->number == number)
            return sup->processes[i];
    }
    return NULL;
}

/* ---- what is told ---- */

static void tell_started(struct sup *sup, const struct process *process)
{
    struct wire_message message = {.type = WIRE_started, .id = process->request};
    message.u.started.job = sup->job;
    message.u.started.attempt = sup->attempt;
    message.u.started.process = process->number;
    message.u.started.pid = (uint64_t)process->pid;
    sup_tell(sup, &message);
}

static void tell_failed(struct sup *sup, uint32_t number, uint64_t request, const char *text)
{
    struct wire_message message = {.type = WIRE_start_failed, .id = request};
    char safe[1000];
    message.u.start_failed.job = sup->job;
    message.u.start_failed.attempt = sup->attempt;
    message.u.start_failed.process = number;
    message.u.start_failed.text = str_printable(safe, sizeof(safe), text, strlen(text));
    sup_tell(sup, &message);
}

static void tell_line(struct sup *sup, const struct process *process)
{
    struct wire_message message = {.type = WIRE_line};
    char safe[SUP_LINE + 1];
    message.u.line.job = sup->job;
    message.u.line.attempt = sup->attempt;
    message.u.line.process = process->number;
    message.u.line.line = str_printable(safe, sizeof(safe), process->line, process->line_size);
    sup_tell(sup, &message);
}

/* Not kept while nobody listens: the table has it, and tells the next root half. */
void process_tell_exited(struct sup *sup, const struct process *process)
{
    struct wire_message message = {.type = WIRE_exited};
    if (!sup->connected)
        return;
    message.u.exited.job = sup->job;
    message.u.exited.attempt = sup->attempt;
    message.u.exited.process = process->number;
    message.u.exited.role = role_name(process->role);
    message.u.exited.exit_status = process->exit_status;
    message.u.exited.signal = process->signal;
    sup_tell(sup, &message);
}

static int compare_ends(const void *a, const void *b)
{
    const struct process *const *x = a, *const *y = b;
    return ((*x)->end > (*y)->end) - ((*x)->end < (*y)->end);
}

/* Which daemon ended before the command, and which of its end, matters to elmer. */
void process_tell_ends(struct sup *sup)
{
    const struct process *ends[SUP_MAX_PROCESSES];
    size_t count = 0;
    assert(sup->count <= SUP_MAX_PROCESSES);
    for (size_t i = 0; i < sup->count; i++) {
        if (sup->processes[i]->state == PROCESS_EXITED)
            ends[count++] = sup->processes[i];
    }
    if (count > 1)
        qsort(ends, count, sizeof(ends[0]), compare_ends);
    for (size_t i = 0; i < count; i++)
        process_tell_exited(sup, ends[i]);
}

static void tell_again(struct sup *sup, struct process *process)
{
    switch (process->state) {
    case PROCESS_BORN:
        return; /* the answer will come */
    case PROCESS_FAILED:
        tell_failed(sup, process->number, process->request,
                    process->failure ? process->failure : "it could not be started");
        return;
    case PROCESS_RUNNING:
    case PROCESS_EXITED:
    case PROCESS_ACKNOWLEDGED:
        break;
    }
    tell_started(sup, process);
    if (process->line_sent)
        tell_line(sup, process);
    if (process->has_agent)
        agent_resend(sup, process);
    if (process->state == PROCESS_EXITED)
        process_tell_exited(sup, process);
}

/* ---- birth ---- */

struct birth {
    int report[2], capture[2], agent[2];
};

static void close_pair(int *pair)
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        pair[i] = -1;
    }
}

static int birth_open(struct birth *birth, const struct wire_start *start, enum job_role role)
{
    *birth = (struct birth){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(birth->report, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    if (start->capture && pipe2(birth->capture, O_CLOEXEC) < 0)
        return -errno;
    if (role == ROLE_AGENT && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, birth->agent) < 0)
        return -errno;
    return 0;
}

/* Daemons must not give their rank to the tasks that they fork. */
static bool resets(const struct sup *sup, const struct process *process)
{
    return process->role != ROLE_COMMAND && order_is_raised(process_rank(sup, process));
}

/* Its command has a terminal: the courier, which is the user's process as the command would be, holds that and starts
 * the command in it. What nobody has seen of it goes to the output file by its standard error, for its output is a pipe
 * to us. */
static bool has_terminal(const struct process *process, const struct wire_start *start)
{
    return process->role == ROLE_COMMAND && process->number < JOB_COURIERS && start->capture &&
           environment_value(&start->environment, TERMINAL_VARIABLE);
}

static int give_birth(struct sup *sup, struct process *process, const struct wire_start *start)
{
    char hostfile[160];
    cpu_set_t cpus;
    struct birth birth;
    bool command = process->role == ROLE_COMMAND, terminal = has_terminal(process, start);
    const char *index = command ? environment_value(&start->environment, "ELMER_ARRAY_INDEX") : NULL,
               *line = command ? environment_value(&start->environment, LINE_VARIABLE) : NULL;
    char **argv = arguments_make(&start->argv, terminal, index, line), **environment;
    int pidfd = -1, result = birth_open(&birth, start, process->role);
    snprintf(hostfile, sizeof(hostfile), "%s/hostfile", sup->tmpdir);
    bool placed = cpus_from_list(start->cpus.items, start->cpus.count, &cpus);
    environment =
        environment_make(sup, process->role, &start->environment, hostfile, placed ? (size_t)CPU_COUNT(&cpus) : 0);
    if (result == 0 && (!argv || !environment))
        result = -ENOMEM;
    if (result == 0 && (start->argv.count == 0 || !placed))
        result = -EINVAL;
    if (result == 0) {
        struct child_plan plan = {.user = &sup->user,
                                  .argv = argv,
                                  .environment = environment,
                                  .given = command ? &start->environment : NULL,
                                  .dir = start->dir,
                                  .output = start->output,
                                  .errors = terminal ? start->output : start->errors,
                                  .hosts = environment_value(&start->environment, "ELMER_HOSTS"),
                                  .hostfile = hostfile,
                                  .truncate = start->truncate,
                                  .rt = sup->rt,
                                  .reset_on_fork = resets(sup, process),
                                  .few_files = process->role != ROLE_COMMAND,
                                  .umask = (mode_t)start->umask,
                                  .limits = &sup->limits,
                                  .cpus = &cpus,
                                  .birth = process_birth(sup, process, &cpus, mono_ms(mono_now())),
                                  .rank = process_rank(sup, process),
                                  .stdout_fd = birth.capture[1],
                                  .agent_fd = birth.agent[1],
                                  .report_fd = birth.report[1]};
        pid_t pid = group_fork(sup->job_fd, &pidfd);
        if (pid == 0)
            child_run(&plan);
        process->pid = pid;
        result = pid < 0 ? pid : 0;
    }
    if (pidfd >= 0)
        close(pidfd);
    if (result == 0) {
        process->report_fd = birth.report[0];
        process->capture_fd = birth.capture[0];
        birth.report[0] = birth.capture[0] = -1;
        if (birth.agent[0] >= 0 && channel_init(&process->agent, birth.agent[0], WIRE_FROM_AGENT, AGENT_OUT_MAX) == 0) {
            process->has_agent = true;
            process->agent.in.max = SUP_AGENT_FRAME;
            process->agent.read_max = SUP_AGENT_READ;
            birth.agent[0] = -1;
        }
    }
    close_pair(birth.report);
    close_pair(birth.capture);
    close_pair(birth.agent);
    free(argv);
    environment_free(environment);
    return result;
}

static struct process *process_add(struct sup *sup, uint32_t number)
{
    struct process *process = sup->count < SUP_MAX_PROCESSES ? calloc(1, sizeof(*process)) : NULL;
    struct process **more;
    if (!process)
        return NULL;
    more = reallocarray(sup->processes, sup->count + 1, sizeof(struct process *));
    if (!more) {
        free(process);
        return NULL;
    }
    sup->processes = more;
    more[sup->count++] = process;
    process->number = number;
    process->report_fd = process->capture_fd = process->agent.fd = -1;
    return process;
}

void process_free(struct process *process)
{
    if (process->report_fd >= 0)
        close(process->report_fd);
    if (process->capture_fd >= 0)
        close(process->capture_fd);
    if (process->has_agent)
        channel_fini(&process->agent);
    wire_message_fini(&process->start);
    reader_forget(process);
    agent_forget(process);
    free(process->failure);
    free(process);
}

static const struct moves_row states[] = {
    [PROCESS_BORN] = {"born", MOVE_TO(PROCESS_RUNNING) | MOVE_TO(PROCESS_FAILED)},
    [PROCESS_RUNNING] = {"running", MOVE_TO(PROCESS_EXITED)},
    [PROCESS_FAILED] = {"failed", 0},
    [PROCESS_EXITED] = {"exited", MOVE_TO(PROCESS_ACKNOWLEDGED)},
    [PROCESS_ACKNOWLEDGED] = {"acknowledged", 0},
};

static void move(struct process *process, enum process_state state)
{
    MOVES_CHECK("process", states, process->state, state);
    process->state = state;
}

static void failed(struct sup *sup, struct process *process, const char *text)
{
    move(process, PROCESS_FAILED);
    process->failure = strdup(text);
    wire_message_fini(&process->start);
    process->start = (struct wire_message){0};
    tell_failed(sup, process->number, process->request, text);
}

/* Helpers are those of this host, whatever elmer or, for a slave, the user's agent calls them, and found in no PATH:
 * they may rank above the jobs. */
static void helper_prepare(const struct sup *sup, struct process *process, struct wire_start *start)
{
    if (process->role == ROLE_COMMAND && process->number >= JOB_COURIERS && start->argv.count > 0)
        start->argv.items[0] = ELMER_LIBEXECDIR "/" JOB_COURIER;
    if (process->role == ROLE_COMMAND || start->argv.count == 0)
        return;
    start->argv.items[0] = process->role == ROLE_DAEMON ? sup->daemon : sup->agent;
    process->may_spawn = start->argv.count - 1;
    if (start->argv.count > 1 && strcmp(start->argv.items[1], "--wd") == 0)
        process->may_spawn -= start->argv.count > 2 ? 2 : 1;
}

void process_start(struct sup *sup, struct wire_message *message)
{
    const struct wire_start *start = &message->u.start;
    struct process *process = process_find(sup, (uint32_t)start->process);
    char text[200];
    int result;
    if (process) {
        process->request = message->id;
        tell_again(sup, process);
        return;
    }
    process = sup->begun && !sup->quit ? process_add(sup, (uint32_t)start->process) : NULL;
    if (!process) {
        tell_failed(sup, (uint32_t)start->process, message->id,
                    sup->quit ? "the job is ending on this host" : "too many processes of the job on this host");
        return;
    }
    (void)role_by_name(start->role, &process->role); /* judged by the root half; else it is a command */
    process->request = message->id;
    process->state = PROCESS_BORN;
    helper_prepare(sup, process, &message->u.start);
    reader_note(process, start);
    if (process->role == ROLE_COMMAND && polling_waits(&start->environment))
        (void)waits_begin(&sup->waits, &sup->user, sup->own_uid, sup->tmpdir); /* else nobody counts: no more is lost */
    result = give_birth(sup, process, start);
    if (result < 0) {
        snprintf(text, sizeof(text),
                 "a process cannot be started on this host: %s; are limits on processes or memory reached?",
                 strerror(-result));
        failed(sup, process, text);
        return;
    }
    process->start = *message; /* its strings are needed until exec */
    message->memory = NULL;
}

/* ---- life ---- */

void process_report(struct sup *sup, struct process *process)
{
    struct child_report report = {.stage = -1};
    char text[1000];
    assert(process->state == PROCESS_BORN && process->report_fd >= 0 && process->pid > 0);
    ssize_t got = read(process->report_fd, &report, sizeof(report));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(process->report_fd);
    process->report_fd = -1;
    process_born(sup, process, mono_ms(mono_now()));
    if (got != 0) {
        child_explain(&report, &process->start.u.start, sup->user.name, text, sizeof(text));
        failed(sup, process, text);
        return;
    }
    move(process, PROCESS_RUNNING);
    sched_rank(process->pid, process_rank(sup, process),
               resets(sup, process)); /* it may have been pushed, or the order changed */
    wire_message_fini(&process->start);
    process->start = (struct wire_message){0};
    tell_started(sup, process);
}

static void line_done(struct sup *sup, struct process *process)
{
    if (process->line_sent)
        return;
    process->line_sent = true;
    tell_line(sup, process);
}

int64_t process_capture_wait_ms(const struct process *process, int64_t now)
{
    return pace_wait_ms(&process->capture_pace, &capture_limit, now);
}

/* The first line is told, the rest is read and dropped, so that the writer does not stand still for good. */
void process_capture(struct sup *sup, struct process *process)
{
    static char buffer[CAPTURE_BYTES];
    ssize_t got = read(process->capture_fd, buffer, sizeof(buffer));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    for (ssize_t i = 0; i < got && !process->line_sent; i++) {
        assert(process->line_size < SUP_LINE); /* or it would have been told */
        if (buffer[i] != '\n')
            process->line[process->line_size++] = buffer[i];
        if (buffer[i] == '\n' || process->line_size == SUP_LINE)
            line_done(sup, process);
    }
    if (got > 0) {
        pace_take(&process->capture_pace, &capture_limit, mono_ms(mono_now()));
        return;
    }
    if (process->line_size > 0)
        line_done(sup, process);
    close(process->capture_fd);
    process->capture_fd = -1;
}

/* What it had written before its end is told before its end. */
static void drain(struct sup *sup, struct process *process)
{
    for (int i = 0; i < DRAIN_READS && process->capture_fd >= 0 && !process->line_sent; i++) {
        int waiting = 0;
        if (ioctl(process->capture_fd, FIONREAD, &waiting) < 0 || waiting == 0)
            break;
        process_capture(sup, process);
    }
    if (!process->line_sent && process->line_size > 0)
        line_done(sup, process);
    if (process->has_agent)
        agent_drain(sup, process);
}

static void ended(struct sup *sup, struct process *process, int status)
{
    if (process->state == PROCESS_BORN && process->report_fd >= 0)
        process_report(sup, process);
    if (process->state != PROCESS_RUNNING)
        return;
    drain(sup, process);
    move(process, PROCESS_EXITED);
    process->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    process->end = ++sup->ends;
    process_tell_exited(sup, process);
}

/* A virtual machine hangs without a word where one of its daemons is stopped: as good as dead, and told as such. The
 * end of the job wakes it up again. */
static void peek_stopped(struct sup *sup, struct process *process)
{
    int signal = reaper_peek_stopped(process->pid);
    if (signal == 0)
        return;
    log_warning("job=%llu: its %s is stopped (signal %d): it is treated as dead", (unsigned long long)sup->job,
                role_name(process->role), signal);
    ended(sup, process, signal);
}

void process_peek(struct sup *sup, struct process *process)
{
    int status;
    if ((process->state == PROCESS_BORN || process->state == PROCESS_RUNNING) && reaper_peek(process->pid, &status))
        ended(sup, process, status);
    else if (process->role != ROLE_COMMAND && process->state == PROCESS_RUNNING)
        peek_stopped(sup, process);
}

/* Pids that are told later than they are free: the oldest process that had it is meant. */
void process_reaped(struct sup *sup, pid_t pid, int status)
{
    for (size_t i = 0; i < sup->count; i++) {
        struct process *process = sup->processes[i];
        if (process->pid != pid || process->reaped)
            continue;
        process->reaped = true;
        ended(sup, process, status);
        return;
    } /* an orphan of the job: nobody asks for its status */
    signals_reaped(sup, pid, status);
}

void process_acknowledged(struct sup *sup, uint32_t number)
{
    struct process *process = process_find(sup, number);
    if (process && process->state == PROCESS_EXITED)
        move(process, PROCESS_ACKNOWLEDGED);
}
