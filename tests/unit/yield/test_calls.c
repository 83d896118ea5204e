/* test_calls.c - libelmer-yield.so in a program: what calls return is the same with it and without, and who polls while
 * he waits sleeps. */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/unit/yield/program.h"

static void test_calls_mean_the_same(void **state)
{
    char without[4096], with[4096];
    (void)state;
    assert_int_equal(yield_run("calls", false, NULL, NULL, without, sizeof(without)), 0);
    assert_int_equal(yield_run("calls", true, NULL, NULL, with, sizeof(with)), 0);
    assert_string_equal(with, without);
    assert_non_null(strstr(with, "interrupted -1 4\ninterrupted -1 4\n"));
    assert_non_null(strstr(with, "signals 0 0\n"));
}

static void test_polls_mean_the_same(void **state)
{
    static const char *const wanted[] = {"faults 0, none 0 0\nfar ",
                                         "\npoll: nothing 0, signals 0, something 1, cancelled 1\n",
                                         "\nppoll: nothing 0, signals 0, something 1, cancelled 1\n",
                                         "\nselect: nothing 0, signals 0, something 100, cancelled 1\n",
                                         "\npselect: nothing 0, signals 0, something 100, cancelled 1\n",
                                         "\nepoll: nothing 0, signals 0, something 17, cancelled 1\n",
                                         "\nepoll_pwait: nothing 0, signals 0, something 17, cancelled 1\n",
                                         "\nepoll_pwait2: nothing 0, signals 0, something 17, cancelled 1\n"};
    (void)state;
    for (int with = 0; with < 2; with++) {
        char text[4096];
        assert_int_equal(yield_run("polls", with, NULL, NULL, text, sizeof(text)), 0);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
            if (!strstr(text, wanted[i]))
                fail_msg("%s the library \"%s\" is not in: %s", with ? "with" : "without", wanted[i], text);
        }
    }
}

static void test_who_waits_sleeps(void **state)
{
    (void)state;
    for (size_t i = 0; i < YIELD_WAITING; i++) {
        long slept = yield_number_of(yield_waiting[i], true, NULL, NULL);
        if (slept < YIELD_SLEPT)
            fail_msg("%s slept %ld times", yield_waiting[i], slept);
    }
}

static void test_and_does_not_without(void **state)
{
    (void)state;
    for (size_t i = 0; i < YIELD_WAITING; i++) {
        assert_in_range(yield_number_of(yield_waiting[i], false, NULL, NULL), 0, YIELD_SLEPT / 2);
        assert_in_range(yield_number_of(yield_waiting[i], true, "ELMER_SPIN", "1"), 0, YIELD_SLEPT / 2);
        assert_in_range(yield_number_of(yield_waiting[i], true, "ELMER_POLL_SLEEP", "0"), 0, YIELD_SLEPT / 2);
    }
}

static void test_who_works_does_not_sleep(void **state)
{
    static const char *const working[] = {"poll-work", "poll-many",     "turns-many", "epoll-many",
                                          "opal-busy", "opal-tcp-busy", "ucp-busy"};
    (void)state;
    for (size_t i = 0; i < sizeof(working) / sizeof(working[0]); i++) {
        long slept = yield_number_of(working[i], true, NULL, NULL);
        if (slept > YIELD_SLEPT / 2)
            fail_msg("%s slept %ld times", working[i], slept);
    }
}

static void test_after_a_brief_sleep_it_stays_awake(void **state)
{
    (void)state;
    assert_int_equal(yield_number_of("awake", true, NULL, NULL), 1);
    assert_int_equal(yield_number_of("awake", true, "ELMER_POLL_SLEEP", "0"), 0);
}

/* A sleep may last 10 ms, but what comes meanwhile ends it. */
static void test_data_wakes_at_once(void **state)
{
    (void)state;
    assert_in_range(yield_number_of("answers", true, "ELMER_POLL_SLEEP", "10000"), 0, 3000);
    assert_in_range(yield_number_of("answers-yield", true, "ELMER_POLL_SLEEP", "10000"), 0, 3000);
}

static void test_mpich_ends(void **state)
{
    char text[256];
    int status = yield_run("finalize", false, "PMI_FD", "50", text, sizeof(text));
    (void)state;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM); /* as it hangs without us */
    assert_int_equal(yield_run("finalize", true, "PMI_FD", "50", text, sizeof(text)), 0);
    assert_string_equal(text, "1 x 77\n");
    status = yield_run("finalize", true, "PMI_FD", "51", text,
                       sizeof(text)); /* other descriptors are none of our business */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void test_mpich_is_told_of_an_exit(void **state)
{
    static const struct {
        const char *what, *pmi_fd, *said;
        int status;
    } runs[] = {
        {"exits", "50", "said cmd=abort exitcode=5\n", 5},
        {"exits-well", "50", "said ", 0},
        {"exits-before", "50", "said ", 5},
        {"exits-after", "50", "said ", 5},
        {"exits-at-once", "50", "", 5},
        {"exits-forked", "50", "", 0},
        {"exits", "51", "said ", 5},
        {"exits", NULL, "said ", 5},
        {"exits", "1", "said ", 5}, /* no socket is that */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        char text[256];
        int status =
            yield_run(runs[i].what, true, runs[i].pmi_fd ? "PMI_FD" : NULL, runs[i].pmi_fd, text, sizeof(text));
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), runs[i].status);
        assert_string_equal(text, runs[i].said);
    }
}

static void test_without_mpi(void **state)
{
    char text[256];
    (void)state;
    assert_int_equal(yield_run("absent", true, NULL, NULL, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "ucp_worker_progress: 1\n")); /* or this is no test */
}

static void test_first_calls_beside_dlopen(void **state)
{
    char text[16];
    (void)state;
    assert_int_equal(yield_run("beside", true, NULL, NULL, text, sizeof(text)), 0);
}

int main(int argc, char **argv)
{
#define SLOW(name) cmocka_unit_test_setup_teardown(name, yield_slow_clock, yield_own_clock)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_mean_the_same),
        cmocka_unit_test(test_polls_mean_the_same),
        cmocka_unit_test(test_who_waits_sleeps),
        cmocka_unit_test(test_and_does_not_without),
        cmocka_unit_test(test_who_works_does_not_sleep),
        cmocka_unit_test(test_after_a_brief_sleep_it_stays_awake),
        cmocka_unit_test(test_data_wakes_at_once),
        cmocka_unit_test(test_mpich_ends),
        cmocka_unit_test(test_mpich_is_told_of_an_exit),
        cmocka_unit_test(test_without_mpi),
        cmocka_unit_test(test_first_calls_beside_dlopen),
        SLOW(test_who_waits_sleeps),
        SLOW(test_who_works_does_not_sleep),
    };
    if (argc == 3 && strcmp(argv[1], "--program") == 0)
        return yield_program(argv[2]);
    if (yield_find() < 0)
        return 1;
    return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
