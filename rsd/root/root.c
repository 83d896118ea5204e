/* root.c - the root half of rsd: one loop over poll(2).
 *
 * It acts on verbs from the network half (verbs.c), messages of supervisors (supervisors.c), empty groups (ending.c)
 * and deadlines. Nothing here waits: no disk but for the supervisor's program, which stays in memory because the keeper
 * of the scope is one, no D-Bus after the start but in a child (scope.c), no name service, no process in SCHED_OTHER;
 * it runs in SCHED_FIFO above every job. It acts only on jobs that it has opened or adopted, by (job, attempt); groups,
 * sockets and directories are named by it alone, never by a message.
 *
 * A job with a lease ends without a verb when elmer is not heard for too long (host_lease.c).
 *
 * Start: place for the groups, probe of the classes, adoption of what an earlier root half has left, READY=1.
 * End: SIGTERM, or the network half has gone or talked garbage (status 1, systemd starts both again; as a unit it is
 * joined again instead, see join.c), or SIGHUP: the files have changed, and were checked by elmer-rsd-admin
 * (RSD_EXIT_AGAIN). Jobs live on.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/caps.h"
#include "rsd/root/internal.h"
#include "rsd/root/order_file.h"
#include "rsd/root/reaper.h"
#include "rsd/root/reserve.h"
#include "rsd/root/root.h"
#include "rsd/root/watcher.h"

enum { FIXED_FDS = 6 };

static void stop(struct root *root, int status)
{
    root->stop = true;
    root->status = status;
}

/* ---- start ---- */

static int signals_open(void)
{
    sigset_t set;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaction(SIGPIPE, &ignore, NULL);
    signal(SIGHUP, SIG_DFL); /* what is ignored comes to no descriptor */
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static int kernel_number(void *data, const char *path, int64_t *value, bool set)
{
    return spawn_number(data, path, value, set);
}

static void put_reserve_back(struct root *root)
{
    struct reserve_kernel kernel = reserve_this_kernel();
    char dir[200];
    kernel.number = kernel_number;
    kernel.data = root;
    snprintf(dir, sizeof(dir), "%s/sup", root->config->rundir);
    reserve_put_back(&kernel, dir);
}

static int root_init(struct root *root, int fd_net, pid_t net_pid, const struct rsd_config *config,
                     struct rsd_tickets *tickets, const struct rsd_facts *facts, struct err *err)
{
    int64_t now = mono_ms(mono_now());
    int result;
    *root = (struct root){.config = config,
                          .tickets = tickets,
                          .net_pid = net_pid,
                          .net_is_unit = fd_net < 0,
                          .net = {.fd = -1},
                          .signal_fd = -1,
                          .reaper_fd = -1,
                          .groups_fd = -1,
                          .scope_fd = -1,
                          .spawn_fd = -1,
                          .watcher_fd = -1,
                          .tmp_fd = -1};
    boost_init(root, now);
    limits_of_daemon(&root->limits);
    result = fd_net < 0 ? 0 : channel_init(&root->net, fd_net, WIRE_FROM_HOST, NET_OUT_MAX);
    if (result < 0)
        return err_set(err, result, "cannot use the channel of the network half: %s", strerror(-result));
    root->net.minor = WIRE_MINOR; /* both halves are of one build */
    if (sched_getaffinity(0, sizeof(root->cpus), &root->cpus) < 0)
        return err_set(err, -errno, "cannot read the processors of this host: %s", strerror(errno));
    walks_init(root);
    death_init(root);
    starts_init(root);
    reading_init(root);
    root->signal_fd = signals_open();
    if (root->signal_fd < 0)
        return err_set(err, -errno, "cannot open a signalfd: %s", strerror(errno));
    result = facts ? begin_take(root, facts, err) : begin_as_root(root, err);
    if (result < 0)
        return result;
    escapes_init(root, now);
    supervisors_connect(root);
    result = facts ? 0 : hand_over(root, err);
    if (result < 0)
        return result;
    root->reaper_fd = reaper_start();
    return root->reaper_fd < 0 ? err_set(err, root->reaper_fd, "cannot start a thread: %s", strerror(-root->reaper_fd))
                               : 0;
}

static void root_fini(struct root *root)
{
    while (root->job_count > 0)
        job_drop(root, root->jobs[0]);
    free(root->jobs);
    order_fini(&root->order);
    admission_fini(&root->admission);
    if (root->net.fd >= 0)
        channel_fini(&root->net);
    if (root->signal_fd >= 0)
        close(root->signal_fd);
    if (root->reaper_fd >= 0)
        close(root->reaper_fd);
    if (root->tmp_fd >= 0)
        close(root->tmp_fd);
    if (root->groups_fd >= 0)
        close(root->groups_fd);
    if (root->scope_fd >= 0)
        close(root->scope_fd);
    if (root->spawn_fd >= 0)
        close(root->spawn_fd);
    if (root->watcher_fd >= 0)
        close(root->watcher_fd);
}

static void say_ready(struct root *root)
{
    if (root->mode_reason[0])
        log_notice("mode %s: %s", order_mode_name(root->mode), root->mode_reason);
    else
        log_info("mode %s, groups of jobs in %s", order_mode_name(root->mode), root->groups);
    place_say(root, true);
    sd_notify(0, "READY=1");
    if (sd_watchdog_enabled(0, &root->watchdog_us) <= 0)
        root->watchdog_us = 0;
}

/* ---- events ---- */

static void net_read(struct root *root)
{
    struct err err = ERR_INIT;
    struct wire_message message;
    int filled = channel_fill(&root->net, &err), got = 0;
    while (!root->stop && (got = channel_next(&root->net, &message, &err)) > 0) {
        verbs_run(root, &message);
        wire_message_fini(&message);
    }
    if (root->stop || (filled >= 0 && got >= 0))
        return;
    if (root->net_is_unit) {
        join_net_lost(root, filled == -EPIPE ? "has ended" : err.text);
        return;
    }
    log_error("the network half %s: %s; stopping, jobs live on", filled == -EPIPE ? "has ended" : "is out of order",
              err.text);
    stop(root, 1);
}

static void net_events(struct root *root, const struct pollfd *event)
{
    if (root->net_is_unit && root->net.fd >= 0 && root->net.dead)
        join_net_lost(root, "does not read");
    if (event->fd < 0 || event->fd != root->net.fd || !event->revents || !join_net_answered(root))
        return;
    if (event->revents & POLLOUT)
        channel_flush(&root->net);
    if (event->revents & (POLLIN | POLLHUP | POLLERR))
        net_read(root);
}

static void spawn_ended(struct root *root)
{
    if (root->stop)
        return;
    root->spawn_gone = true;
    log_error("elmer-spawn has ended; stopping, jobs live on");
    stop(root, 1);
}

static void child_ended(struct root *root, pid_t pid)
{
    if (root->spawn_pid > 0 && pid == root->spawn_pid) {
        root->spawn_pid = 0;
        spawn_ended(root);
        return;
    }
    if (root->net_pid > 0 && pid == root->net_pid) {
        root->net_pid = 0;
        if (!root->stop) {
            log_error("the network half has ended; stopping, jobs live on");
            stop(root, 1);
        }
        return;
    }
    if (root->tickets && root->tickets->pid > 0 && pid == root->tickets->pid && !root->stop) {
        log_error("elmer-tickets has ended; stopping, jobs live on");
        stop(root, 1);
        return;
    }
    for (size_t i = 0; i < root->job_count; i++) {
        if (root->jobs[i]->errand == pid)
            death_errand_done(root->jobs[i], mono_ms(mono_now()));
    } /* supervisors are missed when their socket ends: what they have said before is read first */
}

static void signals_read(struct root *root)
{
    struct signalfd_siginfo info;
    while (read(root->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        stop(root, info.ssi_signo == SIGHUP ? RSD_EXIT_AGAIN : 0);
}

static void reaper_read(struct root *root)
{
    struct reaped reaped;
    while (read(root->reaper_fd, &reaped, sizeof(reaped)) == (ssize_t)sizeof(reaped))
        child_ended(root, reaped.pid);
}

static void job_events(struct root *root, struct root_job *job, const struct pollfd *supervisor,
                       const struct pollfd *second)
{
    uint64_t id = job->id;
    uint32_t attempt = job->attempt;
    int64_t begin = starts_clock(root, job);
    if (job->remove_fd >= 0 && second->fd == job->remove_fd && second->revents)
        ending_removed(root, job);
    job = job_find(root, id, attempt);
    if (job && job->connected && supervisor->fd == job->supervisor.fd) {
        if (supervisor->revents & POLLOUT)
            channel_flush(&job->supervisor);
        if (supervisor->revents & (POLLIN | POLLHUP | POLLERR))
            supervisor_read(root, job);
    }
    job = job_find(root, id, attempt);
    if (job && job->connected && job->supervisor.dead)
        supervisor_lost(root, job);
    job = job_find(root, id, attempt);
    if (job)
        ending_step(root, job, mono_ms(mono_now()));
    job = job_find(root, id, attempt);
    if (job)
        death_signals(root, job, mono_ms(mono_now()));
    if (job)
        starts_charge(root, job, begin);
}

static void opening_deadline(struct root *root, struct root_job *job, int64_t now)
{
    if (job->state != JOB_OPENING || job->deadline_ms == 0 || now < job->deadline_ms)
        return;
    log_error("job=%s: its supervisor has not answered in %d s", job->name, OPEN_MS / 1000);
    supervisor_lost(root, job);
}

/* ---- the loop ---- */

static int64_t job_next(const struct root_job *job)
{
    int64_t next = INT64_MAX;
    switch (job->state) {
    case JOB_OPENING:
    case JOB_TERMINATING:
        if (job->deadline_ms > 0)
            next = job->deadline_ms;
        break;
    case JOB_CLOSING:
        if (!job->supervisor_gone)
            next = job->deadline_ms;
        if (job->remove_fd >= 0)
            next = earlier(next, job->remove_wait_ms);
        break;
    case JOB_KILLING:
    case JOB_OPEN:
    case JOB_EMPTY:
    case ROOT_JOB_STATES:
        break;
    }
    next = earlier(next, death_signals_next(job));
    return job->retry_ms > 0 ? earlier(next, job->retry_ms) : next;
}

static int timeout_ms(const struct root *root)
{
    int64_t now = mono_ms(mono_now()), next = ranks_next(root), lease_ms = leases_next_ms(root);
    next = earlier(earlier(next, join_net_next(root)), join_tickets_next(root));
    if (root->watchdog_us > 0)
        next = earlier(next, root->watchdog_ms);
    for (size_t i = 0; i < root->job_count; i++)
        next = earlier(next, job_next(root->jobs[i]));
    if (lease_ms < next - now)
        next = now + lease_ms;
    return next <= now + 1 ? 1 : next - now > 1000 ? 1000 : (int)(next - now); /* never 0: we are above everybody */
}

static void watchdog(struct root *root, int64_t now)
{
    if (root->watchdog_us == 0 || now < root->watchdog_ms)
        return;
    sd_notify(0, "WATCHDOG=1");
    root->watchdog_ms = now + (int64_t)(root->watchdog_us / 3000);
}

/* Two entries per job: its supervisor, and its group while it ends, its directory while that is removed. */
static nfds_t fill_fds(const struct root *root, struct pollfd *fds)
{
    nfds_t count = FIXED_FDS;
    fds[0] = (struct pollfd){.fd = root->net.fd,
                             .events = (short)(POLLIN | (channel_wants_write(&root->net) ? POLLOUT : 0))};
    fds[1] = (struct pollfd){.fd = root->signal_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = root->reaper_fd, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = root->tickets && root->tickets->unit ? root->tickets->fd : -1, .events = POLLIN};
    fds[4] = (struct pollfd){.fd = root->spawn_is_unit ? root->spawn_fd : -1, .events = POLLIN};
    fds[5] = (struct pollfd){.fd = root->scope_fd, .events = POLLIN};
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        bool ending = job->state == JOB_TERMINATING || job->state == JOB_KILLING;
        fds[count++] = (struct pollfd){
            .fd = job->connected ? job->supervisor.fd : -1,
            .events = (short)(POLLIN | (job->connected && channel_wants_write(&job->supervisor) ? POLLOUT : 0))};
        fds[count++] = ending ? (struct pollfd){.fd = job->group.events_fd, .events = POLLPRI}
                              : (struct pollfd){.fd = job->remove_fd, .events = POLLIN};
    }
    return count;
}

/* Waking up costs as much as a small slice of a walk. Of a turn that only walks and deaths have asked for they pay all:
 * what they were charged already, and the rest, which is for who was charged most. */
static void charge_turn(struct root *root, bool deadline, const int64_t *before)
{
    int64_t own_ns = budget_own_ns(), rest_ns = own_ns - root->turned_ns, most_ns = 0;
    enum payer payer = PAYER_SCANS;
    for (enum payer i = 0; i < PAYER_COUNT; i++) {
        int64_t charged_ns = root->charged_ns[i] - before[i];
        rest_ns -= charged_ns;
        if (charged_ns > most_ns) {
            most_ns = charged_ns;
            payer = i;
        }
    }
    rest_ns -= root->dying.charged_ns - before[PAYER_COUNT];
    if (deadline && rest_ns > 0)
        budget_charge(&root->paying[payer], rest_ns, mono_ms(mono_now()));
    root->turned_ns = own_ns;
}

static int turn(struct root *root, struct pollfd *fds)
{
    size_t jobs = root->job_count;
    nfds_t count = fill_fds(root, fds);
    int64_t now, charged_ns[PAYER_COUNT + 1];
    int ready;
    for (enum payer i = 0; i < PAYER_COUNT; i++)
        charged_ns[i] = root->charged_ns[i];
    charged_ns[PAYER_COUNT] = root->dying.charged_ns;
    ready = poll(fds, count, timeout_ms(root));
    if (ready < 0 && errno != EINTR)
        return -errno;
    now = mono_ms(mono_now());
    watchdog(root, now);
    escapes_keep(root, now);
    leases_check(root); /* before anything is heard: what supervisors have to say may follow from it */
    if (fds[1].revents)
        signals_read(root);
    if (fds[2].revents)
        reaper_read(root);
    for (size_t i = jobs < root->job_count ? jobs : root->job_count; i-- > 0;) { /* backwards: a job may be dropped */
        struct root_job *job = root->jobs[i];
        const struct pollfd *entry = &fds[FIXED_FDS + 2 * i];
        opening_deadline(root, job, now);
        if (i < root->job_count && root->jobs[i] == job)
            job_events(root, job, entry, entry + 1);
    }
    if (fds[3].revents && fds[3].fd == root->tickets->fd) /* else it was joined again in this turn */
        join_tickets_news(root);
    join_tickets_due(root, now);
    if (root->tickets && root->tickets->gone)
        stop(root, 1);
    if (fds[4].revents) /* it says nothing by itself */
        spawn_ended(root);
    if (fds[5].revents)
        open_answered(root);
    join_net_due(root, now);
    net_events(root, &fds[0]);
    ranks_sweep(root, now);
    charge_turn(root, ready == 0, charged_ns);
    return 0;
}

static int loop(struct root *root)
{
    struct pollfd *fds = NULL;
    size_t capacity = 0;
    while (!root->stop) {
        size_t need = FIXED_FDS + 2 * root->job_count;
        int result;
        if (need > capacity) {
            struct pollfd *more = reallocarray(fds, need * 2, sizeof(*fds));
            if (!more)
                break;
            fds = more;
            capacity = need * 2;
        }
        result = turn(root, fds);
        if (result < 0) {
            log_error("the root half cannot wait for anything: %s", strerror(-result));
            stop(root, 1);
        }
    }
    free(fds);
    return root->status;
}

int rsd_root_main(int fd_net, pid_t net_pid, const struct rsd_config *config, struct rsd_tickets *tickets,
                  const struct rsd_facts *facts)
{
    struct err err = ERR_INIT;
    struct root root;
    int status;
    if (root_init(&root, fd_net, net_pid, config, tickets, facts, &err) < 0) {
        log_error("the root half cannot begin: %s", err.text);
        root_fini(&root);
        return -ECANCELED;
    }
    supervisors_adopt(&root);
    order_file_recall(config, &root.order);
    ranks_apply_all(&root); /* what has been born meanwhile, or was in the middle of a move */
    say_ready(&root);
    status = loop(&root);
    weights_give_back(&root);
    sd_notify(0, "STOPPING=1");
    if (status == 0) { /* else systemd starts us again */
        put_reserve_back(&root);
        rsd_begun_end(config);
    }
    root_fini(&root);
    return status;
}
