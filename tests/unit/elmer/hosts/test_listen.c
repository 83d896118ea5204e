/* test_listen.c - the address for hosts cannot be used yet, or never. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/elmer/fakes/fake_work.h"
#include "tests/unit/elmer/hosts/bed.h"

/* Made anew, where the address of the hosts cannot be used. */
static int without_tcp(int listen_code, struct err *err)
{
    static const struct hosts_callbacks none = {0};
    hosts_close(bed.hosts);
    hosts_destroy(bed.hosts);
    links_end();
    links_begin(WIRE_FROM_ELMER);
    links_refuse_tcp(listen_code);
    fake_engine.hosts[WS1].state = CORE_HOST_AWAITED;
    *err = (struct err)ERR_INIT;
    return hosts_create(&fake_engine.room, &bed.settings, &none, &bed, &bed.hosts, err);
}

/* Hosts are awaited from when they can link. */
static void test_listens_later(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(without_tcp(-EADDRINUSE, &err), 0);
    assert_string_equal(hosts_listen_failure(bed.hosts), "0.0.0.0:6500: nobody can listen there");
    fake_time_pass(5000);
    assert_int_equal(fake_work_count(), 1); /* the name service may take long */
    fake_time_pass(2 * TIMEOUT_MS);
    fake_work_run();
    assert_non_null(hosts_listen_failure(bed.hosts));
    fake_no_event();
    links_refuse_tcp(0);
    fake_time_pass(5000);
    fake_work_run();
    assert_null(hosts_listen_failure(bed.hosts));
    fake_event(EVENT_GATHER); /* only now they begin to come back */
    fake_time_pass(TIMEOUT_MS - 1);
    fake_no_event();
    fake_time_pass(1);
    assert_int_equal(fake_event(EVENT_HOST_DOWN)->host, WS1);
}

/* None was up before: nobody need be gathered. */
static void test_listens_later_alone(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(without_tcp(-EADDRINUSE, &err), 0);
    fake_engine.hosts[WS1].state = CORE_HOST_DOWN;
    links_refuse_tcp(0);
    fake_time_pass(5000);
    fake_work_run();
    assert_null(hosts_listen_failure(bed.hosts));
    fake_no_event();
}

/* A port that only root may have will not do, however long one waits. */
static void test_listens_never(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(without_tcp(-EACCES, &err), -EUCLEAN);
    assert_string_equal(err.text, "listen = 0.0.0.0:6500: 0.0.0.0:6500: nobody can listen there");
}

/* It ends while a name is looked up. */
static void test_ends_while_it_waits(void **state)
{
    struct err err;
    (void)state;
    assert_int_equal(without_tcp(-EADDRNOTAVAIL, &err), 0);
    fake_time_pass(5000);
    hosts_close(bed.hosts);
    links_refuse_tcp(0);
    fake_work_run(); /* opens nothing: the bed's end would see it */
    hosts_destroy(bed.hosts);
    bed.hosts = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_listens_later),
        TEST(test_listens_later_alone),
        TEST(test_listens_never),
        TEST(test_ends_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
