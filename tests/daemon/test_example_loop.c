/* test_example_loop.c - examples/library/loop as it is installed, and an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

enum { JOBS = 3 };

/* Its three submissions and its three waits are outstanding together, and the connection breaks between them. */
static void three_jobs(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(42, 0, 0, "exited", "");
    uint64_t waits[JOBS];

    RUN(w, "../examples/library/loop", "true");
    accept_command(w);
    for (int i = 0; i < JOBS; i++) {
        struct wire_message submit = peer_expect(&w->elmer, WIRE_submit);

        answer_submitted(w, submit.id, "queued", -1, 0, "");
        wire_message_fini(&submit);
    }
    for (int i = 0; i < JOBS; i++)
        peer_expect_gone(&w->elmer, WIRE_wait);
    channel_fini(&w->elmer);
    accept_command(w);
    for (int i = 0; i < JOBS; i++) {
        struct wire_message wait = peer_expect(&w->elmer, WIRE_wait);

        assert_int_equal(wait.u.wait.job, 42);
        waits[i] = wait.id;
        wire_message_fini(&wait);
    }
    for (int i = JOBS - 1; i >= 0; i--)
        answer_jobs(w, waits[i], &view, 1, false);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "");
    assert_non_null(strstr(w->stdout_text, "job 42\njob 42\njob 42\njob 42 is done, exit status 0\n"));
    assert_non_null(strstr(w->stdout_text, " ticks meanwhile\n"));
}

/* As the commands have it: where elmer usually is. */
static void no_socket_is_named(void **data)
{
    struct world *w = *data;

    setenv("ELMER_SOCKET", "", 1);
    RUN(w, "../examples/library/loop", "true");
    assert_int_equal(finish(w), 125);
    assert_non_null(strstr(w->stderr_text, "rsd.sock"));
}

/* The one in Python, in the loop of asyncio, by the library as it was built. */
static __attribute__((unused)) void in_python(void **data)
{
    struct world *w = *data;
    const char *top = getenv("TOP_SRCDIR");
    struct wire_job_view view = done_view(42, 5, 0, "exited", "");
    struct wire_message asked;
    char script[400], header[400];

    if (!top)
        top = "..";
    (void)snprintf(script, sizeof(script), "../%s%s/examples/library/elmer.py",
                   *top == '/' ? "../../../../../../../.." : "", top);
    (void)snprintf(header, sizeof(header), "%s/libelmer/elmer.h", top);
    setenv("ELMER_HEADER", header, 1);
    setenv("LD_LIBRARY_PATH", "libelmer/.libs", 1);
    RUN(w, script, "-a", "true");
    accept_command(w);
    asked = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, asked.id, "queued", -1, 0, "");
    wire_message_fini(&asked);
    asked = peer_expect(&w->elmer, WIRE_wait);
    view.state = "running";
    answer_jobs(w, asked.id, &view, 1, false);
    wire_message_fini(&asked);
    asked = peer_expect(&w->elmer, WIRE_wait); /* the first has come to nothing */
    view.state = "done";
    answer_jobs(w, asked.id, &view, 1, false);
    wire_message_fini(&asked);
    assert_int_equal(finish(w), 5);
    assert_string_equal(w->stdout_text, "job 42\njob 42 is done, exit status 5\n");
    RUN(w, script, "true");
    accept_command(w);
    asked = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, asked.id, "queued", -1, 0, "");
    wire_message_fini(&asked);
    asked = peer_expect(&w->elmer, WIRE_wait);
    view = done_view(42, -1, 15, "killed", "");
    answer_jobs(w, asked.id, &view, 1, false);
    wire_message_fini(&asked);
    assert_int_equal(finish(w), 128 + 15);
    assert_string_equal(w->stdout_text, "job 42\njob 42 is done, signal 15\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(three_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_socket_is_named, set_up, tear_down),
#ifndef __SANITIZE_ADDRESS__ /* which wants to be in the program itself */
        cmocka_unit_test_setup_teardown(in_python, set_up, tear_down),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
