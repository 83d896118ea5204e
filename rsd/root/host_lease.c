/* host_lease.c - jobs with a lease run here only while elmer answers this host.
 *
 * A contact is the moment when this host said something that elmer has answered; the network half tells it (verbs.c),
 * by a clock that goes on while the machine sleeps. A job with a lease of L is ended by itself, and for good, so early
 * after the last contact that its grace is over by L: elmer counts the same time from when it heard us, which is later,
 * and starts the next attempt only then (doc/02-scheduling). Each contact is passed on to the supervisors of such jobs:
 * they kill by themselves at L, should this process be dead or stand still. A new root half knows of no contact and
 * leaves that to them until it hears of one.
 *
 * The lease of a job is kept beside its supervisor's socket for the next root half.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/root/internal.h"

enum { LEASE_GRACE_MS = 1000, LEASE_SPARE_MS = 500 };

/* ---- contacts ---- */

static void tell_contact(const struct root *root, struct root_job *job)
{
    struct wire_message ping = {.type = WIRE_ping, .id = (uint64_t)root->contact_ms};
    if (job->lease_ms > 0 && job->ready)
        tell_supervisor(job, &ping);
}

void lease_contact(struct root *root, uint64_t said_ms)
{
    int64_t now = boot_ms(), said = said_ms < (uint64_t)now ? (int64_t)said_ms : now;
    if (said <= root->contact_ms)
        return;
    root->contact_ms = said;
    for (size_t i = 0; i < root->job_count; i++)
        tell_contact(root, root->jobs[i]);
}

/* When, by the clock of contacts, a job with such a lease has to begin to end. */
static int64_t end_of(const struct root *root, int64_t lease_ms)
{
    return root->contact_ms + lease_ms - LEASE_GRACE_MS - LEASE_SPARE_MS;
}

bool lease_held(const struct root *root, int64_t lease_ms)
{
    return lease_ms <= 0 || (root->contact_ms > 0 && boot_ms() < end_of(root, lease_ms));
}

/* ---- its end ---- */

static bool may_lapse(const struct root *root, const struct root_job *job)
{
    return job->lease_ms > 0 && root->contact_ms > 0 && !job->lapsed && job->state <= JOB_TERMINATING;
}

static void lapse(struct root *root, struct root_job *job)
{
    int64_t grace_end = mono_ms(mono_now()) + LEASE_GRACE_MS;
    log_warning("job=%s: elmer has not been heard for its lease of %" PRId64 " s: ended here", job->name,
                job->lease_ms / 1000);
    job->lapsed = true;
    job->open_asked = false;
    if (job->state == JOB_TERMINATING) {
        if (grace_end < job->deadline_ms)
            job->deadline_ms = grace_end;
        return;
    }
    snprintf(job->lost, sizeof(job->lost),
             "%.100s had no contact with elmer for the lease of job %" PRIu64 " (%" PRId64 " s) and has ended it there",
             root->config->name, job->id, job->lease_ms / 1000);
    tell_lost(root, job);
    ending_begin(root, job, LEASE_GRACE_MS);
}

void leases_check(struct root *root)
{
    int64_t now = boot_ms();
    for (size_t i = root->job_count; i-- > 0;) {
        struct root_job *job = root->jobs[i];
        if (may_lapse(root, job) && now >= end_of(root, job->lease_ms))
            lapse(root, job);
    }
}

int64_t leases_next_ms(const struct root *root)
{
    int64_t next = INT64_MAX, now = boot_ms();
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        if (may_lapse(root, job) && end_of(root, job->lease_ms) - now < next)
            next = end_of(root, job->lease_ms) - now;
    }
    return next;
}

/* ---- kept for the next root half ---- */

static void file_name(const struct root *root, const struct root_job *job, char *path, size_t size)
{
    snprintf(path, size, "%s/sup/%s.lease", root->config->rundir, job->name);
}

int lease_keep(const struct root *root, const struct root_job *job)
{
    char path[200], text[32];
    int fd, result = 0;
    ssize_t length;
    file_name(root, job, path, sizeof(path));
    if (job->lease_ms <= 0)
        return 0;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    length = snprintf(text, sizeof(text), "%" PRId64, job->lease_ms);
    if (write(fd, text, (size_t)length) != length)
        result = -EIO;
    close(fd);
    return result;
}

void lease_recall(const struct root *root, struct root_job *job)
{
    char path[200], text[32];
    uint64_t lease_ms;
    ssize_t got;
    int fd;
    file_name(root, job, path, sizeof(path));
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    got = read(fd, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = 0;
    close(fd);
    if (str_to_u64(text, &lease_ms) && lease_ms <= LEASE_MAX_MS)
        job->lease_ms = (int64_t)lease_ms;
    else
        unlink(path); /* its writer died before the supervisor was started */
}

void lease_forget(const struct root *root, const struct root_job *job)
{
    char path[200];
    file_name(root, job, path, sizeof(path));
    if (job->lease_ms > 0)
        unlink(path);
}
