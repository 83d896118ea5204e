/* test_terminal.c - what holds a job's terminal, as a process, with a shell in it: what is shown and typed, who may
 * look, and that nothing is lost or doubled by connections that end. */
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
#include "tests/unit/scratch.h"

/* ---- a session ---- */

static void test_session(void **state)
{
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY, seat_shell);
    look(&seat);
    UNTIL(&seat, shows(&seat, "ready> "));
    command(&seat, "echo $((6*7))", "\n42\r\n");
    command(&seat, "stty size", "\n40 132\r\n");
    run_link_send_numbers(&seat.link, RUN_SIZE, 0, 50, 100);
    command(&seat, "stty size", "\n50 100\r\n");
    command(&seat, "echo [$ELMER_TERMINAL]", "\n[]\r\n");
    command(&seat, "ps -o tty= -p $$ | grep -c pts", "\n1\r\n");
    type(&seat, "exit 7\r");
    UNTIL(&seat, seat.exited);
    assert_int_equal(seat.status, 7);
    assert_int_equal(seat.signal, 0);
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    leave(&seat);
}

static void test_job_control(void **state)
{
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY, seat_shell);
    look(&seat);
    UNTIL(&seat, shows(&seat, "ready> "));
    forget(&seat);
    type(&seat, "sh -c 'echo begun; exec sleep 1000'\r");
    UNTIL(&seat, shows(&seat, "\nbegun\r\n"));
    forget(&seat);
    type(&seat, "\003");
    UNTIL(&seat, shows(&seat, "^C") && shows(&seat, "ready> "));
    command(&seat, "echo status $?", "\nstatus 130\r\n");
    forget(&seat);
    type(&seat, "perl -e '$|=1; $SIG{CONT}=sub{print \"again\\n\"}; print \"begun\\n\"; sleep 1 while 1'\r");
    UNTIL(&seat, shows(&seat, "\nbegun\r\n"));
    forget(&seat);
    type(&seat, "\032");
    UNTIL(&seat, shows(&seat, "Stopped") && shows(&seat, "ready> "));
    forget(&seat);
    type(&seat, "fg\r");
    UNTIL(&seat, shows(&seat, "\nagain\r\n")); /* the shell shows its name first, and then gives it the terminal */
    type(&seat, "\003");
    UNTIL(&seat, shows(&seat, "ready> "));
    type(&seat, "kill -9 $$\r");
    UNTIL(&seat, seat.exited);
    assert_int_equal(seat.signal, SIGKILL);
    status = terminal_end(&lab);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    leave(&seat);
}

static void test_no_such_command(void **state)
{
    static const char *const none[] = {"no-such-command", NULL};
    struct seat seat;
    int status;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY, none);
    look(&seat);
    UNTIL(&seat, seat.exited);
    assert_true(shows(&seat, "elmer: command not found: no-such-command\r\n"));
    assert_int_equal(seat.status, 127);
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
    leave(&seat);
}

/* ---- nothing is lost ---- */

/* Lines of `seq 1 count`, as a terminal has them. */
static char *lines_to(unsigned count)
{
    char *text = malloc((size_t)count * 9 + 10);
    size_t size = 0;
    assert_non_null(text);
    for (unsigned i = 1; i <= count; i++)
        size += (size_t)snprintf(text + size, 10, "%u\r\n", i);
    return text;
}

static void wait_for_file(const char *name)
{
    char path[128];
    int64_t deadline = soon();
    snprintf(path, sizeof(path), "%s/%s", lab.dir, name);
    while (access(path, F_OK) < 0 && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, 5);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_while_nobody_looks(void **state)
{
    char line[200], *expected = lines_to(20000);
    struct seat seat;
    int status;
    (void)state;
    snprintf(line, sizeof(line), "seq 1 20000; read x; echo \"got $x\"; : >\"$0\"; read y; exit 3");
    terminal_up(&lab, TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", line, "/dev/null", NULL});
    look(&seat);
    UNTIL(&seat, seat.size >= strlen(expected));
    assert_string_equal(seat.text, expected);
    run_link_fini(&seat.link); /* without a word */
    forget(&seat);
    seat.shown = false;
    look_with(&seat, (struct run_look){.seen = RUN_LOOK_UNSEEN});
    assert_int_equal(seat.looking.lost, 0);
    type(&seat, "well\r");
    UNTIL(&seat, shows(&seat, "got well\r\n"));
    assert_false(shows(&seat, "20000")); /* seen before */
    leave(&seat);
    look_with(&seat, (struct run_look){.seen = RUN_LOOK_ALL});
    UNTIL(&seat, shows(&seat, "got well\r\n"));
    assert_memory_equal(seat.text, expected, strlen(expected));
    type(&seat, "\r");
    UNTIL(&seat, seat.exited);
    leave(&seat);
    status = terminal_end(&lab);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    free(expected);
}

static void test_more_than_is_kept(void **state)
{
    enum { COUNT = 300000 };
    char *expected = lines_to(COUNT), done[100], line[200];
    struct seat seat;
    size_t all = strlen(expected);
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, (const char *const[]){"/bin/sh", NULL});
    look(&seat);
    snprintf(done, sizeof(done), "%s/done", lab.dir);
    snprintf(line, sizeof(line), "stty -echo; PS1=; read go; seq 1 %d; : >%s\r", COUNT, done);
    type(&seat, line);
    UNTIL(&seat, shows(&seat, done));
    UNTIL(&seat, seat.came == strlen(line));
    type(&seat, "go\r");
    UNTIL(&seat, seat.came == strlen(line) + 3);
    seat.gives_back = false;
    run_link_fini(&seat.link);
    wait_for_file("done");
    forget(&seat);
    seat.shown = false;
    look_with(&seat, (struct run_look){.seen = RUN_LOOK_UNSEEN});
    assert_true(seat.looking.lost > 0);
    UNTIL(&seat, shows(&seat, "\n300000\r\n"));
    UNTIL(&seat, seat.seen - seat.looking.from >= TERMINAL_KEPT - 100);
    assert_true(seat.size >= TERMINAL_KEPT - 100 && seat.size <= TERMINAL_KEPT);
    assert_memory_equal(seat.text + 100, expected + all - seat.size + 100, seat.size - 100);
    leave(&seat);
    free(expected);
}

/* A connection that ends at some moment; the next one of the same session goes on where the first was. */
static void test_lost_connections(void **state)
{
    enum { COUNT = 100000 };
    char *expected = lines_to(COUNT);
    struct seat seat;
    uint64_t session;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY,
                (const char *const[]){"/bin/sh", "-c", "stty -echo; seq 1 100000; read -r end; exit 5", NULL});
    look(&seat);
    session = seat.looking.session;
    for (size_t part = 1; part <= 8; part++) {
        size_t enough = part * 40000;
        UNTIL(&seat, seat.size >= enough);
        uint64_t seen = seat.size;
        run_link_fini(&seat.link);
        seat.shown = false;
        look_with(&seat, (struct run_look){.session = session, .seen = seen});
        assert_int_equal(seat.looking.session, session);
        assert_int_equal(seat.looking.lost, 0);
        assert_int_equal(seat.looking.from, seen);
    }
    UNTIL(&seat, seat.size >= strlen(expected));
    assert_string_equal(seat.text, expected);
    type(&seat, "\n"); /* who has taken all may be at the end before he comes again */
    UNTIL(&seat, seat.exited);
    assert_int_equal(seat.status, 5);
    leave(&seat);
    free(expected);
}

/* What was typed and not taken is said again from where it came to. */
static void test_lost_input(void **state)
{
    struct seat seat;
    uint64_t session;
    (void)state;
    terminal_up(&lab, TERMINAL_PTY,
                (const char *const[]){"/bin/sh", "-c", "stty -echo; echo on; read a; echo \"<$a>\"", NULL});
    look(&seat);
    session = seat.looking.session;
    UNTIL(&seat, shows(&seat, "on\r\n"));
    type(&seat, "abc");
    UNTIL(&seat, seat.came == 3);
    type(&seat, "def"); /* underway when it ends */
    run_link_fini(&seat.link);
    seat.shown = false;
    look_with(&seat, (struct run_look){.session = session, .seen = seat.seen});
    assert_true(seat.looking.came == 3 || seat.looking.came == 6);
    assert_true(seat.looking.went <= seat.looking.came);
    type(&seat, seat.looking.came == 3 ? "def\r" : "\r");
    UNTIL(&seat, seat.exited);
    assert_true(shows(&seat, "<abcdef>\r\n"));
    leave(&seat);
}

/* ---- who may look ---- */

static void is_not_shown(const struct claim *claim, const char *why)
{
    struct seat seat = {.shown = false};
    if (terminal_connect(&lab, claim, &seat.link))
        ask(&seat, (struct run_look){.seen = RUN_LOOK_ALL});
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    assert_false(seat.shown);
    assert_int_equal(seat.size, 0);
    assert_string_equal(seat.refused, why);
    leave(&seat);
}

static void test_strangers(void **state)
{
    const struct claim claims[] = {
        {.job = LAB_JOB, .uid = LAB_UID, .user = "bob"},
        {.job = LAB_JOB, .uid = LAB_UID + 1, .user = LAB_USER},
        {.job = LAB_JOB + 1, .uid = LAB_UID, .user = LAB_USER},
        {.is_process = true, .job = LAB_JOB, .uid = LAB_UID, .user = LAB_USER}, /* erun of the job: a courier's guest */
    };
    struct claim mine = LAB_CLAIM;
    struct seat seat;
    char path[128];
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, seat_shell);
    look(&seat);
    UNTIL(&seat, shows(&seat, "ready> "));
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++)
        is_not_shown(&claims[i], "you may not look at this terminal");
    assert_true(scratch_put(lab.dir, "deny", ""));
    is_not_shown(&mine, "not believed here");
    snprintf(path, sizeof(path), "%s/deny", lab.dir);
    unlink(path);
    command(&seat, "echo $((6*7))", "\n42\r\n"); /* who looks has noticed nothing */
    leave(&seat);
}

static void test_takes_it(void **state)
{
    struct seat first, second;
    struct seat again = {.shown = false};
    struct claim claim = LAB_CLAIM;
    uint64_t session;
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, seat_shell);
    look(&first);
    UNTIL(&first, shows(&first, "ready> "));
    session = first.looking.session;
    look(&second);
    UNTIL(&first, first.link.state == RUN_DEAD);
    assert_string_equal(first.refused, "another one looks at the terminal now");
    leave(&first);
    assert_true(terminal_connect(&lab, &claim, &again.link)); /* nor does he get it back */
    ask(&again, (struct run_look){.session = session, .seen = 0});
    UNTIL(&again, again.link.state == RUN_DEAD);
    assert_false(again.shown);
    assert_string_equal(again.refused, "another one looks at the terminal now");
    leave(&again);
    command(&second, "echo $((6*7))", "\n42\r\n");
    leave(&second);
}

/* More than a window of input, and more taken than there was, end the connection, not the session. */
static void test_bounds(void **state)
{
    static uint8_t much[RUN_WINDOW + 1];
    struct seat seat;
    (void)state;
    terminal_up(&lab, TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", "echo on; exec sleep 1000", NULL});
    look(&seat);
    UNTIL(&seat, shows(&seat, "on\r\n"));
    run_link_send(&seat.link, RUN_IN, 0, much, sizeof(much));
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    leave(&seat);
    look(&seat);
    run_link_send_number(&seat.link, RUN_TAKEN, RUN_OUT, 1);
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    leave(&seat);
    look(&seat);
    run_link_send(&seat.link, RUN_START, 0, NULL, 0);
    UNTIL(&seat, seat.link.state == RUN_DEAD);
    leave(&seat);
    look(&seat);
    leave(&seat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_session, seat_teardown),
        cmocka_unit_test_teardown(test_job_control, seat_teardown),
        cmocka_unit_test_teardown(test_no_such_command, seat_teardown),
        cmocka_unit_test_teardown(test_while_nobody_looks, seat_teardown),
        cmocka_unit_test_teardown(test_more_than_is_kept, seat_teardown),
        cmocka_unit_test_teardown(test_lost_connections, seat_teardown),
        cmocka_unit_test_teardown(test_lost_input, seat_teardown),
        cmocka_unit_test_teardown(test_strangers, seat_teardown),
        cmocka_unit_test_teardown(test_takes_it, seat_teardown),
        cmocka_unit_test_teardown(test_bounds, seat_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
