/* The agent makes a job's PVM daemons one virtual machine and collects what its tasks print.
 *
 * Normal path: the master daemon runs already (PVMSOCK). ENROLLING: become its collector and hoster. ADDING: one
 * pvm_addhosts() for all other hosts; PVM asks us, the hoster, to start a daemon on each; we ask the supervisor for all
 * at once and hand the first lines of the daemons back. Then agent_ready. COLLECTING: write the output of the tasks,
 * whole lines; stay the hoster, so that no program can bring in a host that is not the job's. agent_finish, when the
 * command has ended. DRAINING: until every task has ended, or nothing more comes for DRAIN_QUIET_MS, at most
 * DRAIN_MAX_MS. HALTING: the whole machine, everywhere. Exit 0.
 *
 * Failure paths: a host cannot join, a daemon does not answer -> agent_failed with the reason, exit 1; so also when
 * libpvm3 is stuck during the start for START_MAX_S (it has no deadlines of its own; SIGALRM). The machine ends by
 * itself (a daemon dies, the program halts it) -> what has come is written, exit 3. SIGTERM (the job is killed, or PVM
 * is being halted)
 * -> drain shortly, exit 0 without halting. The supervisor is gone -> as agent_finish.
 *
 * Invariants: a host joins only if it was named on the command line. Between ADDING and the end only poll(2) waits.
 * libpvm3 is not called again once it has lost the master daemon (it would try to connect again).
 */
#include "config.h"

#include "rsd/pvm/agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "rsd/pvm/control.h"
#include "rsd/pvm/machine.h"
#include "rsd/pvm/output.h"

enum {
    SPAWN_MAX_MS = 10000,
    START_MAX_S = 20,
    DRAIN_QUIET_MS = 200, /* tasks are left, but silent */
    DRAIN_NOBODY_MS = 10, /* no task is left; news of one may be under way */
    DRAIN_MAX_MS = 1000,
    DRAIN_TERM_QUIET_MS = 30, /* after SIGTERM */
    DRAIN_TERM_MAX_MS = 200,
    HALT_MAX_S = 1,
    SPECIFICATION_MAX = 600,
    DESCRIPTORS_MAX = 64,
};

enum agent_state {
    AGENT_ENROLLING,
    AGENT_ADDING,
    AGENT_COLLECTING,
    AGENT_DRAINING,
    AGENT_HALTING,
    AGENT_ENDED,
    AGENT_STATE_COUNT
};

static const struct moves_row states[AGENT_STATE_COUNT] = {
    [AGENT_ENROLLING] = {"enrolling", MOVE_TO(AGENT_ADDING) | MOVE_TO(AGENT_ENDED)},
    [AGENT_ADDING] = {"adding", MOVE_TO(AGENT_COLLECTING) | MOVE_TO(AGENT_ENDED)},
    [AGENT_COLLECTING] = {"collecting", MOVE_TO(AGENT_DRAINING) | MOVE_TO(AGENT_ENDED)},
    [AGENT_DRAINING] = {"draining", MOVE_TO(AGENT_HALTING) | MOVE_TO(AGENT_ENDED)},
    [AGENT_HALTING] = {"halting", MOVE_TO(AGENT_ENDED)},
    [AGENT_ENDED] = {"ended", 0},
};

struct agent {
    const struct agent_options *options;
    enum agent_state state;
    enum agent_exit exit;
    struct control control;
    struct output output;
    int signal_fd;
    uint32_t requests;    /* so many so far */
    char **answers;       /* by host: what its daemon's start has brought, NULL if it was not asked for */
    bool terminated;      /* by SIGTERM */
    bool output_reported; /* that output was lost */
    int64_t heard_ms;     /* when the machine last said something */
    int64_t drain_end_ms;
};

static void move_to(struct agent *agent, enum agent_state state)
{
    MOVES_CHECK("agent", states, agent->state, state);
    agent->state = state;
}

static void complain(const struct agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void complain(const struct agent *agent, const char *format, ...)
{
    char line[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    dprintf(agent->options->errors_fd, "elmer-pvm-agent: %s\n", line);
}

/* ---- a deadline for libpvm3, which blocks as long as it likes ---- */

static struct {
    uint8_t *frame; /* agent_failed, ready to be sent */
    size_t size;
    int fd;
    int exit;
} guard;

static void guard_expired(int signal)
{
    (void)signal;
    if (guard.frame && write(guard.fd, guard.frame, guard.size) < 0)
        _exit(AGENT_EXIT_FAILED);
    _exit(guard.exit);
}

static void guard_begin(int seconds, int fd, const char *reason, enum agent_exit exit_status)
{
    struct sigaction action = {.sa_handler = guard_expired};
    guard.fd = fd;
    guard.exit = exit_status;
    guard.frame = reason ? control_failed_frame(reason, &guard.size) : NULL;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}

static void guard_end(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    free(guard.frame);
    guard.frame = NULL;
}

/* ---- what the machine tells ---- */

/* PVM asks for a host by its address where that was given. */
static long host_index(const struct agent *agent, const char *name)
{
    for (size_t i = 0; i < agent->options->count; i++) {
        const struct agent_host *host = &agent->options->hosts[i];
        if (strcmp(host->address ? host->address : host->name, name) == 0)
            return (long)i;
    }
    return -1;
}

static void set_answer(struct machine_spawn *spawn, const char *answer)
{
    snprintf(spawn->answer, sizeof(spawn->answer), "%s", answer);
}

/* Keep the answer for the reason of a failure. PVM understands a daemon's line and its own names of errors only. */
static void keep_answer(char **kept, struct machine_spawn *spawn)
{
    free(*kept);
    *kept = strdup(spawn->answer[0] ? spawn->answer : "no answer in time");
    if (strncmp(spawn->answer, "ddpro<", 6) != 0 && strncmp(spawn->answer, "Pvm", 3) != 0)
        set_answer(spawn, "PvmCantStart");
}

static void on_spawn(void *context, struct machine_spawn *spawns, size_t count)
{
    struct agent *agent = context;
    struct control_spawn *asked = calloc(count, sizeof(*asked));
    size_t n = 0;
    if (agent->state != AGENT_ADDING) { /* the supervisor hears of each host once, and before we are ready */
        for (size_t i = 0; i < count; i++)
            set_answer(&spawns[i], host_index(agent, spawns[i].host) < 0 ? "PvmNoHost" : "PvmCantStart");
        free(asked);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        long host = host_index(agent, spawns[i].host);
        set_answer(&spawns[i], asked ? "PvmNoHost" : "PvmNoMem");
        if (asked && host >= 0)
            asked[n++] = (struct control_spawn){.request = ++agent->requests,
                                                .host = agent->options->hosts[host].name,
                                                .command = spawns[i].command,
                                                .answer = spawns[i].answer,
                                                .answer_size = sizeof(spawns[i].answer)};
    }
    if (n)
        control_spawn_all(&agent->control, asked, n, mono_now_ms() + SPAWN_MAX_MS);
    for (size_t i = 0; i < count && n; i++) {
        long host = host_index(agent, spawns[i].host);
        if (host >= 0)
            keep_answer(&agent->answers[host], &spawns[i]);
    }
    free(asked);
}

static void on_task_began(void *context, int tid)
{
    struct agent *agent = context;
    agent->heard_ms = mono_now_ms();
    output_begin(&agent->output, tid);
}

static void on_task_output(void *context, int tid, const char *text, size_t size)
{
    struct agent *agent = context;
    agent->heard_ms = mono_now_ms();
    int status = output_text(&agent->output, tid, text, size);
    if (!status)
        status = -agent->output.error;
    if (status && !agent->output_reported) {
        agent->output_reported = true;
        complain(agent, "output of the job's tasks is lost: %s", strerror(-status));
    }
}

static void on_task_ended(void *context, int tid)
{
    struct agent *agent = context;
    agent->heard_ms = mono_now_ms();
    output_end(&agent->output, tid);
}

/* ---- the start ---- */

static bool plain_path(const char *path)
{
    for (; *path; path++)
        if (*path <= ' ' || *path == 127 || strchr("\"'\\$#&*", *path))
            return false;
    return true;
}

/* PVM parses this at blanks; a directory that it would not understand is left to PVM_WD in the daemon's environment. */
static char *specification(const struct agent *agent, const struct agent_host *host)
{
    const char *dir = agent->options->dir;
    if (dir && (!plain_path(dir) || strlen(dir) > SPECIFICATION_MAX / 2))
        dir = NULL;
    return str_format("%s%s%s%s%s", host->name, host->address ? " ip=" : "", host->address ? host->address : "",
                      dir ? " wd=" : "", dir ? dir : "");
}

static int refuse(const struct agent *agent, const int *codes, struct err *err)
{
    const struct agent_options *options = agent->options;
    size_t failed = 0, first = 0;
    for (size_t i = options->count; i-- > 0;) {
        if (codes[i] < 0) {
            failed++;
            first = i;
        }
    }
    const char *answer = agent->answers[first];
    bool daemon_ran = answer && strncmp(answer, "ddpro<", 6) == 0;
    err_set(err, -EPROTO, "host %s cannot join the job's virtual machine: %s%s%s%s; %s", options->hosts[first].name,
            machine_error(codes[first]), answer && !daemon_ran ? " (" : "", answer && !daemon_ran ? answer : "",
            answer && !daemon_ran ? ")" : "", machine_advice(codes[first]));
    if (failed > 1)
        err_prefix(err, "%zu hosts of %zu", failed, options->count);
    return -EPROTO;
}

/* All of them at once, with the given lines for PVM. */
static int add_specified(struct agent *agent, char **specifications, int *codes, struct err *err)
{
    size_t count = agent->options->count;
    for (size_t i = 0; i < count; i++)
        if (!(specifications[i] = specification(agent, &agent->options->hosts[i])))
            return err_set(err, -ENOMEM, "no memory for %zu hosts", count);
    int joined = machine_add_hosts(specifications, count, codes, err);
    if (joined < 0)
        return joined;
    return (size_t)joined == count ? 0 : refuse(agent, codes, err);
}

static int add_hosts(struct agent *agent, struct err *err)
{
    size_t count = agent->options->count;
    char **specifications = calloc(count, sizeof(*specifications));
    int *codes = calloc(count, sizeof(*codes));
    int result = -ENOMEM;
    if (!specifications || !codes) {
        err_set(err, result, "no memory for %zu hosts", count);
        goto out;
    }
    result = add_specified(agent, specifications, codes, err);
    for (size_t i = 0; i < count; i++)
        free(specifications[i]);
out:
    free(specifications);
    free(codes);
    return result;
}

/* From here on SIGTERM is an event. Before, it just ends us. */
static int watch_signals(struct agent *agent, struct err *err)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) == 0)
        agent->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return agent->signal_fd < 0 ? err_set(err, -errno, "cannot watch signals: %s", strerror(errno)) : 0;
}

static int start(struct agent *agent, struct err *err)
{
    const struct machine_handlers handlers = {.context = agent,
                                              .spawn = on_spawn,
                                              .task_began = on_task_began,
                                              .task_output = on_task_output,
                                              .task_ended = on_task_ended};
    int result = machine_enrol(&handlers, err);
    if (result)
        return result;
    move_to(agent, AGENT_ADDING);
    if (agent->options->count)
        result = add_hosts(agent, err);
    if (result >= 0)
        result = watch_signals(agent, err);
    return result < 0 ? result : control_send_ready(&agent->control, err);
}

static void start_failed(struct agent *agent, const char *reason)
{
    agent->exit = AGENT_EXIT_FAILED;
    move_to(agent, AGENT_ENDED);
    if (control_send_failed(&agent->control, reason, NULL) < 0)
        complain(agent, "%s", reason);
}

/* ---- collecting, until the end ---- */

static void drain(struct agent *agent)
{
    move_to(agent, AGENT_DRAINING);
    agent->heard_ms = mono_now_ms();
    agent->drain_end_ms = agent->heard_ms + (agent->terminated ? DRAIN_TERM_MAX_MS : DRAIN_MAX_MS);
}

static int64_t drain_quiet_ms(const struct agent *agent)
{
    if (agent->output.count == 0)
        return DRAIN_NOBODY_MS;
    return agent->terminated ? DRAIN_TERM_QUIET_MS : DRAIN_QUIET_MS;
}

/* How long poll(2) may wait: for ever while collecting, as the end comes as an event. */
static int timeout_ms(const struct agent *agent)
{
    if (agent->state != AGENT_DRAINING)
        return -1;
    int64_t quiet_end = agent->heard_ms + drain_quiet_ms(agent);
    int64_t end = quiet_end < agent->drain_end_ms ? quiet_end : agent->drain_end_ms;
    int64_t left = end - mono_now_ms();
    return left > 0 ? (int)left : 0;
}

static void machine_gone(struct agent *agent)
{
    if (agent->state == AGENT_COLLECTING)
        agent->exit = AGENT_EXIT_MACHINE_GONE;
    move_to(agent, AGENT_ENDED);
}

/* Poll once: fills what has come. Returns false if the machine is gone. */
static bool wait_for_news(struct agent *agent, bool *from_supervisor, bool *from_machine)
{
    const int *descriptors;
    struct pollfd fds[DESCRIPTORS_MAX];
    int n = machine_descriptors(&descriptors);
    if (n < 0)
        return false;
    nfds_t count = 2;
    fds[0] = (struct pollfd){.fd = agent->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = control_descriptor(&agent->control), .events = POLLIN};
    if (agent->control.finish) /* nothing more is expected; an end of file would wake us all the time */
        fds[1].fd = -1;
    for (int i = 0; i < n && count < DESCRIPTORS_MAX; i++)
        fds[count++] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
    *from_supervisor = *from_machine = false;
    if (poll(fds, count, timeout_ms(agent)) <= 0)
        return true;
    struct signalfd_siginfo info;
    if (fds[0].revents && read(agent->signal_fd, &info, sizeof(info)) > 0)
        agent->terminated = true;
    *from_supervisor = fds[1].revents != 0;
    for (nfds_t i = 2; i < count; i++)
        if (fds[i].revents)
            *from_machine = true;
    return true;
}

static void collect(struct agent *agent)
{
    while (agent->state == AGENT_COLLECTING || agent->state == AGENT_DRAINING) {
        bool from_supervisor, from_machine;
        if (!wait_for_news(agent, &from_supervisor, &from_machine) || (from_machine && machine_receive() < 0)) {
            machine_gone(agent);
            return;
        }
        if (from_supervisor)
            control_receive(&agent->control);
        if (agent->state == AGENT_COLLECTING && (agent->control.finish || agent->terminated))
            drain(agent);
        else if (agent->state == AGENT_DRAINING && timeout_ms(agent) == 0)
            move_to(agent, agent->terminated ? AGENT_ENDED : AGENT_HALTING);
    }
}

static void halt(struct agent *agent)
{
    guard_begin(HALT_MAX_S, -1, NULL, AGENT_EXIT_DONE);
    machine_halt();
    guard_end();
    move_to(agent, AGENT_ENDED);
}

/* ---- the whole life ---- */

static void live(struct agent *agent)
{
    struct err err = ERR_INIT;
    guard_begin(
        START_MAX_S, control_descriptor(&agent->control),
        "the PVM daemons of the job did not agree on a virtual machine in time; see that UDP passes between the "
        "hosts, and the log pvml.UID in the job's PVM_TMP",
        AGENT_EXIT_FAILED);
    int result = start(agent, &err);
    guard_end();
    if (result < 0) {
        start_failed(agent, err.text);
        return;
    }
    move_to(agent, AGENT_COLLECTING);
    collect(agent);
    output_flush(&agent->output);
    if (agent->state == AGENT_HALTING)
        halt(agent);
}

enum agent_exit agent_run(const struct agent_options *options)
{
    struct agent agent = {.options = options, .signal_fd = -1, .exit = AGENT_EXIT_DONE};
    int result = control_init(&agent.control, options->control_fd);
    if (result < 0) {
        complain(&agent, "descriptor %d is no link to a supervisor: %s", options->control_fd, strerror(-result));
        return AGENT_EXIT_USAGE;
    }
    output_init(&agent.output, options->output_fd);
    agent.answers = calloc(options->count + 1, sizeof(*agent.answers));
    if (agent.answers)
        live(&agent);
    else
        start_failed(&agent, "no memory for the job's PVM agent");
    for (size_t i = 0; agent.answers && i < options->count; i++)
        free(agent.answers[i]);
    free(agent.answers);
    output_fini(&agent.output);
    control_fini(&agent.control);
    if (agent.signal_fd >= 0)
        close(agent.signal_fd);
    return agent.exit;
}
