/* main.c - elmer-spawn: what only root can do for rsd, and no more. See rsd/root/spawn.h.
 *
 * It reads a struct of fixed size and nothing else: no JSON, no configuration, no word of a user but his name, which it
 * takes to the user database. Who has taken rsd can ask for it; he gets a supervisor as a user from minimum_uid, in a
 * job's own group, and never another program, path, group or uid. Where tickets are required elmer-tickets must have
 * found that user's for that job.
 *
 * It is small so that fork(2) is cheap, ranks as rsd does, and never waits: what may take long is done by children,
 * which the kernel reaps by itself. It has no filter of system calls and the bounding set of its unit, because what it
 * starts would inherit both; its own sets of capabilities hold what is listed below. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/ticket/program.h"
#include "rsd/root/tmpdir.h"
#include "rsd/spawn/spawn.h"

enum { GRANTS = 64, REMOVE_S = 30, REMOVE_PATIENCE = 2000, RT_SECONDS = 5, MAX_FDS = 2 };

static struct spawn_plan plan;

void spawn_name(const struct spawn_request *request, char *name, size_t size)
{
    snprintf(name, size, "%" PRIu64 ".%" PRIu32, request->job, request->attempt);
}

/* ---- what it is ---- */

static int read_plan(void)
{
    if (read(SPAWN_FD_PLAN, &plan, sizeof(plan)) != (ssize_t)sizeof(plan) || plan.size != sizeof(plan) ||
        strncmp(plan.version, PACKAGE_VERSION, sizeof(plan.version)) != 0)
        return -EINVAL;
    close(SPAWN_FD_PLAN);
    for (int fd = SPAWN_FD_LINE; fd < SPAWN_FD_PLAN; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

#define BIT(cap) (1U << ((cap) % 32))
/* Births: the ids of users and of elmer-sup; SYS_NICE, which supervisors keep; CHOWN, for a job's directory and two
 * files of its group; DAC_OVERRIDE, for the groups, which are rsd's; SYS_RESOURCE, for limits and oom_score_adj.
 * Removal: CHOWN, DAC_OVERRIDE, FOWNER and SYS_ADMIN, as in tmpdir.c. KILL: signals. See doc/05-security.md. */
static int keep_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[2], wanted[2];
    const uint32_t low = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_NICE) | BIT(CAP_CHOWN) |
                         BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) |
                         BIT(CAP_KILL);
    if (syscall(SYS_capget, &header, had) < 0)
        return -errno;
    wanted[0] = (struct __user_cap_data_struct){had[0].permitted & low, had[0].permitted & low, 0};
    wanted[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, wanted) < 0 ? -errno : 0;
}

/* ---- verbs ---- */

static pid_t fork_into(int leaf, int *pidfd)
{
    const uint64_t flags = CLONE_PIDFD | (leaf < 0 ? 0 : (uint64_t)CLONE_INTO_CGROUP), group = (uint64_t)(unsigned)leaf;
    struct clone_args args = {.flags = flags, .pidfd = (uintptr_t)pidfd, .exit_signal = SIGCHLD, .cgroup = group};
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid >= 0 || (errno != ENOSYS && errno != E2BIG)) /* old kernel, or a filter around us */
        return pid < 0 ? (pid_t)-errno : (pid_t)pid;
    pid = fork();
    if (pid == 0 && leaf >= 0) {
        int fd = openat(leaf, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            _exit(127);
        close(fd);
    }
    if (pid > 0)
        *pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0U);
    return pid < 0 ? (pid_t)-errno : (pid_t)pid;
}

/* The last that elmer-tickets has said. */
static struct ticket_grant grants[GRANTS];
static unsigned granted_next;

static void hear_grant(struct pollfd *grantor)
{
    if (recv(SPAWN_FD_GRANTS, &grants[granted_next], sizeof(grants[0]), MSG_DONTWAIT) == (ssize_t)sizeof(grants[0]))
        granted_next = (granted_next + 1) % GRANTS;
    else
        grantor->fd = -1; /* it has ended, and rsd will, or it begins anew */
}

/* As a unit of its own: systemd has its socket, in a directory of root's, and gives it to no other process. */
static void join_grantor(struct pollfd *grantor)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&plan.grants, sizeof(plan.grants)) == 0)
        grantor->fd = dup3(fd, SPAWN_FD_GRANTS, O_CLOEXEC);
    close(fd);
}

static bool is_granted(const struct spawn_request *request)
{
    bool granted = !plan.tickets_required;
    for (const struct ticket_grant *grant = grants; grant < grants + GRANTS; grant++)
        granted |= grant->job == request->job && grant->attempt == request->attempt && grant->uid == request->uid;
    return granted;
}

static bool may_run(const struct spawn_request *request)
{
    for (size_t i = 0; i < SPAWN_OWN_USERS; i++)
        if (request->uid == plan.own[i])
            return false;
    return request->job > 0 && request->uid >= plan.minimum_uid && request->text[0] &&
           memchr(request->text, 0, sizeof(request->text));
}

static int spawn_one(const struct spawn_request *request, const int *fds, pid_t *pid, int *pidfd)
{
    char path[64];
    int leaf = -1;
    if (request->verb == SPAWN_SUPERVISOR) {
        if (!may_run(request) || fds[0] < 0 || fds[1] < 0)
            return -EPERM;
        if (!is_granted(request))
            return -EACCES;
        spawn_name(request, path, sizeof(path));
        strncat(path, "/sup", 5);
        leaf = openat(SPAWN_FD_GROUPS, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (leaf < 0)
            return -errno;
    }
    *pid = fork_into(leaf, pidfd);
    if (*pid == 0 && request->verb == SPAWN_SUPERVISOR)
        birth_supervisor(&plan, request, SPAWN_FD_GROUPS, SPAWN_FD_TMP, fds[0], fds[1]);
    if (*pid == 0)
        birth_escapes(&plan, getppid());
    if (leaf >= 0)
        close(leaf);
    return *pid < 0 ? *pid : 0;
}

/* Most directories hold nothing but a few files: that is done at once. Else in a process of its own: a user can put any
 * number of files there, or mount something that does not answer. It holds `done` open. */
static int remove_directory(const struct spawn_request *request, int done)
{
    char name[48];
    pid_t pid;
    spawn_name(request, name, sizeof(name));
    if (tmpdir_sweep(SPAWN_FD_TMP, name) == 0)
        return 0;
    pid = fork();
    if (pid == 0) {
        alarm(REMOVE_S);
        dup2(done, SPAWN_FD_LINE);
        dup2(SPAWN_FD_TMP, SPAWN_FD_GROUPS);
        (void)syscall(SYS_close_range, SPAWN_FD_TMP + 0U, ~0U, 0U);
        _exit(tmpdir_remove(SPAWN_FD_GROUPS, name, REMOVE_PATIENCE) < 0);
    }
    return pid < 0 ? -errno : 0;
}

/* The throttle of the real-time classes, and the server of the others: nothing else. */
static int number(const struct spawn_request *request, int64_t *value)
{
    static const char *const places[] = {"/proc/sys/kernel/sched_rt_", "/sys/kernel/debug/sched/fair_server/cpu"};
    char text[32] = "";
    int fd, result = -EPERM;
    if (!memchr(request->text, 0, sizeof(request->text)) || strstr(request->text, ".."))
        return result;
    for (size_t i = 0; i < 2; i++)
        result = strncmp(request->text, places[i], strlen(places[i])) == 0 ? 0 : result;
    if (result < 0)
        return result;
    fd = open(request->text, (request->set ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (request->set && dprintf(fd, "%" PRId64 "\n", request->value) < 0)
        result = -errno;
    if (result == 0 && pread(fd, text, sizeof(text) - 1, 0) < 0)
        result = -errno;
    close(fd);
    *value = atoll(text);
    return result;
}

static void run(const struct spawn_request *request, const int *fds, struct spawn_answer *answer, int *pidfd)
{
    switch ((enum spawn_verb)request->verb) {
    case SPAWN_SUPERVISOR:
    case SPAWN_ESCAPES:
        answer->result = spawn_one(request, fds, &answer->pid, pidfd);
        break;
    case SPAWN_REMOVE:
        answer->result = remove_directory(request, fds[0]);
        break;
    case SPAWN_SIGNAL:
        answer->result = signal_all(SPAWN_FD_GROUPS, request);
        break;
    case SPAWN_NUMBER:
        answer->result = number(request, &answer->value);
        break;
    default:
        answer->result = -ENOSYS;
        break;
    }
}

/* ---- the line ---- */

union control {
    char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
    struct cmsghdr align;
};

static struct pollfd from[] = {{.fd = SPAWN_FD_LINE, .events = POLLIN}, {.fd = SPAWN_FD_GRANTS, .events = POLLIN}};

static bool receive(struct spawn_request *request, int *fds)
{
    union control control;
    struct iovec part = {request, sizeof(*request)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    do {
        poll(from, 2, from[1].fd < 0 && plan.grants.sun_family ? SPAWN_JOIN_MS : -1);
        if (from[1].revents)
            hear_grant(&from[1]);
        else if (from[1].fd < 0 && plan.grants.sun_family) /* not at once: systemd may close what it is to pass on */
            join_grantor(&from[1]);
    } while (!from[0].revents || from[1].revents); /* what was granted before is heard before */
    got = recvmsg(SPAWN_FD_LINE, &message, MSG_CMSG_CLOEXEC);
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); got > 0 && at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
            memcpy(fds, CMSG_DATA(at), at->cmsg_len - CMSG_LEN(0));
    }
    return got == (ssize_t)sizeof(*request);
}

static bool reply(const struct spawn_answer *answer, int pidfd)
{
    union control control = {{0}};
    struct iovec part = {(void *)answer, sizeof(*answer)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pidfd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        *CMSG_FIRSTHDR(&message) =
            (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &pidfd, sizeof(int));
    }
    return sendmsg(SPAWN_FD_LINE, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*answer);
}

static bool serve_one(void)
{
    struct spawn_request request = {0};
    struct spawn_answer answer = {0};
    int fds[MAX_FDS] = {-1, -1}, pidfd = -1;
    bool good = receive(&request, fds);
    if (good) {
        run(&request, fds, &answer, &pidfd);
        good = reply(&answer, pidfd);
    }
    close(pidfd); /* of -1: nothing */
    close(fds[0]);
    close(fds[1]);
    return good;
}

int main(void)
{
    int none = 0;
    if (read_plan() < 0) {
        fprintf(stderr, "elmer-spawn: started by hand; rsd starts it\n");
        return 2;
    }
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps */
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_RTTIME, &plan.rt);
    setrlimit(RLIMIT_RTTIME, &(struct rlimit){RT_SECONDS * 1000000UL, plan.rt.rlim_max});
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || keep_capabilities() < 0) {
        fprintf(stderr, "<3>elmer-spawn cannot lay down capabilities: %s\n", strerror(errno));
        return 1;
    }
    /* Load what the user database is made of once, and not again in each child, nor ask there for an nscd that is not.
     */
    setenv("SYSTEMD_NSS_DYNAMIC_BYPASS", "1", 1);
    (void)getpwnam("root");
    (void)getgrouplist("root", 0, NULL, &none);
    while (serve_one()) {
    }
    return 0;
}
