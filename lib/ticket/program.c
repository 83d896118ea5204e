/* program.c - no rights, then the program: see program.h. Linked by itself into programs of root, which have no
 * OpenSSL.
 */
#include "config.h"

#include "lib/ticket/program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/log.h"

static int make_directory(const char *path, uid_t uid, gid_t gid, struct err *err)
{
    if (mkdir(path, 0700) < 0)
        return errno == EEXIST ? 0 : err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
    return chown(path, uid, gid) < 0 ? err_set(err, -errno, "cannot give %s away: %s", path, strerror(errno)) : 0;
}

static bool drop(uid_t uid, gid_t gid)
{
    for (unsigned long cap = 0; cap < 64; cap++)
        (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    return setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && (uid == 0 || setuid(0) < 0);
}

static _Noreturn void child(const char *path, const char *const *args, uid_t uid, gid_t gid, int first, int second,
                            int third, pid_t parent)
{
    sigset_t none;
    first = fcntl(first, F_DUPFD, 10);
    second = fcntl(second, F_DUPFD, 10);
    third = third < 0 ? -1 : fcntl(third, F_DUPFD, 10);
    if (first < 0 || second < 0 || dup2(first, TICKET_FD_FIRST) < 0 || dup2(second, TICKET_FD_SECOND) < 0)
        _exit(1);
    close(TICKET_FD_THIRD);
    if (third >= 0 && dup2(third, TICKET_FD_THIRD) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, TICKET_FD_THIRD + 1U, ~0U, 0U);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(077);
    if (drop(uid, gid)) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* after the change of user, which clears it */
        if (getppid() == parent)
            execve(path, (char *const *)args, environ);
    }
    log_error("cannot execute %s as uid %u: %s", path, (unsigned)uid, strerror(errno));
    _exit(1);
}

pid_t ticket_program_start(const char *path, const char *const *args, uid_t uid, gid_t gid, int first, int second,
                           int third, struct err *err)
{
    pid_t parent = getpid(), pid;
    int result = make_directory(args[2], uid, gid, err);
    if (result < 0)
        return result;
    pid = fork();
    if (pid == 0)
        child(path, args, uid, gid, first, second, third, parent);
    return pid < 0 ? err_set(err, -errno, "cannot fork: %s", strerror(errno)) : pid;
}
