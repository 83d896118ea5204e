/* test_session.c - what a courier starts, with the other end in this process: streams, windows, statuses. */
#include "config.h"

#include "tests/unit/rsd/courier/session_lab.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/channel.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

static void test_statuses(void **state)
{
    (void)state;
    session_lab_start("[ $ELMER_RANK = 2 ] && kill -9 $$; exit $ELMER_RANK", RANKS, false);
    UNTIL(lab.heard.exits == RANKS);
    assert_int_equal(lab.heard.status[1], 1);
    assert_int_equal(lab.heard.signal[2], SIGKILL);
    assert_int_equal(lab.heard.status[3], 3);
    assert_int_equal(lab.heard.signal[3], 0);
}

/* Not that of the host where erun runs. */
static void test_the_address_of_its_host(void **state)
{
    (void)state;
    setenv("ELMER_ADDRESS", "192.0.2.2", 1);
    session_lab_start("echo $ELMER_ADDRESS", 1, false);
    UNTIL(lab.heard.exits == 1);
    unsetenv("ELMER_ADDRESS");
    assert_string_equal(lab.heard.text, "192.0.2.2\n");
}

static void test_an_address_that_is_not_known(void **state)
{
    (void)state;
    session_lab_start("echo ${ELMER_ADDRESS-none}", 1, false);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "none\n");
}

/* All that was printed comes before the end, of those that the process leaves behind too. */
static void test_output_before_the_end(void **state)
{
    (void)state;
    session_lab_start("(sleep 0.2; head -c 100000 /dev/zero) & exit 3", 1, false);
    UNTIL(lab.heard.exits == 1);
    assert_int_equal(lab.heard.out[0], 100000);
    assert_int_equal(lab.heard.status[0], 3);
}

/* No more than the window is underway, however much there is; the others' and the other stream go on meanwhile. */
static void test_windows(void **state)
{
    (void)state;
    lab.gives_back = false;
    session_lab_start("head -c 2000000 /dev/zero; echo done >&2", 2, false);
    poll(NULL, 0, 500); /* the pipes of both fill */
    UNTIL(lab.heard.out[0] + lab.heard.out[1] >= RUN_WINDOW);
    for (int i = 0; i < 20; i++)
        session_lab_turn(10);
    assert_int_equal(lab.heard.out[0] + lab.heard.out[1], RUN_WINDOW);
    assert_true(lab.heard.out[0] >= RUN_WINDOW / 4 && lab.heard.out[1] >= RUN_WINDOW / 4); /* in turn */
    assert_true(run_link_waiting(&lab.session->link) < RUN_WINDOW);
    lab.gives_back = true;
    run_link_send_number(&lab.erun, RUN_TAKEN, RUN_OUT, RUN_WINDOW);
    UNTIL(lab.heard.exits == 2);
    assert_int_equal(lab.heard.out[0], 2000000);
    assert_int_equal(lab.heard.out[1], 2000000);
    assert_int_equal(lab.heard.error[0], 5);
}

static void test_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    size_t sent = 0, all = 3000000;
    (void)state;
    session_lab_start("sleep 0.1; wc -c", 2, true); /* the first gets it, the second has none */
    while (sent < all) {
        size_t size = all - sent < sizeof(piece) ? all - sent : sizeof(piece);
        UNTIL(sent + size <= lab.heard.taken + RUN_WINDOW);
        run_link_send(&lab.erun, RUN_IN, 0, piece, size);
        sent += size;
    }
    run_link_send(&lab.erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(lab.heard.exits == 2);
    assert_int_equal(lab.heard.taken, all);
    assert_int_equal(lab.heard.out[0], strlen("3000000\n"));
    assert_int_equal(lab.heard.out[1], strlen("0\n"));
}

/* More than a terminal holds, before anybody reads there; its end comes behind all of it. */
static void test_much_input_of_a_terminal(void **state)
{
    static uint8_t piece[RUN_PIECE];
    size_t sent = 0, all = 400000;
    (void)state;
    memset(piece, '\n', sizeof(piece));
    lab.terminal = true;
    session_lab_start("stty -echo; echo ready; sleep 0.5; wc -c", 1, true);
    lab.terminal = false;
    UNTIL(lab.heard.out[0] > 0);
    while (sent < all) {
        size_t size = all - sent < sizeof(piece) ? all - sent : sizeof(piece);
        UNTIL(sent + size <= lab.heard.taken + RUN_WINDOW);
        run_link_send(&lab.erun, RUN_IN, 0, piece, size);
        sent += size;
    }
    run_link_send(&lab.erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(lab.heard.exits == 1);
    assert_int_equal(lab.heard.taken, all);
    assert_non_null(strstr(lab.heard.text, "400000"));
}

/* Who has closed his standard error has no terminal for that: nothing is added to his input, which ends. */
static void test_input_without_error(void **state)
{
    static uint8_t piece[1000];
    (void)state;
    session_lab_start("exec wc -c 2>/dev/null", 1, true);
    UNTIL(lab.session->children[0].error < 0);
    run_link_send(&lab.erun, RUN_IN, 0, piece, sizeof(piece));
    run_link_send(&lab.erun, RUN_IN_END, 0, NULL, 0);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "1000\n");
}

static void test_who_reads_no_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    (void)state;
    session_lab_start("exec <&-; sleep 0.2", 1, true);
    for (int i = 0; i < 8; i++)
        run_link_send(&lab.erun, RUN_IN, 0, piece, sizeof(piece));
    UNTIL(lab.heard.taken == 8 * sizeof(piece));
    UNTIL(lab.heard.exits == 1);
}

static void test_too_much_input(void **state)
{
    static uint8_t piece[RUN_PIECE];
    (void)state;
    session_lab_start("sleep 100", 1, true);
    for (int i = 0; i < 40 && lab.session->link.state == RUN_OPEN; i++) {
        run_link_send(&lab.erun, RUN_IN, 0, piece, sizeof(piece));
        session_lab_turn(1);
    }
    UNTIL(lab.session->link.state == RUN_DEAD);
    assert_true(strstr(lab.session->link.text, "more than there is room for"));
}

static void test_signals(void **state)
{
    (void)state;
    session_lab_start("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done", 1, false);
    UNTIL(lab.heard.out[0] == 6);
    run_link_send_number(&lab.erun, RUN_SIGNAL, 0, SIGUSR1);
    UNTIL(lab.heard.out[0] == 11);
    run_link_send_number(&lab.erun, RUN_SIGNAL, 0, 12345); /* there is none */
    run_link_send_number(&lab.erun, RUN_SIGNAL, 0, SIGKILL);
    UNTIL(lab.heard.exits == 1);
    assert_int_equal(lab.heard.signal[0], SIGKILL);
}

static void test_what_cannot_be_started(void **state)
{
    (void)state;
    session_lab_start_in("true", 2, false, "/no/such");
    UNTIL(lab.heard.exits == 2 && lab.heard.failed == 2);
    assert_true(strstr(lab.heard.text, "directory /no/such cannot be entered"));
    assert_int_equal(lab.heard.status[0], EXIT_NOT_FOUND);
}

/* A name that leads nowhere, and takes the kernel some ten milliseconds to find it out. */
static void make_slow(const char *dir, char *name, size_t size)
{
    enum { LINKS = 38, ROUNDS = 800 };
    char target[5 * ROUNDS + 20], link[200];
    size_t used = 0;
    assert_true(scratch_mkdir(dir, "a"));
    while (used < (size_t)5 * ROUNDS)
        used += (size_t)snprintf(target + used, sizeof(target) - used, "a/../");
    for (int i = 0; i < LINKS; i++) {
        snprintf(target + used, sizeof(target) - used, "l%d", i + 1);
        snprintf(link, sizeof(link), "%s/l%d", dir, i);
        assert_int_equal(symlink(target, link), 0);
    }
    snprintf(name, size, "%s/l0", dir);
}

/* A directory may take its time; who is not waited for any more says himself what has failed. Not if he was quicker
 * than we: then the next one. */
static void test_what_fails_late(void **state)
{
    const char *argv[] = {"true", NULL}, *none[] = {NULL};
    char dir[] = "/tmp/test_session-XXXXXX", name[100], expected[200], text[400], said[400] = "";
    struct run_start start = {.dir = name, .total = 1, .argv = {argv, 1}, .environment = {none, 0}};
    const struct run_rank rank = {0, RUN_NO_CPU};
    struct birth birth = {&lab.courier, &start, &rank, false, 0};
    struct child child = {.pid = 0};
    int input, status, error = ENOENT;
    ssize_t got, size = 0;
    (void)state;
    assert_non_null(scratch_dir(dir));
    make_slow(dir, name, sizeof(name));
    snprintf(expected, sizeof(expected),
             "directory %s cannot be entered: No such file or directory; it must be on every host", name);
    for (int i = 0; i < 100 && error; i++) {
        error = child_start(&birth, &child, &input, text, sizeof(text));
        if (error)
            assert_string_equal(text, expected);
    }
    assert_int_equal(error, 0);
    while ((got = read(child.error, said + size, sizeof(said) - 1 - (size_t)size)) != 0) {
        assert_true(got > 0 || errno == EAGAIN);
        size += got > 0 ? got : 0;
        (void)poll(&(struct pollfd){.fd = child.error, .events = POLLIN}, 1, 5000);
    }
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_FOUND);
    assert_true(strncmp(said, "elmer: ", 7) == 0 && strncmp(said + 7, expected, strlen(expected)) == 0);
    child_close(&child);
    while (waitpid(-1, &status, 0) > 0) {
    }
}

static void test_what_is_no_start(void **state)
{
    (void)state;
    run_link_send(&lab.erun, RUN_START, 0, "garbage", 7);
    UNTIL(lab.session->link.state == RUN_DEAD);
    assert_int_equal(lab.session->nchildren, 0);
    UNTIL(lab.heard.failed == 1); /* who asks is told why */
    assert_true(strstr(lab.heard.text, "what is to be started cannot be read"));
}

/* Who has the wrong pass is told, although it may have nothing started. */
static void test_another_job(void **state)
{
    (void)state;
    lab.courier.pass.job++;
    run_link_accept(&lab.erun);
    UNTIL(lab.heard.refused == 1);
    assert_string_equal(lab.heard.text, "it is of another job");
    assert_int_equal(lab.session->link.state, RUN_DEAD);
    assert_false(lab.session->started);
}

/* Any host of the cluster can sign a pass for this job. */
static void test_a_host_that_is_not_of_the_job(void **state)
{
    static char hosts[] = "ws2:ws2:ws10:ws";
    (void)state;
    lab.courier.hosts = hosts;
    lab.courier.between = ':';
    assert_true(courier_has_host(&lab.courier, "ws2") && courier_has_host(&lab.courier, "ws10"));
    assert_true(courier_has_host(&lab.courier, "ws"));
    assert_false(courier_has_host(&lab.courier, "ws1") || courier_has_host(&lab.courier, "s2"));
    run_link_accept(&lab.erun);
    UNTIL(lab.heard.refused == 1);
    assert_string_equal(lab.heard.text, "ws1 is no host of its job");
    assert_int_equal(lab.session->link.state, RUN_DEAD);
    assert_false(lab.session->started);
    lab.courier.hosts = NULL; /* nothing is known */
    assert_true(courier_has_host(&lab.courier, "ws2"));
    assert_false(courier_has_host(&lab.courier, "ws1"));
}

/* As the host file has them. */
static void of_two_hosts(void)
{
    static char hosts[] = "ws2\nws1\n";
    lab.courier.hosts = hosts;
    lab.courier.between = '\n';
}

/* Who has had no CPU for longer than a handshake may take asks all the same. */
static void test_a_late_turn(void **state)
{
    (void)state;
    of_two_hosts();
    setenv("ELMER_SOCKET", "/no/such/elmer.sock", 1);
    lab.session->deadline_ms = mono_now_ms() - 1;
    session_lab_turn(0);
    assert_int_equal(lab.session->link.state, RUN_CHECKING);
    assert_true(lab.session->deadline_ms > mono_now_ms());
    lab.session->deadline_ms = mono_now_ms(); /* but not for ever */
    run_link_accept(&lab.erun);
    UNTIL(lab.heard.refused == 1);
    assert_non_null(strstr(lab.heard.text, "elmer-tickets"));
}

/* In place of elmer-tickets: one question. */
static void answer(int listener, enum wire_type type, const char *code)
{
    struct wire_message question, done = {.type = type};
    struct channel channel;
    if (type == WIRE_error) {
        done.u.error.code = code;
        done.u.error.text = "because of the test";
    } else {
        done.u.done.text = "";
    }
    assert_int_equal(channel_init(&channel, peer_accept_fd(listener), WIRE_FROM_CLIENT, 1 << 20), 0);
    channel.minor = WIRE_TICKET_MINOR;
    assert_int_equal(channel_receive(&channel, &question, peer_soon(), NULL), 1);
    assert_int_equal(question.type, WIRE_pass_check);
    done.id = question.id;
    wire_message_fini(&question);
    assert_int_equal(channel_send_all(&channel, &done, peer_soon(), NULL), 0);
    channel_fini(&channel);
}

/* Where elmer-tickets will listen. */
static void place_tickets(char *path, size_t size)
{
    char dir[64] = "/tmp/test-session-XXXXXX";
    assert_non_null(scratch_dir(dir));
    snprintf(path, size, "%s/elmer.sock", dir);
    setenv("ELMER_SOCKET", path, 1);
    snprintf(path, size, "%s/ticket.sock", dir);
}

/* Its rsd is starting again: nobody is there, then not yet ready, then it is as ever. */
static void test_elmer_tickets_comes_back(void **state)
{
    char path[100];
    int listener;
    (void)state;
    of_two_hosts();
    place_tickets(path, sizeof(path));
    for (int i = 0; i < 20; i++)
        session_lab_turn(1);
    assert_int_equal(lab.session->link.state, RUN_CHECKING);
    assert_true(session_next_ms(lab.session) <= mono_now_ms() + 1000);
    listener = peer_listen(path);
    UNTIL(lab.session->desk.open);
    answer(listener, WIRE_error, WIRE_CODE_UNAVAILABLE);
    UNTIL(!lab.session->desk.open);
    UNTIL(lab.session->desk.open);
    answer(listener, WIRE_done, NULL);
    UNTIL(lab.session->link.state == RUN_OPEN);
    close(listener);
}

static void test_a_pass_that_is_not_good(void **state)
{
    char path[100];
    int listener;
    (void)state;
    of_two_hosts();
    place_tickets(path, sizeof(path));
    listener = peer_listen(path);
    run_link_accept(&lab.erun);
    UNTIL(lab.session->desk.open);
    answer(listener, WIRE_error, WIRE_CODE_REFUSED);
    UNTIL(lab.heard.refused == 1);
    assert_string_equal(lab.heard.text, "because of the test");
    close(listener);
}

/* ---- ranks of MPI ---- */

static void start_ranks(const char *line, size_t ranks)
{
    lab.mpi = true;
    session_lab_start(line, ranks, false);
    lab.mpi = false;
}

static void test_ranks_ask_and_are_answered(void **state)
{
    (void)state;
    start_ranks("echo \"ask $PMI_RANK of $PMI_SIZE\" >&$PMI_FD; read -r line <&$PMI_FD; echo \"got $line\"", 2);
    UNTIL(lab.heard.asked[0] == 1 && lab.heard.asked[1] == 1);
    assert_string_equal(lab.heard.asks[0], "ask 0 of 2\n");
    assert_string_equal(lab.heard.asks[1], "ask 1 of 2\n");
    run_link_send(&lab.erun, RUN_PMI, 1, "one\n", 4);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "got one\n");
    run_link_send(&lab.erun, RUN_PMI, 0, "nought\n", 7);
    UNTIL(lab.heard.exits == 2);
    assert_string_equal(lab.heard.text, "got nought\n");
}

/* A rank that says more than it was asked for waits: a piece at a time. */
static void test_a_rank_that_talks_on(void **state)
{
    size_t pieces = 0;
    (void)state;
    start_ranks("head -c 100000 /dev/zero | tr '\\0' a >&$PMI_FD; echo done", 1);
    UNTIL(lab.heard.asked[0] == 1);
    for (int i = 0; i < 20; i++)
        session_lab_turn(10);
    assert_int_equal(lab.heard.asked[0], 1);
    for (size_t got = 0; got < 100000; got += strlen(lab.heard.asks[0])) {
        UNTIL(lab.heard.asked[0] == pieces + 1);
        pieces++;
        run_link_send(&lab.erun, RUN_PMI, 0, NULL, 0);
    }
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "done\n");
}

/* An answer that nobody reads keeps nobody: its rank ends. */
static void test_a_rank_that_does_not_listen(void **state)
{
    static uint8_t answer[RUN_PMI_ANSWER];
    (void)state;
    start_ranks("[ $PMI_RANK = 1 ] || exec sh -c 'echo ask >&4; exec 4>&-; sleep 0.1'; echo other; exit 3", 2);
    UNTIL(lab.heard.asked[0] == 1);
    run_link_send(&lab.erun, RUN_PMI, 0, answer, sizeof(answer));
    UNTIL(lab.heard.exits == 2);
    assert_int_equal(lab.heard.status[1], 3);
    assert_int_equal(lab.session->link.state, RUN_OPEN);
}

static void test_an_answer_that_nobody_asked_for(void **state)
{
    (void)state;
    start_ranks("sleep 100", 1);
    run_link_send(&lab.erun, RUN_PMI, 9, "a\n", 2); /* no rank of ours */
    session_lab_turn(10);
    run_link_send(&lab.erun, RUN_PMI, 0, "a\n", 2);
    UNTIL(lab.session->link.state == RUN_DEAD);
}

static void test_an_answer_that_is_too_long(void **state)
{
    static uint8_t answer[RUN_PMI_ANSWER + 1];
    (void)state;
    start_ranks("echo ask >&4; sleep 100", 1);
    UNTIL(lab.heard.asked[0] == 1);
    run_link_send(&lab.erun, RUN_PMI, 0, answer, sizeof(answer));
    UNTIL(lab.session->link.state == RUN_DEAD);
}

/* What is no rank has nothing of one. */
static void test_no_ranks(void **state)
{
    (void)state;
    session_lab_start("echo ${PMI_FD-none}; ls /proc/self/fd | grep -c '^[4-9]$' >&2", 1, false);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "none\n");
    run_link_send(&lab.erun, RUN_PMI, 0, "a\n", 2);
    session_lab_turn(10);
    assert_int_equal(lab.session->link.state, RUN_OPEN);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, session_lab_begin, session_lab_end)
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
        CASE(test_what_fails_late),
        CASE(test_what_is_no_start),
        CASE(test_ranks_ask_and_are_answered),
        CASE(test_a_rank_that_talks_on),
        CASE(test_a_rank_that_does_not_listen),
        CASE(test_an_answer_that_nobody_asked_for),
        CASE(test_an_answer_that_is_too_long),
        CASE(test_no_ranks),
#define SHOWN(name) cmocka_unit_test_setup_teardown(name, session_lab_show, session_lab_end)
        SHOWN(test_a_late_turn),
        SHOWN(test_elmer_tickets_comes_back),
        SHOWN(test_a_pass_that_is_not_good),
        SHOWN(test_another_job),
        SHOWN(test_a_host_that_is_not_of_the_job),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
