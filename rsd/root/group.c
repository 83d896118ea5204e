/* group.c - cgroup2 as files. Only the core of cgroup2 is needed; controllers are used where they are. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/root/controllers.h"
#include "rsd/root/group.h"

int group_write(int dir, const char *name, const char *text)
{
    int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    int result = 0;
    if (fd < 0)
        return -errno;
    if (write(fd, text, strlen(text)) < 0)
        result = -errno;
    close(fd);
    return result;
}

int group_read(int dir, const char *name, char *text, size_t size)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    if (fd < 0)
        return -errno;
    got = read(fd, text, size - 1);
    if (got < 0)
        got = -errno;
    else
        text[got] = 0;
    close(fd);
    return got < 0 ? (int)got : 0;
}

static int open_dir(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- making and removing ---- */

int group_open_root(const char *path, struct err *err)
{
    int fd;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return err_set(err, -errno,
                       "cannot make the group %s: %s; set cgroup_root in rsd.conf to a place in cgroup2 where root may",
                       path, strerror(errno));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "cannot open the group %s: %s", path, strerror(errno));
    if (faccessat(fd, "cgroup.procs", F_OK, 0) < 0) {
        close(fd);
        return err_set(err, -EINVAL,
                       "%s is not in a cgroup2 hierarchy: set cgroup_root in rsd.conf to a directory that is", path);
    }
    return fd;
}

/* *made: by us, just now. */
static int make_dir(int dir, const char *name, bool make, bool *made)
{
    *made = make && mkdirat(dir, name, 0755) == 0;
    if (make && !*made && errno != EEXIST)
        return -errno;
    return open_dir(dir, name);
}

int group_open(int root_fd, const char *name, bool make, struct cgroup *group, struct err *err)
{
    int dir, result = 0;
    bool made, leaf_made;
    *group = (struct cgroup)CGROUP_INIT;
    dir = make_dir(root_fd, name, make, &made);
    if (dir < 0)
        return err_set(err, dir, "cannot make the job's group %s: %s", name, strerror(-dir));
    if (made) /* cpu: the group as a whole has a weight */
        controllers_hand_down_new(dir, CONTROLLER_MEMORY | CONTROLLER_CPUSET);
    else if (make)
        controllers_hand_down(dir, CONTROLLER_MEMORY | CONTROLLER_CPUSET);
    group->sup_fd = make_dir(dir, "sup", make, &leaf_made);
    group->job_fd = make_dir(dir, "job", make, &leaf_made);
    if (group->sup_fd < 0)
        result = group->sup_fd;
    else if (group->job_fd < 0)
        result = group->job_fd;
    else
        group->events_fd = openat(group->job_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (result == 0 && group->events_fd < 0)
        result = -errno;
    close(dir);
    if (result == 0)
        return 0;
    group_close(group);
    if (make)
        group_remove(root_fd, name);
    return err_set(err, result, "cannot make the leaves of the job's group %s: %s", name, strerror(-result));
}

void group_close(struct cgroup *group)
{
    if (group->job_fd >= 0)
        close(group->job_fd);
    if (group->sup_fd >= 0)
        close(group->sup_fd);
    if (group->events_fd >= 0)
        close(group->events_fd);
    *group = (struct cgroup)CGROUP_INIT;
}

int group_remove(int root_fd, const char *name)
{
    static const char *const leaves[] = {"job", "sup"};
    int dir = open_dir(root_fd, name);
    int result = 0;
    if (dir < 0)
        return dir == -ENOENT ? 0 : dir;
    for (size_t i = 0; i < 2; i++) {
        if (unlinkat(dir, leaves[i], AT_REMOVEDIR) < 0 && errno != ENOENT)
            result = -errno;
    }
    close(dir);
    if (result == 0 && unlinkat(root_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        result = -errno;
    return result;
}

/* ---- processes ---- */

static pid_t fork_and_move(int leaf_fd, int *pidfd)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        if (group_write(leaf_fd, "cgroup.procs", "0") < 0)
            _exit(127);
        return 0;
    }
    *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

pid_t group_fork(int leaf_fd, int *pidfd)
{
    struct clone_args args = {0};
    long pid;
    *pidfd = -1;
    args.flags = (uint64_t)CLONE_INTO_CGROUP | CLONE_PIDFD;
    args.pidfd = (uint64_t)(uintptr_t)pidfd;
    args.exit_signal = SIGCHLD;
    args.cgroup = (uint64_t)(unsigned)leaf_fd;
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0 && (errno == ENOSYS || errno == E2BIG)) /* old kernel, or a filter around us */
        return fork_and_move(leaf_fd, pidfd);
    return pid < 0 ? (pid_t)-errno : (pid_t)pid;
}

int group_pids_add(struct group_pids *pids, pid_t pid)
{
    if (pids->count == pids->capacity) {
        size_t capacity = pids->capacity ? pids->capacity * 2 : 64;
        pid_t *items = reallocarray(pids->items, capacity, sizeof(*items));
        if (!items)
            return -ENOMEM;
        pids->items = items;
        pids->capacity = capacity;
    }
    pids->items[pids->count++] = pid;
    return 0;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

enum { PID_BOUND = 100000000 /* beyond every pid, and ten times this is still an int */ };

int group_reader_open(struct group_reader *reader, int leaf_fd, bool threads)
{
    *reader =
        (struct group_reader){.fd = openat(leaf_fd, threads ? "cgroup.threads" : "cgroup.procs", O_RDONLY | O_CLOEXEC)};
    return reader->fd < 0 ? -errno : 0;
}

void group_reader_close(struct group_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

int group_reader_next(struct group_reader *reader, struct group_pids *ids)
{
    char buffer[512];
    ssize_t got = read(reader->fd, buffer, sizeof(buffer));
    if (got < 0)
        return -errno;
    for (ssize_t i = 0; i < got; i++) {
        if (buffer[i] >= '0' && buffer[i] <= '9') {
            reader->part = reader->part < PID_BOUND ? reader->part * 10 + (buffer[i] - '0') : PID_BOUND;
            continue;
        }
        if (reader->part > 0 && group_pids_add(ids, reader->part) < 0) /* 0: of another PID namespace */
            return -ENOMEM;
        reader->part = 0;
    }
    return got > 0;
}

static int read_ids(int leaf_fd, bool threads, struct group_pids *ids)
{
    struct group_reader reader;
    int result = group_reader_open(&reader, leaf_fd, threads);
    ids->count = 0;
    while (result >= 0 && (result = group_reader_next(&reader, ids)) > 0) {
    }
    group_reader_close(&reader);
    return result;
}

int group_pids(int leaf_fd, struct group_pids *pids)
{
    return read_ids(leaf_fd, false, pids);
}

int group_threads(int leaf_fd, struct group_pids *tids)
{
    return read_ids(leaf_fd, true, tids);
}

bool group_has_more_than(int leaf_fd, size_t few)
{
    struct group_reader reader;
    struct group_pids pids = {0};
    bool more = group_reader_open(&reader, leaf_fd, false) == 0;
    while (more && pids.count <= few)
        more = group_reader_next(&reader, &pids) > 0;
    more = pids.count > few;
    group_reader_close(&reader);
    group_pids_fini(&pids);
    return more;
}

void group_pids_sort(struct group_pids *pids)
{
    if (pids->count > 0)
        qsort(pids->items, pids->count, sizeof(*pids->items), compare_pids);
}

bool group_pids_have(const struct group_pids *pids, pid_t pid)
{
    return pids->count > 0 && bsearch(&pid, pids->items, pids->count, sizeof(*pids->items), compare_pids);
}

void group_pids_fini(struct group_pids *pids)
{
    free(pids->items);
    *pids = (struct group_pids){0};
}

static bool events_say(const struct cgroup *group, const char *what)
{
    char text[256];
    ssize_t got;
    if (group->events_fd < 0)
        return false;
    got = pread(group->events_fd, text, sizeof(text) - 1, 0);
    if (got <= 0)
        return false;
    text[got] = 0;
    return strstr(text, what) != NULL;
}

bool group_populated(const struct cgroup *group)
{
    return events_say(group, "populated 1");
}

bool group_is_empty(const struct cgroup *group)
{
    return events_say(group, "populated 0");
}

bool group_frozen(const struct cgroup *group)
{
    char text[256]; /* by a descriptor of its own: of events_fd it would take the wake-up that the group is empty */
    return group->job_fd >= 0 && group_read(group->job_fd, "cgroup.events", text, sizeof(text)) == 0 &&
           strstr(text, "frozen 1");
}

enum { SIGNAL_BATCH = 512 };

/* A pid may be taken by another process between reading and signalling it: hold a handful, look again, signal those
 * that are still in. */
static void signal_batch(const struct cgroup *group, const pid_t *pids, size_t count, int signal)
{
    struct group_pids now = {0};
    int fds[SIGNAL_BATCH];
    for (size_t i = 0; i < count; i++)
        fds[i] = (int)syscall(SYS_pidfd_open, pids[i], 0);
    if (group_pids(group->job_fd, &now) == 0 && now.count > 0) {
        group_pids_sort(&now);
        for (size_t i = 0; i < count; i++) {
            if (fds[i] >= 0 && group_pids_have(&now, pids[i]))
                (void)syscall(SYS_pidfd_send_signal, fds[i], signal, NULL, 0);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    group_pids_fini(&now);
}

int group_signal(const struct cgroup *group, int signal)
{
    struct group_pids pids = {0};
    int result = group_pids(group->job_fd, &pids);
    for (size_t i = 0; result == 0 && i < pids.count; i += SIGNAL_BATCH) {
        size_t left = pids.count - i;
        signal_batch(group, pids.items + i, left < SIGNAL_BATCH ? left : SIGNAL_BATCH, signal);
    }
    group_pids_fini(&pids);
    return result;
}

int group_kill(const struct cgroup *group)
{
    int result = group_write(group->job_fd, "cgroup.kill", "1");
    return result == -ENOENT ? group_signal(group, SIGKILL) : result;
}

int group_freeze(const struct cgroup *group, bool frozen)
{
    return group_write(group->job_fd, "cgroup.freeze", frozen ? "1" : "0");
}

void group_usage(const struct cgroup *group, double *cpu_seconds, int64_t *memory_peak_bytes)
{
    char text[1024];
    uint64_t usec;
    int64_t peak;
    const char *at;
    *cpu_seconds = -1;
    *memory_peak_bytes = -1;
    if (group->job_fd < 0)
        return;
    if (group_read(group->job_fd, "cpu.stat", text, sizeof(text)) == 0) {
        at = strstr(text, "usage_usec ");
        if (at && sscanf(at, "usage_usec %" SCNu64, &usec) == 1)
            *cpu_seconds = (double)usec / 1e6;
    }
    if (group_read(group->job_fd, "memory.peak", text, sizeof(text)) == 0 && sscanf(text, "%" SCNd64, &peak) == 1)
        *memory_peak_bytes = peak;
}

int group_weigh_dir(int dir, unsigned weight)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", weight);
    return group_write(dir, "cpu.weight", text);
}

int group_weigh(const struct cgroup *group, unsigned weight)
{
    int result, dir = group->job_fd < 0 ? -ENOENT : open_dir(group->job_fd, "..");
    if (dir < 0)
        return dir;
    result = group_weigh_dir(dir, weight);
    close(dir);
    return result;
}

void group_confine(const struct cgroup *group, const uint64_t *cpus, size_t count)
{
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < count && used + 24 < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64, i ? "," : "", cpus[i]);
    if (count > 0)
        group_write(group->job_fd, "cpuset.cpus", text);
}
