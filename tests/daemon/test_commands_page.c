/* test_commands_page.c - equery as a process: the page of one job, why one waits, and the hosts. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

static void show_job(struct world *w, struct wire_job_view *view)
{
    struct wire_message query;

    RUN(w, "equery", "5");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, view, 1, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "");
}

/* ---- the page ---- */

static void test_page(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 1, -1, "exited", "the command ended with status 1");

    view.output = "out/%r.50%%";
    view.errors = "/tmp/err";
    view.comment = "first\033[2J";
    view.time_limit_ms = 9000000;
    view.warning_signal = 10;
    view.warning_ms = 90000;
    show_job(w, &view);
    assert_string_equal(w->stdout_text, "Job 5 prog, alice's: done, exit 1\n"
                                        "  command     ./prog -x 'a b'\n"
                                        "  directory   /home/alice\n"
                                        "  comment     first\\x1B[2J\n"
                                        "  processors  3: ws1 (0 1), ws2 (0)\n"
                                        "  output      ws1:/home/alice/out/0.50%\n"
                                        "  errors      ws1:/tmp/err\n"
                                        "  limits      time 2h30m, USR1 1m30s before\n"
                                        "  submitted   2026-01-01 00:00:00\n"
                                        "  started     2026-01-01 00:00:00, after 0:00:00\n"
                                        "  ended       2026-01-01 01:02:03\n"
                                        "  run time    1:02:03\n"
                                        "  levels      L0 1.5s  L1 0.0s\n"
                                        "  CPU time    ws1 2.2s, at most 1.0 MiB of memory\n"
                                        "  reason      the command ended with status 1\n");
}

/* A file for each rank on the host of that rank; what elmer of before does not say has no line. */
static void test_page_of_ranks(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 0, -1, "exited", "");

    view.state = "running";
    view.level = 1;
    view.attempt = 2;
    view.ended_ms = -1;
    view.each = true;
    view.output = "o.%r";
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "Job 5 prog, alice's: running at level 1 (attempt 2)\n"));
    assert_non_null(strstr(w->stdout_text, "  output      ws1:/home/alice/o.0\n"
                                           "              ws1:/home/alice/o.1\n"
                                           "              ws2:/home/alice/o.2\n"
                                           "  submitted "));
    view.output = "";
    show_job(w, &view);
    assert_null(strstr(w->stdout_text, "output"));
}

/* A line of its own where ranks leave nothing, and none where they do. */
static void test_page_of_who_polls(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 0, -1, "exited", "");

    view.state = "running";
    view.ended_ms = -1;
    show_job(w, &view);
    assert_null(strstr(w->stdout_text, "polling"));
    view.polls = "0-3";
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "\n  polling     ranks 0-3 poll while they wait: nothing is left for "
                                           "others; see elmer-mpi(7)\n"));
    view.polls = "2";
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "\n  polling     rank 2 polls while it waits: nothing"));
}

static void test_page_of_a_queued(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "queued");

    view.output = "o";
    view.ahead = 2;
    view.attempt = 0;
    view.reason = "waits: 2 ahead";
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "Job 5 x, alice's: queued, 2 ahead\n"));
    assert_non_null(strstr(w->stdout_text, "  processors  3\n  output      /home/alice/o\n"));
    assert_non_null(strstr(w->stdout_text, "\n  waits       waits: 2 ahead\n"));
    assert_null(strstr(w->stdout_text, "started"));
    view.hidden = true; /* another user's */
    view.name = view.dir = view.output = "";
    view.command.count = 0;
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "Job 5, alice's: queued, 2 ahead\n  processors  3\n  submitted "));
}

/* The text is kept with a job script; its name and arguments say more than the line that runs it. */
static void test_page_of_a_script(void **data)
{
    static const char *words[] = {"/bin/sh", "-c", "exec ... $ELMER_SCRIPT", "run.sh", "/bin/bash", "", "a", "b c"};
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "queued");

    view.command = (struct wire_strs){words, 8};
    show_job(w, &view);
    assert_non_null(strstr(w->stdout_text, "\n  command     script run.sh a 'b c'\n"));
}

/* ---- why ---- */

static struct wire_message explained(uint64_t id)
{
    static struct wire_host_why hosts[] = {
        {.host = "ws1", .rule = "busy", .processors = 2, .text = "2 of 2 busy", .help = "they have to end"},
        {.host = "ws2", .rule = "ok", .processors = 2, .usable = 1, .text = "1 of 2 full", .help = ""},
        {.host = "ws3", .rule = "busy", .processors = 16, .text = "16 of 16 busy", .help = "they have to end"}};
    struct wire_message message = {.type = WIRE_explained,
                                   .id = id,
                                   .u.explained = {.job = 5,
                                                   .state = "queued",
                                                   .nprocs = 4,
                                                   .level = -1,
                                                   .reason_code = "waiting",
                                                   .reason = "waits: 1 ahead",
                                                   .help = "the jobs ahead have to start",
                                                   .ahead = 1,
                                                   .first = 4,
                                                   .first_reason = "waits for 9 processors",
                                                   .hosts = {hosts, 3}}};
    return message;
}

static void test_why(void **data)
{
    struct world *w = *data;
    struct wire_message query, answer;

    for (int json = 0; json < 2; json++) {
        RUN(w, "equery", "--why", "5", json ? "--json" : NULL);
        if (json) /* options stand before ids */
            assert_int_equal(finish(w), 2);
        if (json)
            RUN(w, "equery", "--why", "--json", "5");
        accept_command(w);
        query = peer_expect(&w->elmer, WIRE_explain);
        assert_int_equal(query.u.explain.job, 5);
        answer = explained(query.id);
        answer.u.explained.hosts.count = 1; /* in two pages */
        answer.u.explained.more = true;
        peer_send(&w->elmer, &answer);
        answer = explained(query.id);
        answer.u.explained.hosts.items++;
        answer.u.explained.hosts.count = 2;
        peer_send(&w->elmer, &answer);
        wire_message_fini(&query);
        assert_int_equal(finish(w), 0);
        assert_string_equal(w->stderr_text, "");
        if (json)
            break;
        assert_string_equal(w->stdout_text,
                            "Job 5 is queued: waits: 1 ahead\n"
                            "The first of those ahead that waits for processors is job 4: waits for 9 processors\n"
                            "What would help: the jobs ahead have to start.\n"
                            "\n"
                            "HOST  USABLE  RULE  WHY\n"
                            "ws1      0/2  busy  2 of 2 busy\n"
                            "ws2      1/2  ok    1 of 2 full\n"
                            "ws3     0/16  busy  16 of 16 busy\n"
                            "\n"
                            "What would help there:\n"
                            "  ws1, ws3: they have to end\n");
    }
    check_schema(w, TOP_SRCDIR);
    assert_non_null(strstr(w->stdout_text, "{\"schema\":\"elmer.why/1\",\"jobs\":[{\"id\":5,\"state\":\"queued\","));
    assert_non_null(strstr(w->stdout_text, "\"first\":4,\"first_reason\":\"waits for 9 processors\",\"above\":[],"));
    assert_non_null(strstr(w->stdout_text, "{\"host\":\"ws2\",\"rule\":\"ok\",\"processors\":2,\"usable\":1,\"text\":"
                                           "\"1 of 2 full\",\"help\":null}"));
}

static void test_why_it_runs(void **data)
{
    static uint64_t above[] = {3, 4};
    struct world *w = *data;
    struct wire_message query, answer;

    RUN(w, "equery", "--why", "5");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_explain);
    answer = explained(query.id);
    answer.u.explained.state = "running";
    answer.u.explained.level = 2;
    answer.u.explained.above = (struct wire_uints){above, 2};
    answer.u.explained.hosts.count = 0;
    peer_send(&w->elmer, &answer);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "Job 5 does not wait: it is running at level 2, below job 3, 4.\n");
    RUN(w, "equery", "--why", "3[7]");
    accept_command(w);
    for (int i = 0; i < 2; i++) { /* for its id, then for its name */
        struct wire_job_view view = view_of(i ? 5 : 3, "x", "running");

        query = peer_expect(&w->elmer, WIRE_query);
        view.tasks = "6-9";
        view.ntasks = i ? 0 : 4;
        view.array = i ? 3 : 0;
        view.index = 7;
        answer_jobs(w, query.id, &view, 1, false);
        wire_message_fini(&query);
    }
    query = peer_expect(&w->elmer, WIRE_explain);
    assert_int_equal(query.u.explain.job, 5);
    answer.id = query.id;
    peer_send(&w->elmer, &answer);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "Job 3[7] does not wait: it is running at level 2, below job 3, 4.\n");
    RUN(w, "equery", "--why", "5");
    accept_twice_of_minor(w, 6);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "1.6"));
}

/* ---- hosts ---- */

static uint64_t asked_bytes = (uint64_t)2 << 30; /* of the memory of ws1 */

static void answer_hosts_to(struct world *w, int status)
{
    static const char *lacks[] = {"no figures"};
    static struct wire_processor here[] = {{"ws1", 0}, {"ws1", 1}}, there[] = {{"ws1", 0}};
    struct wire_host_view views[] = {{.host = "ws1",
                                      .state = "up",
                                      .processors = 2,
                                      .mode = "rt",
                                      .address = "",
                                      .reason = "",
                                      .lacks = {lacks, 1},
                                      .busy = 0.93,
                                      .busy_jobs = 0.5,
                                      .memory_bytes = 16LL << 30,
                                      .memory_free_bytes = 3LL << 30,
                                      .memory_for_jobs_bytes = 8LL << 30,
                                      .memory_asked_bytes = asked_bytes},
                                     {.host = "ws2",
                                      .state = "drained",
                                      .processors = 16,
                                      .mode = "rt",
                                      .address = "",
                                      .reason = "drained: it takes no new jobs",
                                      .busy = -1,
                                      .busy_jobs = -1,
                                      .memory_bytes = -1,
                                      .memory_free_bytes = -1}};
    struct wire_running_line running[] = {
        {.job = 7, .user = "alice", .name = "a", .state = "running", .level = 0, .nprocs = 2, .processors = {here, 2}},
        {.job = 9,
         .user = "bob",
         .name = "",
         .state = "running",
         .level = 2,
         .nprocs = 1,
         .processors = {there, 1},
         .array = 8,
         .index = 1}};
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_hosts),
                        message = {.type = WIRE_hosts, .id = query.id};

    message.u.hosts.hosts.items = views;
    message.u.hosts.hosts.count = 2;
    peer_send(&w->elmer, &message);
    wire_message_fini(&query);
    query = peer_expect(&w->elmer, WIRE_query_lines);
    assert_true(query.u.query_lines.running && !query.u.query_lines.queued);
    message = (struct wire_message){.type = WIRE_lines, .id = query.id, .u.lines = {.running = {running, 2}}};
    peer_send(&w->elmer, &message);
    wire_message_fini(&query);
    assert_int_equal(finish(w), status);
}

static void answer_hosts(struct world *w)
{
    answer_hosts_to(w, 0);
    assert_string_equal(w->stderr_text, "");
}

static void test_hosts(void **data)
{
    struct world *w = *data;

    RUN(w, "equery", "--hosts");
    accept_command(w);
    answer_hosts(w);
    assert_string_equal(
        w->stdout_text,
        "HOST  STATE    CPUS  BUSY  OUTSIDE      FREE MEMORY       ASKED FOR  L0         L1  L2        REASON\n"
        "ws1   up          2  93 %     43 %  3.0 of 16.0 GiB  2 GiB of 8 GiB  7 alice*2  -   8[1] bob  -\n"
        "ws2   drained    16     -        -                -               -  -          -   -         drained: it "
        "takes "
        "no new "
        "jobs\n");
    asked_bytes = 0; /* then nobody has to read of it */
    RUN(w, "equery", "--hosts", "--host", "ws1");
    accept_command(w);
    answer_hosts(w);
    assert_string_equal(w->stdout_text,
                        "HOST  STATE  CPUS  BUSY  OUTSIDE      FREE MEMORY  L0         L1  L2        REASON\n"
                        "ws1   up        2  93 %     43 %  3.0 of 16.0 GiB  7 alice*2  -   8[1] bob  -\n");
    asked_bytes = (uint64_t)2 << 30;
    RUN(w, "equery", "--hosts", "--host", "ws1", "--json");
    accept_command(w);
    answer_hosts(w);
    assert_string_equal(w->stdout_text,
                        "{\"schema\":\"elmer.hosts/1\",\"hosts\":[{\"host\":\"ws1\",\"state\":\"up\",\"processors\":2,"
                        "\"mode\":\"rt\",\"reason\":\"\",\"lacks\":[\"no figures\"],\"busy\":0.93,\"busy_jobs\":0.5,"
                        "\"memory_bytes\":17179869184,\"memory_free_bytes\":3221225472,"
                        "\"memory_for_jobs_bytes\":8589934592,\"memory_asked_bytes\":2147483648,\"jobs\":["
                        "{\"id\":7,\"user\":\"alice\",\"level\":0,\"processors\":2},"
                        "{\"id\":9,\"user\":\"bob\",\"level\":2,\"processors\":1}]}]}\n");
    check_schema(w, TOP_SRCDIR);
}

/* Names and patterns that no host has are said, and those that are there are shown. */
static void test_no_such_host(void **data)
{
    struct world *w = *data;

    RUN(w, "equery", "--hosts", "--host", "ws9");
    accept_command(w);
    answer_hosts_to(w, 3);
    assert_string_equal(w->stdout_text, "");
    assert_string_equal(w->stderr_text, "equery: there is no host ws9\n");
    RUN(w, "equery", "--hosts", "--host", "ws9,ws[2-3],x*");
    accept_command(w);
    answer_hosts_to(w, 3);
    assert_non_null(strstr(w->stdout_text, "\nws2 "));
    assert_string_equal(w->stderr_text, "equery: there is no host ws9\nequery: there is no host x*\n");
    RUN(w, "equery", "--hosts", "--host", "ws9", "--json");
    accept_command(w);
    answer_hosts_to(w, 3);
    assert_string_equal(w->stdout_text, "{\"schema\":\"elmer.hosts/1\",\"hosts\":[]}\n");
    check_schema(w, TOP_SRCDIR);
}

static void test_usage(void **data)
{
    static const struct {
        const char *words[6], *text;
    } wrong[] = {
        {{"equery", "--why"}, "--why: the id of a job is missing"},
        {{"equery", "--why", "-r", "5"}, "no other options but --json and -W"},
        {{"equery", "--why", "--host", "ws1", "5"}, "no other options but --json and -W"},
        {{"equery", "--why", "--hosts"}, "exclude each other"},
        {{"equery", "--hosts", "5"}, "--hosts takes no ids, and no other options but --host, --json and -W"},
        {{"equery", "--hosts", "--me"}, "--hosts takes no ids"},
        {{"equery", "--hosts", "--history"}, "--hosts takes no ids"},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        run(w, wrong[i].words);
        assert_int_equal(finish(w), 2);
        assert_string_equal(w->stdout_text, "");
        assert_non_null(strstr(w->stderr_text, wrong[i].text));
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_page),
        WITH_ELMER(test_page_of_ranks),
        WITH_ELMER(test_page_of_who_polls),
        WITH_ELMER(test_page_of_a_queued),
        WITH_ELMER(test_page_of_a_script),
        WITH_ELMER(test_why),
        WITH_ELMER(test_why_it_runs),
        WITH_ELMER(test_hosts),
        WITH_ELMER(test_no_such_host),
        WITH_ELMER(test_usage),
    };

    setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
