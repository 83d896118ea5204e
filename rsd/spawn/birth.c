/* birth.c - from fork to exec.
 *
 * A supervisor: in the job's leaf `sup`, with the descriptors that it keeps. As root it looks the user up, asks whether
 * he may run jobs here (rsd/sup/admit.h), makes his directory, and gives the two cgroup.procs that births need to
 * elmer-sup. Then it has the user's gids, is elmer-sup, with SETUID and SYS_NICE, and elmer-supervisor; that takes the
 * user's uid as its effective one and lays SETUID down before it hears a word (rsd/sup/become.c). What goes wrong
 * before is said as a supervisor says it: one message on its channel. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rsd/root/own_user.h"
#include "rsd/root/tmpdir.h"
#include "rsd/spawn/spawn.h"
#include "rsd/sup/admit.h"
#include "rsd/sup/user.h"

enum { FD_CHANNEL = 3, FD_LISTEN = 4, FD_KILL = SUP_FD_KILL, FD_TMP = 6, ASIDE = 10 };

#define BIT(cap) (1U << (cap))

/* Uid and capabilities at once, effective and kept by exec. A unit or a container may withhold SYS_NICE: then the mode
 * is idle. */
static int become(uid_t uid, uint32_t capabilities)
{
    capabilities &= prctl(PR_CAPBSET_READ, CAP_SYS_NICE, 0, 0, 0) ? ~0U : ~BIT(CAP_SYS_NICE);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{capabilities, capabilities, capabilities}, {0}};
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(uid, uid, uid) < 0 ||
        syscall(SYS_capset, &header, data) < 0)
        return -errno;
    for (int cap = 0; cap < 32; cap++) {
        if ((capabilities & BIT(cap)) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
            return -errno;
    }
    return 0;
}

static void begin(const struct spawn_plan *plan)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    setrlimit(RLIMIT_RTTIME, &plan->rt);
}

static void add_journal(char *text, size_t size, char **envp)
{
    const char *stream = getenv("JOURNAL_STREAM");
    if (stream && snprintf(text, size, "JOURNAL_STREAM=%s", stream) < (int)size)
        *envp = text;
}

/* ---- a supervisor ---- */

/* As lib/wire has it: four bytes of length, and JSON. The text may have come from PAM. */
static _Noreturn void say(int result, const char *text)
{
    unsigned char frame[2200];
    size_t size = 4, end = sizeof(frame) - 8;
    size +=
        (size_t)snprintf((char *)frame + size, end - size, "{\"type\":\"error\",\"id\":0,\"code\":\"%s\",\"text\":\"",
                         result == -EKEYREJECTED ? "not-permitted" : "refused");
    for (; *text && size < end; text++) {
        if (*text == '"' || *text == '\\')
            frame[size++] = '\\';
        frame[size++] = (unsigned char)(*text < ' ' || *text > '~' ? '?' : *text);
    }
    frame[size++] = '"';
    frame[size++] = '}';
    frame[0] = frame[1] = 0;
    frame[2] = (unsigned char)((size - 4) >> 8);
    frame[3] = (unsigned char)((size - 4) & 0xff);
    (void)!write(FD_CHANNEL, frame, size);
    _exit(1);
}

/* 0 to 2, the supervisor's three, and the directories' directory. Returns the job's leaf. */
static int keep_descriptors(const struct spawn_request *request, int groups_fd, int tmp_fd, int channel, int listener)
{
    char name[48], path[64];
    int null = open("/dev/null", O_RDWR), job, kill;
    spawn_name(request, name, sizeof(name));
    snprintf(path, sizeof(path), "%s/job", name);
    job = openat(groups_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    kill = openat(job, "cgroup.kill", O_WRONLY); /* a kernel of before 5.14 has none */
    channel = fcntl(channel, F_DUPFD, ASIDE);
    listener = fcntl(listener, F_DUPFD, ASIDE);
    tmp_fd = fcntl(tmp_fd, F_DUPFD_CLOEXEC, ASIDE);
    job = fcntl(job, F_DUPFD_CLOEXEC, ASIDE);
    kill = kill < 0 ? -1 : fcntl(kill, F_DUPFD, ASIDE);
    if (null < 0 || channel < 0 || listener < 0 || tmp_fd < 0 || job < 0)
        _exit(127);
    dup2(null, 0);
    dup2(2, 1);
    dup2(channel, FD_CHANNEL);
    dup2(listener, FD_LISTEN);
    dup2(kill < 0 ? null : kill, FD_KILL);
    dup3(tmp_fd, FD_TMP, O_CLOEXEC);
    dup3(job, FD_TMP + 1, O_CLOEXEC);
    (void)syscall(SYS_close_range, FD_TMP + 2U, ~0U, 0U);
    return FD_TMP + 1;
}

/* rsd may be protected from the OOM killer. Jobs are not, and a supervisor is so small that it is not looked at. */
static void reset_oom(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "0", 1);
        close(fd);
    }
}

static int prepare(const struct spawn_plan *plan, const struct spawn_request *request, int job, struct user *user,
                   struct err *err)
{
    static const char *const files[] = {"../cgroup.procs", "cgroup.procs"};
    char name[48];
    int result;
    spawn_name(request, name, sizeof(name));
    if (request->ask_lists && plan->deny_users[0])
        setenv("ELMER_DENY_USERS", plan->deny_users, 1);
    if (request->ask_lists && plan->deny_groups[0])
        setenv("ELMER_DENY_GROUPS", plan->deny_groups, 1);
    if (request->ask_account && plan->account[0])
        setenv("ELMER_ACCOUNT", plan->account, 1);
    result = user_lookup(user, request->text, request->uid, err);
    if (result == 0)
        result = admit(user, sched_getscheduler(0) == SCHED_FIFO, err);
    if (result == 0)
        result = tmpdir_make(FD_TMP, name, user->uid, user->gid, err);
    for (size_t i = 0; result == 0 && i < 2; i++) {
        if (fchownat(job, files[i], plan->supervisor_uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) < 0)
            result = err_set(err, -errno, "cannot take over the job's group: %s", strerror(errno));
    }
    reset_oom();
    /* Who connects sees who has listened last: an rsd of before asks for root, and by the gid this one sees that the
     * supervisor is none of those. */
    if (result == 0 && (setgroups((size_t)user->group_count, user->groups) < 0 ||
                        setresgid(user->gid, user->gid, user->gid) < 0 || listen(FD_LISTEN, 4) < 0))
        result = -errno;
    if (result == 0)
        result = become(plan->supervisor_uid, BIT(CAP_SETUID) | BIT(CAP_SYS_NICE));
    return result < 0 ? err_set(err, result, "cannot put root down for user %s: %s", request->text, strerror(-result))
                      : 0;
}

_Noreturn void birth_supervisor(const struct spawn_plan *plan, const struct spawn_request *request, int groups_fd,
                                int tmp_fd, int channel, int listener)
{
    char lease[80], rsd[40], uid[40], name[300], home[4200], shell[4200], limit[80], journal[128];
    char *argv[] = {(char *)"elmer-supervisor", request->lease_ms > 0 ? lease : NULL, NULL};
    char *envp[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                    (char *)plan->helpers[0],
                    (char *)plan->helpers[1],
                    rsd,
                    uid,
                    name,
                    home,
                    shell,
                    limit,
                    NULL,
                    NULL};
    struct user user = {0};
    struct err err = ERR_INIT;
    struct rlimit processes = {RLIM_INFINITY, RLIM_INFINITY};
    int job, result;
    begin(plan);
    getrlimit(RLIMIT_NPROC, &processes);
    /* A limit of users: see limits.h. The second is for a container without CAP_SYS_RESOURCE. */
    if (setrlimit(RLIMIT_NPROC, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) < 0)
        setrlimit(RLIMIT_NPROC, &(struct rlimit){processes.rlim_max, processes.rlim_max});
    snprintf(limit, sizeof(limit), SUP_LIMIT_VARIABLE "=%ju %ju", (uintmax_t)processes.rlim_cur,
             (uintmax_t)processes.rlim_max);
    job = keep_descriptors(request, groups_fd, tmp_fd, channel, listener);
    result = prepare(plan, request, job, &user, &err);
    if (result < 0)
        say(result, err.text);
    snprintf(lease, sizeof(lease), "--lease=%" PRId64 ",%" PRId64, request->lease_ms, request->contact_ms);
    snprintf(rsd, sizeof(rsd), SUP_JOBS_VARIABLE "=%" PRIu32, plan->jobs_uid);
    snprintf(uid, sizeof(uid), SUP_UID_VARIABLE "=%" PRIu32, request->uid);
    snprintf(name, sizeof(name), "USER=%s", user.name);
    snprintf(home, sizeof(home), "HOME=%s", user.home);
    snprintf(shell, sizeof(shell), "SHELL=%s", user.shell);
    add_journal(journal, sizeof(journal), &envp[9]);
    execve(plan->supervisor, argv, envp);
    result = -errno;
    err_set(&err, result, "cannot execute %s: %s; is it installed?", plan->supervisor, strerror(-result));
    say(result, err.text);
}

/* ---- who looks for what leaves a job ---- */

/* In SCHED_OTHER, because it walks /proc. */
_Noreturn void birth_escapes(const struct spawn_plan *plan, pid_t parent)
{
    char journal[128], own[40], pid[24];
    char *argv[] = {(char *)"elmer-escapes", (char *)plan->users, (char *)plan->groups, pid, NULL};
    char *envp[] = {own, NULL, NULL};
    begin(plan);
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    snprintf(pid, sizeof(pid), "%d", (int)parent);
    snprintf(own, sizeof(own), OWN_USER_VARIABLE "=%" PRIu32, plan->supervisor_uid);
    add_journal(journal, sizeof(journal), &envp[1]);
    if (setgroups(0, NULL) == 0 && setresgid(plan->jobs_gid, plan->jobs_gid, plan->jobs_gid) == 0 &&
        become(plan->supervisor_uid, BIT(CAP_SYS_NICE)) == 0)
        execve(plan->escapes, argv, envp);
    dprintf(2, "<3>cannot look for processes that leave their job: cannot execute %s: %s\n", plan->escapes,
            strerror(errno));
    _exit(127);
}
