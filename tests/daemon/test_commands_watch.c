/* test_commands_watch.c - equery on a terminal, which the test plays, too: -W, colours, and what none of them changes
 * in a pipe; --format. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

#define OTHER_SCREEN "\033[?1049h"
#define OLD_SCREEN   "\033[?7h\033[?25h\033[?1049l"
#define GREEN        "\033[32mrunning\033[0m"

enum { ROWS = 24, WIDTH = 60, JOBS_MAX = 40 };

static struct terminal {
    int master, slave;
    struct termios before;
    char text[OUTPUT_MAX];
    size_t size, seen; /* up to where the test has looked */
} terminal;

/* ---- the terminal ---- */

static void resize(unsigned short rows)
{
    struct winsize size = {.ws_row = rows, .ws_col = WIDTH};

    assert_int_equal(ioctl(terminal.master, TIOCSWINSZ, &size), 0);
}

static int terminal_up(void **data)
{
    terminal.text[0] = '\0';
    terminal.size = terminal.seen = 0;
    terminal.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal.master < 0 || grantpt(terminal.master) < 0 || unlockpt(terminal.master) < 0)
        return -1;
    terminal.slave = open(ptsname(terminal.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal.slave < 0 || tcgetattr(terminal.slave, &terminal.before) < 0)
        return -1;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    resize(ROWS);
    return set_up(data);
}

static int terminal_down(void **data)
{
    close(terminal.master);
    close(terminal.slave);
    return tear_down(data);
}

static void run_there(struct world *w, const char *const *words)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "client/%s", words[0]);
    w->pid = fork();
    assert_true(w->pid >= 0);
    if (w->pid == 0) {
        if (setsid() < 0 || ioctl(terminal.slave, TIOCSCTTY, 0) < 0 || dup2(terminal.slave, 0) < 0 ||
            dup2(terminal.slave, 1) < 0 || dup2(terminal.slave, 2) < 0)
            _exit(99);
        execv(path, (char **)(uintptr_t)words);
        _exit(99);
    }
}
#define RUN_THERE(w, ...) run_there(w, (const char *const[]){__VA_ARGS__, NULL})

static void read_some(int wait_ms)
{
    struct pollfd fd = {.fd = terminal.master, .events = POLLIN};

    if (poll(&fd, 1, wait_ms) > 0) {
        ssize_t got = read(terminal.master, terminal.text + terminal.size, OUTPUT_MAX - 1 - terminal.size);

        assert_true(got > 0);
        terminal.size += (size_t)got;
    }
    terminal.text[terminal.size] = '\0';
}

/* Behind what was seen before; returns where it ends. */
static const char *expect(const char *word)
{
    int64_t deadline = mono_ms(mono_now()) + RUN_MS;
    const char *found;

    while (!(found = strstr(terminal.text + terminal.seen, word)) && mono_ms(mono_now()) < deadline)
        read_some(50);
    if (!found)
        fail_msg("the terminal has not got \"%s\" but: %s", word, terminal.text + terminal.seen);
    found += strlen(word);
    terminal.seen = (size_t)(found - terminal.text);
    return found;
}

static void press(const char *keys)
{
    assert_int_equal(write(terminal.master, keys, strlen(keys)), strlen(keys));
}

static void expect_as_before(void)
{
    struct termios now;

    assert_int_equal(tcgetattr(terminal.slave, &now), 0);
    assert_int_equal(now.c_lflag, terminal.before.c_lflag);
    assert_int_equal(now.c_iflag, terminal.before.c_iflag);
    assert_int_equal(now.c_cc[VSUSP], terminal.before.c_cc[VSUSP]);
}

/* ---- elmer ---- */

static void answer(struct world *w, size_t count, const char *name, const char *state)
{
    struct wire_job_view views[JOBS_MAX];
    struct wire_message query;

    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    for (size_t i = 0; i < count; i++)
        views[i] = view_of(i + 1, name, state);
    answer_jobs(w, query.id, views, count, false);
    wire_message_fini(&query);
}

/* ---- -W ---- */

static void test_watch(void **data)
{
    struct world *w = *data;
    const char *begin;

    RUN_THERE(w, "equery", "--watch=1", "--format", "id,name,state");
    answer(w, 1, "first", "queued");
    begin = expect(OTHER_SCREEN);
    expect("\033[H");
    expect("first");
    expect("\033[J");
    answer(w, 1, "second", "running"); /* after its second */
    expect("\033[H");
    expect("second");
    assert_null(strstr(begin, "\033[2J")); /* nothing is wiped before it is written anew: it would flicker */
    press("q");
    expect(OLD_SCREEN);
    assert_int_equal(finish(w), 0);
    expect_as_before();
}

static void test_watch_interrupted(void **data)
{
    struct world *w = *data;

    RUN_THERE(w, "equery", "--watch=3600", "--format", "id,name,state");
    answer(w, 1, "first", "queued");
    expect(OTHER_SCREEN);
    expect("first");
    press("\003");
    expect(OLD_SCREEN);
    assert_int_equal(finish(w), 0);
    expect_as_before();
}

/* As many lines as there are rows, also when these become fewer. */
static void test_watch_rows(void **data)
{
    struct world *w = *data;

    RUN_THERE(w, "equery", "--watch=3600", "--format", "id,name");
    answer(w, 40, "many", "queued");
    expect(OTHER_SCREEN);
    expect("(18 lines more)");
    resize(5);
    answer(w, 40, "many", "queued");
    expect("(37 lines more)");
    resize(41);
    answer(w, 40, "many", "queued");
    expect("(1 line more)");
    press("q");
    assert_int_equal(finish(w), 0);
}

/* What goes wrong first is said as ever; later it is shown, and is no end. */
static void test_watch_without_elmer(void **data)
{
    struct world *w = *data;
    struct wire_message query, error = {.type = WIRE_error, .u.error = {.code = WIRE_CODE_REFUSED, .text = "no, and"}};

    RUN_THERE(w, "equery", "--watch=1", "--format", "id,name");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    error.id = query.id;
    wire_message_fini(&query);
    peer_send(&w->elmer, &error);
    assert_int_equal(finish(w), 1);
    expect("equery: no, and");
    assert_null(strstr(terminal.text, OTHER_SCREEN));
    RUN_THERE(w, "equery", "--watch=1", "--format", "id,name");
    answer(w, 1, "first", "queued");
    expect("first");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    error.id = query.id;
    wire_message_fini(&query);
    peer_send(&w->elmer, &error);
    expect("\033[Hequery: no, and");
    answer(w, 1, "again", "queued");
    expect("again");
    press("q");
    assert_int_equal(finish(w), 0);
    expect_as_before();
}

static void test_watch_refused(void **data)
{
    static const struct {
        const char *words[5], *text;
    } wrong[] = {
        {{"equery", "-W"}, "-W needs a terminal"},
        {{"equery", "-W5"}, "-W5: the seconds of -W are given as --watch=5"},
        {{"equery", "-W", "--json"}, "not with --json or --history"},
        {{"equery", "-W", "--history"}, "not with --json or --history"},
        {{"equery", "--watch=0"}, "--watch=0: want seconds, from 1 to 3600"},
        {{"equery", "--watch=x"}, "--watch=x: want seconds, from 1 to 3600"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        run(w, wrong[i].words);
        assert_int_equal(finish(w), 2);
        assert_non_null(strstr(w->stderr_text, wrong[i].text));
    }
    setenv("TERM", "dumb", 1);
    RUN_THERE(w, "equery", "-W");
    expect("TERM is 'dumb'");
    assert_int_equal(finish(w), 2);
}

/* ---- columns and colours ---- */

static void test_colours(void **data)
{
    struct world *w = *data;

    RUN_THERE(w, "equery", "--format", "id,state");
    answer(w, 1, "x", "running");
    assert_int_equal(finish(w), 0);
    expect(GREEN);
    setenv("NO_COLOR", "1", 1);
    RUN_THERE(w, "equery", "--format", "id,state");
    answer(w, 1, "x", "running");
    assert_int_equal(finish(w), 0);
    expect("running");
    assert_null(strstr(terminal.text + terminal.seen - strlen(GREEN), "\033[0m"));
    unsetenv("NO_COLOR");
    RUN(w, "equery", "--format", "id,state");
    answer(w, 1, "x", "running");
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "JOB  STATE\n  1  running\n");
}

static void test_widths(void **data)
{
    char name[WIDTH + 1], line[2 * WIDTH];
    struct world *w = *data;

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    RUN_THERE(w, "equery", "--format", "id,name,state");
    answer(w, 1, name, "queued");
    assert_int_equal(finish(w), 0);
    expect("n...  queued");
    RUN(w, "equery", "--format", "id,name,state");
    answer(w, 1, name, "queued");
    assert_int_equal(finish(w), 0);
    (void)snprintf(line, sizeof(line), "  1  %s  queued\n", name);
    assert_non_null(strstr(w->stdout_text, line));
}

static void test_format(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(7, 3, 0, "exited", "");
    struct wire_message query;

    view.ahead = 4;
    view.output = "out";
    RUN(w, "equery", "--format",
        "id,name,user,state,level,nprocs,ahead,attempt,time,cpu,levels,hosts,submitted,started,ended,result,reason,"
        "command,dir,output",
        "7");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, &view, 1, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stdout_text,
                           "  7  prog  alice  done       -       3      4        1  1:02:03  2.25s  L0 1.5s  L1 0.0s  "
                           "ws1*2,ws2"));
    assert_non_null(strstr(w->stdout_text, "exit 3  -       ./prog -x 'a b'  /home/alice  ws1:/home/alice/out\n"));
    view.array = 4;
    view.index = 12;
    RUN(w, "equery", "--format", "id,array,index,name", "7");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, &view, 1, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stdout_text, "  JOB  ARRAY  INDEX  NAME\n4[12]      4     12  prog\n"));
    RUN(w, "equery", "--format", "id,nmae");
    assert_int_equal(finish(w), 2);
    assert_non_null(strstr(w->stderr_text, "--format: 'nmae' is no column; there are id, name, user,"));
    RUN(w, "equery", "--format", "");
    assert_int_equal(finish(w), 2);
    RUN(w, "equery", "--format", "id", "--json");
    assert_int_equal(finish(w), 2);
}

#define ON_TERMINAL(test) cmocka_unit_test_setup_teardown(test, terminal_up, terminal_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_TERMINAL(test_watch),         ON_TERMINAL(test_watch_interrupted),
        ON_TERMINAL(test_watch_rows),    ON_TERMINAL(test_watch_without_elmer),
        ON_TERMINAL(test_watch_refused), ON_TERMINAL(test_colours),
        ON_TERMINAL(test_widths),        ON_TERMINAL(test_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
