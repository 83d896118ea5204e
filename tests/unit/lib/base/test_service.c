/* test_service.c - what a program that systemd starts is given, what it says, and whom it lets join. */
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
#include "lib/base/service.h"
#include "tests/unit/scratch.h"

static char dir[64];

static struct sockaddr_un address_of(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/%s", dir, name);
    return address;
}

static int bound(const char *name, int type)
{
    struct sockaddr_un address = address_of(name);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    unlink(address.sun_path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(chmod(address.sun_path, 0666), 0);
    if (type != SOCK_DGRAM)
        assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_service.XXXXXX");
    assert_non_null(scratch_dir(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    return 0;
}

/* ---- what it is given ---- */

static void given(const char *names, const char *count, const char *pid)
{
    setenv("LISTEN_FDNAMES", names, 1);
    setenv("LISTEN_FDS", count, 1);
    setenv("LISTEN_PID", pid, 1);
}

static int found_in_child(void)
{
    char own[24];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    for (int fd = 3; fd < 6; fd++)
        if (dup2(0, fd) != fd)
            return 1;
    given("users:rsd:grants", "3", own);
    if (service_listener("users") != 3 || service_listener("rsd") != 4 || service_listener("grants") != 5)
        return 2;
    if (service_listener("rs") >= 0 || service_listener("") >= 0 || service_listener("users:rsd") >= 0)
        return 3;
    if (!(fcntl(4, F_GETFD) & FD_CLOEXEC))
        return 4;
    given("users:rsd:grants", "1", own);
    if (service_listener("users") != 3 || service_listener("rsd") >= 0)
        return 5;
    given("users:rsd", "2", "1"); /* another process's */
    if (service_listener("users") >= 0)
        return 6;
    given("users:rsd", "many", own);
    return service_listener("users") >= 0 ? 7 : 0;
}

static int in_child(int (*run)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void sockets_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(in_child(found_in_child), 0);
}

static void the_watchdog_is_served_three_times(void **state)
{
    char own[24];
    (void)state;
    snprintf(own, sizeof(own), "%d", (int)getpid());
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(service_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(service_watchdog_ms(), 10000);
    setenv("WATCHDOG_PID", own, 1);
    assert_int_equal(service_watchdog_ms(), 10000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(service_watchdog_ms(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(service_watchdog_ms(), 0);
}

static void systemd_hears_it(void **state)
{
    int fd = bound("notify", SOCK_DGRAM);
    char text[64] = "", path[108];
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    service_notify("READY=1");
    snprintf(path, sizeof(path), "%s/notify", dir);
    setenv("NOTIFY_SOCKET", path, 1);
    service_notify("READY=1\nSTATUS=well");
    assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 19);
    assert_string_equal(text, "READY=1\nSTATUS=well");
    assert_true(recv(fd, text, sizeof(text), MSG_DONTWAIT) < 0);
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

static int said(int fd)
{
    char text[64];
    int count = 0;
    for (ssize_t got; (got = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0; count++) {
        text[got] = 0;
        assert_string_equal(text, "WATCHDOG=1");
    }
    return count;
}

/* However often it is called, and not only where nothing else is to be done. */
static void it_is_said_when_it_is_due(void **state)
{
    int fd = bound("notify", SOCK_DGRAM);
    int64_t begin;
    char path[108];
    (void)state;
    snprintf(path, sizeof(path), "%s/notify", dir);
    setenv("NOTIFY_SOCKET", path, 1);
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(service_alive(), -1);
    assert_int_equal(said(fd), 0);
    setenv("WATCHDOG_USEC", "600000", 1);
    assert_in_range(service_alive(), 1, 200);
    assert_int_equal(said(fd), 1);
    begin = mono_ms(mono_now());
    while (said(fd) == 0) {
        assert_true(mono_ms(mono_now()) - begin < 20000);
        assert_in_range(service_alive(), 0, 200);
    }
    assert_true(mono_ms(mono_now()) - begin >= 150);
    close(fd);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

/* ---- what root has written ---- */

static void a_plan_is_read_as_it_was_written(void **state)
{
    const char plan[] = "with a NUL\0 in it";
    char found[sizeof(plan)] = "", path[108];
    (void)state;
    snprintf(path, sizeof(path), "%s/plan", dir);
    assert_int_equal(service_plan_read(path, getuid(), found, sizeof(found)), -ENOENT);
    assert_int_equal(service_plan_write(dir, "plan", "another", 7), 0);
    assert_int_equal(service_plan_read(path, getuid(), found, sizeof(found)), -EPROTO);
    assert_int_equal(service_plan_write(dir, "plan", plan, sizeof(plan)), 0);
    assert_int_equal(service_plan_read(path, getuid(), found, sizeof(found)), 0);
    assert_memory_equal(found, plan, sizeof(plan));
    assert_int_equal(service_plan_write("/nowhere", "plan", plan, sizeof(plan)), -ENOENT);
}

static void a_plan_of_somebody_else_is_none(void **state)
{
    char found[8], path[108], link[120];
    (void)state;
    snprintf(path, sizeof(path), "%s/plan", dir);
    snprintf(link, sizeof(link), "%s.link", path);
    assert_int_equal(service_plan_write(dir, "plan", "another", 8), 0);
    assert_int_equal(service_plan_read(path, getuid() + 1, found, sizeof(found)), -EPERM);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(service_plan_read(link, getuid(), found, sizeof(found)), -ELOOP);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_int_equal(service_plan_read(link, getuid(), found, sizeof(found)), -EPERM);
}

/* ---- who joins ---- */

/* As in /proc/self/cgroup, the last part: what a unit's name is in a unit. */
static const char *own_unit(void)
{
    static char name[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    char *last;
    assert_non_null(file);
    while (fgets(name, sizeof(name), file) && strncmp(name, "0::", 3) != 0) {
    }
    fclose(file);
    name[strcspn(name, "\n")] = 0;
    last = strrchr(name, '/');
    assert_non_null(last);
    return last + 1;
}

static int joins(void)
{
    struct sockaddr_un address = address_of("door");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void who_is_of_the_unit_joins(void **state)
{
    int door = bound("door", SOCK_STREAM), client = joins(), fd;
    struct err err = ERR_INIT;
    (void)state;
    fd = service_accept(door, getuid(), own_unit(), &err);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    close(client);
    close(door);
}

static void who_is_of_another_unit_does_not(void **state)
{
    int door = bound("door", SOCK_STREAM), client = joins();
    struct err err = ERR_INIT;
    char byte;
    (void)state;
    assert_int_equal(service_accept(door, getuid(), "rsd.service.not", &err), -EPERM);
    assert_non_null(strstr(err.text, "which is not of rsd.service.not"));
    assert_int_equal(recv(client, &byte, 1, 0), 0); /* it is closed */
    close(client);
    close(door);
}

static void another_user_does_not(void **state)
{
    int door = bound("door", SOCK_STREAM), status;
    struct err err = ERR_INIT;
    pid_t pid;
    (void)state;
    if (getuid() != 0) {
        print_message("skipped: only root can be another user\n");
        skip();
    }
    pid = fork();
    if (pid == 0) {
        char byte;
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        _exit(recv(joins(), &byte, 1, 0) == 0 ? 0 : 2);
    }
    assert_int_equal(service_accept(door, 65533, own_unit(), &err), -EPERM);
    assert_non_null(strstr(err.text, "of uid 65534"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
    close(door);
}

static void who_has_ended_since_does_not(void **state)
{
    int door = bound("door", SOCK_STREAM), status;
    struct err err = ERR_INIT;
    pid_t pid = fork();
    (void)state;
    if (pid == 0) {
        (void)joins();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(service_accept(door, getuid(), own_unit(), &err), -ESRCH);
    close(door);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_are_found_by_name),
        cmocka_unit_test(the_watchdog_is_served_three_times),
        cmocka_unit_test(systemd_hears_it),
        cmocka_unit_test(it_is_said_when_it_is_due),
        cmocka_unit_test(a_plan_is_read_as_it_was_written),
        cmocka_unit_test(a_plan_of_somebody_else_is_none),
        cmocka_unit_test(who_is_of_the_unit_joins),
        cmocka_unit_test(who_is_of_another_unit_does_not),
        cmocka_unit_test(another_user_does_not),
        cmocka_unit_test(who_has_ended_since_does_not),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
