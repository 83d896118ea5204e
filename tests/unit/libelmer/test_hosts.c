/* test_hosts.c - the list of hosts, of several pages, from an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "libelmer/elmer.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 30000 };

static struct elmer_call *begin(void)
{
    struct elmer_call *call;
    assert_int_equal(elmer_query_hosts_begin(elmer, CALL_MS, &call, NULL), ELMER_OK);
    return call;
}

/* The id of the request, on a new connection. */
static uint64_t asked_for(void)
{
    struct wire_message request;
    uint64_t id;
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    client_bed_step();
    request = peer_expect(&channel, WIRE_query_hosts);
    id = request.id;
    wire_message_fini(&request);
    return id;
}

static void send_page(uint64_t id, struct wire_host_view *hosts, size_t count, bool more)
{
    struct wire_message page = {.type = WIRE_hosts, .id = id, .u.hosts = {.hosts = {hosts, count}, .more = more}};
    peer_send(&channel, &page);
    client_bed_step();
}

/* What equery --hosts --json prints of both: a job is named by the hosts that it has. */
static void as_json(const struct elmer_host_list *hosts)
{
    static const struct elmer_processor two[] = {{"ws1", 0}, {"ws1", 1}, {"ws3", 0}};
    const struct elmer_job job[] = {{.id = 7, .user = "alice", .level = 1, .processors = two, .nprocessors = 3},
                                    {.id = 8, .user = "bob", .level = -1}};
    const struct elmer_jobs jobs = {.items = job, .count = 2};
    static const char first[] =
        "{\"schema\":\"elmer.hosts/1\",\"hosts\":[{\"host\":\"ws1\",\"state\":\"up\",\"processors\":4,"
        "\"mode\":\"rt\",\"reason\":\"\",\"lacks\":[\"no figures\"],\"busy\":0.5,\"busy_jobs\":0.25,"
        "\"memory_bytes\":8000,\"memory_free_bytes\":2000,\"memory_for_jobs_bytes\":6000,"
        "\"memory_asked_bytes\":1000,\"jobs\":[",
                      named[] = "{\"id\":7,\"user\":\"alice\",\"level\":1,\"processors\":2}",
                      second[] = "]},{\"host\":\"ws2\",\"state\":\"down\",\"processors\":2,\"mode\":\"\","
                                 "\"reason\":\"its link is cut\",\"lacks\":[],\"busy\":null,\"busy_jobs\":null,"
                                 "\"memory_bytes\":null,\"memory_free_bytes\":null,\"memory_for_jobs_bytes\":null,"
                                 "\"memory_asked_bytes\":null,\"jobs\":[]}]}";
    char wanted[1500], *text = elmer_host_list_json(hosts, &jobs);
    (void)snprintf(wanted, sizeof(wanted), "%s%s%s", first, named, second);
    assert_string_equal(text, wanted);
    free(text);
    text = elmer_host_list_json(hosts, NULL);
    (void)snprintf(wanted, sizeof(wanted), "%s%s", first, second);
    assert_string_equal(text, wanted);
    free(text);
}

/* Two pages, of which the first comes again, because the connection breaks. */
static void of_two_pages(void **state)
{
    static const char *lacks[] = {"no figures"};
    struct wire_host_view views[] = {{.host = "ws1",
                                      .state = "up",
                                      .processors = 4,
                                      .mode = "rt",
                                      .address = "",
                                      .reason = "",
                                      .lacks = {lacks, 1},
                                      .busy = 0.5,
                                      .busy_jobs = 0.25,
                                      .memory_bytes = 8000,
                                      .memory_free_bytes = 2000,
                                      .refused = "",
                                      .drained_by = "",
                                      .drained_for = "",
                                      .jobs = 3,
                                      .memory_for_jobs_bytes = 6000,
                                      .memory_asked_bytes = 1000},
                                     {.host = "ws2",
                                      .state = "down",
                                      .processors = 2,
                                      .mode = "",
                                      .address = "",
                                      .reason = "its link is cut",
                                      .refused = "",
                                      .drained_by = "",
                                      .drained_for = ""}}; /* of which an elmer of before says no more */
    const struct elmer_host *host;
    struct elmer_host_list *hosts;
    struct elmer_call *call = begin();
    uint64_t id = asked_for();
    (void)state;
    send_page(id, views, 1, true);
    channel_fini(&channel);
    client_bed_step();
    client_bed_step(); /* after the pause */
    id = asked_for();
    send_page(id, views, 1, true);
    assert_int_equal(elmer_call_result(call, NULL), -1);
    send_page(id, views + 1, 1, false);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_OK);
    hosts = elmer_call_hosts(call);
    assert_null(elmer_call_hosts(call)); /* once */
    assert_null(elmer_call_jobs(call));
    elmer_call_free(call);
    assert_int_equal(hosts->count, 2);
    host = &hosts->items[0];
    assert_string_equal(host->host, "ws1");
    assert_string_equal(host->state, "up");
    assert_string_equal(host->reason, "");
    assert_int_equal(host->processors, 4);
    assert_int_equal(host->jobs, 3);
    assert_string_equal(host->mode, "rt");
    assert_int_equal(host->nlacks, 1);
    assert_string_equal(host->lacks[0], "no figures");
    assert_true(host->busy == 0.5 && host->busy_jobs == 0.25);
    assert_int_equal(host->memory_bytes, 8000);
    assert_int_equal(host->memory_free_bytes, 2000);
    assert_int_equal(host->memory_for_jobs_bytes, 6000);
    assert_int_equal(host->memory_asked_bytes, 1000);
    host = &hosts->items[1];
    assert_string_equal(host->host, "ws2");
    assert_string_equal(host->reason, "its link is cut");
    assert_int_equal(host->nlacks, 0);
    assert_true(host->busy == -1 && host->busy_jobs == -1);
    assert_int_equal(host->memory_bytes, -1);
    assert_int_equal(host->memory_free_bytes, -1);
    assert_int_equal(host->memory_for_jobs_bytes, 0);
    as_json(hosts);
    elmer_host_list_free(hosts);
    elmer_host_list_free(NULL);
}

/* An answer that nobody takes; one that is none; and one that is given up between its pages. */
static void without_an_answer(void **state)
{
    struct wire_message wrong = {.type = WIRE_done, .u.done.text = ""}, request;
    struct elmer_call *call = begin();
    (void)state;
    send_page(asked_for(), NULL, 0, false);
    elmer_call_free(call);
    call = begin();
    request = peer_expect(&channel, WIRE_query_hosts);
    wrong.id = request.id;
    peer_send(&channel, &wrong);
    client_bed_step();
    wire_message_fini(&request);
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, NULL), ELMER_FAILED);
    assert_null(elmer_call_hosts(call));
    elmer_call_free(call);
    channel_fini(&channel);
    call = begin();
    send_page(asked_for(), NULL, 0, true);
    elmer_call_free(call);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, client_bed_setup, client_bed_teardown)
    const struct CMUnitTest tests[] = {TEST(of_two_pages), TEST(without_an_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
