/* test_session_ends.c - what ends with an erun, and what does not. */
#include "config.h"

#include "tests/unit/rsd/courier/session_lab.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* What ignores TERM too. teardown() waits for the end. */
static void test_the_end_of_erun(void **state)
{
    (void)state;
    session_lab_start("trap '' TERM; (trap '' TERM; sleep 100) & echo up; wait", 2, false);
    UNTIL(lab.heard.out[0] == 3 && lab.heard.out[1] == 3);
    run_link_fini(&lab.erun);
    UNTIL(session_over(lab.session));
    assert_true(lab.session->killed);
    for (size_t i = 0; i < lab.session->nchildren; i++) { /* nor is anything left of what they have started */
        int64_t deadline = mono_ms(mono_now()) + WAIT_MS;
        while (kill(-lab.session->children[i].pid, 0) == 0 && mono_ms(mono_now()) < deadline)
            poll(NULL, 0, 10);
        assert_int_equal(kill(-lab.session->children[i].pid, 0), -1);
    }
}

/* Nor does his end come by HUP. */
static void test_the_end_without_error(void **state)
{
    (void)state;
    session_lab_start("trap '' HUP; trap 'exit 3' TERM; exec 2>/dev/null; echo up; while :; do sleep 0.02; done", 1,
                      false);
    UNTIL(lab.heard.out[0] == 3 && lab.session->children[0].error < 0);
    run_link_fini(&lab.erun);
    UNTIL(lab.session->ending);
    lab.session->deadline_ms = INT64_MAX;
    UNTIL(session_over(lab.session));
    assert_true(WIFEXITED(lab.session->children[0].status));
    assert_int_equal(WEXITSTATUS(lab.session->children[0].status), 3);
}

/* The process whose number has been printed. */
static pid_t printed(void)
{
    UNTIL(strchr(lab.heard.text, '\n'));
    return (pid_t)strtol(lab.heard.text, NULL, 10);
}

static bool runs(pid_t pid)
{
    return pid > 0 && kill(pid, 0) == 0;
}

/* erun ends, and so does that process; not killed: KILL would come too late. */
static void expect_end(pid_t pid, bool killed)
{
    assert_true(runs(pid));
    run_link_fini(&lab.erun);
    UNTIL(lab.session->ending);
    if (!killed)
        lab.session->deadline_ms = INT64_MAX;
    UNTIL(session_over(lab.session));
    UNTIL(!runs(pid));
    assert_int_equal(lab.session->killed, killed);
}

static void test_the_end_of_what_is_left(void **state)
{
    (void)state;
    session_lab_start("sh -c 'echo $$; exec sleep 1000' & exit 0", 1, false);
    UNTIL(lab.session->children[0].reaped);
    expect_end(printed(), false);
}

static void test_the_end_below_a_shell_that_ends(void **state)
{
    (void)state;
    session_lab_start("sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & wait", 1, false);
    expect_end(printed(), true);
}

static void test_the_end_of_another_session(void **state)
{
    (void)state;
    session_lab_start("setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000 >/dev/null 2>&1' & wait", 1, false);
    expect_end(printed(), true);
}

static void test_the_end_of_another_session_that_is_left(void **state)
{
    (void)state;
    session_lab_start("setsid sh -c 'echo $$; exec sleep 1000' & exit 0", 1, false);
    UNTIL(lab.session->children[0].reaped);
    expect_end(printed(), false);
}

static void test_the_end_of_groups(void **state)
{
    (void)state;
    session_lab_start("exec bash -c 'set -m; (echo $BASHPID; exec sleep 1000) & wait'", 1, false);
    expect_end(printed(), false);
}

/* As with nohup(1) below an ssh: its command is over. */
static void test_what_is_left_on_purpose(void **state)
{
    pid_t pid;
    (void)state;
    session_lab_start("sh -c 'exec sleep 1000 >/dev/null 2>&1' & echo $!", 1, false);
    pid = printed();
    UNTIL(lab.heard.exits == 1);
    run_link_fini(&lab.erun);
    UNTIL(session_over(lab.session));
    assert_true(runs(pid));
    assert_false(lab.session->killed);
    assert_int_equal(kill(pid, SIGKILL), 0);
    UNTIL(!runs(pid));
}

static void test_signals_to_what_is_left(void **state)
{
    (void)state;
    session_lab_start("sh -c 'trap \"echo usr1; exit\" USR1; echo ready; while :; do sleep 0.05; done' & exit 4", 1,
                      false);
    UNTIL(lab.session->children[0].reaped && lab.heard.out[0] == 6);
    run_link_send_number(&lab.erun, RUN_SIGNAL, 0, SIGUSR1);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "usr1\n");
    assert_int_equal(lab.heard.status[0], 4);
}

/* Others wait for it, and it is not over before those are that hold its output. */
static void test_a_rank_whose_output_others_hold(void **state)
{
    (void)state;
    lab.mpi = true;
    session_lab_start(
        "if [ $PMI_RANK = 1 ]; then sleep 100 & kill -SEGV $$; fi; echo ask >&$PMI_FD; read -r line <&$PMI_FD", 2,
        false);
    lab.mpi = false;
    UNTIL(lab.heard.died > 0 && lab.heard.asked[0] == 1);
    assert_int_equal(lab.heard.signal[1], SIGSEGV);
    assert_int_equal(lab.heard.exits, 0);
    run_link_send_number(&lab.erun, RUN_SIGNAL, 0, SIGTERM);
    UNTIL(lab.heard.exits == 2);
    assert_int_equal(lab.heard.signal[1], SIGSEGV);
}

/* Each host has its own interface, and a process as many threads as it has processors there. */
static void test_what_was_added(void **state)
{
    char text[64];
    (void)state;
    setenv("ELMER_ADDED", "OMP_NUM_THREADS=99", 1);
    setenv("ELMER_ADDED_DEVICES", "eth7", 1);
    session_lab_start("echo $OMP_NUM_THREADS $ELMER_ADDED $UCX_NET_DEVICES $ELMER_ADDED_DEVICES", 1, false);
    UNTIL(lab.heard.exits == 1);
    snprintf(text, sizeof(text), "%d OMP_NUM_THREADS=%d eth7 eth7\n", CPU_COUNT(&lab.courier.cpus),
             CPU_COUNT(&lab.courier.cpus));
    assert_string_equal(lab.heard.text, text);
    unsetenv("ELMER_ADDED");
    unsetenv("ELMER_ADDED_DEVICES");
}

/* Beside a supervisor of before, which does not know its host's. */
static void test_interface_as_it_came(void **state)
{
    (void)state;
    session_lab_start("echo $UCX_NET_DEVICES $ELMER_ADDED_DEVICES", 1, false);
    UNTIL(lab.heard.exits == 1);
    assert_string_equal(lab.heard.text, "eth0 eth0\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, session_lab_begin, session_lab_end)
    const struct CMUnitTest tests[] = {
        CASE(test_the_end_of_erun),
        CASE(test_the_end_without_error),
        CASE(test_the_end_of_what_is_left),
        CASE(test_the_end_below_a_shell_that_ends),
        CASE(test_the_end_of_another_session),
        CASE(test_the_end_of_another_session_that_is_left),
        CASE(test_the_end_of_groups),
        CASE(test_what_is_left_on_purpose),
        CASE(test_signals_to_what_is_left),
        CASE(test_a_rank_whose_output_others_hold),
        CASE(test_what_was_added),
        CASE(test_interface_as_it_came),
    };
    return cmocka_run_group_tests_name("session ends", tests, NULL, NULL);
}
