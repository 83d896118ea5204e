/* test_erun.c - erun and the mpiexec that has started it: a shell by that name. */
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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/unit/scratch.h"

enum { WAIT_MS = 60000 };
static char dir[] = "/tmp/test-erun-XXXXXX", mpiexec[64];

static int copy_shell(void **state)
{
    char path[128];
    struct stat st;
    int from = open("/bin/sh", O_RDONLY | O_CLOEXEC), to;
    (void)state;
    assert_non_null(scratch_dir(dir));
    snprintf(mpiexec, sizeof(mpiexec), "%s/mpiexec.hydra", dir);
    to = open(mpiexec, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(from >= 0 && to >= 0 && fstat(from, &st) == 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
    close(from);
    close(to);
    snprintf(path, sizeof(path), "%s/elmer.sock", dir); /* nobody is there: erun ends with 255 */
    setenv("ELMER_SOCKET", path, 1);
    unsetenv("ELMER_JOB_ID");
    return 0;
}

/* How the shell ends: as of waitpid(2). */
static int end_of(const char *shell, const char *script)
{
    int64_t deadline = mono_now_ms() + WAIT_MS;
    int status = -1;
    pid_t pid = fork(), got = 0;
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(shell, shell, "-c", script, (char *)NULL);
        _exit(99);
    }
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && mono_now_ms() < deadline)
        poll(NULL, 0, 10);
    if (got == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    assert_int_equal(got, pid);
    return status;
}

static void test_one_that_would_wait_for_ever(void **state)
{
    int status = end_of(mpiexec, "trap '' TERM; client/erun true; sleep 30; exit 7");
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A job that was stopped, or had no CPU, has not had its time. */
static void test_time_in_which_nobody_runs(void **state)
{
    int status = end_of(mpiexec, "trap 'kill -STOP $!; sleep 2; kill -CONT $!; exit 7' TERM\n"
                                 "client/erun true &\n"
                                 "wait $!; wait $!; exit 8");
    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_another_program(void **state)
{
    int status = end_of("/bin/sh", "client/erun true; exit $?");
    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_would_wait_for_ever),
        cmocka_unit_test(test_time_in_which_nobody_runs),
        cmocka_unit_test(test_another_program),
    };
    return cmocka_run_group_tests_name("erun", tests, copy_shell, NULL);
}
