/* test_rsd_waits.c - what keeps rsd from beginning and may pass is waited for, said once in the log and in its STATUS;
 * what will not pass ends it with the status that systemd does not start again. Nothing of rsd gets further than that
 * here. It must be root's, as rsd is; else it is skipped. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/scratch.h"

enum { PATIENCE_MS = 20000 };

static char dir[64];

static pid_t start(const char *config)
{
    const char *program = getenv("RSD_PROGRAM");
    char conf[100], log[100];
    snprintf(dir, sizeof(dir), "/tmp/elmer-rsd-waits-XXXXXX");
    assert_non_null(scratch_dir(dir));
    assert_true(scratch_put(dir, "rsd.conf", config));
    snprintf(conf, sizeof(conf), "%s/rsd.conf", dir);
    snprintf(log, sizeof(log), "%s/log", dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(fd, STDERR_FILENO);
    execl(program ? program : "rsd/rsd", "rsd", "-c", conf, (char *)NULL);
    _exit(127);
}

static const char *log_text(void)
{
    static char text[16384];
    char path[100];
    snprintf(path, sizeof(path), "%s/log", dir);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[size] = 0;
    if (file)
        fclose(file);
    return text;
}

static int status_of(pid_t pid)
{
    int status = -1;
    for (int64_t end = mono_ms(mono_now()) + PATIENCE_MS; waitpid(pid, &status, WNOHANG) == 0; poll(NULL, 0, 10)) {
        if (mono_ms(mono_now()) < end)
            continue;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        fail_msg("it does not end: %s", log_text());
    }
    return status;
}

static void ends_with_2(const char *config, const char *words, const char *more)
{
    int status = status_of(start(config));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)
        fail_msg("status %d: %s", status, log_text());
    if (!strstr(log_text(), words) || !strstr(log_text(), more))
        fail_msg("\"%s\" does not say %s and %s", log_text(), words, more);
}

static void test_hopeless(void **state)
{
    (void)state;
    ends_with_2("[rsd]\nmode = fast\nminimum_uid = x\n", ":2: mode = fast", ":3: minimum_uid = x"); /* all is told */
    if (geteuid() != 0) {
        print_message("skipped: only root gets as far as that\n");
        skip();
    }
    ends_with_2("[rsd]\nuser = root\n", "the network half must not be", "user = root");
}

static void await_notice(int socket, const char *words)
{
    char text[2000] = "";
    for (int64_t end = mono_ms(mono_now()) + PATIENCE_MS; !strstr(text, words); poll(NULL, 0, 10)) {
        ssize_t size = recv(socket, text, sizeof(text) - 1, MSG_DONTWAIT);
        text[size > 0 ? size : 0] = 0;
        if (mono_ms(mono_now()) > end)
            fail_msg("no \"%s\"", words);
    }
    assert_non_null(strstr(text, "READY=1"));
}

static void test_waits(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int notices = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), status;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root gets as far as that\n");
        skip();
    }
    char name[] = "/tmp/elmer-rsd-notify-XXXXXX";
    assert_non_null(scratch_dir(name));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", name);
    assert_int_equal(bind(notices, (struct sockaddr *)&address, sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    pid_t pid = start("[rsd]\nuser = no-such-user\n");
    await_notice(notices, "STATUS=rsd cannot begin: there is no user no-such-user");
    await_notice(notices, "STATUS=rsd cannot begin: there is no user no-such-user"); /* it has tried again */
    const char *first = strstr(log_text(), "there is no user no-such-user");
    assert_non_null(first);
    assert_non_null(strstr(first, "it tries again every 5 s"));
    assert_null(strstr(first + 1, "there is no user"));
    kill(pid, SIGTERM);
    status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM); /* an end in order, for systemd */
    unsetenv("NOTIFY_SOCKET");
    close(notices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
