/* scope.c - elmer-jobs.scope.
 *
 * A unit that keeps jobs in its own group cannot be restarted while they live once controllers are enabled there
 * (EBUSY, 219/CGROUP), so the groups are below a transient scope with Delegate=yes. A scope lives as long as a process
 * is in it: the keeper, which does nothing, in a leaf of its own, so that controllers can be handed down. A restarted
 * rsd finds the scope and takes it as it is. systemd's private socket is tried first: it is there without a bus.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "libelmer/base/clock.h"
#include "libelmer/base/log.h"
#include "rsd/root/group.h"
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

/* The group of the scope, e.g. /elmer.slice/elmer-jobs.scope; -ENOENT: it is not there (yet). */
static int scope_group(sd_bus *bus, char *group, size_t size)
{
    sd_bus_message *reply = NULL;
    const char *object;
    char *value = NULL;
    int result = sd_bus_call_method(bus, MANAGER, "GetUnit", NULL, &reply, "s", SCOPE);
    if (result >= 0)
        result = sd_bus_message_read(reply, "o", &object);
    if (result >= 0)
        result = sd_bus_get_property_string(bus, "org.freedesktop.systemd1", object, "org.freedesktop.systemd1.Scope",
                                            "ControlGroup", NULL, &value);
    if (result >= 0)
        result = value[0] && snprintf(group, size, "%s", value) < (int)size ? 0 : -ENOENT;
    else
        result = -ENOENT;
    free(value);
    sd_bus_message_unref(reply);
    return result;
}

static int append_string(sd_bus_message *m, const char *name, const char *value)
{
    return sd_bus_message_append(m, "(sv)", name, "s", value);
}

static int scope_request(sd_bus *bus, pid_t keeper, sd_bus_error *error)
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
        result = sd_bus_message_append(m, "(sv)", "Delegate", "b", 1);
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

/* In SCHED_OTHER, without our descriptors: it lives longer than we do. */
static pid_t keeper_start(const char *program)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct sched_param param = {0};
        char *argv[] = {(char *)"elmer-supervisor", (char *)"--keeper", NULL};
        char *envp[] = {NULL};
        int null = open("/dev/null", O_RDWR);
        sigset_t none;
        sched_setscheduler(0, SCHED_OTHER, &param);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid();
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        syscall(SYS_close_range, 3U, ~0U, 0U);
        execve(program, argv, envp);
        _exit(127);
    }
    return pid < 0 ? -errno : pid;
}

/* The scope's group is made by systemd after its answer. */
static int wait_for_group(pid_t keeper, int pidfd, char *group, size_t size)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};
    int64_t deadline = mono_ms(mono_now()) + BUS_MS;
    while (mono_ms(mono_now()) < deadline) {
        char of[4096];
        size_t length;
        if (group_of("/proc", keeper, of, sizeof of) == 0) {
            length = strlen(of);
            if (length >= strlen(SCOPE) && strcmp(of + length - strlen(SCOPE), SCOPE) == 0)
                return snprintf(group, size, "%s", of) < (int)size ? 0 : -ENAMETOOLONG;
        }
        if (poll(&ended, 1, 1) > 0)
            return -ECHILD;
    }
    return -ETIME;
}

static int keeper_to_leaf(int root_fd, pid_t keeper)
{
    char text[32];
    int fd, result = 0;
    if (mkdirat(root_fd, "keeper", 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = openat(root_fd, "keeper/cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(text, sizeof text, "%d", (int)keeper);
    if (write(fd, text, strlen(text)) < 0)
        result = -errno;
    close(fd);
    return result;
}

static bool keeper_lives(int root_fd)
{
    struct group_pids pids = {0};
    int leaf = openat(root_fd, "keeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool lives = leaf >= 0 && group_pids(leaf, &pids) == 0 && pids.count > 0;
    group_pids_fini(&pids);
    if (leaf >= 0)
        close(leaf);
    return lives;
}

static int scope_create(sd_bus *bus, const char *program, char *group, size_t size, pid_t *keeper, struct err *err)
{
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int pidfd, result;
    *keeper = keeper_start(program);
    if (*keeper < 0)
        return err_set(err, *keeper, "cannot start the keeper of " SCOPE ": %s", strerror(-*keeper));
    pidfd = (int)syscall(SYS_pidfd_open, *keeper, 0);
    result = scope_request(bus, *keeper, &error);
    if (result < 0)
        err_set(err, result, "systemd refused " SCOPE ": %s; look into its journal, or set cgroup_root in rsd.conf",
                error.message ? error.message : strerror(-result));
    else
        result = wait_for_group(*keeper, pidfd, group, size);
    sd_bus_error_free(&error);
    if (result == -ECHILD)
        err_set(err, result, "the keeper of " SCOPE " ended at once: is %s installed?", program);
    else if (result < 0)
        err_set(err, result,
                "systemd has not made " SCOPE " in %d ms; look into its journal, or set cgroup_root in rsd.conf",
                BUS_MS);
    if (result < 0) /* by its pidfd: it may have been reaped already, see reaper.c */
        (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    if (pidfd >= 0)
        close(pidfd);
    return result < 0 ? result : 0;
}

static int systemd_scope(const char *program, char *path, size_t size, struct err *err)
{
    char group[4096];
    sd_bus *bus = NULL;
    pid_t keeper = 0;
    int fd, result = bus_open(&bus);
    if (result < 0)
        return err_set(err, result, "cannot reach systemd for " SCOPE ": %s", strerror(-result));
    result = scope_group(bus, group, sizeof group);
    if (result < 0)
        result = scope_create(bus, program, group, sizeof group, &keeper, err);
    sd_bus_flush_close_unref(bus);
    if (result == 0)
        result = group_locate("/proc", group, path, size, err);
    if (result < 0)
        return result;
    fd = group_open_root(path, err);
    if (fd < 0)
        return fd;
    if (keeper == 0 && !keeper_lives(fd))
        keeper = keeper_start(program); /* jobs have kept the scope alive without it */
    if (keeper > 0) {
        result = keeper_to_leaf(fd, keeper);
        if (result < 0)
            log_warning("the keeper of " SCOPE " is not in its leaf, so no controllers for jobs: %s",
                        strerror(-result));
        close(fd);
        fd = group_open_root(path, err); /* again: now the controllers can be handed down */
    }
    return fd;
}

int scope_open(const struct rsd_config *config, char *path, size_t size, struct err *err)
{
    char own[4096];
    int result;
    if (config->cgroup_root[0]) {
        if (snprintf(path, size, "%s", config->cgroup_root) >= (int)size)
            return err_set(err, -ENAMETOOLONG, "cgroup_root is too long");
        return group_open_root(path, err);
    }
    if (sd_booted() > 0)
        return systemd_scope(config->supervisor, path, size, err);
    result = group_locate("/proc", NULL, own, sizeof own, err);
    if (result < 0)
        return result;
    if (snprintf(path, size, "%s/elmer-jobs", own) >= (int)size)
        return err_set(err, -ENAMETOOLONG, "the path of the own group is too long: set cgroup_root in rsd.conf");
    return group_open_root(path, err);
}
