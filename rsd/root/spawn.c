#include "config.h"

#include "rsd/root/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/pass.h"
#include "rsd/root/internal.h"
#include "rsd/root/limits.h"

enum { ASIDE = 10 };

/* ---- start ---- */

/* Root is none of Elmer's: where minimum_uid is 0 it may run jobs. */
static uint32_t user_or_none(uint32_t uid)
{
    return uid > 0 ? uid : UINT32_MAX;
}

static int plan_file(const struct rsd_config *config, const char *users, const char *groups,
                     const struct spawn_grants *grants)
{
    static struct spawn_plan plan;
    plan = (struct spawn_plan){.size = sizeof(plan),
                               .tickets_required = config->tickets_required && (grants->fd >= 0 || grants->path[0]),
                               .minimum_uid = config->minimum_uid,
                               .supervisor_uid = config->supervisor_uid,
                               .jobs_uid = config->jobs_uid,
                               .jobs_gid = config->jobs_gid,
                               .own = {config->supervisor_uid, config->jobs_uid, user_or_none(config->ticket_uid),
                                       user_or_none(config->network_uid), user_or_none(config->rsd_uid),
                                       user_or_none(config->elmer_uid)}};
    snprintf(plan.version, sizeof(plan.version), "%s", PACKAGE_VERSION);
    snprintf(plan.supervisor, sizeof(plan.supervisor), "%s", config->supervisor);
    snprintf(plan.escapes, sizeof(plan.escapes), "%s", config->escapes);
    snprintf(plan.account, sizeof(plan.account), "%s", config->account);
    snprintf(plan.deny_users, sizeof(plan.deny_users), "%s", config->deny_users);
    snprintf(plan.deny_groups, sizeof(plan.deny_groups), "%s", config->deny_groups);
    snprintf(plan.users, sizeof(plan.users), "%s", users);
    snprintf(plan.groups, sizeof(plan.groups), "%s", groups);
    rsd_config_helpers(config, plan.helpers);
    if (grants->path[0]) {
        plan.grants.sun_family = AF_UNIX;
        snprintf(plan.grants.sun_path, sizeof(plan.grants.sun_path), "%s", grants->path);
    }
    return pass_file("elmer-spawn", &plan, sizeof(plan));
}

/* At the places where it looks for them; nothing else is left open beside 0 to 2. */
static _Noreturn void execute(const struct rsd_config *config, const struct limits *given, const int *fds)
{
    char *argv[] = {(char *)"elmer-spawn", NULL};
    int aside[SPAWN_FD_PLAN - SPAWN_FD_LINE + 1];
    const int count = SPAWN_FD_PLAN - SPAWN_FD_LINE + 1;
    sigset_t none;
    for (int i = 0; i < count; i++)
        aside[i] = fcntl(fds[i], F_DUPFD, ASIDE);
    for (int i = 0; i < count; i++) {
        if (aside[i] < 0 || dup2(aside[i], SPAWN_FD_LINE + i) < 0)
            _exit(1);
    }
    (void)syscall(SYS_close_range, SPAWN_FD_PLAN + 1U, ~0U, 0U);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    limits_give_back(given);
    execve(config->spawn, argv, environ);
    log_error("cannot execute %s: %s", config->spawn, strerror(errno));
    _exit(1);
}

pid_t spawn_start(const struct rsd_config *config, const struct limits *given, const char *users, const char *groups,
                  int groups_fd, int tmp_fd, const struct spawn_grants *grants, int *line, struct err *err)
{
    int pair[2], file = plan_file(config, users, groups, grants);
    pid_t pid;
    if (file < 0)
        return err_set(err, file, "cannot make a file in memory: %s", strerror(-file));
    if (access(config->spawn, X_OK) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        int result = err_set(err, -errno, "cannot execute %s: %s", config->spawn, strerror(errno));
        close(file);
        return result;
    }
    pid = fork();
    if (pid == 0)
        execute(config, given, (const int[]){pair[1], groups_fd, tmp_fd, grants->fd < 0 ? file : grants->fd, file});
    close(file);
    close(pair[1]);
    *line = pair[0];
    if (pid >= 0)
        return pid;
    close(pair[0]);
    return err_set(err, -errno, "cannot fork: %s", strerror(errno));
}

void spawn_become(const struct rsd_config *config, const struct limits *given, const struct rsd_facts *facts,
                  const struct spawn_grants *grants, struct err *err)
{
    const int file = plan_file(config, facts->users, facts->groups, grants);
    if (file < 0) {
        err_set(err, file, "cannot make a file in memory: %s", strerror(-file));
        return;
    }
    execute(config, given,
            (const int[]){facts->line, facts->groups_fd, facts->tmp_fd, grants->fd < 0 ? file : grants->fd, file});
}

/* ---- asking ---- */

static int hear(int line, struct spawn_answer *answer, int *pidfd)
{
    struct pollfd in = {.fd = line, .events = POLLIN};
    int64_t deadline = mono_ms(mono_now()) + SPAWN_MS, left;
    int ready, result, fds[PASS_MAX];
    do {
        left = deadline - mono_ms(mono_now());
        ready = poll(&in, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return -ETIMEDOUT;
    result = pass_receive(line, answer, sizeof(*answer), fds);
    *pidfd = fds[0];
    return result < 0 ? -EPIPE : 0;
}

/* Without it nothing can be done here: rsd is started again, and that with it. */
static int ask(struct root *root, const struct spawn_request *request, const int *fds, size_t count,
               struct spawn_answer *answer, int *pidfd)
{
    int got = -1, result = root->spawn_gone ? -EPIPE : pass_send(root->spawn_fd, request, sizeof(*request), fds, count);
    if (result == 0)
        result = hear(root->spawn_fd, answer, &got);
    if (result < 0) {
        if (!root->spawn_gone) {
            log_error("elmer-spawn does not answer: %s; stopping, jobs live on", strerror(-result));
            root->status = result == -ETIMEDOUT ? RSD_EXIT_STUCK : 1;
        }
        root->spawn_gone = root->stop = true;
        return result;
    }
    if (pidfd)
        *pidfd = got;
    else if (got >= 0)
        close(got);
    return answer->result;
}

static struct spawn_request about(const struct root_job *job, enum spawn_verb verb)
{
    return (struct spawn_request){.verb = verb, .job = job->id, .attempt = job->attempt, .uid = job->uid};
}

int spawn_supervisor(struct root *root, struct root_job *job, const char *user, int channel, int listener, int *pidfd)
{
    const int fds[] = {channel, listener};
    struct spawn_request request = about(job, SPAWN_SUPERVISOR);
    struct spawn_answer answer = {0};
    int result;
    request.lease_ms = job->lease_ms;
    request.contact_ms = root->contact_ms;
    request.ask_lists = job->asked_lists;
    request.ask_account = job->asked_account;
    snprintf(request.text, sizeof(request.text), "%s", user);
    result = ask(root, &request, fds, 2, &answer, pidfd);
    return result < 0 ? result : answer.pid;
}

int spawn_remove(struct root *root, const struct root_job *job, int done)
{
    const struct spawn_request request = about(job, SPAWN_REMOVE);
    struct spawn_answer answer = {0};
    return ask(root, &request, &done, 1, &answer, NULL);
}

int spawn_signal(struct root *root, const struct root_job *job, const char *leaf, int number)
{
    struct spawn_request request = about(job, SPAWN_SIGNAL);
    struct spawn_answer answer = {0};
    request.signal = (uint32_t)number;
    snprintf(request.text, sizeof(request.text), "%s", leaf);
    return ask(root, &request, NULL, 0, &answer, NULL);
}

int spawn_escapes(struct root *root, int *pidfd)
{
    const struct spawn_request request = {.verb = SPAWN_ESCAPES};
    struct spawn_answer answer = {0};
    int result = ask(root, &request, NULL, 0, &answer, pidfd);
    return result < 0 ? result : answer.pid;
}

int spawn_number(struct root *root, const char *path, int64_t *value, bool set)
{
    struct spawn_request request = {.verb = SPAWN_NUMBER, .set = set, .value = *value};
    struct spawn_answer answer = {0};
    int result;
    if (snprintf(request.text, sizeof(request.text), "%s", path) >= (int)sizeof(request.text))
        return -ENAMETOOLONG;
    result = ask(root, &request, NULL, 0, &answer, NULL);
    *value = answer.value;
    return result;
}
