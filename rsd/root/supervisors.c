/* supervisors.c - start a supervisor, and hear what it says. Those of an earlier root half: adopt.c.
 *
 * Start: the listening socket RUNDIR/sup/JOB.ATTEMPT is made here, so that a restarted rsd can always connect, even if
 * we die in the next moment; the supervisor gets it and a socketpair, and is born in its leaf, by elmer-spawn. When
 * that has looked the user up and made his directory, and it is elmer-supervisor, it answers `begin` with `adopted`;
 * else with `error`. A supervisor whose socket ends has died, whatever the reason: its job cannot go on here.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "rsd/root/cpus.h"
#include "rsd/root/internal.h"
#include "rsd/root/root.h"

int supervisor_address(const struct root *root, const struct root_job *job, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    return snprintf(address->sun_path, sizeof(address->sun_path), "%s/sup/%s", root->config->rundir, job->name) <
                   (int)sizeof(address->sun_path)
               ? 0
               : -ENAMETOOLONG;
}

static int listen_at(const struct root *root, const struct root_job *job, struct err *err)
{
    struct sockaddr_un address;
    int fd, result = supervisor_address(root, job, &address);
    if (result < 0)
        return err_set(err, result, "rundir is too long for the supervisors' sockets");
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    unlink(address.sun_path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4) < 0) {
        result = err_set(err, -errno, "cannot listen at %s: %s", address.sun_path, strerror(errno));
        close(fd);
        return result;
    }
    return fd;
}

static void send_begin(struct root *root, struct root_job *job, const char *user)
{
    char group[4300], tmpdir[200];
    struct wire_message begin = {.type = WIRE_begin};
    snprintf(group, sizeof(group), "%s/%s", root->groups, job->name);
    snprintf(tmpdir, sizeof(tmpdir), "%s/jobs/%s", root->config->rundir, job->name);
    begin.u.begin.job = job->id;
    begin.u.begin.attempt = job->attempt;
    begin.u.begin.uid = job->uid;
    begin.u.begin.user = user;
    begin.u.begin.group = group;
    begin.u.begin.tmpdir = tmpdir;
    tell_supervisor(job, &begin);
}

static void choose_admission(const struct root *root, struct root_job *job, const char *user)
{
    struct admission_known known = admission_recall(&root->admission, user, job->uid, mono_ms(mono_now()));
    job->asked_lists = !job->local && !known.lists;
    job->asked_account = !known.account && root->config->account[0];
    snprintf(job->asked, sizeof(job->asked), "%s", user);
}

int supervisor_start(struct root *root, struct root_job *job, const char *user, struct err *err)
{
    int pair[2] = {-1, -1}, listener = -1, result = 0;
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
    listener = listen_at(root, job, err);
    if (listener < 0) {
        close(pair[0]);
        close(pair[1]);
        return listener;
    }
    result = lease_keep(root, job);
    if (result < 0) {
        close(pair[0]);
        close(pair[1]);
        close(listener);
        return err_set(err, result, "cannot keep the job's lease in %s/sup: %s", root->config->rundir,
                       strerror(-result));
    }
    result = result_reserve(root, job);
    if (result < 0) {
        close(pair[0]);
        close(pair[1]);
        close(listener);
        return err_set(err, result, "cannot make room for the job's result in %s/sup: %s; what fills its file system?",
                       root->config->rundir, strerror(-result));
    }
    choose_admission(root, job, user);
    pid = spawn_supervisor(root, job, user, pair[1], listener, &job->supervisor_pidfd);
    close(pair[1]);
    close(listener);
    if (pid < 0) {
        result =
            err_set(err, pid, "cannot start a supervisor: %s%s", strerror(-pid),
                    pid == -EPERM ? "; has the user a uid of Elmer's own? run systemd-sysusers and restart rsd" : "");
        close(pair[0]);
    } else {
        job->supervisor_pid = pid;
        result = channel_init(&job->supervisor, pair[0], WIRE_FROM_SUPERVISOR, SUPERVISOR_OUT_MAX);
        job->connected = result == 0;
        tell_held(job, true); /* until it knows its rank as well: open.c */
        send_begin(root, job, user);
    }
    return result;
}

/* ---- what they say ---- */

/* A supervisor has found out what it was to. refusal: of PAM, who is asked last. */
static void keep_verdict(struct root *root, struct root_job *job, const char *refusal)
{
    int64_t now = mono_ms(mono_now());
    if (job->asked_lists)
        admission_keep_lists(&root->admission, job->asked, job->uid, now);
    if (job->asked_account)
        admission_keep_account(&root->admission, job->asked, job->uid, refusal, now);
    job->asked_lists = job->asked_account = false;
}

static void heard_adopted(struct root *root, struct root_job *job, const struct wire_adopted *adopted)
{
    if (!job->ready && job->state == JOB_OPEN) /* an earlier root half has told it */
        job->uid = (uid_t)adopted->uid;
    job->ready = true;
    for (size_t i = 0; i < adopted->helpers.count; i++)
        job_helper_add(job, (pid_t)adopted->helpers.items[i]);
    if (job->state == JOB_OPENING) {
        job->deadline_ms = 0;
        keep_verdict(root, job, "");
        starts_charge_supervisor(root, job);
    }
    job_try_opened(root, job);
}

static void fail_open(struct root *root, struct root_job *job, const char *text)
{
    log_warning("job=%s: cannot be opened here: %s", job->name, text);
    if (job->open_asked)
        tell_open_failed(root, job->id, job->attempt, job->open_id, text);
    job->open_asked = false;
    job->discard = true;
    ending_begin(root, job, 0);
}

/* Its text may hold what a user has named. */
static void heard_error(struct root *root, struct root_job *job, const struct wire_error *error)
{
    char text[1024];
    str_printable(text, sizeof(text), error->text, strlen(error->text));
    if (job->state == JOB_OPENING && strcmp(error->code, WIRE_CODE_NOT_PERMITTED) == 0)
        keep_verdict(root, job, text);
    if (job->state == JOB_OPENING) { /* who says this is no supervisor yet, and ends */
        supervisor_disconnect(job);
        job->supervisor_gone = true;
        fail_open(root, job, text);
    } else {
        log_warning("job=%s: its supervisor says: %s", job->name, text);
    }
}

static void heard_started(struct root *root, struct root_job *job, const struct wire_message *message)
{
    struct job_process *process = job_process(job, (uint32_t)message->u.started.process, true);
    if (process) {
        bool first = process->pid == 0 && !process->exited;
        if (first)
            starts_charge_birth(root, job, (pid_t)message->u.started.pid);
        process->pid = (pid_t)message->u.started.pid;
        if (process->role != ROLE_COMMAND)
            job_helper_add(job, process->pid);
        ranks_started(root, job, process, first);
    }
    tell(root, message);
}

/* Helpers end when the job is ended, and that says nothing about it. */
static bool says_nothing(const struct root_job *job, const struct job_process *process)
{
    return job->lapsed || (job->end_asked && process->role != ROLE_COMMAND);
}

static void heard_exited(struct root *root, struct root_job *job, const struct wire_exited *exited)
{
    struct job_process *process = job_process(job, (uint32_t)exited->process, true);
    if (!process || process->acknowledged)
        return;
    if (process->pid > 0)
        job_helper_remove(job, process->pid);
    role_by_name(exited->role, &process->role);
    process->pid = 0;
    if (!process->exited)
        process = job_process_last(job, process); /* they are told again in the order in which they came */
    process->exited = true;
    process->exit_status = (int)exited->exit_status;
    process->signal = (int)exited->signal;
    if (process->signal == SIGKILL && job->struck_bytes == 0)
        job->struck_bytes = group_memory_struck(&job->group);
    process->acknowledged = says_nothing(job, process);
    if (!process->acknowledged)
        tell_exited(root, job, process);
}

static void heard_waits(struct root_job *job, const struct wire_waits *waits)
{
    bool still = job->waits && waits->spun_us == job->spun_us && !waits->polls[0];
    job->still = !still ? 0 : job->still < LOOK_STILL ? job->still + 1 : LOOK_STILL;
    job->spun_us = waits->spun_us;
    if (!job->waits)
        ranks_look_again(job); /* an order may have come since */
    job->waits = true;
}

static bool names_job(const struct root_job *job, const struct wire_message *message)
{
    switch ((int)message->type) {
#define NAMES(verb)                                                                                                    \
    case WIRE_##verb:                                                                                                  \
        return message->u.verb.job == job->id && message->u.verb.attempt == job->attempt
        NAMES(adopted);
        NAMES(started);
        NAMES(start_failed);
        NAMES(line);
        NAMES(exited);
        NAMES(file_part);
        NAMES(waits);
        NAMES(pvm_spawn);
        NAMES(pvm_ready);
        NAMES(pvm_failed);
#undef NAMES
    case WIRE_error:
    case WIRE_done:
    case WIRE_pong:
        return true;
    default:
        return false;
    }
}

static void hear(struct root *root, struct root_job *job, const struct wire_message *message)
{
    if (!names_job(job, message)) {
        log_warning("job=%s: its supervisor sent %s out of place", job->name, wire_type_name(message->type));
        return;
    }
    switch ((int)message->type) {
    case WIRE_adopted:
        heard_adopted(root, job, &message->u.adopted);
        break;
    case WIRE_error:
        heard_error(root, job, &message->u.error);
        break;
    case WIRE_done:
        ending_told(root, job);
        break;
    case WIRE_pong: /* what it knows */
        channel_later(&job->supervisor, message->id < WIRE_MINOR ? (unsigned)message->id : WIRE_MINOR);
        if (job->state != JOB_OPENING) /* it has processes, of which an rsd of before knew */
            ranks_look(job);
        break;
    case WIRE_started:
        heard_started(root, job, message);
        break;
    case WIRE_exited:
        heard_exited(root, job, &message->u.exited);
        break;
    case WIRE_waits:
        heard_waits(job, &message->u.waits);
        tell(root, message);
        break;
    case WIRE_file_part:
        reading_told(root, job);
        tell(root, message);
        break;
    case WIRE_pvm_ready:
        boost_stop(root, job);
        tell(root, message);
        break;
    default:
        tell(root, message);
        break;
    }
}

void supervisor_kill(struct root *root, struct root_job *job)
{
    if (job->group.sup_fd >= 0 && group_write(job->group.sup_fd, "cgroup.kill", "1") == -ENOENT)
        (void)spawn_signal(root, job, "sup", SIGKILL); /* a kernel of before 5.14 */
}

void supervisor_disconnect(struct root_job *job)
{
    if (job->connected)
        channel_fini(&job->supervisor);
    job->connected = false;
}

void supervisor_lose(struct root *root, struct root_job *job)
{
    supervisor_disconnect(job);
    if (job->supervisor_gone)
        return;
    job->supervisor_gone = true;
    if (job->state !=
        JOB_CLOSING) /* there it has quit, and whoever is left is killed when the group cannot be removed */
        supervisor_kill(root, job); /* if only its socket has ended */
    switch (job->state) {
    case JOB_OPENING:
        fail_open(root, job,
                  "the job's supervisor ended before it was ready: look into the journal of rsd, and whether "
                  "elmer-supervisor is installed");
        break;
    case JOB_OPEN:
        snprintf(job->lost, sizeof(job->lost),
                 "the supervisor of job %" PRIu64
                 " was killed: its processes here cannot be watched any more and are ended",
                 job->id);
        log_error("job=%s: its supervisor has died: ending the job here", job->name);
        tell_lost(root, job);
        ending_begin(root, job, 0);
        break;
    case JOB_TERMINATING:
    case JOB_KILLING:
    case JOB_CLOSING:
        ending_step(root, job, mono_ms(mono_now()));
        break;
    case JOB_EMPTY:
    case ROOT_JOB_STATES:
        break;
    }
}

void supervisor_lost(struct root *root, struct root_job *job)
{
    if (job->state == JOB_OPEN && !job->ready)
        supervisor_disconnect(
            job); /* it is being adopted, and may never have begun: adopt_failed() looks what there is */
    else
        supervisor_lose(root, job);
}

void supervisor_read(struct root *root, struct root_job *job)
{
    struct err err = ERR_INIT;
    struct wire_message message;
    int filled = channel_fill(&job->supervisor, &err), got = 0;
    uint64_t id = job->id;
    uint32_t attempt = job->attempt;
    while (job->connected && (got = channel_next(&job->supervisor, &message, &err)) > 0) {
        hear(root, job, &message);
        wire_message_fini(&message);
        job = job_find(root, id, attempt); /* a job that could not be opened is dropped at once */
        if (!job)
            return;
    }
    if (got < 0)
        log_error("job=%s: its supervisor sent garbage: %s", job->name, err.text);
    if (filled < 0 || got < 0)
        supervisor_lost(root, job);
}
