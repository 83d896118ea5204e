/* test_rsd_net_unit.c - the network half as a unit of its own: the root half joins it, goes, and joins again. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/service.h"
#include "lib/wire/channel.h"
#include "tests/daemon/rsd_net_lab.h"
#include "tests/unit/peer.h"

static void root_ends(struct world *w)
{
    channel_fini(&w->root);
    peer_expect_end(&w->elmer);
    channel_fini(&w->elmer);
}

static void what_it_is_told_first_counts(void **data)
{
    struct world *w = *data;

    assert_true(join(w));
    greet(w);
    check_request(w);
}

static void it_waits_for_the_root_half_and_begins_a_new_link(void **data)
{
    struct world *w = *data;
    struct channel client;

    assert_true(join(w));
    greet(w);
    client_connect(w, &client);
    for (int i = 0; i < 3; i++) {
        root_ends(w);
        assert_int_equal(poll(&(struct pollfd){.fd = w->elmer_listen, .events = POLLIN}, 1, 1500), 0); /* not alone */
        assert_true(join(w));
        greet(w); /* resync, and host_hello of what is said then */
    }
    client_kill(&client, 5, 7); /* a program of before is served */
    answer_relay(w, expect_relay(w, 5, 7), &(struct wire_message){.type = WIRE_done, .id = 5});
    peer_expect_gone(&client, WIRE_done);
    channel_fini(&client);
}

static void one_that_joins_before_the_other_is_gone_takes_its_place(void **data)
{
    struct world *w = *data;
    struct channel before;

    assert_true(join(w));
    greet(w);
    before = w->root;
    w->root.fd = -1;
    memset(&w->root.in, 0, sizeof(w->root.in));
    w->root.out = NULL;
    assert_true(join(w));
    peer_expect_end(&before);
    peer_expect_end(&w->elmer);
    channel_fini(&w->elmer);
    greet(w);
    check_request(w);
    channel_fini(&before);
}

static void another_plan_makes_it_begin_anew(void **data)
{
    struct world *w = *data;

    assert_true(join(w));
    greet(w);
    root_ends(w);
    w->plan.begun++;
    assert_false(join(w));
    assert_int_equal(wait_for_rsd(w), SERVICE_AGAIN);
}

static void another_build_makes_it_begin_anew(void **data)
{
    struct world *w = *data;

    w->plan.version[0]++;
    assert_false(join(w));
    assert_int_equal(wait_for_rsd(w), SERVICE_AGAIN);
}

static void a_plan_of_another_size_makes_it_begin_anew(void **data)
{
    struct world *w = *data;
    int fd;
    char byte;

    assert_int_equal(service_plan_write(w->dir, NET_PLAN_FILE, &w->plan, sizeof(w->plan) - 1), 0);
    fd = connect_to(w, "net.sock");
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    assert_int_equal(wait_for_rsd(w), SERVICE_AGAIN);
}

/* Before it is looked at. */
static void come_and_go(struct world *w)
{
    kill(w->rsd, SIGSTOP);
    close(connect_to(w, "net.sock"));
    kill(w->rsd, SIGCONT);
}

/* As one that is killed while it joins. */
static void who_goes_at_once_is_not_waited_for(void **data)
{
    struct world *w = *data;

    assert_int_equal(service_plan_write(w->dir, NET_PLAN_FILE, &w->plan, sizeof(w->plan)), 0);
    come_and_go(w);
    assert_true(join(w));
    greet(w);
    root_ends(w);
    come_and_go(w);
    assert_true(join(w));
    greet(w);
}

static void it_ends_while_it_waits(void **data)
{
    struct world *w = *data;

    assert_true(join(w));
    greet(w);
    root_ends(w);
    kill(w->rsd, SIGTERM);
    assert_int_equal(wait_for_rsd(w), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_unit, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_it_is_told_first_counts),
        TEST(it_waits_for_the_root_half_and_begins_a_new_link),
        TEST(one_that_joins_before_the_other_is_gone_takes_its_place),
        TEST(another_plan_makes_it_begin_anew),
        TEST(another_build_makes_it_begin_anew),
        TEST(a_plan_of_another_size_makes_it_begin_anew),
        TEST(who_goes_at_once_is_not_waited_for),
        TEST(it_ends_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
