/* fuzz_supervisor.c - the supervisor of a job: what the root half (or one that has been restarted) says, what the agent
 * of a virtual machine says as the user, what a process prints into its pipe, how it is born and ends. What is
 * dangerous is replaced: the group, ranks, the look-up of users, directories, and (world.c) sockets, pipes, processes
 * and signals. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "rsd/root/group.h"
#include "rsd/root/sched.h"
#include "rsd/root/tmpdir.h"
#include "tests/fuzz/world.h"

/* Its loop is private, and its main() is not for us. */
int supervisor_main(int argc, char **argv);
#define main supervisor_main
#include "rsd/sup/supervisor.c" /* NOLINT(bugprone-suspicious-include): all but its main() */
#undef main

enum { MAX_TURNS = 300, FIRST_PID = 1000 };

static unsigned turns, asked_to_quit;
static int root_fd;
static struct sup *self;

/* ---- in place of group.c, sched.c, tmpdir.c, user.c, admit.c, become.c ---- */

pid_t group_fork(int leaf_fd, int *pidfd)
{
    FUZZ_CHECK(world_kind(leaf_fd) == WORLD_OTHER, "no group");
    *pidfd = world_open(WORLD_OTHER);
    return world_fails() ? -EAGAIN : world_new_pid();
}

int group_kill(const struct cgroup *group)
{
    (void)group;
    return 0;
}

bool group_populated(const struct cgroup *group)
{
    (void)group;
    return false;
}

int sched_pass_begin(struct sched_pass *pass, const struct cgroup *group)
{
    (void)pass;
    (void)group;
    return world_fails() ? -ENOENT : 0;
}

int sched_pass_step(struct sched_pass *pass, const struct cgroup *group, struct sched_target *target)
{
    (void)pass;
    (void)group;
    FUZZ_CHECK(target->ranks.task.policy == SCHED_OTHER, "rank %d", target->ranks.task.policy);
    return 0;
}

void sched_pass_end(struct sched_pass *pass)
{
    (void)pass;
}

size_t sched_raise_some(const struct cgroup *group, pid_t *tids, size_t max)
{
    (void)group;
    tids[0] = FIRST_PID;
    return max > 0;
}

void sched_lower(const pid_t *tids, size_t count)
{
    FUZZ_CHECK(count == 1 && tids[0] == FIRST_PID, "%zu raised", count);
}

int sched_rank(pid_t tid, struct order_rank rank, bool reset_on_fork)
{
    (void)rank;
    (void)reset_on_fork;
    FUZZ_CHECK(tid >= FIRST_PID, "the rank of %d", (int)tid);
    return world_fails() ? -EPERM : 0;
}

bool sched_is_rt(pid_t tid)
{
    (void)tid;
    return true;
}

void user_fini(struct user *user)
{
    free(user->name);
    free(user->home);
    free(user->shell);
    *user = (struct user){0};
}

int sup_become(struct sup *sup, struct err *err)
{
    FUZZ_CHECK(!sup->begun && sup->count == 0, "it has heard of processes before");
    (void)err;
    return 0;
}

void signals_send(struct sup *sup, const struct wire_send_signal *message)
{
    FUZZ_CHECK(message->number <= 64 && message->policy <= 7, "signal %llu", (unsigned long long)message->number);
    (void)sup;
}

void signals_step(struct sup *sup, int64_t now)
{
    (void)sup, (void)now;
}

int64_t signals_wait_ms(const struct sup *sup, int64_t now)
{
    (void)sup, (void)now;
    return INT64_MAX;
}

void signals_weigh(struct sup *sup, int nice)
{
    FUZZ_CHECK(nice >= -19 && nice <= 19, "nice %d", nice);
    (void)sup;
}

void signals_reaped(struct sup *sup, pid_t pid, int status)
{
    (void)status;
    FUZZ_CHECK(pid > 0, "pid %d", (int)pid);
    (void)sup;
}

int __wrap_ioctl(int fd, unsigned long request, int *waiting);
int __wrap_ioctl(int fd, unsigned long request, int *waiting)
{
    (void)request;
    *waiting = world_readable(fd);
    return 0;
}

/* ---- what happens ---- */

static void from_root(struct input *input)
{
    static const enum wire_type usual[] = {WIRE_begin,       WIRE_rank,       WIRE_start,     WIRE_start,
                                           WIRE_start,       WIRE_start,      WIRE_taken,     WIRE_adopt,
                                           WIRE_pvm_spawned, WIRE_pvm_finish, WIRE_TYPE_COUNT};
    enum wire_type type = usual[input_below(input, 11)];
    struct wire_message message;

    input_message(input, type == WIRE_TYPE_COUNT ? input_type(input, WIRE_FROM_ROOT) : type, &message);
    if (message.type == WIRE_begin && input_byte(input) < 0xF0) /* else it is about another user */
        message.u.begin.uid = self->user.uid;
    world_feed_message(root_fd, &message);
    wire_message_fini(&message);
}

static void from_agent(struct input *input)
{
    int fd = world_pick(WORLD_SOCKET, input_byte(input));
    struct wire_message message;

    input_message(input, input_type(input, WIRE_FROM_AGENT), &message);
    if (fd != root_fd)
        world_feed_message(fd, &message);
    wire_message_fini(&message);
}

static void bytes_into(struct input *input, enum world_kind kind)
{
    size_t size = input_below(input, 64);
    int fd = world_pick(kind, input_byte(input));

    size = size < input->left ? size : input->left;
    world_feed(fd, input->at, size);
    input->at += size;
    input->left -= size;
}

/* Exec has failed, or not even that was reached. */
static void birth_fails(struct input *input)
{
    struct child_report report = {.stage = (int)input_below(input, 12), .error = (int)input_below(input, 40)};

    world_feed(world_pick(WORLD_PIPE, input_byte(input)), &report, sizeof(report));
}

static void child_ends(struct input *input)
{
    static const int statuses[] = {0, 1 << 8, 255 << 8, 9, 15, 139, 19 << 8 | 0x7f}; /* the last: stopped */
    int pid = FIRST_PID + (int)input_below(input, 16);

    world_child_ends(pid, statuses[input_below(input, sizeof(statuses) / sizeof(statuses[0]))], input_byte(input) & 1);
}

static void connects(void)
{
    int fd = world_pick(WORLD_LISTENER, 0);

    world_feed(fd, "c", 1);
}

static void happen(struct input *input, int timeout_ms)
{
    uint8_t what = input_byte(input);

    if (what < 0x68)
        from_root(input);
    else if (what < 0x90)
        from_agent(input);
    else if (what < 0xA8)
        world_feed_end(world_pick(WORLD_PIPE, input_byte(input))); /* exec, or the end of the output */
    else if (what < 0xB8)
        bytes_into(input, WORLD_PIPE);
    else if (what < 0xC4)
        child_ends(input);
    else if (what < 0xCC)
        birth_fails(input);
    else if (what < 0xD8)
        world_pass_ms(timeout_ms < 0 ? 1000 : timeout_ms);
    else if (what < 0xE0)
        connects();
    else if (what < 0xEC)
        world_feed_end(world_pick(WORLD_SOCKET, input_byte(input)));
    else if (what < 0xF4)
        bytes_into(input, WORLD_SOCKET);
    else
        world_clog(world_pick(WORLD_SOCKET, input_byte(input)), input_byte(input) & 1);
}

static void quit(void)
{
    const struct wire_message message = {.type = WIRE_quit};

    /* nobody is connected, or what came before was garbage */
    self->quit = self->may_end = root_fd < 0 || ++asked_to_quit > 3;
    world_feed_message(root_fd, &message);
}

int world_poll(struct pollfd *fds, size_t count, int timeout_ms)
{
    int ready = 0;

    root_fd = self->connected ? self->root.fd : -1;
    if (world_input()->left > 0 && ++turns < MAX_TURNS)
        happen(world_input(), timeout_ms);
    else if (timeout_ms >= 0)
        world_pass_ms(timeout_ms);
    if (world_input()->left == 0 || turns >= MAX_TURNS)
        quit();
    for (size_t i = 0; i < count; i++) {
        if ((fds[i].events & POLLIN) && fds[i].fd >= 0 && world_readable(fds[i].fd))
            fds[i].revents |= POLLIN;
        if (fds[i].fd >= 0)
            fds[i].revents |= (short)(fds[i].events & POLLOUT);
        ready += fds[i].revents != 0;
    }
    return ready;
}

void world_heard(int fd, const struct wire_message *message)
{
    (void)fd;
    if (message->type == WIRE_started)
        FUZZ_CHECK(message->u.started.pid >= FIRST_PID, "pid %llu", (unsigned long long)message->u.started.pid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct sup sup = {.root = {.fd = -1},
                      .reaper_fd = -1,
                      .job_fd = -1,
                      .kill_fd = -1,
                      .daemon = "/fuzz/pvmd",
                      .agent = "/fuzz/agent",
                      .rt = true,
                      .connected = true,
                      .user = {.uid = 1000, .gid = 1000}};

    sup.user.name = strdup("alice");
    sup.user.home = strdup("/");
    sup.user.shell = strdup("/bin/sh");
    FUZZ_CHECK(sup.user.name && sup.user.home && sup.user.shell, "no memory");
    self = &sup;
    turns = asked_to_quit = 0;
    world_begin(&input, WIRE_FROM_SUPERVISOR);
    sup.listen_fd = world_open(WORLD_LISTENER);
    sup.signal_fd = signals_open();
    sup.reaper_fd = reaper_start();
    FUZZ_CHECK(channel_init(&sup.root, world_open(WORLD_SOCKET), WIRE_FROM_ROOT, ROOT_OUT_MAX) == 0, "no channel");
    FUZZ_CHECK(loop(&sup) == 0, "no memory");
    fini(&sup);
    (void)close(sup.listen_fd);
    (void)close(sup.signal_fd);
    (void)close(sup.reaper_fd);
    if (sup.job_fd >= 0)
        (void)close(sup.job_fd);
    world_end();
    return 0;
}
