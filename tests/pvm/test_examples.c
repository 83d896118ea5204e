/* The example programs in a virtual machine of one host: they verify themselves, and notice when they cannot. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/pvm/fixture.h"

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct fixture fixture;

static int setup(void **state)
{
    (void)state;
    fixture_start(&fixture, 1);
    return fixture_serve(&fixture, NULL, NULL, NULL) == WIRE_agent_ready ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

/* Run, demand the exit status and the text. */
static void assert_run(const char *program, const char *const *argv, int status, const char *text)
{
    char *printed;
    int got = fixture_run(&fixture, program, &printed, argv);
    if (got != status || !strstr(printed, text))
        fail_msg("%s: exit status %d, wanted %d; \"%s\" is not in: %s", program, got, status, text, printed);
    free(printed);
}

static void test_ep_verifies_with_any_number_of_tasks(void **state)
{
    (void)state;
    assert_run("examples/pvm/ep", ARGV("ep", "-c", "S", "-P", "1"), 0,
               "ep: verified class=S m=24 tasks=1 pairs=13176389 ");
    assert_run("examples/pvm/ep", ARGV("ep", "-c", "S", "-P", "3"), 0,
               "ep: verified class=S m=24 tasks=3 pairs=13176389 ");
    assert_run("examples/pvm/ep", ARGV("ep", "-m", "17", "-P", "5"), 0, "ep: plausible ");
}

/* The sums are the same to the last digit whoever has computed what. */
static void test_ep_does_not_depend_on_the_distribution(void **state)
{
    char *one, *four;
    (void)state;
    assert_int_equal(fixture_run(&fixture, "examples/pvm/ep", &one, ARGV("ep", "-m", "20", "-P", "1")), 0);
    assert_int_equal(fixture_run(&fixture, "examples/pvm/ep", &four, ARGV("ep", "-m", "20", "-P", "4")), 0);
    char *sums_of_one = strstr(one, "pairs="), *sums_of_four = strstr(four, "pairs=");
    assert_true(sums_of_one && sums_of_four);
    *strstr(sums_of_one, " batches") = '\0';
    *strstr(sums_of_four, " batches") = '\0';
    assert_string_equal(sums_of_one, sums_of_four);
    free(one);
    free(four);
}

static void test_barrier_counts_its_tokens(void **state)
{
    (void)state;
    assert_run("examples/pvm/barrier", ARGV("barrier", "-P", "1", "-w", "1000", "-p", "100"), 0, "verified slaves=1 ");
    assert_run("examples/pvm/barrier", ARGV("barrier", "-P", "4", "-w", "1001", "-p", "200", "-t", "20000"), 0,
               "verified slaves=4 iterations=1001 phases=200 token_bytes=20000 tokens=600 ");
    assert_run("examples/pvm/barrier", ARGV("barrier", "-v", "4", "-b", "2", "-P", "3", "-f", "0.1"), 0,
               "verified slaves=3 ");
    assert_run("examples/pvm/barrier", ARGV("barrier", "-v", "2", "-f", "0.01"), 0,
               "iterations=890000 phases=13 token_bytes=800");
}

/* Messages of two senders come in any order: the token of a slave that is ahead waits for its turn. */
static void test_barrier_takes_a_token_before_its_orders(void **state)
{
    (void)state;
    assert_run("tests/pvm/early", ARGV("early", "examples/pvm/barrier"), 0,
               "early: answer of slave 0 in phase 0, 1 tokens");
}

static void test_flood_loses_nothing(void **state)
{
    (void)state;
    assert_run("examples/pvm/flood", ARGV("flood", "-s", "0.2"), 0, "flood: verified");
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    assert_run("examples/pvm/ep", ARGV("ep", "-c", "Z"), 2, "usage: ep");
    assert_run("examples/pvm/ep", ARGV("ep", "-m", "15"), 2, "a number from 16 to 40");
    assert_run("examples/pvm/barrier", ARGV("barrier", "-P", "0"), 2, "a number from 1 to 1024");
    assert_run("examples/pvm/barrier", ARGV("barrier", "-v", "5"), 2, "a number from 1 to 4");
    assert_run("examples/pvm/flood", ARGV("flood", "-s", "1e9"), 2, "a number from 0.01 to 600");
}

/* No daemon, and no address of one. */
static void test_without_pvm_there_is_a_sentence(void **state)
{
    (void)state;
    fixture_finish(&fixture);
    assert_int_equal(fixture_wait(&fixture.agent), 0);
    fixture.socket[0] = '\0';
    assert_run("examples/pvm/ep", ARGV("ep"), 1, "ep: cannot enrol in PVM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ep_verifies_with_any_number_of_tasks),
        cmocka_unit_test(test_ep_does_not_depend_on_the_distribution),
        cmocka_unit_test(test_barrier_counts_its_tokens),
        cmocka_unit_test(test_barrier_takes_a_token_before_its_orders),
        cmocka_unit_test(test_flood_loses_nothing),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_without_pvm_there_is_a_sentence), /* last: ends the machine */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
