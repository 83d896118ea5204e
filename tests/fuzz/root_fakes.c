/* root_fakes.c - groups, ranks, directories, the scope and systemd, as the root half meets them: nothing is touched,
 * what may fail does as the input says, and what it asks for is checked. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "rsd/root/watcher.h"
#include "rsd/root/caps.h"
#include "rsd/root/controllers.h"
#include "rsd/root/group.h"
#include "rsd/root/guard.h"
#include "rsd/root/internal.h"
#include "rsd/root/limits.h"
#include "rsd/root/probe.h"
#include "rsd/root/root.h"
#include "rsd/root/scope.h"
#include "rsd/root/sessions.h"
#include "rsd/root/tmpdir.h"
#include "tests/fuzz/root_fakes.h"
#include "tests/fuzz/world.h"

enum { CPUS = 4 };

static bool populated[WORLD_FDS];

void root_fakes_begin(void)
{
}

void root_fakes_change_group(int leaf_fd)
{
    if (leaf_fd >= WORLD_FD)
        populated[leaf_fd - WORLD_FD] = !populated[leaf_fd - WORLD_FD];
}

/* ---- in place of group.c ---- */

static bool *populated_of(int leaf_fd)
{
    FUZZ_CHECK(world_kind(leaf_fd) == WORLD_OTHER, "%d is no group", leaf_fd);
    return &populated[leaf_fd - WORLD_FD];
}

int group_open(int root_fd, const char *name, bool make, struct cgroup *group, struct err *err)
{
    uint64_t id;
    uint32_t attempt;

    (void)make;
    FUZZ_CHECK(job_name_parse(name, &id, &attempt), "a group with the name %s", name);
    FUZZ_CHECK(world_kind(root_fd) == WORLD_OTHER, "no place for groups");
    *group = (struct cgroup)CGROUP_INIT;
    if (world_fails())
        return err_set(err, -EACCES, "no group");
    *group = (struct cgroup){world_open(WORLD_OTHER), world_open(WORLD_OTHER), world_open(WORLD_OTHER)};
    if (group->events_fd < 0) {
        group_close(group);
        return err_set(err, -EMFILE, "no group");
    }
    *populated_of(group->job_fd) = false;
    return 0;
}

void group_close(struct cgroup *group)
{
    int fds[] = {group->job_fd, group->sup_fd, group->events_fd};

    for (size_t i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    *group = (struct cgroup)CGROUP_INIT;
}

int group_remove(int root_fd, const char *name)
{
    (void)root_fd;
    (void)name;
    return world_fails() ? -EBUSY : 0;
}

bool group_has_more_than(int leaf_fd, size_t few)
{
    (void)populated_of(leaf_fd);
    (void)few;
    return world_fails();
}

pid_t group_fork(int leaf_fd, int *pidfd)
{
    (void)populated_of(leaf_fd);
    *pidfd = world_fails() ? -1 : world_open(WORLD_OTHER);
    return world_fails() ? (close(*pidfd), *pidfd = -1, -EAGAIN) : world_new_pid();
}

int hand_over(struct root *root, struct err *err)
{
    FUZZ_CHECK(root->net.fd >= 0, "it hears nobody yet");
    return world_fails() ? err_set(err, -EPERM, "no elmer-spawn") : 0;
}

int hand_over_files(struct root *root, struct err *err)
{
    (void)root;
    (void)err;
    FUZZ_CHECK(false, "that is for elmer-rsd-begin");
    return 0;
}

int spawn_supervisor(struct root *root, struct root_job *job, const char *user, int channel, int listener, int *pidfd)
{
    (void)root;
    FUZZ_CHECK(user[0] && strlen(user) < 256 && channel >= 0 && listener >= 0, "a supervisor for %s", user);
    return group_fork(job->group.sup_fd, pidfd);
}

int spawn_remove(struct root *root, const struct root_job *job, int done)
{
    (void)root;
    FUZZ_CHECK(job->supervisor_gone && done >= 0, "the directory of a job that has a supervisor");
    return world_fails() ? -EAGAIN : 0;
}

int spawn_signal(struct root *root, const struct root_job *job, const char *leaf, int number)
{
    (void)root;
    FUZZ_CHECK(number > 0 && number < NSIG && (strcmp(leaf, "job") == 0 || strcmp(leaf, "sup") == 0), "signal %d to %s",
               number, leaf);
    FUZZ_CHECK(number == SIGKILL || job->by_root, "a supervisor can do that");
    return world_fails() ? -ENOENT : 0;
}

int spawn_escapes(struct root *root, int *pidfd)
{
    (void)root;
    *pidfd = -1;
    return -EAGAIN;
}

int spawn_number(struct root *root, const char *path, int64_t *value, bool set)
{
    (void)root, (void)path, (void)value, (void)set;
    return -EACCES;
}

int group_write(int dir, const char *name, const char *text)
{
    FUZZ_CHECK(dir >= 0 && strcmp(name, "cgroup.kill") == 0 && strcmp(text, "1") == 0, "%s into %s", text, name);
    if (world_fails())
        return -ENOENT;
    *populated_of(dir) = input_byte(world_input()) >= 0x80; /* a disk may hold it up */
    return 0;
}

int group_pids(int leaf_fd, struct group_pids *pids)
{
    size_t count = input_below(world_input(), 4);

    if (leaf_fd < 0) /* the group of an adopted job may be gone */
        return -EBADF;
    (void)populated_of(leaf_fd);
    if (world_fails())
        return -ENOENT;
    free(pids->items);
    pids->items = calloc(4, sizeof(*pids->items));
    FUZZ_CHECK(pids->items != NULL, "no memory");
    pids->capacity = 4;
    for (pids->count = 0; pids->count < count; pids->count++)
        pids->items[pids->count] = 1 + (pid_t)input_byte(world_input());
    return 0;
}

void group_pids_fini(struct group_pids *pids)
{
    free(pids->items);
    *pids = (struct group_pids){0};
}

bool group_populated(const struct cgroup *group)
{
    return group->events_fd >= 0 && *populated_of(group->job_fd);
}

bool group_is_empty(const struct cgroup *group)
{
    return group->events_fd >= 0 && !*populated_of(group->job_fd) && !world_fails();
}

int group_kill(const struct cgroup *group)
{
    if (world_fails())
        return -EPERM;
    *populated_of(group->job_fd) = input_byte(world_input()) >= 0x80; /* a disk may hold it up */
    return 0;
}

int group_freeze(const struct cgroup *group, bool frozen)
{
    (void)frozen;
    (void)populated_of(group->job_fd);
    return 0;
}

int group_signal(const struct cgroup *group, int number)
{
    FUZZ_CHECK(number == SIGTERM || number == SIGCONT || number == SIGKILL, "signal %d", number);
    (void)populated_of(group->job_fd);
    return 0;
}

void group_usage(const struct cgroup *group, double *cpu_seconds, int64_t *memory_peak_bytes)
{
    uint8_t byte = input_byte(world_input());

    (void)group;
    *cpu_seconds = byte < 0x80 ? byte : -1;
    *memory_peak_bytes = byte < 0x40 ? byte : -1;
}

int group_limit_memory(const struct cgroup *group, uint64_t bytes)
{
    (void)group;
    if (bytes == 0 || bytes > INT64_MAX)
        abort();
    return 0;
}

/* No byte of the input: the corpus of before would mean other things. */
uint64_t group_memory_struck(const struct cgroup *group)
{
    (void)group;
    return 0;
}

void group_confine(const struct cgroup *group, const uint64_t *cpus, size_t count)
{
    (void)populated_of(group->job_fd);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(cpus[i] < CPUS, "CPU %llu", (unsigned long long)cpus[i]);
}

/* ---- in place of sched.c, watcher.c, tmpdir.c, scope.c, probe.c and libsystemd ---- */

static void check_rank(struct order_rank rank)
{
    bool rt = rank.policy == SCHED_FIFO || rank.policy == SCHED_RR;

    FUZZ_CHECK(rt ? rank.priority >= 1 && rank.priority < ORDER_DYING : rank.priority >= -5 && rank.priority <= 19,
               "policy %d priority %d", rank.policy, rank.priority);
}

static void check_target(const struct sched_target *target)
{
    check_rank(target->ranks.task);
    check_rank(target->ranks.helper);
    FUZZ_CHECK(!target->cpus || CPU_COUNT(target->cpus) > 0, "no CPU");
    FUZZ_CHECK(target->helper_count <= MAX_HELPERS, "%zu helpers", target->helper_count);
}

int sched_rank(pid_t tid, struct order_rank rank, bool reset_on_fork)
{
    FUZZ_CHECK(tid == 0 && !reset_on_fork, "the rank of %d", (int)tid); /* of a child of ours */
    check_rank(rank);
    return 0;
}

bool watcher_find_users(const char *groups, char *users, size_t size)
{
    (void)groups;
    snprintf(users, size, "/users");
    return !world_fails();
}

int sched_pass_begin(struct sched_pass *pass, const struct cgroup *group)
{
    pass->count = (struct sched_count){0};
    return group->job_fd < 0 || world_fails() ? -ENOENT : 0;
}

int sched_pass_step(struct sched_pass *pass, const struct cgroup *group, struct sched_target *target)
{
    check_target(target);
    (void)populated_of(group->job_fd);
    pass->count = (struct sched_count){
        .threads = 1, .changed = input_below(world_input(), 2), .refused = input_below(world_input(), 2)};
    target->crowded = target->crowded || input_byte(world_input()) >= 0xC0;
    return (int)input_below(world_input(), 2);
}

void sched_pass_end(struct sched_pass *pass)
{
    (void)pass;
}

void sched_process(const struct cgroup *group, pid_t pid, struct sched_target *target, struct sched_count *count)
{
    (void)count;
    (void)pid;
    FUZZ_CHECK(group->job_fd < 0 || populated_of(group->job_fd), "no group");
    check_target(target);
}

size_t sched_raise_some(const struct cgroup *group, pid_t *tids, size_t max)
{
    (void)populated_of(group->job_fd);
    tids[0] = 1;
    return input_below(world_input(), 2) < max ? 1 : 0;
}

bool guard_supervisor(pid_t pid, int pidfd, pid_t spawn)
{
    FUZZ_CHECK(pid >= 0 && spawn >= 0 && pidfd >= -1, "the supervisor %d", (int)pid);
    return pid % 8 == 7; /* no byte of the input: those of the corpus would mean something else */
}

void sched_lower(const pid_t *tids, size_t count)
{
    FUZZ_CHECK(count > 0 && tids[0] == 1, "%zu raised", count);
}

int group_reader_open(struct group_reader *reader, int leaf_fd, bool threads)
{
    (void)threads;
    (void)populated_of(leaf_fd);
    *reader = (struct group_reader){.fd = -1};
    return world_fails() ? -ENOENT : 0;
}

int group_reader_next(struct group_reader *reader, struct group_pids *ids)
{
    (void)reader;
    (void)ids;
    return 0;
}

void group_reader_close(struct group_reader *reader)
{
    (void)reader;
}

bool group_frozen(const struct cgroup *group)
{
    (void)populated_of(group->job_fd);
    return true;
}

void group_pids_sort(struct group_pids *pids)
{
    (void)pids;
}

bool group_pids_have(const struct group_pids *pids, pid_t pid)
{
    (void)pid;
    return pids->count > 0;
}

bool sessions_share(int leaf_fd)
{
    (void)populated_of(leaf_fd);
    return true;
}

int caps_keep(enum caps_of who)
{
    return who < CAPS_OF_COUNT ? 0 : -EINVAL;
}

void limits_of_daemon(struct limits *given)
{
    *given = (struct limits){0};
}

void limits_give_back(const struct limits *given)
{
    FUZZ_CHECK(!given, "a child in a fuzz target");
}

int group_weigh(const struct cgroup *group, unsigned weight)
{
    FUZZ_CHECK(weight >= 1 && weight <= 10000, "weight %u", weight);
    (void)populated_of(group->job_fd);
    return world_fails() ? -ENOENT : 0;
}

int place_weigh(const struct root *root, unsigned weight)
{
    FUZZ_CHECK(root->groups_fd >= 0 && (weight == 1 || weight == 100), "weight %u", weight);
    return 0;
}

int place_open(struct root *root, struct err *err)
{
    int fd = world_fails() ? err_set(err, world_fails() ? -EBUSY : -EIO, "no scope") : world_open(WORLD_OTHER);

    if (fd < 0)
        return fd;
    if (root->groups_fd >= 0)
        (void)close(root->groups_fd);
    root->groups_fd = fd;
    (void)snprintf(root->groups, sizeof(root->groups), "/fuzz/groups");
    return 0;
}

size_t place_lacks(const struct root *root, const char *lacks[MAX_LACKS])
{
    (void)root;
    lacks[0] = "no controller";
    return input_below(world_input(), 2);
}

void place_say(const struct root *root, bool log)
{
    (void)log;
    FUZZ_CHECK(root->groups_fd >= 0, "says what is missing in no place");
}

int scope_ask(const struct rsd_config *config)
{
    FUZZ_CHECK(config->rundir[0], "no configuration");
    return -EAGAIN; /* else it would end */
}

bool scope_holds(int root_fd)
{
    FUZZ_CHECK(world_kind(root_fd) == WORLD_OTHER, "asks whether %d holds", root_fd);
    return !world_fails();
}

int probe_mode(enum rsd_mode wanted, int refusal, enum order_mode *mode, char *why, size_t size, struct err *err)
{
    (void)wanted;
    (void)refusal;
    (void)err;
    *mode = (enum order_mode)input_below(world_input(), ORDER_MODE_COUNT);
    (void)snprintf(why, size, "%s", *mode == ORDER_MODE_RT ? "" : "because");
    return 0;
}

int sd_notify(int unset, const char *state)
{
    (void)unset;
    (void)state;
    return 0;
}

int sd_notifyf(int unset, const char *format, ...)
{
    (void)unset;
    (void)format;
    return 0;
}

int sd_watchdog_enabled(int unset, uint64_t *usec)
{
    (void)unset;
    *usec = 10000000;
    return 1;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    memset(set, 0, size);
    for (size_t i = 0; i < CPUS; i++)
        CPU_SET(i, set);
    return 0;
}

int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock);
int __wrap_clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
    (void)pid;
    (void)clock;
    return ESRCH;
}

int __wrap_faccessat(int dir, const char *path, int mode, int flags);
int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
    (void)path;
    (void)mode;
    (void)flags;
    return world_kind(dir) == WORLD_OTHER && !world_fails() ? 0 : -1;
}
