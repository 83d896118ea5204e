/* test_spawn.c - what somebody who has taken rsd can have of elmer-spawn: the real program, asked as rsd asks it. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/ticket/program.h"
#include "rsd/root/group.h"
#include "rsd/root/limits.h"
#include "rsd/root/spawn.h"
#include "tests/root/rig.h"
#include "tests/unit/scratch.h"

enum { WAIT_MS = 20000, CLOSED = 5 };
enum { TICKET_UID = 65520, NETWORK_UID, RSD_UID, ELMER_UID };

static char dir[40], groups[4200];
static int groups_fd, tmp_fd, line, grants, door, channel;
static pid_t pid;
static char heard[4096];

/* In place of elmer-supervisor: says on its channel what it is. */
static const char script[] = "#!/bin/sh\ncat /proc/self/status /proc/self/cgroup >&3\n";

/* Where elmer-tickets is joined again: systemd has that socket, and the next elmer-tickets gets it. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static int up(void **state)
{
    static struct rsd_config config;
    struct limits given;
    struct err err = ERR_INIT;
    struct cgroup group;
    struct spawn_grants where;
    char own[4000], path[80], cwd[2048];
    int pair[2];
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elmer-spawn-XXXXXX");
    if (!scratch_dir(dir) || chmod(dir, 0755) < 0 || group_locate("/proc", NULL, own, sizeof(own), &err) < 0)
        return -1;
    snprintf(groups, sizeof(groups), "%s/elmer-spawn-%d", own, (int)getpid());
    groups_fd = group_open_root(groups, &err);
    if (groups_fd < 0 || group_open(groups_fd, "7.1", true, &group, &err) < 0 || !scratch_mkdir(dir, "jobs") ||
        !scratch_put(dir, "supervisor", script))
        fail_msg("%s", err.text);
    group_close(&group);
    snprintf(path, sizeof(path), "%s/supervisor", dir);
    assert_int_equal(chmod(path, 0755), 0);
    rsd_config_default(&config);
    snprintf(config.supervisor, sizeof(config.supervisor), "%s", path);
    snprintf(path, sizeof(path), "%s/jobs", dir);
    tmp_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(config.spawn, sizeof(config.spawn), "%s/elmer-spawn", getenv("BUILDDIR") ? getenv("BUILDDIR") : cwd);
    config.account[0] = 0;
    config.tickets_required = true;
    config.supervisor_uid = RIG_SUPERVISOR_UID;
    config.jobs_uid = config.jobs_gid = RIG_JOBS_UID;
    config.ticket_uid = TICKET_UID;
    config.network_uid = NETWORK_UID;
    config.rsd_uid = RSD_UID;
    config.elmer_uid = ELMER_UID;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    grants = pair[0];
    where.fd = pair[1];
    snprintf(where.path, sizeof(where.path), "%s/grants.sock", dir);
    door = listen_at(where.path);
    limits_of_daemon(&given);
    pid = spawn_start(&config, &given, "/users", groups, groups_fd, tmp_fd, &where, &line, &err);
    if (pid < 0)
        fail_msg("%s", err.text);
    close(pair[1]);
    return 0;
}

static int down(void **state)
{
    char command[100];
    (void)state;
    if (line >= 0)
        close(line);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(grants);
    close(door);
    close(tmp_fd);
    rig_until(group_remove(groups_fd, "7.1") == 0);
    close(groups_fd);
    assert_int_equal(rmdir(groups), 0);
    snprintf(command, sizeof(command), "rm -rf --one-file-system %s", dir);
    return system(command) == 0 ? 0 : -1;
}

union control {
    char bytes[CMSG_SPACE(2 * sizeof(int))];
    struct cmsghdr align;
};

static struct spawn_answer ask(const struct spawn_request *request, const int *fds, size_t count)
{
    union control control = {{0}};
    struct iovec part = {(void *)request, sizeof(*request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct pollfd in = {.fd = line, .events = POLLIN};
    struct spawn_answer answer;
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
    }
    assert_int_equal(sendmsg(line, &message, MSG_NOSIGNAL), sizeof(*request));
    assert_int_equal(poll(&in, 1, WAIT_MS), 1);
    assert_int_equal(recv(line, &answer, sizeof(answer), 0), sizeof(answer)); /* a pidfd is thrown away */
    return answer;
}

static void grant(uint64_t job, uint32_t attempt, uint32_t uid)
{
    const struct ticket_grant said = {.job = job, .attempt = attempt, .uid = uid};
    assert_int_equal(send(grants, &said, sizeof(said), MSG_NOSIGNAL), sizeof(said));
}

static struct spawn_request supervisor(uint64_t job, uint32_t uid, const char *user)
{
    struct spawn_request request = {.verb = SPAWN_SUPERVISOR, .job = job, .attempt = 1, .uid = uid};
    snprintf(request.text, sizeof(request.text), "%s", user);
    return request;
}

static int32_t start(uint64_t job, uint32_t uid, const char *user)
{
    const struct spawn_request request = supervisor(job, uid, user);
    struct spawn_answer answer;
    const struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    int pair[2], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&anywhere, sizeof(anywhere.sun_family)), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    answer = ask(&request, (const int[]){pair[1], listener}, 2);
    close(pair[1]);
    close(listener);
    channel = pair[0];
    return answer.result;
}

/* What came on the channel, up to its end. */
static void hear(void)
{
    size_t used = 0;
    ssize_t got;
    struct pollfd in = {.fd = channel, .events = POLLIN};
    while (poll(&in, 1, WAIT_MS) == 1 && (got = read(channel, heard + used, sizeof(heard) - 1 - used)) > 0)
        used += (size_t)got;
    for (size_t i = 0; i < used; i++)
        heard[i] = heard[i] ? heard[i] : '.'; /* the length before a message */
    heard[used] = 0;
    close(channel);
}

static void says(const char *words)
{
    if (!strstr(heard, words))
        fail_msg("no \"%s\" in: %s", words, heard);
}

/* ---- tests ---- */

static void test_a_supervisor(void **state)
{
    struct stat st;
    (void)state;
    grant(7, 1, NOBODY);
    assert_int_equal(start(7, NOBODY, "nobody"), 0);
    hear();
    says("Uid:\t65533\t65533\t65533\t65533");
    says("Gid:\t65534\t65534\t65534\t65534");
    says("CapPrm:\t0000000000800080"); /* SETUID, until it has its user's uid, and SYS_NICE */
    says("CapEff:\t0000000000800080");
    says("/7.1/sup\n");
    assert_int_equal(fstatat(tmp_fd, "7.1", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, NOBODY);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_refused(void **state)
{
    static const uint32_t never[] = {0,          1,           999,     RIG_SUPERVISOR_UID, RIG_JOBS_UID,
                                     TICKET_UID, NETWORK_UID, RSD_UID, ELMER_UID};
    struct spawn_request request = supervisor(7, NOBODY, "nobody");
    (void)state;
    assert_int_equal(start(7, NOBODY, "nobody"), -EACCES); /* nobody has judged a ticket */
    grant(7, 1, NOBODY);
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        grant(7, 1, never[i]);
        assert_int_equal(start(7, never[i], "nobody"), -EPERM);
    }
    assert_int_equal(start(7, NOBODY - 4, "nobody"), -EACCES); /* granted for another user ... */
    assert_int_equal(start(8, NOBODY, "nobody"), -EACCES);     /* ... and another job */
    grant(8, 1, NOBODY);
    assert_int_equal(start(8, NOBODY, "nobody"), -ENOENT);   /* it has no group */
    assert_int_equal(ask(&request, NULL, 0).result, -EPERM); /* nothing to talk to it */
    memset(request.text, 'x', sizeof(request.text));
    assert_int_equal(ask(&request, (const int[]){line, line}, 2).result, -EPERM);
    assert_int_equal(faccessat(tmp_fd, "7.1", F_OK, 0), -1);
}

static void elmer_tickets_begins_anew(void)
{
    struct pollfd in = {.fd = door, .events = POLLIN};
    close(grants);
    assert_int_equal(poll(&in, 1, WAIT_MS), 1); /* at once, and not when it is asked for something */
    grants = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    assert_true(grants >= 0);
}

/* What was said before counts, and what is said then; nobody else is heard. */
static void test_elmer_tickets_is_joined_again(void **state)
{
    (void)state;
    grant(7, 1, NOBODY);
    elmer_tickets_begins_anew();
    assert_int_equal(start(7, NOBODY, "nobody"), 0);
    hear();
    assert_int_equal(start(8, NOBODY, "nobody"), -EACCES);
    elmer_tickets_begins_anew();
    grant(8, 1, NOBODY);
    assert_int_equal(start(8, NOBODY, "nobody"), -ENOENT); /* it has no group */
    close(door);                                           /* nobody is there for a while */
    close(grants);
    assert_int_equal(start(9, NOBODY, "nobody"), -EACCES);
    grants = door = -1;
}

/* systemd takes and closes what connects while it stops the sockets: elmer-spawn, which ranks above it, must leave it
 * time, and answers rsd meanwhile. */
static void test_who_closes_at_once_is_not_flooded(void **state)
{
    const int64_t begun = mono_ms(mono_now());
    struct pollfd in = {.fd = door, .events = POLLIN};
    (void)state;
    close(grants);
    for (int i = 0; i < CLOSED; i++) {
        assert_int_equal(poll(&in, 1, WAIT_MS), 1);
        close(accept4(door, NULL, NULL, SOCK_CLOEXEC));
    }
    assert_true(mono_ms(mono_now()) - begun >= (int64_t)CLOSED * SPAWN_JOIN_MS);
    assert_int_equal(start(7, NOBODY, "nobody"), -EACCES);
    assert_int_equal(poll(&in, 1, WAIT_MS), 1);
    grants = accept4(door, NULL, NULL, SOCK_CLOEXEC);
    grant(7, 1, NOBODY);
    assert_int_equal(start(7, NOBODY, "nobody"), 0);
    hear();
}

/* The name is what is looked up; its uid must be the one. */
static void test_another_name(void **state)
{
    (void)state;
    grant(7, 1, NOBODY);
    assert_int_equal(start(7, NOBODY, "root"), 0);
    hear();
    says("{\"type\":\"error\",\"id\":0,\"code\":\"refused\",\"text\":\"user root has uid 0 on this host");
    grant(7, 1, NOBODY - 4);
    assert_int_equal(start(7, NOBODY - 4, "\"}../root"), 0);
    hear();
    says("user \\\"}../root is not known");
    assert_int_equal(faccessat(tmp_fd, "7.1", F_OK, 0), -1);
}

static void test_other_verbs(void **state)
{
    static const char *const paths[] = {"/etc/passwd", "/proc/sys/kernel/core_pattern",
                                        "/proc/sys/kernel/sched_rt_period_us/../core_pattern", ""};
    struct spawn_request request = {.verb = SPAWN_NUMBER};
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        snprintf(request.text, sizeof(request.text), "%s", paths[i]);
        request.set = !request.set;
        assert_int_equal(ask(&request, NULL, 0).result, -EPERM);
    }
    snprintf(request.text, sizeof(request.text), "/proc/sys/kernel/sched_rt_period_us");
    request.set = false;
    assert_true(ask(&request, NULL, 0).value > 0);
    assert_int_equal(mkdirat(tmp_fd, "9.1", 0700), 0);
    request = (struct spawn_request){.verb = SPAWN_REMOVE, .job = 9, .attempt = 1};
    assert_int_equal(ask(&request, &tmp_fd, 1).result, 0);
    assert_int_equal(faccessat(tmp_fd, "9.1", F_OK, 0), -1);
    request = (struct spawn_request){.verb = SPAWN_SIGNAL, .job = 7, .attempt = 1, .signal = 9, .text = "../.."};
    assert_int_equal(ask(&request, NULL, 0).result, 0); /* of the leaf `job`, which is empty */
    request = (struct spawn_request){.verb = SPAWN_NUMBER + 1};
    assert_int_equal(ask(&request, NULL, 0).result, -ENOSYS);
}

static void test_no_request(void **state)
{
    struct pollfd in = {.fd = line, .events = POLLIN};
    char byte;
    (void)state;
    assert_int_equal(send(line, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(poll(&in, 1, WAIT_MS), 1);
    assert_int_equal(recv(line, &byte, 1, 0), 0); /* it has ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
        TEST(test_a_supervisor),
        TEST(test_refused),
        TEST(test_elmer_tickets_is_joined_again),
        TEST(test_who_closes_at_once_is_not_flooded),
        TEST(test_another_name),
        TEST(test_other_verbs),
        TEST(test_no_request),
    };
    int possible;
    alarm(120);
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("elmer-spawn", tests, NULL, NULL);
}
