/* test_terminal_ends.c - what holds a job's terminal, as a process: the end of what is typed, of who looks, of the
 * command and of the job. */
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
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/job/terminal.h"
#include "tests/daemon/seat.h"

/* ---- input, and the command ---- */

/* It ends also behind half a line, and once: who comes back says it again. */
static void test_end_of_input(void **state)
{
    struct seat seat;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY, (const char *const[]){"/bin/sh", "-c", "cat; echo; echo \"<$(cat)>\"", NULL});
    look(&seat);
    type(&seat, "half");
    run_link_send(&seat.link, RUN_IN_END, 0, NULL, 0);
    UNTIL(&seat, shows(&seat, "halfhalf\r\n"));
    run_link_fini(&seat.link);
    seat.shown = false;
    look_with(&seat, (struct run_look){.session = seat.looking.session, .seen = seat.seen});
    run_link_send(&seat.link, RUN_IN_END, 0, NULL, 0);
    leave(&seat);
    look(&seat); /* another session types for the second one */
    type(&seat, "more\r");
    UNTIL(&seat, shows(&seat, "more\r\n"));
    run_link_send(&seat.link, RUN_IN_END, 0, NULL, 0);
    UNTIL(&seat, shows(&seat, "<more>\r\n"));
    UNTIL(&seat, seat.exited);
    leave(&seat);
}

/* What its command has left behind prints for ever. Whether the terminal is empty for a moment is a matter of luck:
 * this sees only that the end comes. */
static void test_the_end_has_an_end(void **state)
{
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY,
                (const char *const[]){"/bin/sh", "-c", "trap '' HUP; yes & yes & yes & yes & sleep 0.1; exit 6", NULL});
    look(&seat);
    UNTIL(&seat, seat.exited);
    assert_int_equal(seat.status, 6);
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    leave(&seat);
}

static unsigned long ticks_of_holder(void)
{
    char path[64], text[1000] = "";
    unsigned long user = 0, system = 0;
    const char *at;
    int fd;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)lab.holder);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    at = strrchr(text, ')');
    for (int i = 0; at && i < 12; i++)
        at = strchr(at + 1, ' ');
    assert_non_null(at);
    user = strtoul(at, (char **)(uintptr_t)&at, 10);
    system = strtoul(at, NULL, 10);
    return user + system;
}

/* Its command lives on without its terminal, and what is typed waits for nobody. */
static void test_closed_terminal(void **state)
{
    static uint8_t much[RUN_PIECE];
    char closed[64] = "/tmp/closed.XXXXXX";
    struct seat seat;
    unsigned long ticks;
    int64_t deadline = soon();
    int fd = mkstemp(closed);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    terminal_up(&lab, TERMINAL_KEEP,
                (const char *const[]){"/bin/sh", "-c", "stty raw -echo; exec <&- >&- 2>&-; rm \"$0\"; exec sleep 1000",
                                      closed, NULL});
    while (access(closed, F_OK) == 0 && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, 5);
    look(&seat);
    memset(much, 'x', sizeof(much));
    for (int i = 0; i < 4; i++)
        run_link_send(&seat.link, RUN_IN, 0, much, sizeof(much));
    for (int i = 0; i < 10; i++)
        turn(&seat);
    ticks = ticks_of_holder();
    for (int i = 0; i < 50; i++) /* a second */
        turn(&seat);
    assert_true(seat.came < 4 * sizeof(much)); /* it does wait */
    ticks = ticks_of_holder() - ticks;
    if (ticks > 20)
        fail_msg("%lu hundredths of a second of a CPU for nothing", ticks);
    leave(&seat);
}

/* It goes to the job's output file. */
static void test_unseen_at_the_end(void **state)
{
    char path[128], text[200] = "";
    int status, fd;
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", "echo last words; exit 4", NULL});
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    snprintf(path, sizeof(path), "%s/unseen", lab.dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    assert_string_equal(text, "last words\r\n");
}

static void read_unseen(char *text, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/unseen", lab.dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    memset(text, 0, size);
    assert_true(fd >= 0 && read(fd, text, size - 1) >= 0);
    close(fd);
}

/* The job is ended, and its command takes longer for that than it has: KILL takes nothing along that nobody has seen.
 */
static void test_unseen_at_kill(void **state)
{
    char flag[64] = "/tmp/unseen.XXXXXX", text[200] = "";
    const char *const script = "trap '' HUP; echo early; while [ -e \"$0\" ]; do sleep 0.05; done; echo late; read x";
    struct seat seat;
    int status, fd = mkstemp(flag);
    int64_t written_by = soon();
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    terminal_up(&lab, TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", script, flag, NULL});
    look(&seat);
    UNTIL(&seat, shows(&seat, "early\r\n"));
    run_link_send(&seat.link, RUN_LEAVE, 0, NULL, 0);
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    leave(&seat);
    assert_int_equal(kill(lab.holder, SIGTERM), 0);
    assert_int_equal(unlink(flag), 0);
    while (strcmp(text, "late\r\n") != 0 && mono_ms(mono_now()) < written_by) {
        poll(NULL, 0, 5);
        read_unseen(text, sizeof(text));
    }
    assert_string_equal(text, "late\r\n");
    look(&seat); /* who comes nevertheless sees it, too */
    UNTIL(&seat, shows(&seat, "late\r\n"));
    leave(&seat);
    assert_int_equal(kill(lab.holder, SIGKILL), 0);
    status = terminal_end(&lab);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    read_unseen(text, sizeof(text));
    assert_string_equal(text, "late\r\n");
}

/* ---- who goes ---- */

static void test_leave(void **state)
{
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY,
                (const char *const[]){"/bin/sh", "-c", "trap 'exit 9' HUP; echo on; while :; do read x; done", NULL});
    look(&seat);
    UNTIL(&seat, shows(&seat, "on\r\n"));
    run_link_send(&seat.link, RUN_LEAVE, 0, NULL, 0);
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    leave(&seat);
}

static void test_leave_what_stays(void **state)
{
    struct seat seat;
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, seat_shell);
    look(&seat);
    UNTIL(&seat, shows(&seat, "ready> "));
    command(&seat, "x=41", "ready> ");
    run_link_send(&seat.link, RUN_LEAVE, 0, NULL, 0);
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    leave(&seat);
    look(&seat);
    command(&seat, "echo $((x+1))", "\n42\r\n");
    leave(&seat);
}

/* bash, between its prompt and its wait for a key, handles a HUP only when that key comes. */
static bool shell_sleeps(void)
{
    char path[80], state = 0;
    int shell = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)lab.holder, (int)lab.holder);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &shell), 1);
    fclose(file);
    snprintf(path, sizeof(path), "/proc/%d/stat", shell);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (bash) %c", &state), 1);
    fclose(file);
    return state == 'S';
}

/* TERM, as at the end of a job: a shell that ignores it gets HUP. */
static void test_stop(void **state)
{
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, seat_shell);
    look(&seat);
    UNTIL(&seat, shows(&seat, "ready> "));
    assert_int_equal(kill(lab.holder, SIGUSR1), 0); /* as ekill --signal: not for it */
    assert_int_equal(kill(lab.holder, SIGHUP), 0);
    command(&seat, "echo $((2*21))", "\n42\r\n");
    UNTIL(&seat, shell_sleeps());
    assert_int_equal(kill(lab.holder, SIGTERM), 0);
    UNTIL(&seat, seat.exited);
    status = terminal_end(&lab);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
    leave(&seat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_end_of_input, seat_teardown),
        cmocka_unit_test_teardown(test_the_end_has_an_end, seat_teardown),
        cmocka_unit_test_teardown(test_closed_terminal, seat_teardown),
        cmocka_unit_test_teardown(test_unseen_at_the_end, seat_teardown),
        cmocka_unit_test_teardown(test_unseen_at_kill, seat_teardown),
        cmocka_unit_test_teardown(test_leave, seat_teardown),
        cmocka_unit_test_teardown(test_leave_what_stays, seat_teardown),
        cmocka_unit_test_teardown(test_stop, seat_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
