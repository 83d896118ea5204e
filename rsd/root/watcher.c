#include "config.h"

#include "rsd/root/watcher.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/log.h"
#include "rsd/root/group.h"
#include "rsd/root/own_user.h"
#include "rsd/root/sched.h"

/* Nobody must take it for the root half: nothing of its is open. In SCHED_OTHER, because it walks /proc. */
static _Noreturn void child(const struct rsd_config *config, const char *users, const char *groups, pid_t parent)
{
    char journal[128], uid[40], rsd[24];
    char *argv[] = {(char *)"elmer-escapes", (char *)users, (char *)groups, rsd, NULL};
    char *envp[] = {uid, NULL, NULL};
    const char *stream = getenv("JOURNAL_STREAM");
    sigset_t none;
    sched_rank(0, (struct order_rank){SCHED_OTHER, 0}, false);
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(rsd, sizeof(rsd), "%d", (int)parent);
    snprintf(uid, sizeof(uid), OWN_USER_VARIABLE "=%" PRIu32, config->supervisor_uid);
    if (stream && snprintf(journal, sizeof(journal), "JOURNAL_STREAM=%s", stream) < (int)sizeof(journal))
        envp[1] = journal;
    execve(config->escapes, argv, envp);
    log_error("cannot look for processes that leave their job: cannot execute %s: %s", config->escapes,
              strerror(errno));
    _exit(127);
}

pid_t watcher_start(const struct rsd_config *config, const char *users, const char *groups)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child(config, users, groups, parent);
    return pid < 0 ? (pid_t)-errno : pid;
}

bool watcher_find_users(const char *groups, char *users, size_t size)
{
    static const char scope[] = "/elmer.slice/elmer-jobs.scope";
    struct err err = ERR_INIT;
    const char *at = strstr(groups, scope);
    if (at && !at[strlen(scope)])
        return snprintf(users, size, "%.*s/user.slice", (int)(at - groups), groups) < (int)size;
    return group_locate("/proc", "/user.slice", users, size, &err) == 0;
}
