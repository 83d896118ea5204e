/* test_rate.c - a host that says more than an honest one can is disconnected, and the others are served. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "tests/unit/elmer/hosts/bed.h"

static char warned[400];
static unsigned warnings;

void __wrap_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void __wrap_log_warning(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(warned, sizeof(warned), format, list);
    va_end(list);
    warnings++;
}

static void pongs(int link, unsigned count)
{
    struct wire_message pong = {.type = WIRE_pong};
    for (unsigned i = 0; i < count; i++)
        say(link, &pong);
}

static void opened(int link, uint64_t job)
{
    struct wire_message message = {.type = WIRE_opened, .u.opened = {.job = job, .attempt = 1}};
    say(link, &message);
}

static void expect_shut_out(int link, const char *words)
{
    heard_error(link, words);
    assert_false(links_open((size_t)link));
    assert_int_equal(warnings, 1); /* one line, which says so */
    assert_non_null(strstr(warned, "host=ws1 is disconnected"));
    assert_non_null(strstr(warned, words));
    pongs(link, 1000); /* it goes on: nobody listens */
    assert_int_equal(warnings, 1);
    links_turn();
    fake_event(EVENT_HOST_SILENT);
    bed_expect("cut ws1");
}

static void test_messages(void **state)
{
    (void)state;
    warnings = 0;
    int link = bed_ws1_up(), other = bed_up(&(struct greeting){.host = "ws2"});
    pongs(link, 1990); /* a burst */
    assert_true(links_open((size_t)link));
    for (int i = 0; i < 5; i++) { /* as many as it may send on the average */
        fake_time_pass(BEAT_MS);
        bed_pong(other);
        bed_pong(link);
        pongs(link, 90);
    }
    assert_true(links_open((size_t)link));
    pongs(link, 500);
    expect_shut_out(link, "a host may send 100 in a second (host_messages in elmer.conf) and 2000 at once");
    assert_true(links_open((size_t)other));

    link = bed_link(&(struct greeting){.host = "ws1"});
    bed_hello(link, &(struct greeting){.host = "ws1"});
    heard_error(link, "was disconnected for what it sent");
    links_turn();
    assert_int_equal(warnings, 1);
    fake_time_skip(10000);
    bed_ws1_up(); /* nothing is held against it */
}

/* Another link does not begin anew. */
static void test_over_all_links(void **state)
{
    (void)state;
    warnings = 0;
    int link = bed_ws1_up();
    pongs(link, 1500);
    links_cut((size_t)link);
    fake_event(EVENT_HOST_SILENT);
    link = bed_ws1_up();
    pongs(link, 600);
    expect_shut_out(link, "too many messages");
}

static void test_holdings(void **state)
{
    static struct wire_holding holdings[2100];
    struct greeting greeting = {.host = "ws1", .holdings = holdings, .nholdings = 2100};
    (void)state;
    warnings = 0;
    for (size_t i = 0; i < 2100; i++)
        holdings[i] = (struct wire_holding){.job = 1 + i, .attempt = 1};
    int link = bed_link(&greeting);
    bed_hello(link, &greeting);
    heard_error(link, "too many messages");
    assert_int_equal(warnings, 1);
    links_turn();
    bed_expect("");
}

static void test_invented_jobs(void **state)
{
    static struct core_processor here[] = {{WS1, 0}}, elsewhere[] = {{WS2, 0}};
    (void)state;
    warnings = 0;
    int link = bed_ws1_up();
    struct fake_job *job = fake_engine_add_job(7, 5, JOB_STARTING), *other = fake_engine_add_job(8, 5, JOB_STARTING);
    job->state.attempt = other->state.attempt = 1;
    job->state.nprocs = other->state.nprocs = 1;
    job->state.processors = here;
    other->state.processors = elsewhere;
    fake_engine.hosts[WS1].leftovers = CORE_MAX_LEFTOVERS - 1;
    opened(link, 300000);
    fake_event(EVENT_OPENED); /* it is told to end it */
    fake_engine.hosts[WS1].leftovers = CORE_MAX_LEFTOVERS;
    opened(link, 7); /* its own */
    fake_event(EVENT_OPENED);
    opened(link, 8);
    fake_no_event();
    expect_shut_out(link, "it has opened more than 1024 jobs that it was not given");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_messages),
        TEST(test_over_all_links),
        TEST(test_holdings),
        TEST(test_invented_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
