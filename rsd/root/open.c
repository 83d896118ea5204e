/* open.c - a new job on this host: its groups and its supervisor. What is asked has been checked by verbs.c. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/controllers.h"
#include "rsd/root/internal.h"
#include "rsd/root/scope.h"

/* The scope has been stopped, or its keeper killed, so that it may be about to be killed with what would be born there.
 * To make another one takes root: so rsd begins again. What it was asked is asked again. */
static void place_is_gone(struct root *root)
{
    log_notice("the place for jobs' groups, %s, is gone, or its keeper is: rsd starts again to make it", root->groups);
    root->stop = true;
    root->status = 1;
}

/* Whether the scope is being stopped systemd knows, and this loop must not wait for that. */
static void ask_for_place(struct root *root, uint64_t job)
{
    if (root->scope_fd >= 0) /* it is being asked */
        return;
    root->scope_fd = scope_ask(root->config);
    root->scope_job = job;
    if (root->scope_fd == -ENOENT)
        place_is_gone(root);
    else if (root->scope_fd < 0)
        log_notice("job %" PRIu64 " is not opened now: systemd cannot be asked about elmer-jobs.scope: %s", job,
                   strerror(-root->scope_fd));
}

void open_answered(struct root *root)
{
    char stops = 0;
    ssize_t got = read(root->scope_fd, &stops, 1);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(root->scope_fd);
    root->scope_fd = -1;
    if (got == 1 && !stops)
        place_is_gone(root);
    else
        log_notice("job %" PRIu64 " is not opened now: %s", root->scope_job,
                   got == 1 ? "elmer-jobs.scope is being stopped"
                            : "systemd does not say whether elmer-jobs.scope is being stopped");
}

static int make_group(struct root *root, struct root_job *job, struct err *err)
{
    int result = group_open(root->groups_fd, job->name, true, &job->group, err);
    if (result < 0 && faccessat(root->groups_fd, "cgroup.procs", F_OK, 0) < 0)
        place_is_gone(root);
    return result;
}

/* Without the controller what is asked for is not held: elmer says so. */
static int limit_memory(const struct root *root, const struct root_job *job, const struct wire_open *open,
                        struct err *err)
{
    uint64_t bytes;
    int result = 0;
    if (__builtin_mul_overflow(open->memory_bytes, open->cpus.count, &bytes) || bytes > INT64_MAX)
        result = -ERANGE;
    else if (bytes > 0 && (root->controllers & CONTROLLER_MEMORY))
        result = group_limit_memory(&job->group, bytes);
    return result == 0 ? 0 : err_set(err, result, "cannot limit the job's memory: %s", strerror(-result));
}

void open_new(struct root *root, const struct wire_message *message, const cpu_set_t *cpus)
{
    const struct wire_open *open = &message->u.open;
    struct err err = ERR_INIT;
    const bool below = starts_below(root, open, cpus);
    int64_t begin;
    struct root_job *job;
    int result;
    if (!scope_holds(root->groups_fd)) {
        ask_for_place(root, open->job);
        return; /* it is sent again */
    }
    job = job_add(root, open->job, (uint32_t)open->attempt);
    if (!job) {
        tell_open_failed(root, open->job, (uint32_t)open->attempt, message->id, "out of memory");
        return;
    }
    job->uid = (uid_t)open->uid;
    job->below = below;
    begin = starts_clock(root, job);
    job->has_helpers = open->pvm;
    job->local = admission_is_local(root->config, open->submit_host);
    job->lease_ms = (int64_t)open->lease_ms;
    job->cpus = *cpus;
    job->ncpus = open->cpus.count;
    job_ask_open(job, message->id, open->generation);
    result = tickets_keep(root, job, open->ticket);
    if (result < 0)
        err_set(&err, result, "cannot keep the job's ticket in %s/sup: %s", root->config->rundir, strerror(-result));
    else
        result = make_group(root, job, &err);
    if (result == 0) { /* before anything can be born there, should this be our last step */
        group_confine(&job->group, open->cpus.items, open->cpus.count);
        result = limit_memory(root, job, open, &err);
    }
    if (result == 0)
        result = supervisor_start(root, job, open->user, &err);
    starts_charge(root, job, begin);
    if (result < 0) {
        tell_open_failed(root, job->id, job->attempt, message->id, err.text);
        job->open_asked = false;
        job->discard = true;
        job->supervisor_gone = !job->connected;
        ending_begin(root, job, 0);
        return;
    }
    job->deadline_ms = mono_ms(mono_now()) + OPEN_MS;
    ranks_new(root, job);
    tell_held(job, false);
    if (job->has_helpers)
        boost_new(root, job);
}
