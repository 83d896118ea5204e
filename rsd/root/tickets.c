/* tickets.c - tickets and jobs: what the root half asks elmer-tickets before anything runs (rsd/tickets/judge.c). The
 * ticket of a job is kept beside its supervisor's socket, so that it is judged the same when rsd has started again.
 *
 * How many processors a job may have here is judged once, by its first open, because from its first process on a ticket
 * counts as used. So that number is its bound, whatever a later open, an order or a start says. It is kept beside the
 * ticket, in a file of its own that an older rsd does not look at; a job of such a one has no bound until it is opened
 * again.
 *
 * With tickets = accept a job that has no ticket runs as before, and so does one whose ticket is signed with a key that
 * this host does not know: it, or the signing host, has not joined since there are tickets. All else is refused. A job
 * that was here before, without ticket, goes on in any case. That it has none must be certain: where its file cannot be
 * read nothing more is started for it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/ticket/ticket.h"
#include "rsd/root/internal.h"

/* ---- asking ---- */

/* One that does not answer in time is ended, and rsd with it: it starts again. A unit may have begun anew, and is asked
 * once more. */
static struct ticket_verdict ask(const struct root *root, const struct ticket_ask *asked)
{
    const int64_t deadline_ms = mono_ms(mono_now()) + TICKETS_BACK_MS;
    struct ticket_verdict verdict;
    bool goes = !root->tickets->gone,
         done = goes && join_tickets_await(root, false, deadline_ms) && ticket_ask(root->tickets->fd, asked, &verdict);
    if (!done && goes && join_tickets_await(root, true, deadline_ms))
        done = ticket_ask(root->tickets->fd, asked, &verdict);
    if (!done) {
        verdict =
            (struct ticket_verdict){.why = UINT32_MAX, .text = "its ticket cannot be judged now", .name = "not-judged"};
        root->tickets->gone = true;
        shutdown(root->tickets->fd, SHUT_RDWR);
    }
    return verdict;
}

/* What nobody but a thief, or a fault, brings about. */
static bool refuse(const struct root *root, uint64_t job, const char *what, const struct ticket_verdict *verdict,
                   struct err *err)
{
    static struct log_limit limit;
    if (log_allowed(&limit, 30, 10000))
        log_warning("job=%" PRIu64 " refused, ticket %s", job, verdict->name);
    err_set(err, -EACCES, "%s refuses %sjob %" PRIu64 ": %s (ticket %s)", root->config->name, what, job, verdict->text,
            verdict->name);
    return false;
}

/* ---- at open ---- */

bool tickets_let_open(const struct root *root, const struct wire_open *open, struct err *err)
{
    const struct ticket_ask asked = {.verb = TICKET_ASK_OPEN,
                                     .ticket = open->ticket,
                                     .user = open->user,
                                     .job = open->job,
                                     .attempt = (uint32_t)open->attempt,
                                     .uid = (uint32_t)open->uid,
                                     .processors = (uint32_t)open->cpus.count,
                                     .memory_bytes = open->memory_bytes,
                                     .helpers = open->pvm};
    struct ticket_verdict *verdict;
    if (!root->tickets)
        return true; /* nothing is required either: see rsd/main.c */
    verdict = &root->tickets->opening;
    *verdict = ask(root, &asked);
    return verdict->why == TICKET_GOOD ||
           (!root->config->tickets_required &&
            (verdict->why == TICKET_MISSING || verdict->why == TICKET_OTHER_CLUSTER)) ||
           refuse(root, open->job, "", verdict, err);
}

bool tickets_within(const struct root_job *job, size_t cpus)
{
    return job->ticket_cpus == 0 || cpus <= job->ticket_cpus;
}

static bool check_cpus(const struct root *root, const struct root_job *job, size_t cpus, const char *what,
                       struct err *err)
{
    static const struct ticket_verdict more = {.why = TICKET_TOO_MANY_PROCESSORS,
                                               .name = "too-many-processors",
                                               .text = "it was opened here on fewer processors"};
    return tickets_within(job, cpus) || refuse(root, job->id, what, &more, err);
}

bool tickets_let_open_again(const struct root *root, const struct root_job *job, size_t cpus, struct err *err)
{
    return check_cpus(root, job, cpus, "", err);
}

/* ---- kept with the job ---- */

static void file_name(const struct root *root, const struct root_job *job, const char *kind, char *path, size_t size)
{
    snprintf(path, size, "%s/sup/%s.%s", root->config->rundir, job->name, kind);
}

static int keep_cpus(const struct root *root, const struct root_job *job)
{
    char path[200], text[24];
    int fd, result = 0, length = snprintf(text, sizeof(text), "%zu", job->ticket_cpus);
    file_name(root, job, "cpus", path, sizeof(path));
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        result = fd < 0 ? -errno : -EIO;
    if (fd >= 0)
        close(fd);
    return result;
}

void tickets_bound(const struct root *root, struct root_job *job)
{
    if (!job->ticket || job->ticket_cpus > 0)
        return;
    job->ticket_cpus = job->ncpus;
    (void)keep_cpus(root, job); /* else the next root half learns it from the next open, as this one has */
}

int tickets_keep(const struct root *root, struct root_job *job, const char *ticket)
{
    char path[200];
    int fd, result = 0;
    ssize_t size = (ssize_t)strlen(ticket);
    if (!root->tickets || root->tickets->opening.why != TICKET_GOOD)
        return 0; /* it counts for nothing here */
    job->local = job->local && root->tickets->opening.ours;
    file_name(root, job, "ticket", path, sizeof(path));
    job->ticket = strdup(ticket);
    job->ticket_cpus = job->ncpus;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!job->ticket || fd < 0 || write(fd, ticket, (size_t)size) != size)
        result = !job->ticket ? -ENOMEM : fd < 0 ? -errno : -EIO;
    if (fd >= 0)
        close(fd);
    return result == 0 ? keep_cpus(root, job) : result;
}

/* A newline behind the ticket: this job has used it. The record of the host says of the ticket only that one has. */
void tickets_begun(const struct root *root, struct root_job *job)
{
    char path[200];
    int fd;
    if (!job->ticket || job->ticket_begun)
        return;
    job->ticket_begun = true;
    file_name(root, job, "ticket", path, sizeof(path));
    fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || write(fd, "\n", 1) != 1)
        log_warning("job=%s: cannot record that its ticket was used: %s", job->name, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void recall_cpus(const struct root *root, struct root_job *job)
{
    struct err none = ERR_INIT;
    char path[200], *text = NULL;
    uint64_t cpus;
    int result;
    file_name(root, job, "cpus", path, sizeof(path));
    result = file_read(AT_FDCWD, path, 24, &text, &none);
    if (result == 0 && str_to_u64(text, &cpus)) /* else its writer died before it was opened */
        job->ticket_cpus = (size_t)cpus;
    else if (result < 0 && result != -ENOENT)
        job->ticket_unread = -result;
    free(text);
}

void tickets_recall(const struct root *root, struct root_job *job)
{
    struct err none = ERR_INIT;
    char path[200];
    int result;
    if (!root->tickets)
        return;
    file_name(root, job, "ticket", path, sizeof(path));
    result = file_read(AT_FDCWD, path, TICKET_TEXT_MAX + 1, &job->ticket, &none);
    if (result == -ENOENT)
        return;
    recall_cpus(root, job);
    if (result < 0) {
        job->ticket_unread = -result;
        return;
    }
    job->ticket_begun = strchr(job->ticket, '\n') != NULL;
    job->ticket[strcspn(job->ticket, "\n")] = 0;
}

void tickets_forget(const struct root *root, struct root_job *job)
{
    char path[200];
    file_name(root, job, "cpus", path, sizeof(path));
    unlink(path);
    file_name(root, job, "ticket", path, sizeof(path));
    unlink(path); /* also one that nobody could judge any more */
    free(job->ticket);
    job->ticket = NULL;
}

/* ---- at start ---- */

static bool refuse_unread(const struct root *root, const struct root_job *job, struct err *err)
{
    struct ticket_verdict verdict = {.why = UINT32_MAX, .name = "unreadable"};
    snprintf(verdict.text, sizeof(verdict.text), "what is kept of its ticket there cannot be read: %s",
             strerror(job->ticket_unread));
    return refuse(root, job->id, "a process of ", &verdict, err);
}

bool tickets_let_start(const struct root *root, const struct root_job *job, const struct wire_start *start,
                       struct err *err)
{
    char tmpdir[200];
    enum job_role role = ROLE_COMMAND;
    struct ticket_ask asked = {.verb = TICKET_ASK_START,
                               .ticket = job->ticket,
                               .dir = start->dir,
                               .output = start->output,
                               .errors = start->errors,
                               .tmpdir = tmpdir,
                               .argv = (const char *const *)start->argv.items,
                               .environment = (const char *const *)start->environment.items,
                               .job = job->id,
                               .process = start->process,
                               .attempt = job->attempt,
                               .umask = (uint32_t)start->umask,
                               .argc = (uint32_t)start->argv.count,
                               .envc = (uint32_t)start->environment.count,
                               .begun = job->ticket_begun,
                               .truncate = start->truncate,
                               .capture = start->capture};
    struct ticket_verdict verdict;
    if (job->ticket_unread)
        return refuse_unread(root, job, err);
    if (!job->ticket)
        return true; /* judged when it was opened */
    if (!check_cpus(root, job, start->cpus.count, "a process of ", err))
        return false;
    snprintf(tmpdir, sizeof(tmpdir), "%s/jobs/%s", root->config->rundir, job->name);
    role_by_name(start->role, &role);
    asked.role = role == ROLE_DAEMON ? TICKET_DAEMON : role == ROLE_AGENT ? TICKET_AGENT : TICKET_COMMAND;
    verdict = ask(root, &asked);
    return verdict.why == TICKET_GOOD || refuse(root, job->id, "a process of ", &verdict, err);
}
