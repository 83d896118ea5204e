/* test_commands_options.c - esubmit's limits and --dry-run, and what the commands say of words that they do not know.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/job/variables.h"
#include "tests/daemon/commands_lab.h"
#include "tests/unit/peer.h"
#include "tests/unit/scratch.h"

/* The submission that the command sends; it is answered. */
static struct wire_message take(struct world *w)
{
    struct wire_message message;

    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 0, "");
    assert_int_equal(finish(w), 0);
    return message;
}

/* ---- limits ---- */

static void test_limits(void **data)
{
    static const struct {
        const char *words[8];
        uint64_t time_ms, cpu_ms, number, before_ms;
        bool again;
    } table[] = {
        {{"esubmit", "-t", "2h30m", "x"}, 9000000, 0, 0, 0, false},
        {{"esubmit", "--time=366d", "x"}, 31622400000, 0, 0, 0, false},
        {{"esubmit", "--cpu-time", "1d1s", "--signal", "USR1@120", "x"}, 0, 86401000, 10, 120000, false},
        {{"esubmit", "-t10m", "--signal=sigterm@2m", "--requeue=limit", "x"}, 600000, 0, 15, 120000, true},
        {{"esubmit", "-t10m", "--signal", "12@1", "--requeue", "x"}, 600000, 0, 12, 1000, false},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;

        run(w, table[i].words);
        message = take(w);
        assert_int_equal(message.u.submit.time_limit_ms, table[i].time_ms);
        assert_int_equal(message.u.submit.cpu_limit_ms, table[i].cpu_ms);
        assert_int_equal(message.u.submit.warning_signal, table[i].number);
        assert_int_equal(message.u.submit.warning_ms, table[i].before_ms);
        assert_int_equal(message.u.submit.limit_requeue, table[i].again);
        assert_true(message.u.submit.requeue || !table[i].again);
        wire_message_fini(&message);
    }
    REFUSED(w, "--time 30: seconds or minutes? Write 30s or 30m", "esubmit", "-t", "30", "x");
    REFUSED(w, "want a time like 2h30m", "esubmit", "-t", "0s", "x");
    REFUSED(w, "want a time like 2h30m", "esubmit", "-t", "30m2h", "x");
    REFUSED(w, "want a time like 2h30m", "esubmit", "-t", "367d", "x");
    REFUSED(w, "want a time like 2h30m", "esubmit", "--cpu-time", "99999999999999999999s", "x");
    REFUSED(w, "--signal comes before a limit", "esubmit", "--signal", "USR1@120", "x");
    REFUSED(w, "want a signal other than KILL and STOP", "esubmit", "-t1h", "--signal", "KILL@120", "x");
    REFUSED(w, "want a signal other than KILL and STOP", "esubmit", "-t1h", "--signal", "USR1", "x");
    REFUSED(w, "want a signal other than KILL and STOP", "esubmit", "-t1h", "--signal", "USR7@120", "x");
    REFUSED(w, "would come before the job begins; the limit is 60 s", "esubmit", "-t1m", "--signal", "USR1@60", "x");
    REFUSED(w, "does not go with --pvm", "esubmit", "--pvm", "-t1h", "--signal", "USR1@60", "x");
    REFUSED(w, "there is no limit", "esubmit", "--requeue=limit", "x");
    REFUSED(w, "--requeue=always", "esubmit", "--requeue=always", "x");
}

/* ---- memory, and processors of a host ---- */

static void test_memory(void **data)
{
    static const struct {
        const char *words[6];
        uint64_t bytes, per_host;
    } table[] = {
        {{"esubmit", "-m", "4G", "2", "x"}, (uint64_t)4 << 30, 0},
        {{"esubmit", "--memory=500M", "--per-host=1", "x"}, 500 << 20, 1},
        {{"esubmit", "-m1T", "-m", "1M", "x"}, 1 << 20, 0},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_message message;

        run(w, table[i].words);
        message = take(w);
        assert_int_equal(message.u.submit.memory_bytes, table[i].bytes);
        assert_int_equal(message.u.submit.per_host, table[i].per_host);
        wire_message_fini(&message);
    }
    REFUSED(w, "want memory for each processor like 500M or 4G", "esubmit", "-m", "4", "x");
    REFUSED(w, "want memory for each processor like 500M or 4G", "esubmit", "-m", "4GB", "x");
    REFUSED(w, "want memory for each processor like 500M or 4G", "esubmit", "-m", "100K", "x");
    REFUSED(w, "want memory for each processor like 500M or 4G", "esubmit", "-m", "1025T", "x");
    REFUSED(w, "want a number of processors", "esubmit", "--per-host", "0", "x");
}

/* ---- a virtual machine without a command ---- */

/* While it starts it is asked for; then its user is told where it is. */
static void test_machine_is_told(void **data)
{
    static const char *const command[] = {JOB_MACHINE};
    struct world *w = *data;
    struct wire_job_view view = view_of(42, "pvm", "starting");
    struct wire_message message;

    view.command = (struct wire_strs){(const char **)(uintptr_t)command, 1};
    view.attempt = 1;
    view.level = 0;
    view.processors.items = view_processors;
    view.processors.count = 3;
    RUN(w, "esubmit", "-P", "2");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "starting", 0, 0, "");
    wire_message_fini(&message);
    for (int i = 0; i < 2; i++) {
        message = peer_expect(&w->elmer, WIRE_query);
        view.state = i == 0 ? "starting" : "running";
        answer_jobs(w, message.id, &view, 1, false);
        wire_message_fini(&message);
    }
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "42\n");
    assert_non_null(strstr(w->stderr_text, "the virtual machine of job 42 is up; on ws1 or ws2\n"
                                           "    export PVM_TMP=/run/elmer-rsd/jobs/42.1\n    pvm\n"
                                           "it ends with ekill 42, or when it is halted (halt in pvm)\n"));
}

static void test_machine(void **data)
{
    struct world *w = *data;
    struct wire_message message;
    char path[300];

    run(w, (const char *const[]){"esubmit", "-P", "4", "-m1G", "-J", "m", NULL});
    message = take(w);
    assert_true(message.u.submit.pvm);
    assert_int_equal(message.u.submit.nprocs, 4);
    assert_int_equal(message.u.submit.memory_bytes, 1 << 30);
    assert_int_equal(message.u.submit.command.count, 1);
    assert_string_equal(message.u.submit.command.items[0], JOB_MACHINE);
    assert_string_equal(message.u.submit.name, "m");
    wire_message_fini(&message);
    assert_true(scratch_put(w->dir, "hosts", "# of 1995\n* ep=/opt\nws1 wd=/tmp\n\n ws2\n&ws3\nws1\n"));
    snprintf(path, sizeof(path), "%s/hosts", w->dir);
    run(w, (const char *const[]){"esubmit", "-p", path, NULL});
    message = take(w);
    assert_int_equal(message.u.submit.nprocs, 2);
    assert_int_equal(message.u.submit.per_host, 1);
    assert_int_equal(message.u.submit.hosts.count, 2);
    assert_string_equal(message.u.submit.hosts.items[1], "ws2");
    assert_string_equal(message.u.submit.name, "pvm");
    wire_message_fini(&message);
    run(w, (const char *const[]){"esubmit", "-p", path, "-P", "6", NULL});
    message = take(w);
    assert_int_equal(message.u.submit.nprocs, 6);
    assert_int_equal(message.u.submit.per_host, 0);
    wire_message_fini(&message);
    REFUSED(w, "has no command", "esubmit", "-P", "4", "pvm");
    REFUSED(w, "is no number of processors", "esubmit", "-P", "pvm");
    REFUSED(w, "neither --each nor --array nor --requeue", "esubmit", "-P", "4", "--each");
    REFUSED(w, "neither --each nor --array nor --requeue", "esubmit", "-P", "4", "-a", "1-4");
    REFUSED(w, "neither --pty", "esubmit", "-P", "4", "--pty");
    REFUSED(w, "neither --pty", "esubmit", "-P", "4", "--keep");
    REFUSED(w, "neither --pty", "esubmit", "-P", "4", "--mesh", "2x2");
    REFUSED(w, "neither --pty", "esubmit", "-P", "4", "--array-file", path);
    REFUSED(w, "Is a directory", "esubmit", "-p", w->dir);
    REFUSED(w, "both name hosts", "esubmit", "-p", path, "--hosts", "ws1");
    REFUSED(w, "No such file", "esubmit", "-p", "/nowhere/hosts");
    assert_true(scratch_put(w->dir, "hosts", "# none\n"));
    REFUSED(w, "it names no host", "esubmit", "-p", path);
    assert_true(scratch_put(w->dir, "hosts", "ws1\nw$2\n"));
    REFUSED(w, "line 2: 'w$2' is no host name", "esubmit", "-p", path);
}

static const char *variable(const struct wire_message *message, const char *name)
{
    const struct wire_strs *all = &message->u.submit.environment;
    for (size_t i = 0; i < all->count; i++)
        if (strncmp(all->items[i], name, strlen(name)) == 0)
            return all->items[i] + strlen(name);
    return NULL;
}

/* How its processes wait is in the job's environment, so that any elmer takes it. */
static void test_waiting(void **data)
{
    struct world *w = *data;
    struct wire_message message;

    RUN(w, "esubmit", "--spin", "--poll-sleep", "250", "x");
    message = take(w);
    assert_string_equal(variable(&message, "ELMER_SPIN="), "1");
    assert_string_equal(variable(&message, "ELMER_POLL_SLEEP="), "250");
    wire_message_fini(&message);
    RUN(w, "esubmit", "x");
    message = take(w);
    assert_null(variable(&message, "ELMER_SPIN="));
    assert_null(variable(&message, "ELMER_POLL_SLEEP="));
    wire_message_fini(&message);
    REFUSED(w, "want microseconds, a whole number from 0 to 10000", "esubmit", "--poll-sleep", "10001", "x");
    REFUSED(w, "want microseconds, a whole number from 0 to 10000", "esubmit", "--poll-sleep", "2ms", "x");
}

/* A daemon from before refuses what it does not know, naming the option. */
static void test_older(void **data)
{
    static const struct {
        const char *words[6], *said;
    } table[] = {
        {{"esubmit", "-t", "1h", "x"}, "--time: the other side speaks version 1.5"},
        {{"esubmit", "--cpu-time", "1h", "x"}, "--cpu-time: the other side speaks version 1.5"},
    };
    struct world *w = *data;
    struct wire_message message;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        run(w, table[i].words);
        accept_command_of_minor(w, 5);
        assert_int_equal(finish(w), 1);
        assert_string_equal(w->stdout_text, "");
        if (!strstr(w->stderr_text, table[i].said))
            fail_msg("%s", w->stderr_text);
    }
    RUN(w, "esubmit", "--dry-run", "x");
    accept_twice_of_minor(w, 5);
    assert_int_equal(finish(w), 1);
    assert_string_equal(w->stdout_text, "");
    assert_non_null(strstr(w->stderr_text, "1.5"));
    RUN(w, "esubmit", "x");
    accept_command_of_minor(w, 5);
    message = peer_expect(&w->elmer, WIRE_submit);
    answer_submitted(w, message.id, "queued", -1, 0, "");
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
}

/* ---- --dry-run ---- */

static void test_dry_run(void **data)
{
    static const char *hosts[] = {"ws1", "ws1", "ws2"};
    static uint64_t above[] = {7, 9};
    struct world *w = *data;
    struct wire_message message, answer = {.type = WIRE_rehearsed},
                                 wait = {.type = WIRE_error, .u.error = {.code = WIRE_CODE_UNAVAILABLE, .text = "now"}};

    RUN(w, "esubmit", "--dry-run", "-w", "3", "x", "y");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_rehearse);
    wait.id = message.id; /* another one has its turn */
    peer_send(&w->elmer, &wait);
    wire_message_fini(&message);
    message = peer_expect(&w->elmer, WIRE_rehearse);
    assert_int_equal(message.u.rehearse.nprocs, 3);
    assert_string_equal(message.u.rehearse.command.items[1], "y");
    answer.id = message.id;
    answer.u.rehearsed.state = "starting";
    answer.u.rehearsed.level = 1;
    answer.u.rehearsed.hosts = (struct wire_strs){hosts, 3};
    answer.u.rehearsed.above = (struct wire_uints){above, 2};
    peer_send(&w->elmer, &answer);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text,
                        "would start now: ws1 (2 processors), ws2 (1 processor) at level 1, below jobs 7, 9\n"
                        "runs on ws1 only: --each, --pvm or mpirun use the others\n");
    assert_string_equal(w->stderr_text, "");
    RUN(w, "esubmit", "--dry-run", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_rehearse);
    answer = (struct wire_message){.type = WIRE_rehearsed, .id = message.id};
    answer.u.rehearsed.state = "queued";
    answer.u.rehearsed.level = -1;
    answer.u.rehearsed.ahead = 2;
    answer.u.rehearsed.first = 5;
    answer.u.rehearsed.first_reason = "waits for 3 processors\033";
    peer_send(&w->elmer, &answer);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "would wait: 2 jobs ahead\n"
                                        "job 5 is the first of them: waits for 3 processors\\x1B\n");
    RUN(w, "esubmit", "--dry-run", "-a", "1-1000%8", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_rehearse);
    answer.id = message.id;
    answer.u.rehearsed.first = 0;
    peer_send(&w->elmer, &answer);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "of 1000 tasks, 8 at a time, the first would wait: 2 jobs ahead\n");
    RUN(w, "esubmit", "--dry-run", "--after", "ok:7", "x");
    accept_command(w);
    message = peer_expect(&w->elmer, WIRE_rehearse);
    assert_string_equal(message.u.rehearse.after.items[0], "ok:7");
    answer = (struct wire_message){.type = WIRE_rehearsed, .id = message.id};
    answer.u.rehearsed.state = "cancelled";
    answer.u.rehearsed.level = -1;
    answer.u.rehearsed.reason = "it can never run: job 7 did not end well";
    peer_send(&w->elmer, &answer);
    wire_message_fini(&message);
    assert_int_equal(finish(w), 0);
    assert_string_equal(w->stdout_text, "would be cancelled: it can never run: job 7 did not end well\n");
}

/* Where it would wait the hosts are asked for, if what is asked for does not say how many it will have. */
static void test_dry_run_idle(void **data)
{
    static const char waits[] = "would wait: 0 jobs ahead\n",
                      idle[] = "runs on its first host only: --each, --pvm or mpirun use the others\n";
    static const struct {
        const char *words[7];
        uint64_t processors; /* of the second of two hosts; UINT64_MAX: nobody asks */
        bool told;
    } table[] = {
        {{"esubmit", "--dry-run", "9", "x"}, 8, true},
        {{"esubmit", "--dry-run", "8", "x"}, 8, false},
        {{"esubmit", "--dry-run", "9", "x"}, 0, false}, /* it is not known yet */
        {{"esubmit", "--dry-run", "--each", "9", "x"}, UINT64_MAX, false},
        {{"esubmit", "--dry-run", "--per-host", "4", "8", "x"}, UINT64_MAX, true},
    };
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wire_host_view views[] = {
            {.host = "ws1", .state = "up", .processors = 2, .mode = "", .address = "", .reason = ""},
            {.host = "ws2", .state = "down", .mode = "", .address = "", .reason = ""}};
        struct wire_message message, answer = {.type = WIRE_rehearsed};

        run(w, table[i].words);
        accept_command(w);
        message = peer_expect(&w->elmer, WIRE_rehearse);
        answer.id = message.id;
        answer.u.rehearsed.state = "queued";
        answer.u.rehearsed.level = -1;
        peer_send(&w->elmer, &answer);
        wire_message_fini(&message);
        if (table[i].processors != UINT64_MAX) {
            message = peer_expect(&w->elmer, WIRE_query_hosts);
            views[1].processors = table[i].processors;
            answer = (struct wire_message){.type = WIRE_hosts, .id = message.id};
            answer.u.hosts.hosts.items = views;
            answer.u.hosts.hosts.count = 2;
            peer_send(&w->elmer, &answer);
            wire_message_fini(&message);
        }
        assert_int_equal(finish(w), 0);
        assert_memory_equal(w->stdout_text, waits, sizeof(waits) - 1);
        assert_string_equal(w->stdout_text + sizeof(waits) - 1, table[i].told ? idle : "");
    }
}

/* ---- words ---- */

/* What would be left out on the way is refused at once. */
static void test_variables_of_elmer(void **data)
{
    static const char *const names[] = {
        "HOME",        "ELMER_RANK",   "ELMER_ARRAY_ID",   "ELMER_ARRAY_INDEX", "ELMER_MESH",
        "ELMER_ADDED", "ELMER_SCRIPT", "ELMER_ARRAY_LINE", "ELMER_ARRAY_TASKS", "ELMER_ADDED_DEVICES"};
    struct world *w = *data;
    char variable[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(variable, sizeof(variable), "%s=1", names[i]);
        REFUSED(w, "Elmer sets this variable itself, on the host where the job runs", "esubmit", "-v", variable, "x");
    }
}

static void test_mistyped(void **data)
{
    struct world *w = *data;

    REFUSED(w, "unrecognized option '--reqeue'; did you mean '--requeue'?", "esubmit", "--reqeue", "x");
    REFUSED(w, "unrecognized option '--comnent=x'; did you mean '--comment'?", "esubmit", "--comnent=x", "x");
    REFUSED(w, "unrecognized option '--zebra'; see", "esubmit", "--zebra", "x");
    REFUSED(w, "option '--h' is ambiguous; possibilities: '--hosts' '--help'", "esubmit", "--h", "x");
    REFUSED(w, "option '--wait' doesn't allow an argument", "esubmit", "--wait=1", "x");
    REFUSED(w, "unknown option '-z'", "esubmit", "--each", "-zw", "x");
    REFUSED(w, "option '--name' needs a value", "esubmit", "--name");
    REFUSED(w, "did you mean '--history'?", "equery", "--histroy");
    REFUSED(w, "from 1s to 30d", "eadmin", "token", "--valid", "1y");
    REFUSED(w, "--reason wants a line of text", "eadmin", "drain", "ws2", "--reason", "a\nb");
    static const char turned[] = {'a', '\xE2', '\x80', '\xAE', 'b', '\0'}; /* no literal: clang-tidy warns of these */
    REFUSED(w, "--reason wants a line of text", "eadmin", "drain", "ws2", "--reason", turned);
    REFUSED(w, "--reason wants a line of text", "eadmin", "drain", "ws2", "--reason", "a\xff");
    setenv("ODD", "a\xff", 1);
    REFUSED(w, "environment variable ODD is not valid UTF-8", "esubmit", "-v", "ODD", "x");
}

static void test_help(void **data)
{
    static const char *const commands[] = {"esubmit", "equery", "ekill", "ecancel", "eadmin"};
    struct world *w = *data;

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        RUN(w, commands[i], "-h");
        assert_int_equal(finish(w), 0);
        assert_non_null(strstr(w->stdout_text, "Usage: "));
        assert_non_null(strstr(w->stdout_text, "-h, --help"));
        RUN(w, commands[i], "-V");
        assert_int_equal(finish(w), 0);
        assert_non_null(strstr(w->stdout_text, "(Elmer)"));
    }
}

#define WITH_ELMER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ELMER(test_limits),
        WITH_ELMER(test_memory),
        WITH_ELMER(test_machine),
        WITH_ELMER(test_machine_is_told),
        WITH_ELMER(test_waiting),
        WITH_ELMER(test_older),
        WITH_ELMER(test_dry_run),
        WITH_ELMER(test_dry_run_idle),
        WITH_ELMER(test_mistyped),
        WITH_ELMER(test_help),
        WITH_ELMER(test_variables_of_elmer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
