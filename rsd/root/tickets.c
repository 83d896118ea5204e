/* tickets.c - tickets and jobs: what the root half asks elmer-tickets before anything runs (rsd/tickets/judge.c). The
 * ticket of a job is kept beside its supervisor's socket, so that it is judged the same when rsd has started again.
 *
 * With tickets = accept a job that has no ticket runs as before, and so does one whose ticket is signed with a key that
 * this host does not know: it, or the signing host, has not joined since there are tickets. All else is refused. A job
 * that was here before, without ticket, goes on in any case. */
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

/* ---- kept with the job ---- */

static void file_name(const struct root *root, const struct root_job *job, char *path, size_t size)
{
    snprintf(path, size, "%s/sup/%s.ticket", root->config->rundir, job->name);
}

int tickets_keep(const struct root *root, struct root_job *job, const char *ticket)
{
    char path[200];
    int fd, result = 0;
    ssize_t size = (ssize_t)strlen(ticket);
    if (!root->tickets || root->tickets->opening.why != TICKET_GOOD)
        return 0; /* it counts for nothing here */
    job->local = job->local && root->tickets->opening.ours;
    file_name(root, job, path, sizeof(path));
    job->ticket = strdup(ticket);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (!job->ticket || fd < 0 || write(fd, ticket, (size_t)size) != size)
        result = !job->ticket ? -ENOMEM : fd < 0 ? -errno : -EIO;
    if (fd >= 0)
        close(fd);
    return result;
}

/* A newline behind the ticket: this job has used it. The record of the host says of the ticket only that one has. */
void tickets_begun(const struct root *root, struct root_job *job)
{
    char path[200];
    int fd;
    if (!job->ticket || job->ticket_begun)
        return;
    job->ticket_begun = true;
    file_name(root, job, path, sizeof(path));
    fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || write(fd, "\n", 1) != 1)
        log_warning("job=%s: cannot record that its ticket was used: %s", job->name, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void tickets_recall(const struct root *root, struct root_job *job)
{
    struct err none = ERR_INIT;
    char path[200];
    file_name(root, job, path, sizeof(path));
    if (!root->tickets || file_read(AT_FDCWD, path, TICKET_TEXT_MAX + 1, &job->ticket, &none) < 0)
        return;
    job->ticket_begun = strchr(job->ticket, '\n') != NULL;
    job->ticket[strcspn(job->ticket, "\n")] = 0;
}

void tickets_forget(const struct root *root, struct root_job *job)
{
    char path[200];
    file_name(root, job, path, sizeof(path));
    unlink(path); /* also one that nobody could judge any more */
    free(job->ticket);
    job->ticket = NULL;
}

/* ---- at start ---- */

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
    if (!job->ticket)
        return true; /* judged when it was opened */
    snprintf(tmpdir, sizeof(tmpdir), "%s/jobs/%s", root->config->rundir, job->name);
    role_by_name(start->role, &role);
    asked.role = role == ROLE_DAEMON ? TICKET_DAEMON : role == ROLE_AGENT ? TICKET_AGENT : TICKET_COMMAND;
    verdict = ask(root, &asked);
    return verdict.why == TICKET_GOOD || refuse(root, job->id, "a process of ", &verdict, err);
}
