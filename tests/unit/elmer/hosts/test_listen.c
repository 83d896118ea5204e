/* test_listen.c - the address for hosts cannot be used yet, or never. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/elmer/fakes/fake_address.h"
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

static void ignore_peer(struct peer *peer, void *data)
{
    (void)peer;
    (void)data;
}

/* Listening from the start, with a name that stands for one. */
static void with_tcp(const char *address)
{
    static const struct hosts_callbacks none = {.on_peer_gone = ignore_peer};
    struct err err = ERR_INIT;
    hosts_close(bed.hosts);
    hosts_destroy(bed.hosts);
    links_end();
    links_begin(WIRE_FROM_ELMER);
    fake_address_begin();
    fake_address_stands_for(address);
    fake_engine.hosts[WS1].state = CORE_HOST_DOWN;
    assert_int_equal(hosts_create(&fake_engine.room, &bed.settings, &none, &bed, &bed.hosts, &err), 0);
    assert_null(hosts_listen_failure(bed.hosts));
}

/* The n-th listener of links.h takes links. */
static bool is_open(size_t listener)
{
    int link = links_accept(listener, 0);
    if (link >= 0)
        links_cut((size_t)link);
    return link >= 0;
}

enum { UNIX, FIRST, SECOND };

/* The queue host gets another address: the name is looked up, never by the loop, and listened on. */
static void test_follows_its_name(void **state)
{
    (void)state;
    with_tcp("10.0.0.1:6500");
    assert_true(is_open(FIRST));
    for (int i = 0; i < 11; i++)
        fake_time_pass(5000);
    assert_int_equal(fake_work_count(), 0); /* it is there: nobody is asked so often */
    fake_time_pass(5000);
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    assert_true(is_open(FIRST));
    assert_false(is_open(SECOND));
    fake_address_gone("10.0.0.1:6500");
    fake_address_stands_for("10.0.0.2:6500");
    fake_time_pass(5000);
    assert_int_equal(fake_work_count(), 1);
    fake_work_run();
    assert_false(is_open(FIRST));
    assert_true(is_open(SECOND));
    assert_null(hosts_listen_failure(bed.hosts));
    fake_no_event(); /* who has a link keeps it, nobody is awaited anew */
}

/* The name moves while the old address is there still. */
static void test_follows_the_dns(void **state)
{
    (void)state;
    with_tcp("10.0.0.1:6500");
    fake_address_stands_for("10.0.0.2:6500");
    links_refuse_tcp(-EADDRNOTAVAIL); /* not yet an address of this host */
    for (int i = 0; i < 12; i++)
        fake_time_pass(5000);
    fake_work_run();
    assert_true(is_open(FIRST));
    assert_non_null(hosts_listen_failure(bed.hosts));
    links_refuse_tcp(0);
    fake_time_pass(5000);
    fake_work_run();
    assert_false(is_open(FIRST));
    assert_true(is_open(SECOND));
    assert_null(hosts_listen_failure(bed.hosts));
}

static void test_name_service_is_away(void **state)
{
    (void)state;
    with_tcp("10.0.0.1:6500");
    fake_address_stands_for("");
    for (int i = 0; i < 12; i++)
        fake_time_pass(5000);
    fake_work_run();
    assert_null(hosts_listen_failure(bed.hosts)); /* all is as it was */
    assert_true(is_open(FIRST));
    fake_address_gone("10.0.0.1:6500");
    fake_time_pass(5000);
    fake_work_run();
    assert_string_equal(hosts_listen_failure(bed.hosts),
                        "cannot find the address of 0.0.0.0:6500: the service is away");
    fake_address_gone(NULL);
    fake_address_stands_for("10.0.0.1:6500");
    fake_time_pass(5000);
    fake_work_run();
    assert_null(hosts_listen_failure(bed.hosts));
    assert_true(is_open(FIRST));
}

/* A number that this host has no more, which the name still says: that is said, until it is back. */
static void test_address_goes(void **state)
{
    (void)state;
    with_tcp("10.0.0.1:6500");
    fake_address_gone("10.0.0.1:6500");
    fake_time_pass(5000);
    fake_work_run();
    assert_non_null(strstr(hosts_listen_failure(bed.hosts), "does not have the address 10.0.0.1:6500 any more"));
    fake_address_gone(NULL);
    fake_time_pass(5000);
    fake_work_run();
    assert_null(hosts_listen_failure(bed.hosts));
    assert_true(is_open(FIRST));
}

/* All addresses are all, whichever there are. */
static void test_all_addresses(void **state)
{
    (void)state;
    with_tcp("*:6500");
    for (int i = 0; i < 30; i++)
        fake_time_pass(5000);
    assert_int_equal(fake_work_count(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_listens_later),        TEST(test_listens_later_alone), TEST(test_listens_never),
        TEST(test_ends_while_it_waits),  TEST(test_follows_its_name),    TEST(test_follows_the_dns),
        TEST(test_name_service_is_away), TEST(test_address_goes),        TEST(test_all_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
