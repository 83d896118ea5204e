/* test_session.c - what a courier starts, with the other end in this process: streams, windows, ends. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "rsd/courier/courier.h"

enum { WAIT_MS = 20000, RANKS = 4 };
static struct courier courier;
static struct session *session;
static struct run_link erun;
/* What has come. */
static struct heard {
    size_t out[RANKS], error[RANKS], taken, exits, failed;
    uint32_t status[RANKS], signal[RANKS];
    char text[300];
} heard;
static bool gives_back; /* erun writes what comes, and says so */

static void make_pass(struct seal_key *key, const char *host, char *text)
{
    uint8_t public_key[TICKET_KEY_BYTES], secret[TICKET_KEY_BYTES];
    struct pass pass = {.job = 7, .attempt = 1, .uid = 1000, .user = "alice"};
    snprintf(pass.host, sizeof(pass.host), "%s", host);
    assert_true(seal_key_make(key));
    memcpy(pass.public_key, key->public_key, sizeof(pass.public_key));
    assert_true(ticket_key_create(secret, public_key) && pass_sign(&pass, public_key, secret));
    pass_encode(&pass, text);
}

static void hear(const struct run_frame *frame)
{
    size_t *count = frame->type == RUN_OUT ? &heard.out[frame->rank % RANKS] : &heard.error[frame->rank % RANKS];
    switch ((int)frame->type) {
    case RUN_OUT:
    case RUN_ERR:
        *count += frame->size;
        if (frame->type == RUN_OUT && frame->size < sizeof(heard.text))
            snprintf(heard.text, sizeof(heard.text), "%.*s", (int)frame->size, (const char *)frame->data);
        if (gives_back)
            run_link_send_number(&erun, RUN_TAKEN, frame->type, (uint32_t)frame->size);
        break;
    case RUN_TAKEN:
        heard.taken += run_number(frame->data);
        break;
    case RUN_FAILED:
        heard.failed++;
        snprintf(heard.text, sizeof(heard.text), "%.*s", (int)frame->size, (const char *)frame->data);
        break;
    case RUN_EXIT:
        heard.exits++;
        heard.status[frame->rank % RANKS] = run_number(frame->data);
        heard.signal[frame->rank % RANKS] = run_number(frame->data + 4);
        break;
    default:
        break;
    }
}

/* Both ends, once. */
static void turn(int timeout)
{
    struct pollfd fds[64];
    size_t count = session_fds(session, fds);
    struct run_frame frame;
    int status;
    pid_t pid;
    fds[count] = (struct pollfd){.fd = run_link_events(&erun) ? erun.fd : -1, .events = run_link_events(&erun)};
    (void)poll(fds, count + 1, timeout);
    session_step(session, &courier, fds, mono_ms(mono_now()));
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        (void)session_reaped(session, pid, status); /* one that never got to exec is nobody's */
    if (fds[count].revents)
        run_link_step(&erun, fds[count].revents);
    while (run_link_next(&erun, &frame) > 0)
        hear(&frame);
}

#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        int64_t deadline = mono_ms(mono_now()) + WAIT_MS;                                                              \
        while (!(condition) && mono_ms(mono_now()) < deadline)                                                         \
            turn(10);                                                                                                  \
        assert_true(condition);                                                                                        \
    } while (0)

static bool terminal; /* of what is started */

static void start_with(const char *line, size_t ranks, bool input, const char *dir)
{
    static const struct run_rank all[RANKS] = {{0, RUN_NO_CPU}, {1, RUN_NO_CPU}, {2, RUN_NO_CPU}, {3, RUN_NO_CPU}};
    const char *argv[] = {"/bin/sh", "-c", line, NULL},
               *environment[] = {"PATH=/usr/bin:/bin", "ELMER_ADDRESS=192.0.2.1", NULL};
    struct run_start start = {.pty = terminal,
                              .input = input,
                              .umask = 022,
                              .total = (uint32_t)ranks,
                              .dir = dir,
                              .argv = {argv, 3},
                              .environment = {environment, 2},
                              .ranks = all,
                              .nranks = ranks};
    size_t size;
    uint8_t *bytes = run_start_pack(&start, &size);
    run_link_send(&erun, RUN_START, 0, bytes, size);
    free(bytes);
    UNTIL(session->started);
}

static void start(const char *line, size_t ranks, bool input)
{
    start_with(line, ranks, input, "/tmp");
}

static int setup(void **state)
{
    struct seal_key key;
    char text[PASS_TEXT_MAX + 1];
    int fds[2];
    (void)state;
    make_pass(&courier.key, "ws2", courier.text);
    assert_true(pass_decode(courier.text, &courier.pass));
    make_pass(&key, "ws1", text);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    getrlimit(RLIMIT_NOFILE, &courier.files);
    sched_getaffinity(0, sizeof(courier.cpus), &courier.cpus);
    run_link_init(&erun, fds[0], true, &key, text);
    session = session_create(fds[1], &courier, mono_ms(mono_now()));
    assert_non_null(session);
    heard = (struct heard){.exits = 0};
    gives_back = true;
    for (int i = 0; i < 10 && session->link.state != RUN_CHECKING; i++) {
        struct pollfd fd = {.fd = fds[1], .events = POLLIN};
        run_link_step(&erun, POLLIN | POLLOUT);
        if (poll(&fd, 1, 100) > 0)
            run_link_step(&session->link, fd.revents);
    }
    run_link_step(&erun, POLLIN);
    run_link_accept(&erun);
    run_link_accept(&session->link); /* what elmer-tickets says is for tests/system */
    assert_int_equal(erun.state, RUN_OPEN);
    assert_int_equal(session->link.state, RUN_OPEN);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    run_link_fini(&erun);
    for (int i = 0; i < 500 && !session_over(session); i++)
        turn(10);
    assert_true(session_over(session));
    session_destroy(session);
    return 0;
}

static void test_statuses(void **state)
{
    (void)state;
    start("[ $ELMER_RANK = 2 ] && kill -9 $$; exit $ELMER_RANK", RANKS, false);
    UNTIL(heard.exits == RANKS);
    assert_int_equal(heard.status[1], 1);
    assert_int_equal(heard.signal[2], SIGKILL);
    assert_int_equal(heard.status[3], 3);
    assert_int_equal(heard.signal[3], 0);
}

/* Not that of the host where erun runs. */
static void test_the_address_of_its_host(void **state)
{
    (void)state;
    setenv("ELMER_ADDRESS", "192.0.2.2", 1);
    start("echo $ELMER_ADDRESS", 1, false);
    UNTIL(heard.exits == 1);
    unsetenv("ELMER_ADDRESS");
    assert_string_equal(heard.text, "192.0.2.2\n");
}

static void test_an_address_that_is_not_known(void **state)
{
    (void)state;
    start("echo ${ELMER_ADDRESS-none}", 1, false);
    UNTIL(heard.exits == 1);
    assert_string_equal(heard.text, "none\n");
}

/* All that was printed comes before the end, of those that the process leaves behind too. */
static void test_output_before_the_end(void **state)
{
    (void)state;
    start("(sleep 0.2; head -c 100000 /dev/zero) & exit 3", 1, false);
    UNTIL(heard.exits == 1);
    assert_int_equal(heard.out[0], 100000);
    assert_int_equal(heard.status[0], 3);
}

/* No more than the window is underway, however much there is; the others' and the other stream go on meanwhile. */
static void test_windows(void **state)
{
    (void)state;
    gives_back = false;
    start("head -c 2000000 /dev/zero; echo done >&2", 2, false);
    poll(NULL, 0, 500); /* the pipes of both fill */
    UNTIL(heard.out[0] + heard.out[1] >= RUN_WINDOW);
    for (int i = 0; i < 20; i++)
        turn(10);
    assert_int_equal(heard.out[0] + heard.out[1], RUN_WINDOW);
    assert_true(heard.out[0] >= RUN_WINDOW / 4 && heard.out[1] >= RUN_WINDOW / 4); /* in turn */
    assert_true(run_link_waiting(&session->link) < RUN_WINDOW);
    gives_back = true;
    run_link_send_number(&erun, RUN_TAKEN, RUN_OUT, RUN_WINDOW);
    UNTIL(heard.exits == 2);
    assert_int_equal(heard.out[0], 2000000);
    assert_int_equal(heard.out[1], 2000000);
    assert_int_equal(heard.error[0], 5);
}

static void test_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    size_t sent = 0, all = 3000000;
    (void)state;
    start("sleep 0.1; wc -c", 2, true); /* the first gets it, the second has none */
    while (sent < all) {
        size_t size = all - sent < sizeof(piece) ? all - sent : sizeof(piece);
        UNTIL(sent + size <= heard.taken + RUN_WINDOW);
        run_link_send(&erun, RUN_IN, 0, piece, size);
        sent += size;
    }
    run_link_send(&erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(heard.exits == 2);
    assert_int_equal(heard.taken, all);
    assert_int_equal(heard.out[0], strlen("3000000\n"));
    assert_int_equal(heard.out[1], strlen("0\n"));
}

/* More than a terminal holds, before anybody reads there; its end comes behind all of it. */
static void test_much_input_of_a_terminal(void **state)
{
    static uint8_t piece[RUN_PIECE];
    size_t sent = 0, all = 400000;
    (void)state;
    memset(piece, '\n', sizeof(piece));
    terminal = true;
    start("stty -echo; echo ready; sleep 0.5; wc -c", 1, true);
    terminal = false;
    UNTIL(heard.out[0] > 0);
    while (sent < all) {
        size_t size = all - sent < sizeof(piece) ? all - sent : sizeof(piece);
        UNTIL(sent + size <= heard.taken + RUN_WINDOW);
        run_link_send(&erun, RUN_IN, 0, piece, size);
        sent += size;
    }
    run_link_send(&erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(heard.exits == 1);
    assert_int_equal(heard.taken, all);
    assert_non_null(strstr(heard.text, "400000"));
}

/* Who has closed his standard error has no terminal for that: nothing is added to his input, which ends. */
static void test_input_without_error(void **state)
{
    static uint8_t piece[1000];
    (void)state;
    start("exec wc -c 2>/dev/null", 1, true);
    UNTIL(session->children[0].error < 0);
    run_link_send(&erun, RUN_IN, 0, piece, sizeof(piece));
    run_link_send(&erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(heard.exits == 1);
    assert_string_equal(heard.text, "1000\n");
}

static void test_who_reads_no_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    (void)state;
    start("exec <&-; sleep 0.2", 1, true);
    for (int i = 0; i < 8; i++)
        run_link_send(&erun, RUN_IN, 0, piece, sizeof(piece));
    UNTIL(heard.taken == 8 * sizeof(piece));
    UNTIL(heard.exits == 1);
}

static void test_too_much_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    (void)state;
    start("sleep 100", 1, true);
    for (int i = 0; i < 40 && session->link.state == RUN_OPEN; i++) {
        run_link_send(&erun, RUN_IN, 0, piece, sizeof(piece));
        turn(1);
    }
    UNTIL(session->link.state == RUN_DEAD);
    assert_true(strstr(session->link.text, "more than there is room for"));
}

static void test_signals(void **state)
{
    (void)state;
    start("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done", 1, false);
    UNTIL(heard.out[0] == 6);
    run_link_send_number(&erun, RUN_SIGNAL, 0, SIGUSR1);
    UNTIL(heard.out[0] == 11);
    run_link_send_number(&erun, RUN_SIGNAL, 0, 12345); /* there is none */
    run_link_send_number(&erun, RUN_SIGNAL, 0, SIGKILL);
    UNTIL(heard.exits == 1);
    assert_int_equal(heard.signal[0], SIGKILL);
}

static void test_what_cannot_be_started(void **state)
{
    (void)state;
    start_with("true", 2, false, "/no/such");
    UNTIL(heard.exits == 2 && heard.failed == 2);
    assert_true(strstr(heard.text, "directory /no/such cannot be entered"));
    assert_int_equal(heard.status[0], EXIT_NOT_FOUND);
}

/* What ignores TERM too. teardown() waits for the end. */
static void test_the_end_of_erun(void **state)
{
    (void)state;
    start("trap '' TERM; (trap '' TERM; sleep 100) & echo up; wait", 2, false);
    UNTIL(heard.out[0] == 3 && heard.out[1] == 3);
    run_link_fini(&erun);
    UNTIL(session_over(session));
    assert_true(session->killed);
    for (size_t i = 0; i < session->nchildren; i++) { /* nor is anything left of what they have started */
        int64_t deadline = mono_ms(mono_now()) + WAIT_MS;
        while (kill(-session->children[i].pid, 0) == 0 && mono_ms(mono_now()) < deadline)
            poll(NULL, 0, 10);
        assert_int_equal(kill(-session->children[i].pid, 0), -1);
    }
}

/* Nor does his end come by HUP. */
static void test_the_end_without_error(void **state)
{
    (void)state;
    start("trap '' HUP; trap 'exit 3' TERM; exec 2>/dev/null; echo up; while :; do sleep 0.02; done", 1, false);
    UNTIL(heard.out[0] == 3 && session->children[0].error < 0);
    run_link_fini(&erun);
    UNTIL(session_over(session));
    assert_true(WIFEXITED(session->children[0].status));
    assert_int_equal(WEXITSTATUS(session->children[0].status), 3);
}

/* The process whose number has been printed. */
static pid_t printed(void)
{
    UNTIL(strchr(heard.text, '\n'));
    return (pid_t)strtol(heard.text, NULL, 10);
}

static bool runs(pid_t pid)
{
    return pid > 0 && kill(pid, 0) == 0;
}

/* erun ends, and so does that process. */
static void expect_end(pid_t pid, bool killed)
{
    assert_true(runs(pid));
    run_link_fini(&erun);
    UNTIL(session_over(session));
    UNTIL(!runs(pid));
    assert_int_equal(session->killed, killed);
}

static void test_the_end_of_what_is_left(void **state)
{
    (void)state;
    start("sh -c 'echo $$; exec sleep 1000' & exit 0", 1, false);
    UNTIL(session->children[0].reaped);
    expect_end(printed(), false);
}

static void test_the_end_below_a_shell_that_ends(void **state)
{
    (void)state;
    start("sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & wait", 1, false);
    expect_end(printed(), true);
}

static void test_the_end_of_another_session(void **state)
{
    (void)state;
    start("setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000 >/dev/null 2>&1' & wait", 1, false);
    expect_end(printed(), true);
}

static void test_the_end_of_another_session_that_is_left(void **state)
{
    (void)state;
    start("setsid sh -c 'echo $$; exec sleep 1000' & exit 0", 1, false);
    UNTIL(session->children[0].reaped);
    expect_end(printed(), false);
}

static void test_the_end_of_groups(void **state)
{
    (void)state;
    start("exec bash -c 'set -m; (echo $BASHPID; exec sleep 1000) & wait'", 1, false);
    expect_end(printed(), false);
}

/* As with nohup(1) below an ssh: its command is over. */
static void test_what_is_left_on_purpose(void **state)
{
    pid_t pid;
    (void)state;
    start("sh -c 'exec sleep 1000 >/dev/null 2>&1' & echo $!", 1, false);
    pid = printed();
    UNTIL(heard.exits == 1);
    run_link_fini(&erun);
    UNTIL(session_over(session));
    assert_true(runs(pid));
    assert_false(session->killed);
    assert_int_equal(kill(pid, SIGKILL), 0);
    UNTIL(!runs(pid));
}

static void test_signals_to_what_is_left(void **state)
{
    (void)state;
    start("sh -c 'trap \"echo usr1; exit\" USR1; echo ready; while :; do sleep 0.05; done' & exit 4", 1, false);
    UNTIL(session->children[0].reaped && heard.out[0] == 6);
    run_link_send_number(&erun, RUN_SIGNAL, 0, SIGUSR1);
    UNTIL(heard.exits == 1);
    assert_string_equal(heard.text, "usr1\n");
    assert_int_equal(heard.status[0], 4);
}

static void test_what_is_no_start(void **state)
{
    (void)state;
    run_link_send(&erun, RUN_START, 0, "garbage", 7);
    UNTIL(session->link.state == RUN_DEAD);
    assert_int_equal(session->nchildren, 0);
    UNTIL(heard.failed == 1); /* who asks is told why */
    assert_true(strstr(heard.text, "what is to be started cannot be read"));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_statuses),
        CASE(test_the_address_of_its_host),
        CASE(test_an_address_that_is_not_known),
        CASE(test_output_before_the_end),
        CASE(test_windows),
        CASE(test_input),
        CASE(test_much_input_of_a_terminal),
        CASE(test_input_without_error),
        CASE(test_who_reads_no_input),
        CASE(test_too_much_input),
        CASE(test_signals),
        CASE(test_what_cannot_be_started),
        CASE(test_the_end_of_erun),
        CASE(test_the_end_without_error),
        CASE(test_the_end_of_what_is_left),
        CASE(test_the_end_below_a_shell_that_ends),
        CASE(test_the_end_of_another_session),
        CASE(test_the_end_of_another_session_that_is_left),
        CASE(test_the_end_of_groups),
        CASE(test_what_is_left_on_purpose),
        CASE(test_signals_to_what_is_left),
        CASE(test_what_is_no_start),
    };
    signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
