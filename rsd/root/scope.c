/* scope.c - elmer-jobs.scope.
 *
 * A unit that keeps jobs in its own group cannot be restarted while they live once controllers are enabled there
 * (EBUSY, 219/CGROUP), so the groups are below a transient scope with Delegate=. A scope lives as long as a process
 * is in it: the keeper, which does nothing, in a leaf of its own, so that controllers can be handed down. A restarted
 * rsd finds the scope and takes it as it is. systemd's private socket is tried first: it is there without a bus.
 *
 * Steps, each of which may be the last: a keeper is started, which ends by itself unless it is told to stay; systemd
 * makes the scope around it; it is told to stay; it is moved to its leaf; controllers are handed down (controllers.c).
 * The next start finds no scope, or one whose keeper is in the scope itself, in the leaf, or gone.
 *
 * The scope is ordered before rsd.service: at a shutdown rsd stops first and starts nothing into a scope that is being
 * stopped. (After= in rsd.service would do that too, but keeps a scope that was stopped loaded, and systemd does not
 * make a transient unit that is loaded.) Who stops the scope by hand ends the keeper first of all, because nothing
 * delays it: while it is gone nothing is started (scope_holds).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/controllers.h"
#include "rsd/root/group.h"
#include "rsd/root/own_user.h"
#include "rsd/root/sched.h"
#include "rsd/root/scope.h"

#define SCOPE   "elmer-jobs.scope"
#define MANAGER "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
enum { BUS_MS = 5000 };

static int bus_open(sd_bus **bus)
{
    int result = sd_bus_new(bus);
    if (result < 0)
        return result;
    result = sd_bus_set_address(*bus, "unix:path=/run/systemd/private");
    if (result >= 0)
        result = sd_bus_start(*bus);
    if (result < 0) {
        sd_bus_unref(*bus);
        *bus = NULL;
        result = sd_bus_open_system(bus);
    }
    if (result >= 0)
        sd_bus_set_method_call_timeout(*bus, (uint64_t)BUS_MS * 1000);
    return result;
}

static int unit_string(sd_bus *bus, const char *object, const char *interface, const char *property, char *out,
                       size_t size)
{
    char *value = NULL;
    int result = sd_bus_get_property_string(bus, "org.freedesktop.systemd1", object, interface, property, NULL, &value);
    if (result >= 0)
        result = snprintf(out, size, "%s", value) < (int)size ? 0 : -ENAMETOOLONG;
    free(value);
    return result;
}

/* The group of the scope, e.g. /elmer.slice/elmer-jobs.scope; -ENOENT: it is not there (yet); -EBUSY: it is being
 * stopped; -EAGAIN: made. */
static int scope_group(sd_bus *bus, char *group, size_t size)
{
    sd_bus_message *reply = NULL;
    const char *object;
    char state[32] = "";
    int result = sd_bus_call_method(bus, MANAGER, "GetUnit", NULL, &reply, "s", SCOPE);
    if (result >= 0)
        result = sd_bus_message_read(reply, "o", &object);
    if (result >= 0)
        result = unit_string(bus, object, "org.freedesktop.systemd1.Unit", "ActiveState", state, sizeof(state));
    if (result >= 0)
        result = unit_string(bus, object, "org.freedesktop.systemd1.Scope", "ControlGroup", group, size);
    sd_bus_message_unref(reply);
    if (result < 0 || !group[0])
        return -ENOENT;
    return strcmp(state, "deactivating") == 0 ? -EBUSY : strcmp(state, "activating") == 0 ? -EAGAIN : 0;
}

static bool scope_is_made(sd_bus *bus)
{
    char group[4096];
    return scope_group(bus, group, sizeof(group)) == 0;
}

static int append_string(sd_bus_message *m, const char *name, const char *value)
{
    return sd_bus_message_append(m, "(sv)", name, "s", value);
}

/* It belongs to elmer-jobs from the start; hand_over.c gives it that one of before, and what rsd makes in it. */
static int append_user(sd_bus_message *m, uid_t uid)
{
    char text[24];
    snprintf(text, sizeof(text), "%u", (unsigned)uid);
    return append_string(m, "User", text);
}

/* uid 0: root's, for a systemd of before 246, and where there is no such user. */
static int scope_request(sd_bus *bus, pid_t keeper, uid_t uid, sd_bus_error *error)
{
    sd_bus_message *m = NULL, *reply = NULL;
    int result = sd_bus_message_new_method_call(bus, &m, MANAGER, "StartTransientUnit");
    if (result >= 0)
        result = sd_bus_message_append(m, "ss", SCOPE, "fail");
    if (result >= 0)
        result = sd_bus_message_open_container(m, 'a', "(sv)");
    if (result >= 0)
        result = append_string(m, "Description", "Elmer's jobs");
    if (result >= 0)
        result = append_string(m, "Slice", "elmer.slice");
    if (result >= 0)
        result = append_string(m, "CollectMode", "inactive-or-failed");
    if (result >= 0)
        result = sd_bus_message_append(m, "(sv)", "DelegateControllers", "as", 3, "cpu", "cpuset", "memory");
    if (result >= 0 && uid != 0)
        result = append_user(m, uid);
    if (result >= 0)
        result = sd_bus_message_append(m, "(sv)", "Before", "as", 1, "rsd.service");
    if (result >= 0)
        result = sd_bus_message_append(m, "(sv)", "TasksMax", "t", UINT64_MAX);
    if (result >= 0)
        result = sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t)keeper);
    if (result >= 0)
        result = sd_bus_message_close_container(m);
    if (result >= 0)
        result = sd_bus_message_append(m, "a(sa(sv))", 0);
    if (result >= 0)
        result = sd_bus_call(bus, m, (uint64_t)BUS_MS * 1000, error, &reply);
    sd_bus_message_unref(m);
    sd_bus_message_unref(reply);
    return result;
}

struct keeper {
    pid_t pid;
    int pidfd, line; /* line: closed before it was told to stay, it ends */
};
#define KEEPER_INIT                                                                                                    \
    {                                                                                                                  \
        0, -1, -1                                                                                                      \
    }

/* Without our descriptors: it lives longer than we do. */
static _Noreturn void keeper_run(const struct rsd_config *config, int line)
{
    char *argv[] = {(char *)"elmer-supervisor", (char *)"--keeper", NULL};
    char uid[40], *envp[] = {uid, NULL};
    char word;
    int null = open("/dev/null", O_RDWR);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup3(line, 3, O_CLOEXEC);
    snprintf(uid, sizeof(uid), OWN_USER_VARIABLE "=%" PRIu32, config->supervisor_uid);
    (void)syscall(SYS_close_range, 4U, ~0U, 0U);
    if (read(3, &word, 1) != 1)
        _exit(0);
    if (setgroups(0, NULL) < 0 || setresgid(config->jobs_gid, config->jobs_gid, config->jobs_gid) < 0 ||
        setresuid(config->supervisor_uid, config->supervisor_uid, config->supervisor_uid) < 0)
        _exit(127);
    execve(config->supervisor, argv, envp);
    word = (char)errno;
    (void)!write(3, &word, 1);
    _exit(127);
}

/* In SCHED_OTHER, because a group may refuse others. leaf_fd -1: in our own group. */
static int keeper_start(struct keeper *keeper, const struct rsd_config *config, int leaf_fd)
{
    struct sched_param param = {0};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    if (leaf_fd >= 0) {
        keeper->pid = group_fork(leaf_fd, &keeper->pidfd);
    } else {
        keeper->pid = fork();
        keeper->pid = keeper->pid < 0 ? -errno : keeper->pid;
    }
    if (keeper->pid == 0)
        keeper_run(config, pair[1]);
    close(pair[1]);
    keeper->line = pair[0];
    if (keeper->pid < 0)
        return keeper->pid;
    if (keeper->pidfd < 0)
        keeper->pidfd = (int)syscall(SYS_pidfd_open, keeper->pid, 0);
    sched_setscheduler(keeper->pid, SCHED_OTHER, &param);
    return 0;
}

/* Above all jobs from here on, where that can be: it must end at once when the scope is stopped. */
static int keeper_stay(struct keeper *keeper, const struct rsd_config *config, struct err *err)
{
    struct pollfd answer = {.fd = keeper->line, .events = POLLIN}, ended = {.fd = keeper->pidfd, .events = POLLIN};
    char word = 0;
    sched_rank(keeper->pid, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false);
    if (send(keeper->line, &word, 1, MSG_NOSIGNAL) != 1 || poll(&answer, 1, BUS_MS) <= 0)
        return err_set(err, -ECHILD, "the keeper of " SCOPE " does not answer");
    if (read(keeper->line, &word, 1) > 0 || poll(&ended, 1, 0) > 0)
        return err_set(err, -ECHILD, "the keeper of " SCOPE " has not become %s: %s; is it installed?",
                       config->supervisor, strerror(word ? word : ECHILD));
    return 0;
}

static void keeper_fini(struct keeper *keeper, bool stays)
{
    if (!stays && keeper->pidfd >= 0) /* by its pidfd: it may have been reaped already, see reaper.c */
        (void)syscall(SYS_pidfd_send_signal, keeper->pidfd, SIGKILL, NULL, 0);
    if (keeper->pidfd >= 0)
        close(keeper->pidfd);
    if (keeper->line >= 0)
        close(keeper->line);
    *keeper = (struct keeper)KEEPER_INIT;
}

/* The scope's group is made by systemd after its answer, and given to its user by a process that systemd puts into it:
 * until that is over nothing can be done there. */
static int wait_for_group(sd_bus *bus, pid_t keeper, int pidfd, char *group, size_t size)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int64_t deadline = mono_ms(mono_now()) + BUS_MS;
    while (mono_ms(mono_now()) < deadline) {
        char of[4096];
        size_t length;
        if (group_of("/proc", keeper, of, sizeof(of)) == 0) {
            length = strlen(of);
            if (length >= strlen(SCOPE) && strcmp(of + length - strlen(SCOPE), SCOPE) == 0 && scope_is_made(bus))
                return snprintf(group, size, "%s", of) < (int)size ? 0 : -ENAMETOOLONG;
        }
        if (poll(&ended, 1, 1) > 0)
            return -ECHILD;
    }
    return -ETIME;
}

bool scope_holds(int root_fd)
{
    char text[256];
    if (faccessat(root_fd, "keeper", F_OK, 0) < 0 && errno == ENOENT)
        return faccessat(root_fd, "cgroup.procs", F_OK, 0) == 0; /* a place without a keeper */
    return group_read(root_fd, "keeper/cgroup.events", text, sizeof(text)) == 0 && strstr(text, "populated 1");
}

/* Without our descriptors: who waits for our end must not wait for this. */
static _Noreturn void ask_run(int line)
{
    char group[4096], stops;
    sd_bus *bus = NULL;
    sigset_t none;
    alarm(BUS_MS / 1000); /* for all that is asked together */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(line, 3);
    (void)syscall(SYS_close_range, 4U, ~0U, 0U);
    stops = bus_open(&bus) >= 0 && scope_group(bus, group, sizeof(group)) == -EBUSY;
    (void)!write(3, &stops, 1);
    _exit(0);
}

int scope_ask(const struct rsd_config *config)
{
    int pair[2];
    pid_t pid;
    if (config->cgroup_root[0] || sd_booted() <= 0)
        return -ENOENT;
    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        ask_run(pair[1]);
    close(pair[1]);
    if (pid > 0)
        return pair[0];
    close(pair[0]);
    return -EAGAIN;
}

/* Jobs have kept the scope alive without it. A new leaf: nothing is born alive where cgroup.kill has struck. */
static int keeper_again(int root_fd, const struct rsd_config *config, struct err *err)
{
    struct keeper keeper = KEEPER_INIT;
    int leaf, result;
    unlinkat(root_fd, "keeper", AT_REMOVEDIR);
    if (mkdirat(root_fd, "keeper", 0755) < 0 && errno != EEXIST)
        return err_set(err, -errno, "cannot make the keeper's group in " SCOPE ": %s", strerror(errno));
    leaf = openat(root_fd, "keeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf < 0)
        return err_set(err, -errno, "cannot open the keeper's group in " SCOPE ": %s", strerror(errno));
    result = keeper_start(&keeper, config, leaf);
    if (result < 0)
        err_set(err, result, "cannot start the keeper of " SCOPE ": %s", strerror(-result));
    else
        result = keeper_stay(&keeper, config, err);
    keeper_fini(&keeper, result == 0);
    close(leaf);
    return result;
}

/* The machine is being shut down, or the scope of before is not quite gone. */
static bool is_on_its_way(const sd_bus_error *error)
{
    return sd_bus_error_has_name(error, "org.freedesktop.systemd1.TransactionIsDestructive") ||
           sd_bus_error_has_name(error, "org.freedesktop.systemd1.ShuttingDown") ||
           sd_bus_error_has_name(error, "org.freedesktop.systemd1.UnitExists");
}

static int scope_create(sd_bus *bus, const struct rsd_config *config, char *group, size_t size, struct err *err)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    struct keeper keeper = KEEPER_INIT;
    int result = keeper_start(&keeper, config, -1);
    if (result < 0) {
        keeper_fini(&keeper, false);
        return err_set(err, result, "cannot start the keeper of " SCOPE ": %s", strerror(-result));
    }
    result = scope_request(bus, keeper.pid, getpwuid(config->jobs_uid) ? config->jobs_uid : 0, &error);
    if (result < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_PROPERTY_READ_ONLY)) {
        sd_bus_error_free(&error);
        result = scope_request(bus, keeper.pid, 0, &error);
    }
    if (result < 0 && is_on_its_way(&error))
        result = err_set(err, -EBUSY, "systemd makes no " SCOPE " now: %s", error.message);
    else if (result < 0)
        err_set(err, result, "systemd refused " SCOPE ": %s; look into its journal, or set cgroup_root in rsd.conf",
                error.message ? error.message : strerror(-result));
    else
        result = wait_for_group(bus, keeper.pid, keeper.pidfd, group, size);
    sd_bus_error_free(&error);
    if (result < 0) /* the first error wins */
        err_set(err, result,
                "systemd has not made " SCOPE " in %d ms; look into its journal, or set cgroup_root in rsd.conf",
                BUS_MS);
    else
        result = keeper_stay(&keeper, config, err);
    keeper_fini(&keeper, result >= 0);
    return result < 0 ? result : 0;
}

/* The group of the scope, which systemd makes if it is not there. */
static int scope_find(const struct rsd_config *config, char *path, size_t size, struct err *err)
{
    char group[4096] = "";
    sd_bus *bus = NULL;
    int result = bus_open(&bus);
    if (result < 0)
        return err_set(err, result, "cannot reach systemd for " SCOPE ": %s", strerror(-result));
    result = scope_group(bus, group, sizeof(group));
    if (result == -EBUSY)
        err_set(err, result, SCOPE " is being stopped: nothing is started until it is gone");
    else if (result == -EAGAIN) /* rsd was killed meanwhile */
        err_set(err, result, SCOPE " is being made by systemd");
    else if (result < 0)
        result = scope_create(bus, config, group, sizeof(group), err);
    sd_bus_flush_close_unref(bus);
    return result == 0 ? group_locate("/proc", group, path, size, err) : result;
}

static int systemd_scope(const struct rsd_config *config, char *path, size_t size, struct err *err)
{
    int fd, result = scope_find(config, path, size, err);
    if (result < 0)
        return result;
    fd = group_open_root(path, err);
    if (fd < 0)
        return fd;
    result = controllers_settle(fd);
    if (result < 0)
        log_warning("the processes in %s itself cannot be moved to a leaf: %s", SCOPE, strerror(-result));
    result = scope_holds(fd) ? 0 : keeper_again(fd, config, err);
    if (result == 0)
        return fd;
    close(fd);
    return result;
}

unsigned scope_lend(int root_fd, unsigned wanted)
{
    int parent = sd_booted() > 0 ? -1 : openat(root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned before, after = 0;
    if (parent < 0)
        return 0;
    before = controllers_hand_down(parent, 0);
    if (faccessat(parent, "cgroup.procs", F_OK, 0) == 0 && faccessat(parent, "cgroup.type", F_OK, 0) < 0)
        after = controllers_hand_down(parent, wanted);
    close(parent);
    return after & ~before;
}

void scope_lend_no_more(int root_fd, unsigned lent)
{
    int parent = lent ? openat(root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (parent < 0)
        return;
    controllers_take_back(parent, lent);
    close(parent);
}

static int plain_group(const struct rsd_config *config, char *path, size_t size, struct err *err)
{
    char own[4096];
    int fd, result = config->cgroup_root[0] ? 0 : group_locate("/proc", NULL, own, sizeof(own), err);
    if (result < 0)
        return result;
    if (config->cgroup_root[0])
        result = snprintf(path, size, "%s", config->cgroup_root);
    else
        result = snprintf(path, size, "%s/elmer-jobs", own);
    if (result >= (int)size)
        return err_set(err, -ENAMETOOLONG, "the path of the group for jobs is too long: set cgroup_root in rsd.conf");
    fd = group_open_root(path, err);
    if (fd < 0)
        return fd;
    scope_lend(fd, CONTROLLER_MEMORY | CONTROLLER_CPUSET);
    if (!config->cgroup_root[0]) /* others' processes in a group that is not ours stay there */
        (void)controllers_settle(fd);
    return fd;
}

int scope_open(const struct rsd_config *config, char *path, size_t size, struct err *err)
{
    int fd;
    if (!config->cgroup_root[0] && sd_booted() > 0)
        fd = systemd_scope(config, path, size, err);
    else
        fd = plain_group(config, path, size, err);
    return fd;
}
