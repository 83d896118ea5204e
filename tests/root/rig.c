#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/cpus.h"
#include "rsd/root/group.h"
#include "rsd/root/root.h"
#include "rsd/root/sched.h"
#include "tests/root/rig.h"

enum { WAIT_MS = 5000, PATIENCE = 10 };

void (*rig_configure)(struct rsd_config *config);

int rig_possible(void)
{
    struct err err = ERR_INIT;
    char own[4096], probe[4200];
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root can test the root half\n");
        return 77;
    }
    if (group_locate("/proc", NULL, own, sizeof(own), &err) < 0) {
        fprintf(stderr, "skipped: %s\n", err.text);
        return 77;
    }
    snprintf(probe, sizeof(probe), "%s/elmer-probe-%d", own, (int)getpid());
    if (mkdir(probe, 0755) < 0) {
        fprintf(stderr, "skipped: cannot make groups in %s: %s\n", own, strerror(errno));
        return 77;
    }
    rmdir(probe);
    if (sched_rank(0, (struct order_rank){SCHED_FIFO, 61}, true) < 0) { /* above the root half, and not inherited */
        fprintf(stderr, "skipped: real-time scheduling is refused here\n");
        return 77;
    }
    return 0;
}

/* The user nobody must be able to execute it, wherever the tree is. */
static void copy_helper(const struct rig *rig)
{
    char path[128], buffer[65536];
    int in = open("/proc/self/exe", O_RDONLY), out;
    ssize_t got;
    snprintf(path, sizeof(path), "%s/helper", rig->dir);
    out = open(path, O_WRONLY | O_CREAT, 0755);
    assert_true(in >= 0 && out >= 0);
    while ((got = read(in, buffer, sizeof(buffer))) > 0)
        assert_int_equal(write(out, buffer, (size_t)got), got);
    close(in);
    close(out);
}

static void make(const char *dir, const char *name, mode_t mode, uid_t uid)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(mkdir(path, mode), 0);
    assert_int_equal(chown(path, uid, uid), 0);
}

/* As /run is, in memory: on a disk the root half would wait for the journal, which waits behind what spins here. */
static void make_run(struct rig *rig)
{
    char path[100];
    snprintf(rig->run, sizeof(rig->run), "/dev/shm/elmer-rig-XXXXXX");
    if (!mkdtemp(rig->run)) {
        rig->run[0] = 0;
        make(rig->dir, "run", 0755, 0);
        return;
    }
    assert_int_equal(chmod(rig->run, 0755), 0);
    snprintf(path, sizeof(path), "%s/run", rig->dir);
    assert_int_equal(symlink(rig->run, path), 0);
}

void rig_up(struct rig *rig)
{
    struct err err = ERR_INIT;
    char own[4000];
    cpu_set_t mine;
    uint64_t list[CPU_SETSIZE];
    const struct rig asked = *rig;
    *rig = (struct rig){.dir = "/tmp/elmer-rig-XXXXXX",
                        .channel = {.fd = -1},
                        .gate = -1,
                        .tickets_required = asked.tickets_required,
                        .vouch = asked.vouch,
                        .vouch_users = asked.vouch_users};
    snprintf(rig->keys, sizeof(rig->keys), "%s", asked.keys);
    assert_non_null(mkdtemp(rig->dir));
    assert_int_equal(chmod(rig->dir, 0755), 0);
    make_run(rig);
    make(rig->dir, "run/sup", 0700, 0);
    make(rig->dir, "run/jobs", 0711, 0);
    make(rig->dir, "work", 0700, NOBODY);
    copy_helper(rig);
    assert_int_equal(group_locate("/proc", NULL, own, sizeof(own), &err), 0);
    snprintf(rig->groups, sizeof(rig->groups), "%s/elmer-rig-%d", own, (int)getpid());
    snprintf(rig->users, sizeof(rig->users), "%s/elmer-rig-%d-users", own, (int)getpid());
    assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
    assert_true(cpus_to_list(&mine, list) > 0);
    rig->cpu = list[0];
    rig_root_start(rig);
}

/* As rsd does it; the socket is where users look for it. */
static void start_tickets(const struct rig *rig, struct rsd_config *config, struct rsd_tickets *tickets)
{
    int pair[2];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool certified;
    struct err err = ERR_INIT;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/ticket.sock", config->rundir);
    unlink(address.sun_path);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 16) < 0)
        fail_msg("%s: %s", address.sun_path, strerror(errno));
    config->tickets_required = rig->tickets_required;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    tickets->grants = pair[0];
    tickets->fd = ticket_program_serve(&(struct ticket_serve){.path = config->ticket_program,
                                                              .dir = rig->keys,
                                                              .host = config->name,
                                                              .hosts = rig->vouch ? rig->vouch : "all",
                                                              .users = rig->vouch_users ? rig->vouch_users : "all",
                                                              .deny_users = "",
                                                              .deny_groups = "",
                                                              .required = rig->tickets_required,
                                                              .uid = RIG_TICKET_UID,
                                                              .gid = RIG_TICKET_UID,
                                                              .grants = pair[1]},
                                       listener, &tickets->pid, &certified, &err);
    if (tickets->fd < 0)
        fail_msg("%s", err.text);
    close(pair[1]);
    close(listener);
}

static void root_half(const struct rig *rig, int fd)
{
    static struct rsd_config config;
    static struct rsd_tickets tickets;
    char cwd[2048];
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_CAPBSET_DROP, CAP_SYSLOG, 0, 0, 0); /* as rsd.service does it: who has it was not born in a job */
    rsd_config_default(&config);
    snprintf(config.name, sizeof(config.name), "testhost");
    snprintf(config.rundir, sizeof(config.rundir), "%s/run", rig->dir);
    snprintf(config.cgroup_root, sizeof(config.cgroup_root), "%s", rig->groups);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    config.tmpdir_percent = 0;
    snprintf(config.user_slice, sizeof(config.user_slice), "%s", rig->users);
    snprintf(config.supervisor, sizeof(config.supervisor), "%s/elmer-supervisor",
             getenv("BUILDDIR") ? getenv("BUILDDIR") : cwd);
    config.supervisor_uid = RIG_SUPERVISOR_UID;
    config.jobs_uid = config.jobs_gid = RIG_JOBS_UID;
    snprintf(config.spawn, sizeof(config.spawn), "%s/elmer-spawn", getenv("BUILDDIR") ? getenv("BUILDDIR") : cwd);
    snprintf(config.escapes, sizeof(config.escapes), "%s/elmer-escapes", getenv("BUILDDIR") ? getenv("BUILDDIR") : cwd);
    snprintf(config.ticket_program, sizeof(config.ticket_program), "%s/elmer-tickets",
             getenv("BUILDDIR") ? getenv("BUILDDIR") : cwd);
    snprintf(config.pvmd, sizeof(config.pvmd), "%s/helper", rig->dir);
    snprintf(config.agent, sizeof(config.agent), "%s/helper", rig->dir);
    config.account[0] = 0;
    if (rig_configure)
        rig_configure(&config);
    sched_rank(0, (struct order_rank){SCHED_FIFO, 60}, false);
    log_open("rsd", LOG_LEVEL_WARNING);
    if (rig->keys[0])
        start_tickets(rig, &config, &tickets);
    _exit(rsd_root_main(fd, 0, &config, rig->keys[0] ? &tickets : NULL, NULL));
}

void rig_root_start(struct rig *rig)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    rig->root_half = fork();
    assert_true(rig->root_half >= 0);
    if (rig->root_half == 0) {
        setenv("CMOCKA_TEST_ABORT", "1",
               1); /* what fails here must not run the other tests once more in this process */
        close(pair[0]);
        root_half(rig, pair[1]);
    }
    close(pair[1]);
    assert_int_equal(channel_init(&rig->channel, pair[0], WIRE_FROM_ROOT, 1 << 20), 0);
    rig->channel.minor = WIRE_MINOR;
}

void rig_root_kill(struct rig *rig, int signal)
{
    kill(rig->root_half, signal);
    waitpid(rig->root_half, NULL, 0);
    rig->root_half = 0;
    channel_fini(&rig->channel);
}

int rig_root_wait(struct rig *rig)
{
    int status = 0;
    for (int i = 0; i < WAIT_MS * PATIENCE; i++) {
        if (waitpid(rig->root_half, &status, WNOHANG) == rig->root_half) {
            rig->root_half = 0;
            channel_fini(&rig->channel);
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        poll(NULL, 0, 1);
    }
    fail_msg("the root half does not end");
    return -1;
}

/* Whatever a failed test has left: all of it is in our groups and below our directory. */
static void kill_groups(const struct rig *rig)
{
    char path[4400];
    struct dirent *entry;
    for (int attempt = 0; attempt < 1000; attempt++) {
        DIR *dir;
        snprintf(path, sizeof(path), "%s/cgroup.kill", rig->groups);
        int fd = open(path, O_WRONLY);
        if (fd >= 0) {
            assert_int_equal(write(fd, "1", 1), 1);
            close(fd);
        }
        dir = opendir(rig->groups);
        while (dir && (entry = readdir(dir))) {
            int root = dirfd(dir);
            if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%.60s/stays", rig->groups, entry->d_name); /* a test makes it */
            rmdir(path);
            group_remove(root, entry->d_name);
        }
        if (dir)
            closedir(dir);
        if (rmdir(rig->groups) == 0 || errno == ENOENT)
            return;
        poll(NULL, 0, 10);
    }
    fail_msg("%s cannot be removed", rig->groups);
}

void rig_down(struct rig *rig)
{
    char command[200];
    if (rig->root_half > 0)
        rig_root_kill(rig, SIGKILL);
    if (rig->gate >= 0)
        close(rig->gate);
    kill_groups(rig);
    snprintf(command, sizeof(command), "rm -rf --one-file-system %s %s", rig->dir, rig->run);
    assert_int_equal(system(command), 0);
}

/* ---- messages ---- */

void rig_send(struct rig *rig, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (channel_send_all(&rig->channel, message, rig_now_ms() + WAIT_MS * PATIENCE, &err) < 0)
        fail_msg("send: %s", err.text);
}

static bool receive(struct rig *rig, enum wire_type type, int ms, struct wire_message *message)
{
    int64_t deadline = rig_now_ms() + ms;
    struct err err = ERR_INIT;
    int got;
    while ((got = channel_receive(&rig->channel, message, deadline, &err)) > 0) {
        if (message->type == type)
            return true;
        if (message->type == WIRE_start_failed)
            print_message("start_failed: %s\n", message->u.start_failed.text);
        if (message->type == WIRE_open_failed)
            print_message("open_failed: %s\n", message->u.open_failed.text);
        wire_message_fini(message);
    }
    if (got < 0)
        fail_msg("waiting for %s: %s", wire_type_name(type), err.text);
    return false;
}

void rig_expect(struct rig *rig, enum wire_type type, int ms, struct wire_message *message)
{
    if (!receive(rig, type, ms * PATIENCE, message))
        fail_msg("no %s in %d ms", wire_type_name(type), ms * PATIENCE);
}

void rig_expect_none(struct rig *rig, enum wire_type type, int ms)
{
    struct wire_message message;
    if (receive(rig, type, ms, &message))
        fail_msg("%s was not expected", wire_type_name(type));
}

void rig_ask_order(struct rig *rig, uint64_t generation, const struct level *levels, size_t count)
{
    struct wire_order_entry entries[16] = {{0}};
    struct wire_message message = {.type = WIRE_order};
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        entries[i].job = levels[i].job;
        entries[i].attempt = 1;
        entries[i].level = levels[i].level;
        entries[i].lowest = levels[i].lowest;
        entries[i].cpus.items = &rig->cpu;
        entries[i].cpus.count = 1;
    }
    message.u.order.generation = generation;
    message.u.order.entries.items = entries;
    message.u.order.entries.count = count;
    rig_send(rig, &message);
}

void rig_order(struct rig *rig, uint64_t generation, const struct level *levels, size_t count)
{
    struct wire_message answer;
    rig_ask_order(rig, generation, levels, count);
    rig_expect(rig, WIRE_ordered, WAIT_MS, &answer);
    assert_int_equal(answer.u.ordered.generation, generation);
    wire_message_fini(&answer);
}

void rig_ask_open(struct rig *rig, uint64_t job, uint64_t generation, uint64_t lease_ms)
{
    struct wire_message message = {.type = WIRE_open};
    message.u.open.job = job;
    message.u.open.attempt = 1;
    message.u.open.generation = generation;
    message.u.open.uid = NOBODY;
    message.u.open.user = "nobody";
    message.u.open.cpus.items = &rig->cpu;
    message.u.open.cpus.count = 1;
    message.u.open.lease_ms = lease_ms;
    message.u.open.pvm = rig->pvm;
    message.u.open.ticket = rig->ticket;
    rig_send(rig, &message);
}

void rig_open(struct rig *rig, uint64_t job, uint64_t generation)
{
    struct wire_message answer;
    rig_ask_open(rig, job, generation, 0);
    rig_expect(rig, WIRE_opened, WAIT_MS, &answer);
    assert_int_equal(answer.u.opened.job, job);
    wire_message_fini(&answer);
}

/* What every start has; rig->cpu, argv and environment (both end with NULL) must live until it is sent. */
static struct wire_message start_message(struct rig *rig, uint64_t job, uint32_t process, const char *role,
                                         const char *const *argv, const char *const *environment)
{
    struct wire_message message = {.type = WIRE_start};
    struct wire_start *start = &message.u.start;
    start->job = job;
    start->attempt = 1;
    start->process = process;
    start->role = role;
    start->argv.items = (const char **)argv;
    while (argv[start->argv.count])
        start->argv.count++;
    start->environment.items = (const char **)environment;
    while (environment[start->environment.count])
        start->environment.count++;
    start->cpus.items = &rig->cpu;
    start->cpus.count = 1;
    return message;
}

void rig_start(struct rig *rig, uint64_t job, uint32_t process, const char *role, const char *const *argv)
{
    const char *environment[] = {rig->path ? rig->path : "PATH=/usr/bin:/bin", "ELMER_HOSTS=one:two", "PVM_TMP=/x",
                                 "LD_LIBRARY_PATH=/x", NULL};
    struct wire_message message = start_message(rig, job, process, role, argv, environment);
    char dir[100];
    snprintf(dir, sizeof(dir), "%s/work", rig->dir);
    message.u.start.dir = dir;
    message.u.start.output = "out";
    message.u.start.errors = "out";
    message.u.start.capture = strcmp(role, "pvmd") == 0;
    message.u.start.umask = 022;
    rig_send(rig, &message);
}

void rig_start_at(struct rig *rig, uint32_t process, const char *const *argv, const char *dir, const char *output,
                  const char *errors, bool truncate)
{
    const char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct wire_message message = start_message(rig, 1, process, "command", argv, environment);
    message.u.start.dir = dir;
    message.u.start.output = output;
    message.u.start.errors = errors;
    message.u.start.truncate = truncate;
    rig_send(rig, &message);
}

pid_t rig_started(struct rig *rig)
{
    struct wire_message answer;
    pid_t pid;
    rig_expect(rig, WIRE_started, WAIT_MS, &answer);
    pid = (pid_t)answer.u.started.pid;
    wire_message_fini(&answer);
    return pid;
}

void rig_run(struct rig *rig, uint64_t job, const char *const *argv)
{
    rig_start(rig, job, 0, "command", argv);
    rig_started(rig);
}

void rig_end(struct rig *rig, uint64_t job, unsigned grace_ms)
{
    struct wire_message message = {.type = WIRE_end};
    message.u.end.job = job;
    message.u.end.attempt = 1;
    message.u.end.grace_ms = grace_ms;
    rig_send(rig, &message);
}

double rig_empty(struct rig *rig, uint64_t job, int ms)
{
    struct wire_message answer;
    char path[200];
    double seconds;
    rig_expect(rig, WIRE_empty, ms, &answer);
    assert_int_equal(answer.u.empty.job, job);
    seconds = answer.u.empty.cpu_seconds;
    wire_message_fini(&answer);
    assert_false(rig_exists(rig, job));
    snprintf(path, sizeof(path), "%s/run/jobs/%" PRIu64 ".1", rig->dir, job);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/run/sup/%" PRIu64 ".1", rig->dir, job);
    assert_int_not_equal(access(path, F_OK), 0);
    return seconds;
}
