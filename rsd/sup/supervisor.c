/* supervisor.c - elmer-supervisor: holds the processes of one job on one host, longer than rsd lives.
 *
 * Started by elmer-spawn for rsd with a channel on descriptor 3 and a listening socket on 4, in SCHED_FIFO, in the leaf
 * `sup` of the job's group. First it takes the ids that become.c says. `begin` names the job; the answer is `adopted`,
 * or `error`. Only then it hears of what users choose: `rank` and `start`; it reports started, start_failed, line,
 * exited. When the root half dies it goes on; a new one connects to the socket and says `adopt`:
 * adopted and every exit not yet acknowledged are its answer, then what was kept in between. `quit`, when the job's
 * leaf is empty: what has died is reaped and told, and `done`. Only when the root half has put that down and says
 * `quit` again it ends; if that dies before, all goes on as if nothing had been said, because nobody else knows how the
 * processes have ended. It reaps the orphans of the job too (PR_SET_CHILD_SUBREAPER). With --lease it ends a job by
 * itself (dead_man.c). With --keeper it does nothing for ever: it keeps elmer-jobs.scope alive.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/thread_time.h"
#include "rsd/root/caps.h"
#include "rsd/root/limits.h"
#include "rsd/root/own_user.h"
#include "rsd/root/reaper.h"
#include "rsd/root/sched.h"
#include "rsd/sup/helpers.h"
#include "rsd/sup/sup.h"

enum {
    FD_CHANNEL = 3,
    FD_LISTEN = 4,
    ROOT_OUT_MAX = 8 << 20,
    REAPS_AT_ONCE = 256,
    READS_PER_TURN = 64, /* of a pipe of 64 KiB */
    FLUSH_MS = 500,
    FIXED_FDS = 5,
    FDS_PER_PROCESS = 3
};

/* Each end or stop of a process of the job, and of its orphans, wakes us: as many as a user likes. What it costs to
 * hear of them is the machine's, so it is charged. */
static const struct pace_limit reap_limit = {32, 20};

/* ---- from the root half ---- */

static int begin(struct sup *sup, const struct wire_begin *begin, struct err *err)
{
    char path[4200];
    sup->job = begin->job;
    sup->attempt = (uint32_t)begin->attempt;
    snprintf(sup->tmpdir, sizeof(sup->tmpdir), "%s", begin->tmpdir);
    if (begin->uid != sup->user.uid)
        return err_set(err, -EPERM, "it was started for another user: this is a fault of rsd");
    snprintf(path, sizeof(path), "%s/job", begin->group);
    sup->job_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return sup->job_fd < 0 ? err_set(err, -errno, "cannot open the job's group %s: %s", path, strerror(errno)) : 0;
}

static void hear_begin(struct sup *sup, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (sup->begun)
        return;
    if (begin(sup, &message->u.begin, &err) == 0) {
        sup->begun = true;
        sup_tell_adopted(sup);
        reader_offer(sup);
        return;
    }
    struct wire_message error = {.type = WIRE_error};
    error.u.error.code = WIRE_CODE_REFUSED;
    error.u.error.text = err.text;
    sup_tell(sup, &error);
}

static void hear_adopt(struct sup *sup)
{
    sup_tell_adopted(sup);
    reader_offer(sup);
    process_tell_ends(sup);
    sup_tell_kept(sup);
}

static void hear_rank(struct sup *sup, const struct wire_rank *rank)
{
    sup->ranks.task = (struct order_rank){(int)rank->policy, (int)rank->priority};
    sup->ranks.helper = (struct order_rank){(int)rank->helper_policy, (int)rank->helper_priority};
}

static void hear(struct sup *sup, struct wire_message *message)
{
    switch ((int)message->type) {
    case WIRE_begin:
        hear_begin(sup, message);
        break;
    case WIRE_adopt:
        if (sup->begun)
            hear_adopt(sup);
        break;
    case WIRE_rank:
        hear_rank(sup, &message->u.rank);
        break;
    case WIRE_start:
        process_start(sup, message);
        break;
    case WIRE_read_file:
        reader_begin(sup, message);
        break;
    case WIRE_taken:
        process_acknowledged(sup, (uint32_t)message->u.taken.process);
        break;
    case WIRE_pvm_spawned:
    case WIRE_pvm_finish:
        agent_hear_root(sup, message);
        break;
    case WIRE_ping:
        lease_contact(sup, message->id);
        break;
    case WIRE_send_signal:
        signals_send(sup, &message->u.send_signal);
        break;
    case WIRE_look:
        waits_hear(sup, &message->u.look);
        break;
    case WIRE_weigh_sessions:
        signals_weigh(sup, (int)message->u.weigh_sessions.nice);
        break;
    case WIRE_quit:
        sup->may_end = sup->quit;
        sup->quit = true;
        break;
    default:
        log_warning("job=%llu: rsd sent %s, which a supervisor does not know", (unsigned long long)sup->job,
                    wire_type_name(message->type));
        break;
    }
}

static void root_read(struct sup *sup)
{
    struct err err = ERR_INIT;
    struct wire_message message;
    int filled = channel_fill(&sup->root, &err), got = 0;
    while (sup->connected && (got = channel_next(&sup->root, &message, &err)) > 0) {
        hear(sup, &message);
        wire_message_fini(&message);
    }
    if (filled >= 0 && got >= 0)
        return;
    if (filled != -EPIPE)
        log_warning("job=%llu: lost rsd: %s", (unsigned long long)sup->job, err.text);
    sup_disconnect(sup);
}

/* What a turn of the loop has to say goes out at its end: rsd wakes up once. */
static void connected(struct sup *sup)
{
    sup->connected = sup->root.held = true;
    channel_later(&sup->root, WIRE_MINOR);
}

/* A new rsd. Only that and root reach the socket; the kernel says so once more. */
static void root_accept(struct sup *sup)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int fd = accept4(sup->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || (peer.uid != sup->rsd_uid && peer.uid != 0)) {
        close(fd);
        return;
    }
    sup_disconnect(sup);
    if (channel_init(&sup->root, fd, WIRE_FROM_ROOT, ROOT_OUT_MAX) < 0)
        close(fd);
    else
        connected(sup);
}

/* ---- the loop ---- */

/* All that is there, which is what a pipe holds: where they are left, the reaper waits, and what has died stays. */
static void hear_ends(struct sup *sup)
{
    struct signalfd_siginfo info;
    struct reaped reaped[REAPS_AT_ONCE];
    ssize_t got;
    while (read(sup->signal_fd, &info, sizeof(info)) > 0) {
    }
    for (size_t i = 0; i < sup->count; i++)
        process_peek(sup, sup->processes[i]);
    for (int i = 0; i < READS_PER_TURN && (got = read(sup->reaper_fd, reaped, sizeof(reaped))) > 0; i++)
        for (size_t k = 0; k < (size_t)got / sizeof(*reaped); k++) /* whole ones: a pipe takes and gives them so */
            process_reaped(sup, reaped[k].pid, reaped[k].status);
}

static void reap(struct sup *sup)
{
    const int64_t before_ns = thread_time_ns();
    pace_take(&sup->reap_pace, &reap_limit, mono_ms(mono_now()));
    hear_ends(sup);
    pace_charge(&sup->reap_pace, &reap_limit, thread_time_ns() - before_ns);
}

/* A descriptor, or none while it must wait; *next: when that is over. */
static int paced(int fd, int64_t wait_ms, int64_t now, int64_t *next)
{
    if (fd < 0 || wait_ms == 0)
        return fd;
    if (now + wait_ms < *next)
        *next = now + wait_ms;
    return -1;
}

static nfds_t fill_fds(const struct sup *sup, struct pollfd *fds, int *timeout)
{
    int64_t now = mono_ms(mono_now()), next = INT64_MAX, reap_wait = pace_wait_ms(&sup->reap_pace, &reap_limit, now);
    nfds_t count = FIXED_FDS;
    fds[0] =
        (struct pollfd){.fd = sup->connected ? sup->root.fd : -1,
                        .events = (short)(POLLIN | (sup->connected && channel_wants_write(&sup->root) ? POLLOUT : 0))};
    fds[1] = (struct pollfd){.fd = sup->listen_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = paced(sup->signal_fd, reap_wait, now, &next), .events = POLLIN};
    fds[3] = (struct pollfd){.fd = paced(sup->reaper_fd, reap_wait, now, &next), .events = POLLIN};
    fds[4] = (struct pollfd){.fd = sup->reader.fd, .events = POLLIN};
    if (sup->reader.fd >= 0 && sup->reader.deadline_ms < next)
        next = sup->reader.deadline_ms;
    for (size_t i = 0; i < sup->count; i++) {
        const struct process *process = sup->processes[i];
        int agent_fd = process->has_agent ? process->agent.fd : -1;
        int agent_in = paced(agent_fd, agent_wait_ms(process, now), now, &next);
        bool agent_out = process->has_agent && channel_wants_write(&process->agent);
        fds[count++] = (struct pollfd){.fd = process->report_fd, .events = POLLIN};
        fds[count++] = (struct pollfd){
            .fd = paced(process->capture_fd, process_capture_wait_ms(process, now), now, &next), .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = agent_out ? agent_fd : agent_in,
                                       .events = (short)((agent_in >= 0 ? POLLIN : 0) | (agent_out ? POLLOUT : 0))};
        if (process->state == PROCESS_BORN && process->push_ms < next)
            next = process->push_ms;
    }
    if (signals_wait_ms(sup, now) < next - now)
        next = now + signals_wait_ms(sup, now);
    assert(count == FIXED_FDS + FDS_PER_PROCESS * sup->count); /* as loop() has made room for, and turn() reads */
    *timeout = next == INT64_MAX ? (sup->begun ? -1 : SUP_BEGIN_MS) : next <= now ? 0 : (int)(next - now);
    return count;
}

static void process_events(struct sup *sup, struct process *process, const struct pollfd *fds)
{
    if (fds[0].revents && process->report_fd >= 0)
        process_report(sup, process);
    if (fds[1].revents && process->capture_fd >= 0)
        process_capture(sup, process);
    if ((fds[2].revents & POLLOUT) && process->has_agent)
        channel_flush(&process->agent);
    if ((fds[2].revents & (POLLIN | POLLHUP | POLLERR)) && process->has_agent)
        agent_read(sup, process);
    process_push(sup, process, mono_ms(mono_now()));
}

/* Ends (false) after quit, or when nobody has begun in time. */
static bool turn(struct sup *sup, struct pollfd *fds)
{
    size_t processes = sup->count;
    int timeout, ready;
    nfds_t count = fill_fds(sup, fds, &timeout);
    ready = poll(fds, count, lease_timeout(sup, timeout));
    if (ready < 0)
        return errno == EINTR;
    if (!sup->begun && ((ready == 0 && sup->lease_ms == 0) || !sup->connected))
        return false;
    for (size_t i = 0; i < processes; i++)
        process_events(sup, sup->processes[i], &fds[FIXED_FDS + FDS_PER_PROCESS * i]);
    reader_step(sup, fds[4].revents != 0);
    signals_step(sup, mono_ms(mono_now()));
    if (fds[2].revents || fds[3].revents)
        reap(sup);
    if (fds[1].revents)
        root_accept(sup);
    if (sup->connected && fds[0].fd == sup->root.fd) {
        if (fds[0].revents & POLLOUT)
            channel_flush(&sup->root);
        if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
            root_read(sup);
    }
    if (sup->connected && sup->root.dead)
        sup_disconnect(sup);
    if (sup->quit || !lease_over(sup))
        return !sup->quit;
    sup_flush(sup);
    sup_disconnect(sup); /* what the job's processes die of from here on is not told */
    lease_kill(sup);
    return false;
}

static bool all_ended(const struct sup *sup)
{
    for (size_t i = 0; i < sup->count; i++)
        if (sup->processes[i]->state == PROCESS_BORN || sup->processes[i]->state == PROCESS_RUNNING)
            return false;
    return true;
}

/* The leaf is empty before the last process can be waited for, or while the reaper has its status but has not handed it
 * on yet. An elmer that has forgotten in a crash that it ended the job has only the status to go by. */
static void hear_the_last(struct sup *sup, int64_t deadline)
{
    int64_t now;
    hear_ends(sup);
    while (sup->connected && !all_ended(sup) && (now = mono_ms(mono_now())) < deadline) {
        struct pollfd fds[2] = {{.fd = sup->signal_fd, .events = POLLIN}, {.fd = sup->reaper_fd, .events = POLLIN}};
        if (poll(fds, 2, (int)(deadline - now)) > 0)
            hear_ends(sup);
    }
}

/* False: the root half has died, and the next one will have to be told. One that does not answer kills us. */
static bool take_leave(struct sup *sup)
{
    struct wire_message done = {.type = WIRE_done, .u.done.text = ""};
    assert(sup->begun && sup->quit);
    hear_the_last(sup, mono_ms(mono_now()) + FLUSH_MS);
    if (sup->connected)
        sup_tell(sup, &done);
    while (sup->connected && !sup->may_end) {
        struct pollfd fd = {.fd = sup->root.fd,
                            .events = (short)(POLLIN | (channel_wants_write(&sup->root) ? POLLOUT : 0))};
        if (poll(&fd, 1, -1) < 0 && errno != EINTR)
            break;
        if (fd.revents & POLLOUT)
            channel_flush(&sup->root);
        if (fd.revents & (POLLIN | POLLHUP | POLLERR))
            root_read(sup);
        if (sup->connected && sup->root.dead)
            sup_disconnect(sup);
    }
    sup->quit = sup->may_end;
    return sup->may_end;
}

static void fini(struct sup *sup)
{
    for (size_t i = 0; i < sup->count; i++)
        process_free(sup->processes[i]);
    free(sup->processes);
    for (size_t i = 0; i < sup->pending_count; i++)
        free(sup->pending[i]);
    reader_fini(sup);
    user_fini(&sup->user);
    waits_fini(&sup->waits);
    sup_disconnect(sup);
}

static int loop(struct sup *sup)
{
    struct pollfd *fds = NULL;
    size_t capacity = 0;
    bool on = true;
    while (on) {
        size_t need = FIXED_FDS + FDS_PER_PROCESS * (sup->count + 1);
        if (need > capacity) {
            struct pollfd *more = reallocarray(fds, need * 2, sizeof(*fds));
            if (!more)
                return 1;
            fds = more;
            capacity = need * 2;
        }
        sup_flush(sup);
        on = turn(sup, fds) || (sup->quit && sup->begun && !take_leave(sup));
    }
    free(fds);
    return 0;
}

static int signals_open(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaction(SIGPIPE, &ignore, NULL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int supervise(struct sup sup)
{
    struct err err = ERR_INIT;
    struct stat channel, listener;
    int result;
    if (fstat(FD_CHANNEL, &channel) < 0 || fstat(FD_LISTEN, &listener) < 0 || !S_ISSOCK(channel.st_mode) ||
        !S_ISSOCK(listener.st_mode)) {
        fprintf(stderr, "elmer-supervisor: started by hand; rsd starts it for each job\n");
        return 2;
    }
    fcntl(FD_LISTEN, F_SETFD, FD_CLOEXEC);
    sup.signal_fd = signals_open();
    sup.rt = sched_is_rt(0);
    limits_of_daemon(&sup.limits);
    if (sup_become(&sup, &err) < 0) {
        log_error("cannot begin: %s", err.text);
        return 1;
    }
    if (sup.signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ||
        channel_init(&sup.root, FD_CHANNEL, WIRE_FROM_ROOT, ROOT_OUT_MAX) < 0) {
        log_error("cannot begin: %s", strerror(errno));
        return 1;
    }
    connected(&sup);
    result = loop(&sup);
    fini(&sup);
    reaper_end();
    return result;
}

static _Noreturn void keeper(void)
{
    int result = own_user_keep(CAPS_NOTHING);
    if (result < 0)
        log_warning("the keeper of the jobs' groups is root: %s", strerror(-result));
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    struct sup sup = {.root = {.fd = -1},
                      .listen_fd = FD_LISTEN,
                      .reaper_fd = -1,
                      .job_fd = -1,
                      .kill_fd = -1,
                      .reader = {.fd = -1, .pidfd = -1}};
    helpers_find(&sup);
    log_open("elmer-supervisor", LOG_LEVEL_INFO);
    if (argc == 2 && strcmp(argv[1], "--keeper") == 0)
        keeper();
    if (argc > 2 || (argc == 2 && !lease_option(&sup, argv[1]))) {
        fprintf(stderr, "usage: elmer-supervisor: rsd starts it for each job\n");
        return 2;
    }
    return supervise(sup);
}
