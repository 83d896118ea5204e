/* test_explain.c - why a job waits: of several pages, as a struct and as JSON; an elmer that the test plays. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/client.h"
#include "tests/unit/libelmer/client_bed.h"
#include "tests/unit/peer.h"

enum { CALL_MS = 30000 };

static struct elmer_call *begin(uint64_t job)
{
    struct elmer_call *call;
    assert_int_equal(elmer_explain_begin(elmer, job, CALL_MS, &call, NULL), ELMER_OK);
    return call;
}

/* On a new connection; the id of the request. */
static uint64_t asked_for(uint64_t job)
{
    struct wire_message request;
    uint64_t id;
    peer_accept(listener, &channel, WIRE_FROM_CLIENT);
    client_bed_step();
    request = peer_expect(&channel, WIRE_explain);
    assert_int_equal(request.u.explain.job, job);
    id = request.id;
    wire_message_fini(&request);
    return id;
}

/* At least one page of a job that waits; the hosts from `first` on. */
static void send_page(uint64_t id, size_t first, size_t count, bool more)
{
    static struct wire_host_why hosts[] = {{"ws1", "busy", 4, 0, "is 93 % busy", "wait"},
                                           {"ws2", "ok", 2, 2, "is free", ""}};
    struct wire_message page = {.type = WIRE_explained,
                                .id = id,
                                .u.explained = {.job = 42,
                                                .state = "queued",
                                                .nprocs = 6,
                                                .level = -1,
                                                .reason_code = "processors",
                                                .reason = "waits for 6 processors",
                                                .help = "",
                                                .ahead = 3,
                                                .first = 40,
                                                .first_reason = "waits for ws1",
                                                .more = more}};
    page.u.explained.hosts.items = hosts + first;
    page.u.explained.hosts.count = count;
    peer_send(&channel, &page);
    client_bed_step();
}

static struct elmer_explained *answer_of(struct elmer_call *call)
{
    struct elmer_explained *explained;
    struct elmer_error error = {{0}};
    assert_ptr_equal(elmer_next_ended(elmer), call);
    if (elmer_call_result(call, &error) != ELMER_OK)
        fail_msg("%s", error.text);
    explained = elmer_call_explained(call);
    assert_non_null(explained);
    assert_null(elmer_call_explained(call)); /* once */
    assert_null(elmer_call_jobs(call));
    elmer_call_free(call);
    return explained;
}

#define JOB                                                                                                            \
    "{\"id\":42,\"state\":\"queued\",\"nprocs\":6,\"level\":null,\"reason_code\":\"processors\",\"reason\":\"waits "   \
    "for 6 "                                                                                                           \
    "processors\",\"help\":null,\"ahead\":3,\"first\":40,\"first_reason\":\"waits for ws1\",\"above\":[],\"hosts\":["  \
    "{\"host\":\"ws1\",\"rule\":\"busy\",\"processors\":4,\"usable\":0,\"text\":\"is 93 % busy\",\"help\":\"wait\"},"  \
    "{\"host\":\"ws2\",\"rule\":\"ok\",\"processors\":2,\"usable\":2,\"text\":\"is free\",\"help\":null}]}"
static void is_json(char *text, const char *jobs)
{
    char wanted[1024];
    snprintf(wanted, sizeof(wanted), "{\"schema\":\"elmer.why/1\",\"jobs\":[%s]}", jobs);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void of_two_pages(void **state)
{
    struct elmer_call *call = begin(42);
    uint64_t id = asked_for(42);
    struct elmer_explained *explained;
    const struct elmer_explained *twice[2];
    (void)state;
    send_page(id, 0, 1, true);
    assert_int_equal(elmer_call_result(call, NULL), -1);
    send_page(id, 1, 1, false);
    explained = answer_of(call);
    assert_int_equal(explained->job, 42);
    assert_string_equal(explained->state, "queued");
    assert_int_equal(explained->level, -1);
    assert_int_equal(explained->nprocs, 6);
    assert_string_equal(explained->reason_code, "processors");
    assert_string_equal(explained->reason, "waits for 6 processors");
    assert_string_equal(explained->help, "");
    assert_int_equal(explained->ahead, 3);
    assert_int_equal(explained->first, 40);
    assert_string_equal(explained->first_reason, "waits for ws1");
    assert_int_equal(explained->nabove, 0);
    assert_int_equal(explained->nhosts, 2);
    assert_string_equal(explained->hosts[0].host, "ws1");
    assert_string_equal(explained->hosts[0].rule, "busy");
    assert_int_equal(explained->hosts[0].processors, 4);
    assert_int_equal(explained->hosts[0].usable, 0);
    assert_string_equal(explained->hosts[0].text, "is 93 % busy");
    assert_string_equal(explained->hosts[0].help, "wait");
    assert_string_equal(explained->hosts[1].host, "ws2");
    assert_string_equal(explained->hosts[1].help, "");
    is_json(elmer_explained_json(explained), JOB);
    twice[0] = twice[1] = explained;
    is_json(client_explained_json(twice, 2), JOB "," JOB);
    is_json(client_explained_json(twice, 0), "");
    elmer_explained_free(explained);
    elmer_explained_free(NULL);
}

/* Of one that runs: those above it, and no hosts. */
static void it_runs(void **state)
{
    uint64_t above[] = {7, 9};
    struct elmer_call *call = begin(5);
    struct wire_message page = {.type = WIRE_explained,
                                .id = asked_for(5),
                                .u.explained = {.job = 5,
                                                .state = "running",
                                                .nprocs = 1,
                                                .level = 2,
                                                .reason_code = "",
                                                .reason = "",
                                                .help = "",
                                                .first_reason = "",
                                                .above = {above, 2}}};
    struct elmer_explained *explained;
    (void)state;
    peer_send(&channel, &page);
    client_bed_step();
    explained = answer_of(call);
    assert_int_equal(explained->level, 2);
    assert_int_equal(explained->nabove, 2);
    assert_int_equal(explained->above[1], 9);
    assert_int_equal(explained->nhosts, 0);
    is_json(
        elmer_explained_json(explained),
        "{\"id\":5,\"state\":\"running\",\"nprocs\":1,\"level\":2,\"reason_code\":\"\",\"reason\":null,\"help\":null,"
        "\"ahead\":0,\"first\":null,\"first_reason\":null,\"above\":[7,9],\"hosts\":[]}");
    elmer_explained_free(explained);
}

/* The connection breaks after the first page: all of it comes again, and no host twice. */
static void lost_between_pages(void **state)
{
    struct elmer_call *call = begin(42);
    struct elmer_explained *explained;
    uint64_t id = asked_for(42);
    (void)state;
    send_page(id, 0, 2, true);
    channel_fini(&channel);
    client_bed_step();
    client_bed_step(); /* after the pause */
    id = asked_for(42);
    send_page(id, 0, 2, false);
    explained = answer_of(call);
    assert_int_equal(explained->nhosts, 2);
    is_json(elmer_explained_json(explained), JOB);
    elmer_explained_free(explained);
}

/* No such job; an answer that nobody takes; and one that is given up between its pages. */
static void without_an_answer(void **state)
{
    struct elmer_call *call = begin(8);
    struct wire_message wrong = {.type = WIRE_error,
                                 .id = asked_for(8),
                                 .u.error = {.code = WIRE_CODE_NO_SUCH_JOB, .text = "there is no job 8"}};
    struct elmer_error error;
    (void)state;
    peer_send(&channel, &wrong);
    client_bed_step();
    assert_ptr_equal(elmer_next_ended(elmer), call);
    assert_int_equal(elmer_call_result(call, &error), ELMER_NO_SUCH_JOB);
    assert_string_equal(error.text, "there is no job 8");
    assert_null(elmer_call_explained(call));
    elmer_call_free(call);
    for (int more = 0; more < 2; more++) {
        struct wire_message request;
        call = begin(42);
        request = peer_expect(&channel, WIRE_explain);
        send_page(request.id, 0, 2, more);
        wire_message_fini(&request);
        elmer_call_free(call);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, client_bed_setup, client_bed_teardown)
    const struct CMUnitTest tests[] = {TEST(of_two_pages), TEST(it_runs), TEST(lost_between_pages),
                                       TEST(without_an_answer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
