/* test_commands_pty.c - esubmit --pty and eattach as processes at a terminal: with the real holder of the job's
 * terminal, and an elmer that the test plays. What is shown and typed, the way out, and how one's own terminal is left.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include "lib/base/clock.h"
#include "lib/job/terminal.h"
#include "tests/daemon/commands_lab.h"
#include "tests/daemon/terminal_elmer.h"
#include "tests/daemon/terminal_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

static const char *const shell[] = {"/bin/bash", "--norc", "--noprofile", "-i", NULL};

static struct terminal_lab lab;
static struct at { /* who sits there */
    pid_t pid;
    int master;
    struct termios before;
    char text[1 << 19];
    size_t size;
    const char *errors; /* where its standard error goes; NULL: there, too */
} at;

/* ---- a command at a terminal ---- */

static void sit(const char *const *words)
{
    struct winsize size = {.ws_row = 40, .ws_col = 132};
    char path[256];
    int slave;
    (void)snprintf(path, sizeof(path), "client/%s", words[0]);
    at.size = 0;
    at.text[0] = 0;
    assert_int_equal(openpty(&at.master, &slave, NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(at.master, &at.before), 0);
    at.pid = fork();
    assert_true(at.pid >= 0);
    if (at.pid == 0) {
        if (close(at.master) < 0 || login_tty(slave) < 0)
            _exit(99);
        if (at.errors)
            (void)dup2(open(at.errors, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
        execv(path, (char **)(uintptr_t)words);
        _exit(99);
    }
    close(slave);
    (void)fcntl(at.master, F_SETFL, O_NONBLOCK);
}
#define SIT(...) sit((const char *const[]){__VA_ARGS__, NULL})

static void read_some(int timeout)
{
    struct pollfd fd = {.fd = at.master, .events = POLLIN};
    ssize_t got = poll(&fd, 1, timeout) > 0 ? read(at.master, at.text + at.size, sizeof(at.text) - 1 - at.size) : 0;
    if (got > 0)
        at.size += (size_t)got;
    at.text[at.size] = 0;
}

static void until_shown(const char *text)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;
    while (!strstr(at.text, text) && mono_ms(mono_now()) < deadline)
        read_some(20);
    if (!strstr(at.text, text))
        fail_msg("not shown: %s; shown: %s", text, at.text);
}

static void type(const char *text)
{
    at.size = 0;
    at.text[0] = 0;
    assert_int_equal(write(at.master, text, strlen(text)), strlen(text));
}

/* The prompt is awaited before the next is typed. */
static void line(const char *text, const char *expected)
{
    char typed[200];
    (void)snprintf(typed, sizeof(typed), "%s\r", text);
    type(typed);
    until_shown(expected);
    until_shown("ready> ");
}

static bool same_modes(void)
{
    struct termios now;
    assert_int_equal(tcgetattr(at.master, &now), 0);
    return now.c_lflag == at.before.c_lflag && now.c_iflag == at.before.c_iflag && now.c_oflag == at.before.c_oflag;
}

/* The exit status, 128+n for a signal; its terminal is as it was. */
static int get_up(void)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;
    int status = 0;
    pid_t pid = 0;
    bool modes;
    while (mono_ms(mono_now()) < deadline && (pid = waitpid(at.pid, &status, WNOHANG)) == 0)
        read_some(5);
    if (pid != at.pid)
        fail_msg("it does not end; shown: %s", at.text);
    at.pid = 0;
    read_some(0);
    modes = same_modes();
    close(at.master);
    assert_true(modes);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- elmer ---- */

static void answer_reach(struct world *w)
{
    struct wire_message reach = peer_expect(&w->elmer, WIRE_reach);
    struct wire_message reached = {.type = WIRE_reached,
                                   .id = reach.id,
                                   .u.reached = {.attempt = 1, .address = "", .port = lab.port, .host = LAB_HOST}};
    assert_int_equal(reach.u.reach.job, LAB_JOB);
    assert_true(reach.u.reach.terminal);
    peer_send(&w->elmer, &reached);
    wire_message_fini(&reach);
}

static void answer_wait(struct world *w, int exit_status)
{
    struct wire_message wait = peer_expect(&w->elmer, WIRE_wait);
    struct wire_job_view done = done_view(LAB_JOB, exit_status, -1, "exited", "");
    answer_jobs(w, wait.id, &done, 1, false);
    wire_message_fini(&wait);
}

static void begin(const char *mode, const char *const *argv)
{
    terminal_up(&lab, mode, argv);
}

static void listen_there(struct world *w)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/elmer.sock", lab.dir);
    if (w->listening >= 0)
        close(w->listening);
    unlink(path);
    w->listening = peer_listen(path);
}

/* eattach, up to the prompt. */
static void attach(struct world *w)
{
    listen_there(w);
    SIT("eattach", "7");
    accept_command(w);
    terminal_answer_query(w, terminal_view("running", TERMINAL_KEEP));
    answer_reach(w);
}

/* ---- tests ---- */

/* esubmit --pty, up to what it submits. */
static void submit_at(struct world *w, struct wire_message *submit)
{
    listen_there(w);
    SIT("esubmit", "--pty", "4", "/bin/sh");
    accept_command(w);
    *submit = peer_expect(&w->elmer, WIRE_submit);
}

static void answer_submitted_as(struct world *w, uint64_t id)
{
    struct wire_message answer = {.type = WIRE_submitted,
                                  .id = id,
                                  .u.submitted = {.job = LAB_JOB, .state = "queued", .level = -1, .reason = "waits"}};
    peer_send(&w->elmer, &answer);
}

static void test_esubmit(void **data)
{
    struct world *w = *data;
    struct wire_message submit;
    struct wire_job_view waits = terminal_view("queued", TERMINAL_PTY);
    bool found = false;
    begin(TERMINAL_PTY, shell);
    setenv("TERM", "vt100", 1);
    submit_at(w, &submit);
    assert_string_equal(submit.u.submit.terminal, TERMINAL_PTY);
    assert_string_equal(submit.u.submit.output, "/dev/null");
    for (size_t i = 0; i < submit.u.submit.environment.count; i++)
        found = found || strcmp(submit.u.submit.environment.items[i], TERMINAL_VARIABLE "=pty") == 0;
    assert_true(found);
    answer_submitted_as(w, submit.id);
    wire_message_fini(&submit);
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    waits.reason = "not enough processors";
    terminal_answer_query(w, waits);
    until_shown("job 7 waits: not enough processors");
    answer_reach(w);
    until_shown("ready> ");
    assert_false(same_modes());
    line("stty size", "40 132");
    {
        struct winsize size = {.ws_row = 50, .ws_col = 100};
        assert_int_equal(ioctl(at.master, TIOCSWINSZ, &size), 0);
        assert_int_equal(kill(at.pid, SIGWINCH), 0);
    }
    line("until [ \"$(stty size)\" = '50 100' ]; do :; done; echo $((6*7))", "\n42\r\n");
    type("sh -c 'echo begun; exec sleep 1000'\r");
    until_shown("\nbegun\r\n");
    type("\003");
    until_shown("ready> ");
    type("exit 7\r");
    answer_wait(w, 7);
    assert_int_equal(get_up(), 7);
    (void)terminal_end(&lab);
    terminal_down(&lab);
}

static void test_leave_and_come_back(void **data)
{
    struct world *w = *data;
    begin(TERMINAL_KEEP, shell);
    attach(w);
    until_shown("ready> ");
    line("x=41", "ready> ");
    type("~?");
    until_shown("~. leaves");
    type("\r~.");
    until_shown("job 7 goes on: eattach 7");
    assert_int_equal(get_up(), 0);
    attach(w);
    line("echo $((x+1))", "\n42\r\n");
    assert_int_equal(kill(at.pid, SIGTERM), 0);
    assert_int_equal(get_up(), 128 + SIGTERM);
    attach(w);
    line("echo $((x+2))", "\n43\r\n");
    assert_int_equal(kill(at.pid, SIGUSR1), 0); /* one that nobody expects */
    assert_int_equal(get_up(), 128 + SIGUSR1);
    attach(w);
    line("echo $((x+2))", "\n43\r\n");
    assert_int_equal(kill(at.pid, SIGKILL), 0); /* then its terminal stays as it is */
    waitpid(at.pid, NULL, 0);
    close(at.master);
    attach(w);
    line("echo $((x+3))", "\n44\r\n");
    type("exit 5\r");
    answer_wait(w, 5);
    assert_int_equal(get_up(), 5);
    (void)terminal_end(&lab);
    terminal_down(&lab);
}

/* Nobody reads what it writes, and it is asked to end. */
static void test_nobody_reads(void **data)
{
    struct world *w = *data;
    int64_t deadline;
    int status = 0;
    pid_t pid = 0;
    begin(TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", "seq 1 100000; exec sleep 1000", NULL});
    attach(w);
    until_shown("1\r\n2\r\n");
    poll(NULL, 0, 300);
    assert_int_equal(kill(at.pid, SIGTERM), 0);
    for (deadline = mono_ms(mono_now()) + 5000; pid == 0 && mono_ms(mono_now()) < deadline; poll(NULL, 0, 5))
        pid = waitpid(at.pid, &status, WNOHANG);
    assert_int_equal(pid, at.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM && same_modes());
    close(at.master);
    terminal_down(&lab);
}

/* ---- a connection that is cut ---- */

static void put(const char *name)
{
    assert_true(scratch_put(lab.dir, name, ""));
}

static void take(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", lab.dir, name);
    assert_int_equal(unlink(path), 0);
}

static void until_there_is(const char *name)
{
    int64_t deadline = mono_ms(mono_now()) + LAB_WAIT_MS;
    while (!terminal_has(&lab, name) && mono_ms(mono_now()) < deadline)
        poll(NULL, 0, 5);
    assert_true(terminal_has(&lab, name));
}

/* Its terminal is read late, and the connection comes back meanwhile. */
static void test_late_reader(void **data)
{
    enum { LINES = 50000 };
    static char expected[1 << 19], errors[128];
    struct world *w = *data;
    size_t size = 0;
    pid_t proxy;
    for (unsigned i = 1; i <= LINES; i++)
        size += (size_t)snprintf(expected + size, sizeof(expected) - size, "%u\r\n", i);
    begin(TERMINAL_KEEP, (const char *const[]){"/bin/sh", "-c", "seq 1 50000; exec sleep 1000", NULL});
    proxy = terminal_proxy_up(&lab);
    (void)snprintf(errors, sizeof(errors), "%s/errors", lab.dir);
    at.errors = errors;
    attach(w);
    until_shown("1\r\n2\r\n");
    poll(NULL, 0, 300); /* it has what its terminal does not take */
    put("hold");
    put("cut");
    answer_reach(w);
    take("cut");
    until_there_is("held"); /* it has asked for what comes next, and is not answered */
    for (int i = 0; i < 20; i++)
        read_some(20);
    take("hold");
    until_shown("\n50000\r\n");
    assert_string_equal(at.text, expected);
    at.errors = NULL;
    kill(at.pid, SIGTERM);
    assert_int_equal(get_up(), 128 + SIGTERM);
    kill(proxy, SIGKILL);
    waitpid(proxy, NULL, 0);
    terminal_down(&lab);
}

/* Stopped and going on, its terminal is the shell's meanwhile. */
static void test_stopped(void **data)
{
    struct world *w = *data;
    int status;
    begin(TERMINAL_KEEP, shell);
    attach(w);
    until_shown("ready> ");
    assert_int_equal(kill(at.pid, SIGTSTP), 0);
    assert_int_equal(waitpid(at.pid, &status, WUNTRACED), at.pid);
    assert_true(WIFSTOPPED(status) && same_modes());
    assert_int_equal(kill(at.pid, SIGCONT), 0);
    line("echo $((6*7))", "\n42\r\n");
    assert_false(same_modes());
    type("exit\r");
    answer_wait(w, 0);
    assert_int_equal(get_up(), 0);
    terminal_down(&lab);
}

/* The holder's process is stopped for a moment: what is typed comes when it goes on. Then it is gone, and elmer says
 * how the job has ended. */
static void test_gone(void **data)
{
    struct world *w = *data;
    struct wire_job_view killed = done_view(LAB_JOB, -1, SIGKILL, "exited", "");
    struct wire_message wait;
    begin(TERMINAL_KEEP, shell);
    attach(w);
    until_shown("ready> ");
    assert_int_equal(kill(lab.holder, SIGSTOP), 0);
    type("echo $((6*7))\r");
    assert_int_equal(kill(lab.holder, SIGCONT), 0);
    until_shown("\n42\r\n");
    assert_int_equal(kill(lab.holder, SIGKILL), 0);
    (void)terminal_end(&lab);
    until_shown("the connection to ws1 is lost");
    terminal_refuse_reach(w, WIRE_CODE_WRONG_STATE);
    terminal_answer_query(w, killed);
    wait = peer_expect(&w->elmer, WIRE_wait);
    answer_jobs(w, wait.id, &killed, 1, false);
    wire_message_fini(&wait);
    assert_int_equal(get_up(), 128 + SIGKILL);
    terminal_down(&lab);
}

/* This host does not believe that of the job: nothing is typed at it, and what nobody can look at is taken back. */
static void test_not_believed(void **data)
{
    struct world *w = *data;
    struct wire_message submit, cancel, done = {.type = WIRE_done, .u.done = {.text = ""}};
    begin(TERMINAL_PTY, shell);
    put("deny");
    submit_at(w, &submit);
    answer_submitted_as(w, submit.id);
    wire_message_fini(&submit);
    for (int i = 0; i < 20; i++)
        answer_reach(w);
    until_shown("the terminal of job 7 cannot be seen: not believed here");
    cancel = peer_expect(&w->elmer, WIRE_cancel);
    done.id = cancel.id;
    peer_send(&w->elmer, &done);
    wire_message_fini(&cancel);
    until_shown("job 7 is taken back");
    assert_int_equal(get_up(), 6);
    terminal_down(&lab);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_esubmit),      TEST(test_leave_and_come_back),
        TEST(test_nobody_reads), TEST(test_late_reader),
        TEST(test_stopped),      TEST(test_gone),
        TEST(test_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
