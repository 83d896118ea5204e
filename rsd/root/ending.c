/* ending.c - how a job opens up for processes, and how it ends.
 *
 * `end`: TERM to each process at the job's own rank (a job that may refuse to go is never raised) -> TERMINATING. When
 * the grace is over: cgroup.kill -> KILLING; a signal is delivered only when its thread gets a CPU, so those that are
 * left are helped to one (death.c), again and again until cgroup.events says that the leaf is empty; a process in an
 * uninterruptible wait can hold that up, which is said once. Empty -> CLOSING: usage is read and the supervisor told to
 * quit. It says the last ends of processes, and `done`; the result is put down for the next root half (result.c), and
 * it is told to quit again. When it and the group are gone, nobody can make the directory any more, and it is swept ->
 * EMPTY, and `empty` goes up if `end` was asked. A directory that cannot be
 * swept at once is removed by a process of its own, for a bounded time, for which nobody waits longer than
 * REMOVE_WAIT_MS: a large one goes on in SCHED_OTHER, where it may take seconds behind a job that spins, and the jobs
 * below are to move up now. A job whose supervisor died goes the same way without TERM; it is reported lost, and
 * `empty` waits for `end`. A job that could not be opened goes the same way and is then forgotten.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/internal.h"

enum { BACKOFF_MAX_MS = 1000, STUCK_MS = 5000, OPEN_WALKS_MS = 10000 };

void job_ask_open(struct root_job *job, uint64_t id, uint64_t generation)
{
    if (!job->open_asked)
        job->open_until_ms = mono_ms(mono_now()) + OPEN_WALKS_MS;
    job->open_asked = true;
    job->open_id = id;
    job->open_generation = generation;
}

/* Whoever is above it has his rank first, or the job would run beside him. But one above may have so many threads that
 * this takes longer than elmer waits, or get another rank again and again: what is missing then is missing to him. */
void job_try_opened(struct root *root, struct root_job *job)
{
    if (!job->open_asked || !job->ready || root->order.generation < job->open_generation)
        return;
    if (walks_above(root, job) && mono_ms(mono_now()) < job->open_until_ms)
        return;
    if (job->state != JOB_OPENING && job->state != JOB_OPEN)
        return;
    if (job->state == JOB_OPENING)
        job_move(job, JOB_OPEN);
    job->open_asked = false;
    tell_simple(root, WIRE_opened, job, job->open_id);
}

/* By elmer-spawn: at once where it can be, else by a child of its, which holds the other end. */
static void remove_directory(struct root *root, struct root_job *job)
{
    struct pollfd done = {.fd = -1};
    int pair[2], result = pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
    if (result == 0) {
        result = spawn_remove(root, job, pair[1]);
        close(pair[1]);
        done.fd = pair[0];
    }
    if (result < 0)
        log_error("job=%s: cannot start the removal of its directory: %s", job->name, strerror(-result));
    if (result == 0 && poll(&done, 1, 0) == 0) {
        job->remove_fd = done.fd;
        job->remove_wait_ms = mono_ms(mono_now()) + REMOVE_WAIT_MS;
    } else if (done.fd >= 0) {
        close(done.fd);
    }
}

static void closing_begin(struct root *root, struct root_job *job, int64_t now)
{
    struct wire_message quit = {.type = WIRE_quit};
    group_usage(&job->group, &job->cpu_seconds, &job->memory_peak_bytes);
    starts_charge_failed(root, job);
    job_move(job, JOB_CLOSING);
    death_begin(job, now);
    job->deadline_ms = now + QUIT_MS;
    tell_supervisor(job, &quit);
    ending_step(root, job, now);
}

void ending_told(struct root *root, struct root_job *job)
{
    struct wire_message quit = {.type = WIRE_quit};
    if (job->state != JOB_CLOSING)
        return; /* said to a root half that has died */
    if (!job->discard)
        result_keep(root, job);
    tell_supervisor(job, &quit);
}

void ending_resume(struct root *root, struct root_job *job)
{
    job_move(job, JOB_CLOSING);
    ending_step(root, job, mono_ms(mono_now()));
}

static void killing_begin(struct root *root, struct root_job *job, int64_t now)
{
    job_move(job, JOB_KILLING);
    death_begin(job, now);
    walk_begin(job, WALK_SWEEP); /* they die at another rank */
    weights_apply(root, false);
    job->retry_ms = now;
    job->deadline_ms = now + STUCK_MS;
}

void ending_begin(struct root *root, struct root_job *job, int64_t grace_ms)
{
    int64_t now = mono_ms(mono_now());
    if (job->state >= JOB_TERMINATING)
        return;
    if (!group_populated(&job->group)) {
        closing_begin(root, job, now);
        return;
    }
    if (grace_ms <= 0) {
        killing_begin(root, job, now);
    } else {
        job_move(job, JOB_TERMINATING);
        job->deadline_ms = now + grace_ms;
        death_signal(root, job, SIGTERM);
    }
    ending_step(root, job, now);
}

/* And say when again. */
static void kill_again(struct root *root, struct root_job *job, int64_t now)
{
    int result = death_step(root, job, now, &job->retry_ms);
    if (result < 0 && !job->stuck_logged)
        log_error("job=%s: cannot kill its group: %s", job->name, strerror(-result));
    if (now >= job->deadline_ms && !job->stuck_logged) {
        job->stuck_logged = true;
        log_warning(
            "job=%s: processes live on %d s after SIGKILL: a disk or a file server does not answer them, or the "
            "jobs above leave them no time to end; trying again until they are gone",
            job->name, STUCK_MS / 1000);
    }
}

/* Also of a group that could not be opened: an earlier rsd may have died while it made or removed it. -EBUSY: a process
 * that the supervisor had just started is in it (kill it), or the supervisor has not quite ended. */
static bool group_gone(struct root *root, struct root_job *job, int64_t now)
{
    int result;
    if (now < job->retry_ms)
        return false;
    if (group_populated(&job->group)) {
        death_step(root, job, now, &job->retry_ms);
        return false;
    }
    starts_charge_supervisor(root, job);
    result = group_remove(root->groups_fd, job->name);
    if (result == 0) {
        walk_stop(job);
        group_close(&job->group);
        return true;
    }
    if (result == -EBUSY && job->supervisor_gone)
        supervisor_kill(root,
                        job); /* what is beside it: what asks PAM, and what modules have started; again until empty */
    job->backoff_ms = job->backoff_ms == 0                   ? 1
                      : job->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                             : job->backoff_ms * 2;
    job->retry_ms = now + job->backoff_ms;
    return false;
}

static void end_done(struct root *root, struct root_job *job)
{
    /* Of an array's, with which of its tasks it is: of those there are thousands, and elmer has a line about each. */
    const bool task = job->ticket && strchr(job->ticket, '/');
    char path[200];
    if (job->discard)
        result_drop(root, job);
    else if (!job->kept) /* its supervisor has died, or is of an older rsd */
        result_keep(root, job);
    tickets_forget(root, job);
    lease_forget(root, job); /* before the socket: by that the next rsd finds both, should we die between */
    snprintf(path, sizeof(path), "%s/sup/%s", root->config->rundir, job->name);
    unlink(path);
    job_move(job, JOB_EMPTY);
    (task ? log_debug : log_info)("job=%s: ended here, %.3f s of CPU time", job->name, job->cpu_seconds);
    if (job->end_asked)
        tell_empty(root, job->id, job->attempt, 0, job->cpu_seconds, job->memory_peak_bytes);
    if (job->discard)
        job_drop(root, job);
    tmp_settle(root);
}

static void closing_step(struct root *root, struct root_job *job, int64_t now)
{
    if (!job->supervisor_gone && now >= job->deadline_ms) {
        log_warning("job=%s: its supervisor does not quit: killed", job->name);
        supervisor_kill(root, job);
        job->deadline_ms = now + QUIT_MS;
    }
    if (!job->supervisor_gone || !group_gone(root, job, now))
        return;
    if (!job->swept)
        remove_directory(root, job);
    job->swept = true;
    if (job->remove_fd < 0 || now >= job->remove_wait_ms)
        end_done(root, job);
}

void ending_step(struct root *root, struct root_job *job, int64_t now)
{
    if ((job->state == JOB_TERMINATING || job->state == JOB_KILLING) && !group_populated(&job->group)) {
        closing_begin(root, job, now);
        return;
    }
    switch (job->state) {
    case JOB_TERMINATING:
        if (now >= job->deadline_ms) {
            killing_begin(root, job, now);
            kill_again(root, job, now);
        }
        break;
    case JOB_KILLING:
        if (now >= job->retry_ms)
            kill_again(root, job, now);
        break;
    case JOB_CLOSING:
        closing_step(root, job, now);
        break;
    case JOB_OPENING:
    case JOB_OPEN:
    case JOB_EMPTY:
    case ROOT_JOB_STATES:
        break;
    }
}

void ending_removed(struct root *root, struct root_job *job)
{
    close(job->remove_fd);
    job->remove_fd = -1;
    if (faccessat(root->tmp_fd, job->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        log_warning("job=%s: its directory %s/jobs/%s could not be removed completely: remove it by hand", job->name,
                    root->config->rundir, job->name);
    ending_step(root, job, mono_ms(mono_now()));
}
