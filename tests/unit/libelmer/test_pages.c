/* test_pages.c - answers of several pages, from an elmer that the test plays, in a time that it makes pass. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>

#include "lib/base/clock.h"
#include "libelmer/client.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 30000, PAGE_MS = 20000 /* between pages; a machine may stand still for 10 s */, IDS = 4097 };

static int slow;
static int64_t skipped_ms;

struct mono __real_mono_now(void);
struct mono __wrap_mono_now(void);
struct mono __wrap_mono_now(void)
{
    return (struct mono){.ns = __real_mono_now().ns + skipped_ms * 1000000};
}

static int setup(void **state)
{
    slow = 0;
    return client_bed_setup(state);
}

static void on_slow(void)
{
    slow++;
}

/* Who is late is ended before something comes. */
static void pass(int64_t ms)
{
    skipped_ms += ms;
    elmer_step(elmer);
}

/* What has come is taken. */
static void step(void)
{
    struct pollfd pollfd = {.fd = elmer_fd(elmer), .events = POLLIN};
    assert_int_equal(poll(&pollfd, 1, PEER_DEADLINE_MS), 1);
    elmer_step(elmer);
}

static struct wire_message asked(struct elmer_call *call, enum wire_type type)
{
    struct wire_message request = peer_expect(&channel, type);
    assert_int_equal(elmer_call_result(call, NULL), -1);
    return request;
}

static void send_page(uint64_t id, bool more)
{
    struct wire_message page = {.type = WIRE_jobs, .id = id, .u.jobs.more = more};
    peer_send(&channel, &page);
    step();
}

/* The call of a list, when elmer has it; its id there. */
static struct elmer_call *begin_list(uint64_t *id)
{
    struct wire_message request;
    struct elmer_call *call;
    assert_int_equal(elmer_query_begin(elmer, true, true, NULL, 0, CALL_MS, &call, NULL), ELMER_OK);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    step();
    request = asked(call, WIRE_query);
    *id = request.id;
    wire_message_fini(&request);
    return call;
}

static void is_late(struct elmer_call *call, const char *words)
{
    struct elmer_error error;
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_UNREACHABLE);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", error.text, words);
    elmer_call_free(call);
}

/* Who has said how long he waits, waits no longer; he is told that more would have come. */
static void the_timeout_counts(void **state)
{
    uint64_t id;
    struct elmer_call *call = begin_list(&id);
    (void)state;
    send_page(id, true);
    pass(PAGE_MS);
    send_page(id, true);
    assert_int_equal(elmer_call_result(call, NULL), -1);
    pass(PAGE_MS);
    is_late(call, "elmer has not sent all of the answer in time");
    assert_int_equal(slow, 0);
}

/* For a command a list that goes on has time. */
static void a_list_that_goes_on(void **state)
{
    uint64_t id;
    struct elmer_call *call;
    (void)state;
    client_wait_for_pages(elmer, CALL_MS, on_slow);
    call = begin_list(&id);
    for (int i = 0; i < 5; i++) {
        send_page(id, true);
        assert_int_equal(elmer_call_result(call, NULL), -1);
        pass(PAGE_MS);
    }
    assert_true(slow > 0); /* its user is told */
    send_page(id, false);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    elmer_call_free(call);
}

static void a_list_that_stops(void **state)
{
    uint64_t id;
    struct elmer_call *call;
    (void)state;
    client_wait_for_pages(elmer, CALL_MS, on_slow);
    call = begin_list(&id);
    send_page(id, true);
    pass(PAGE_MS);
    send_page(id, true);
    pass(CALL_MS);
    is_late(call, "elmer has not sent all of the answer in time");
}

/* Nothing has come at all. */
static void no_answer(void **state)
{
    uint64_t id;
    struct elmer_call *call;
    (void)state;
    client_wait_for_pages(elmer, CALL_MS, on_slow);
    call = begin_list(&id);
    pass(CALL_MS);
    is_late(call, "elmer has not answered in time");
}

/* The next request for more ids than one has is a page, too. */
static void ids_in_pieces(void **state)
{
    static uint64_t ids[IDS];
    struct wire_message request;
    struct elmer_call *call;
    (void)state;
    for (uint64_t i = 0; i < IDS; i++)
        ids[i] = i + 1;
    client_wait_for_pages(elmer, CALL_MS, on_slow);
    assert_int_equal(elmer_query_begin(elmer, false, false, ids, IDS, CALL_MS, &call, NULL), ELMER_OK);
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    step();
    request = asked(call, WIRE_query);
    pass(PAGE_MS);
    send_page(request.id, false);
    wire_message_fini(&request);
    request = asked(call, WIRE_query);
    assert_int_equal(request.u.query.jobs.items[0], IDS);
    pass(PAGE_MS);
    send_page(request.id, false);
    wire_message_fini(&request);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    elmer_call_free(call);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, client_bed_teardown)
    const struct CMUnitTest tests[] = {TEST(the_timeout_counts), TEST(a_list_that_goes_on), TEST(a_list_that_stops),
                                       TEST(no_answer), TEST(ids_in_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
