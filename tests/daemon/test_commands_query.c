/* test_commands_query.c - equery as a process: tables, lists, JSON, and daemons of before. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/wire/queued_lines.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"

/* ---- equery ---- */

/* What elmer says of the same jobs in lines. */
static void answer_lines(struct world *w, uint64_t id, const struct wire_job_view *views, size_t count, bool more)
{
    struct wire_running_line running[4];
    struct queued_lines queued = {.count = 0};
    struct wire_message message = {.type = WIRE_lines, .id = id, .u.lines = {.running = {running, 0}, .more = more}};

    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++) {
        const struct wire_job_view *v = &views[i];
        bool held = strcmp(v->state, "held") == 0;

        if (held || strcmp(v->state, "queued") == 0)
            queued_lines_add(&queued, &(struct queued_line){.job = v->job,
                                                            .name = v->name,
                                                            .user = v->user,
                                                            .held = held,
                                                            .nprocs = v->nprocs,
                                                            .ahead = v->ahead,
                                                            .submitted_ms = (uint64_t)v->submitted_ms,
                                                            .reason = v->ahead && !held ? "" : v->reason,
                                                            .hidden = v->hidden});
        else
            running[message.u.lines.running.count++] =
                (struct wire_running_line){.job = v->job,
                                           .attempt = v->attempt,
                                           .name = v->name,
                                           .user = v->user,
                                           .state = v->state,
                                           .level = v->level,
                                           .nprocs = v->nprocs,
                                           .processors = {v->processors.items, v->processors.count},
                                           .started_ms = v->started_ms,
                                           .ended_ms = v->ended_ms,
                                           .hidden = v->hidden};
    }
    queued_lines_put(&queued, &message.u.lines);
    peer_send(&w->elmer, &message);
}

/* A command that has been started asks for lines once, gets these, and ends well. Returns what it asked for. */
static struct wire_query_lines serve_lines(struct world *w, const struct wire_job_view *views, size_t count)
{
    struct wire_message query;
    struct wire_query_lines asked;

    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query_lines);
    asked = query.u.query_lines;
    answer_lines(w, query.id, views, count, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    return asked;
}

static const char *const two_tables =
    "Running jobs:\n"
    "JOB  NAME                                    USER   STATE       LEVEL  NPROCS        TIME  HOSTS\n"
    "  7  a very long name that nobody would cut  alice  ending (2)      2       3  1d01:01:01  ws1*2,ws2\n"
    "\n"
    "Queued jobs:\n"
    "JOB  NAME  USER   STATE   NPROCS  AHEAD  SUBMITTED            REASON\n"
    "123  x     alice  queued       3      0  2026-01-01 00:00:00  asks for 9 processors, 4 are up\n"
    "124  y     alice  held         3      1  2026-01-01 00:00:00  held\n"
    "125  y     alice  queued       3      2  2026-01-01 00:00:00  waits: 2 ahead\n";

static void four_jobs(struct wire_job_view *views)
{
    views[0] = view_of(7, "a very long name that nobody would cut", "ending");
    views[1] = view_of(123, "x", "queued");
    views[2] = view_of(124, "y", "held");
    views[0].level = 2;
    views[0].attempt = 2;
    views[0].processors.items = view_processors;
    views[0].processors.count = 3;
    views[0].started_ms = 1767225600000;
    views[0].ended_ms = 1767225600000 + 90061000;
    views[1].reason = "asks for 9 processors, 4 are up";
    views[2].ahead = 1;
    views[2].reason = "held";
    views[3] = view_of(125, "y", "queued");
    views[3].ahead = 2;
    views[3].reason = "waits: 2 ahead";
}

static void test_tables(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[4];
    struct wire_message query;

    four_jobs(views);
    RUN(w, "equery");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query_lines);
    assert_true(query.u.query_lines.running && query.u.query_lines.queued);
    answer_lines(w, query.id, views, 2, true); /* in two pages */
    answer_lines(w, query.id, views + 2, 2, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "");
    assert_string_equal(w->stdout_text, two_tables);
}

/* An rsd, or an elmer behind it, that does not know lines is asked for the jobs, at once. */
static void test_tables_of_old_daemons(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[4];
    struct wire_message query,
        refusal = {.type = WIRE_error, .u.error = {.code = WIRE_CODE_VERSION, .text = "install the newer Elmer"}};

    four_jobs(views);
    for (unsigned minor = 1; minor <= WIRE_MINOR; minor++) {
        RUN(w, "equery");
        if (wire_is_same(WIRE_query_lines, minor, WIRE_MINOR))
            accept_command_of_minor(w, minor);
        else
            accept_twice_of_minor(w, minor);
        if (minor >= 2) {
            query = peer_expect(&w->elmer, WIRE_query_lines);
            refusal.id = query.id;
            wire_message_fini(&query);
            peer_send(&w->elmer, &refusal);
        }
        query = peer_expect(&w->elmer, WIRE_query);
        assert_true(query.u.query.running && query.u.query.queued);
        answer_jobs(w, query.id, views, 4, false);
        wire_message_fini(&query);
        assert_int_equal(finish(w), 0);
        assert_string_equal(w->stderr_text, "");
        assert_string_equal(w->stdout_text, two_tables);
    }
}

static void answer_hosts(struct world *w)
{
    static const char *lacks[] = {"no controller cpu: slow", "no figures"};
    struct wire_host_view views[] = {
        {.host = "ws1", .state = "up", .processors = 2, .mode = "rt", .address = "", .reason = "", .lacks = {lacks, 2}},
        {.host = "ws2",
         .state = "up",
         .processors = 16,
         .mode = "rt",
         .address = "",
         .reason = "",
         .lacks = {lacks, 1}},
        {.host = "ws3", .state = "never-seen", .mode = "", .address = "", .reason = ""}};
    struct wire_message query = peer_expect(&w->elmer, WIRE_query_hosts), hosts = {.type = WIRE_hosts, .id = query.id};

    hosts.u.hosts.hosts.items = views;
    hosts.u.hosts.hosts.count = 3;
    wire_message_fini(&query);
    peer_send(&w->elmer, &hosts);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stderr_text, "");
}

static void test_hosts(void **data)
{
    struct world *w = *data;

    RUN(w, "eadmin", "hosts");
    accept_command(w);
    answer_hosts(w);
    assert_string_equal(w->stdout_text, "HOST  STATE       CPUS  MODE  ADDRESS  VALID UNTIL (UTC)  REASON\n"
                                        "ws1   up             2  rt    -        -                  -\n"
                                        "ws2   up            16  rt    -        -                  -\n"
                                        "ws3   never-seen     0  -     -        -                  -\n"
                                        "\n"
                                        "no controller cpu: slow (all hosts)\n"
                                        "no figures (ws1)\n");
    RUN(w, "eadmin", "hosts", "--json");
    accept_command(w);
    answer_hosts(w);
    assert_non_null(strstr(w->stdout_text,
                           "\"lacks\":[\"no controller cpu: slow\",\"no "
                           "figures\"],\"refused\":null,\"drained\":null,\"version\":null},{\"host\":\"ws2\""));
    assert_non_null(
        strstr(w->stdout_text,
               "\"heard\":null,\"reason\":\"\",\"lacks\":[],\"refused\":null,\"drained\":null,\"version\":null}]}"));
    check_schema(w, TOP_SRCDIR);
}

static void test_settings(void **data)
{
    static const char *known[] = {"v1", "v2"};
    struct wire_setting_view view = {"allocator", "v2", "v1", true, {known, 2}};
    struct wire_message settings = {.type = WIRE_settings, .u.settings.settings = {&view, 1}}, query;
    struct world *w = *data;

    RUN(w, "eadmin", "show", "--json");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query_settings);
    settings.id = query.id;
    peer_send(&w->elmer, &settings);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text,
                        "{\"schema\":\"elmer.settings/1\",\"settings\":[{\"setting\":\"allocator\",\"value\":\"v2\","
                        "\"configured\":\"v1\",\"set\":true,\"known\":[\"v1\",\"v2\"]}]}\n");
    check_schema(w, TOP_SRCDIR);
}

/* Columns that do not fit together are refused, and nothing beyond them is read. */
static void test_lines_that_do_not_fit(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[4];
    struct wire_message query, message;
    struct queued_lines queued;

    four_jobs(views);
    for (int bad = 0; bad < 2; bad++) {
        queued = (struct queued_lines){.count = 0};
        queued_lines_add(&queued,
                         &(struct queued_line){.job = 5, .nprocs = 1, .name = "x", .user = "alice", .reason = ""});
        message = (struct wire_message){.type = WIRE_lines};
        queued_lines_put(&queued, &message.u.lines);
        if (bad == 0)
            message.u.lines.queued_names.items[0] = message.u.lines.texts.count;
        else
            message.u.lines.queued_ahead.count = 0;
        RUN(w, "equery", "-q");
        accept_command(w);
        query = peer_expect(&w->elmer, WIRE_query_lines);
        message.id = query.id;
        peer_send(&w->elmer, &message);
        wire_message_fini(&query);
        assert_int_not_equal(finish(w), 0);
        assert_string_equal(w->stdout_text, "");
        assert_string_not_equal(w->stderr_text, "");
    }
}

/* Nothing is made up for a job of which elmer gives no reason. */
static void test_line_without_reason(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(5, "x", "queued");

    RUN(w, "equery", "-q");
    serve_lines(w, &view, 1);
    assert_non_null(strstr(w->stdout_text, "queued"));
    assert_null(strstr(w->stdout_text, "waits"));
}

static void test_lists(void **data)
{
    struct world *w = *data;
    struct wire_query_lines asked;

    RUN(w, "equery", "-r");
    asked = serve_lines(w, NULL, 0);
    assert_true(asked.running && !asked.queued);
    assert_string_equal(w->stdout_text, "No running jobs.\n");
    RUN(w, "equery", "-q");
    asked = serve_lines(w, NULL, 0);
    assert_true(!asked.running && asked.queued);
    assert_string_equal(w->stdout_text, "No queued jobs.\n");
}

static void test_ids(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = done_view(5, 1, 0, "start-failed", "/no/such/dir: No such file or directory\033");
    struct wire_message query;

    RUN(w, "equery", "5", "99");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    assert_int_equal(query.u.query.jobs.count, 2);
    assert_int_equal(query.u.query.jobs.items[1], 99);
    answer_jobs(w, query.id, &view, 1, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 3);
    assert_non_null(strstr(w->stderr_text, "equery: there is no job 99"));
    assert_string_equal(w->stdout_text,
                        "JOB  NAME  USER   STATE  NPROCS     TIME  HOSTS      ENDED                RESULT  REASON\n"
                        "  5  prog  alice  done        3  1:02:03  ws1*2,ws2  2026-01-01 01:02:03  exit 1  "
                        "/no/such/dir: No such file or directory\\x1B\n");
}

/* In a list, in JSON, and in the history, which is asked for more when too few of its last jobs pass. */
static void test_filters(void **data)
{
    static const struct {
        const char *words[6];
        bool first, second;
    } table[] = {
        {{"equery", "--json", "--name", "so*"}, true, false},
        {{"equery", "--json", "--name", "*[re]"}, true, true},
        {{"equery", "--json", "-u", "alice"}, true, true},
        {{"equery", "--json", "-u", "ali"}, false, false},
        {{"equery", "--json", "--state=queued,held"}, false, true},
        {{"equery", "--json", "--state=done,running"}, true, false},
        {{"equery", "--json", "--state=done", "5", "6"}, false, false},
        {{"equery", "--json", "--host=ws2,ws7"}, true, false},
        {{"equery", "--json", "--host=w*"}, true, false},
        {{"equery", "--json", "--me"}, false, false},
    };
    struct world *w = *data;
    struct wire_job_view views[2] = {done_view(5, 0, -1, "exited", ""), view_of(6, "other", "queued")};
    struct wire_message query;

    views[0].name = "solve";
    views[0].state = "running";
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        run(w, table[i].words);
        accept_command(w);
        query = peer_expect(&w->elmer, WIRE_query);
        answer_jobs(w, query.id, views, 2, false);
        wire_message_fini(&query);
        assert_int_equal(finish(w), 0);
        assert_int_equal(strstr(w->stdout_text, "\"id\":5,") != NULL, table[i].first);
        assert_int_equal(strstr(w->stdout_text, "\"id\":6,") != NULL, table[i].second);
    }
    views[0].state = "done";
    RUN(w, "equery", "--history", "-n", "1", "--name", "so?ve", "--state=done", "--json");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_history);
    assert_int_equal(query.u.history.count, 1);
    answer_jobs(w, query.id, views + 1, 1, false);
    wire_message_fini(&query);
    query = peer_expect(&w->elmer, WIRE_history);
    assert_int_equal(query.u.history.count, 10);
    answer_jobs(w, query.id, views, 2, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stdout_text, "\"id\":5,"));
    assert_null(strstr(w->stdout_text, "\"id\":6,"));
}

static void test_json(void **data)
{
    struct world *w = *data;
    struct wire_job_view views[2] = {done_view(5, -1, 9, "killed", ""), view_of(6, "x\"y", "queued")};
    struct wire_message query;

    views[1].attempt = 0;
    views[1].dir = "";
    RUN(w, "equery", "--json", "5", "6");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, views, 2, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_string_equal(
        w->stdout_text,
        "{\"schema\":\"elmer.jobs/"
        "1\",\"jobs\":[{\"id\":5,\"attempt\":1,\"name\":\"prog\",\"user\":\"alice\",\"uid\":2001,"
        "\"state\":\"done\",\"level\":null,\"nprocs\":3,"
        "\"hosts\":[\"ws1\",\"ws2\"],\"processors\":[{\"host\":\"ws1\",\"cpu\":0},{\"host\":\"ws1\","
        "\"cpu\":1},{\"host\":\"ws2\",\"cpu\":0}],"
        "\"command\":[\"./prog\",\"-x\",\"a "
        "b\"],\"dir\":\"/home/"
        "alice\",\"comment\":null,\"output\":[{\"rank\":0,\"host\":\"ws1\",\"path\":null,\"errors\":null}],\"mesh_"
        "rows\":0,\"time_limit_ms\":0,\"cpu_limit_ms\":0,\"warning_signal\":null,\"warning_ms\":null,\"after\":[],"
        "\"waits_for\":[],\"tasks\":null,\"array\":null,\"index\":null,\"tasks_waiting\":\"\",\"ntasks\":null,\"tasks_"
        "ok\":0,\"tasks_failed\":0,\"submitted\":"
        "\"2026-01-01T00:00:00.000Z\","
        "\"started\":\"2026-01-01T00:00:00.250Z\","
        "\"ended\":\"2026-01-01T01:02:03.250Z\",\"exit_status\":null,\"signal\":9,\"reason_code\":"
        "\"killed\",\"reason\":null,\"ahead\":0,"
        "\"usage\":[{\"host\":\"ws1\",\"cpu_seconds\":2.25,\"memory_peak_bytes\":1048576},{\"host\":"
        "\"ws2\",\"cpu_seconds\":null,\"memory_peak_bytes\":null}],"
        "\"level_seconds\":[1.5,0.0],\"polls\":null,\"notice\":false,\"mail_at\":null,\"notify\":null,"
        "\"begin_notice\":null,\"end_notice\":null,\"line\":null,\"terminal\":null,\"memory_bytes\":0,\"per_host\":0},"
        "{\"id\":6,\"attempt\":0,\"name\":\"x\\\"y\",\"user\":\"alice\",\"uid\":2001,\"state\":"
        "\"queued\",\"level\":null,\"nprocs\":3,\"hosts\":[],\"processors\":[],"
        "\"command\":[\"./prog\",\"-x\",\"a "
        "b\"],\"dir\":null,\"comment\":null,\"output\":[],\"mesh_rows\":0,\"time_limit_ms\":0,\"cpu_limit_ms\":0,"
        "\"warning_signal\":null,\"warning_ms\":null,\"after\":[],\"waits_for\":[],\"tasks\":null,\"array\":null,"
        "\"index\":null,\"tasks_waiting\":\"\",\"ntasks\":"
        "null,\"tasks_ok\":0,\"tasks_failed\":0,"
        "\"submitted\":\"2026-01-01T00:00:00.000Z\","
        "\"started\":null,\"ended\":null,"
        "\"exit_status\":null,"
        "\"signal\":null,\"reason_code\":null,\"reason\":null,\"ahead\":0,\"usage\":[],\"level_seconds\":[],"
        "\"polls\":null,\"notice\":false,\"mail_at\":null,\"notify\":null,\"begin_notice\":null,\"end_notice\":null,"
        "\"line\":null,\"terminal\":null,\"memory_bytes\":0,\"per_host\":0}]}\n");
    check_schema(w, TOP_SRCDIR);
}

/* A dash for people, null for programs, where elmer shows less of another user's job. */
static void test_hidden(void **data)
{
    struct world *w = *data;
    struct wire_job_view view = view_of(9, "", "queued");
    struct wire_message query;

    view.hidden = true;
    view.command.count = 0;
    view.dir = "";
    RUN(w, "equery", "-q");
    serve_lines(w, &view, 1);
    assert_non_null(strstr(w->stdout_text, "\n  9  -     alice  queued"));
    RUN(w, "equery", "-q", "--json");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query);
    answer_jobs(w, query.id, &view, 1, false);
    wire_message_fini(&query);
    assert_int_equal(finish(w), 0);
    assert_non_null(strstr(w->stdout_text, "\"name\":null,\"user\":\"alice\""));
    assert_non_null(strstr(w->stdout_text, "\"command\":null,\"dir\":null,\"comment\":null,"));
    check_schema(w, TOP_SRCDIR);
}

static void test_full_output(void **data)
{
    struct world *w = *data;
    struct wire_message query;

    if (access("/dev/full", W_OK) != 0) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    (void)snprintf(w->out, sizeof(w->out), "/dev/full");
    RUN(w, "equery");
    accept_command(w);
    query = peer_expect(&w->elmer, WIRE_query_lines);
    answer_lines(w, query.id, NULL, 0, false);
    wire_message_fini(&query);
    (void)snprintf(w->out, sizeof(w->out), "%s/out", w->dir);
    assert_int_equal(finish(w), 1);
    assert_non_null(strstr(w->stderr_text, "No space left"));
}

/* ---- ekill, ecancel ---- */

/* A daemon that is being restarted: the command says that it waits, and goes on. */
static void test_restart(void **data)
{
    struct world *w = *data;
    int64_t deadline = mono_ms(mono_now()) + RUN_MS;

    close(w->listening);
    unlink(w->socket);
    RUN(w, "equery");
    do {
        poll(NULL, 0, 5);
        read_back(w->err, w->stderr_text);
        assert_true(mono_ms(mono_now()) < deadline);
    } while (!strstr(w->stderr_text, "; waiting for it\n"));
    w->listening = peer_listen(w->socket);
    serve_lines(w, NULL, 0);
    assert_string_equal(w->stdout_text, "No running jobs.\n\nNo queued jobs.\n");
}

int main(void)
{
#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_tables),
        WITH_ELMER(test_tables_of_old_daemons),
        WITH_ELMER(test_hosts),
        WITH_ELMER(test_settings),
        WITH_ELMER(test_lines_that_do_not_fit),
        WITH_ELMER(test_line_without_reason),
        WITH_ELMER(test_lists),
        WITH_ELMER(test_ids),
        WITH_ELMER(test_restart),
        WITH_ELMER(test_filters),
        WITH_ELMER(test_json),
        WITH_ELMER(test_hidden),
        WITH_ELMER(test_full_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
