/* test_judge_all.c - the process that judges: that it says to systemd that it lives, and answers before it ends. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsd/tickets/judge.h"
#include "tests/unit/scratch.h"

/* The socket to ask it at. */
static int begin(pid_t *pid)
{
    static struct judge judge = {.hosts = "all", .users = "all", .record_fd = -1, .grant_fd = -1};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *pid = fork();
    if (*pid == 0) {
        close(pair[0]);
        judge_all(&judge, pair[1]);
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

/* With arrays of short jobs it is asked all the time, for hours. */
static void one_that_is_busy_says_that_it_lives(void **state)
{
    const struct ticket_ask asked = {.verb = TICKET_ASK_OPEN, .ticket = "none"};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, systemd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), status;
    char dir[64] = "/tmp/test_judge_all.XXXXXX", said[64];
    struct ticket_verdict verdict;
    pid_t pid;
    (void)state;
    assert_non_null(scratch_dir(dir));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", dir);
    assert_int_equal(bind(systemd, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "600000", 1);
    fd = begin(&pid);
    alarm(60);
    for (int heard = 0; heard < 3;) {
        assert_true(ticket_ask(fd, &asked, &verdict));
        assert_int_equal(verdict.why, TICKET_GARBLED);
        heard += recv(systemd, said, sizeof(said), MSG_DONTWAIT) > 0;
    }
    alarm(0);
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(systemd);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

/* A start that was marked as used and not answered would be asked for again, and refused. */
static void what_is_asked_is_answered_before_it_ends(void **state)
{
    static const char texts[6]; /* empty ones */
    const struct ticket_ask asked = {.verb = TICKET_ASK_START, .size = sizeof(texts)};
    struct ticket_verdict verdict;
    pid_t pid;
    int status, unread = 1, fd = begin(&pid);
    (void)state;
    assert_int_equal(send(fd, &asked, sizeof(asked) / 2, MSG_NOSIGNAL), sizeof(asked) / 2);
    alarm(60);
    while (unread > 0) {
        assert_int_equal(ioctl(fd, SIOCOUTQ, &unread), 0);
        sched_yield();
    }
    alarm(0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(
        send(fd, (const char *)&asked + sizeof(asked) / 2, sizeof(asked) - sizeof(asked) / 2, MSG_NOSIGNAL),
        sizeof(asked) - sizeof(asked) / 2);
    assert_int_equal(send(fd, texts, sizeof(texts), MSG_NOSIGNAL), sizeof(texts));
    assert_int_equal(recv(fd, &verdict, sizeof(verdict), MSG_WAITALL), sizeof(verdict));
    assert_int_equal(verdict.why, TICKET_MISSING);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_busy_says_that_it_lives),
        cmocka_unit_test(what_is_asked_is_answered_before_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
