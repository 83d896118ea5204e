/* net_start.c - the network half is a program of its own: no memory of root's is its, not even addresses. */
#include <config.h>

#include "rsd/net_start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/pass.h"
#include "rsd/root/caps.h"
#include "rsd/root/limits.h"

void net_plan_serve(struct net_plan *plan, const struct rsd_config *config)
{
    plan->size = sizeof(*plan);
    snprintf(plan->version, sizeof(plan->version), "%s", PACKAGE_VERSION);
    plan->task = NET_SERVE;
    plan->config = *config;
}

static int plan_file(struct net_plan *plan)
{
    plan->size = sizeof(*plan);
    snprintf(plan->version, sizeof(plan->version), "%s", PACKAGE_VERSION);
    return pass_file("elmer-rsd-net", plan, sizeof(*plan));
}

/* At the places where it looks for them; nothing else is left open beside 0 to 2. */
static int keep_only(const int *given)
{
    static const int places[] = {NET_FD_ROOT, NET_FD_LISTEN, NET_FD_PLAN};
    enum { COUNT = sizeof(places) / sizeof(places[0]), ASIDE = 10 };
    int aside[COUNT];
    for (int i = 0; i < COUNT; i++) {
        aside[i] = given[i] < 0 ? -1 : fcntl(given[i], F_DUPFD, ASIDE);
        if (given[i] >= 0 && aside[i] < 0)
            return -errno;
    }
    (void)syscall(SYS_close_range, (unsigned)NET_FD_ROOT, ASIDE - 1U, 0U);
    for (int i = 0; i < COUNT; i++) {
        if (aside[i] >= 0 && dup2(aside[i], places[i]) < 0)
            return -errno;
    }
    (void)syscall(SYS_close_range, NET_FD_PLAN + 1U, ~0U, 0U);
    return 0;
}

static int drop(uid_t uid, gid_t gid)
{
    if (caps_empty_bounding_set() < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0 || caps_keep(CAPS_NOTHING) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (setuid(0) == 0 || setgid(0) == 0)
        return -EPERM;
    return 0;
}

static _Noreturn void child(const struct net_plan *plan, uid_t uid, gid_t gid, const int *fds, pid_t parent)
{
    char *argv[] = {(char *)"elmer-rsd-net", NULL};
    struct limits given;
    int result = keep_only(fds);
    limits_of_daemon(&given);
    if (result == 0)
        result = drop(uid, gid);
    if (result < 0) {
        log_error("cannot become user %s: %s", plan->config.user, strerror(-result));
        _exit(1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* after the change of user, which clears it */
    if (getppid() != parent)
        _exit(1);
    umask(077);
    execve(plan->config.network, argv, environ);
    log_error("cannot execute %s: %s", plan->config.network, strerror(errno));
    _exit(1);
}

pid_t net_start(struct net_plan *plan, uid_t uid, gid_t gid, int root_fd, int listen_fd, struct err *err)
{
    pid_t parent = getpid(), pid;
    int file = plan_file(plan);
    if (file < 0)
        return err_set(err, file, "cannot make a file in memory: %s", strerror(-file));
    pid = fork();
    if (pid < 0)
        pid = err_set(err, -errno, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        child(plan, uid, gid, (const int[]){root_fd, listen_fd, file}, parent);
    close(file);
    return pid;
}
