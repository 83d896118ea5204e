/* test_elmer_array_lines.c - arrays with lines in a whole elmer: each task gets its own with what shows it, also after
 * a restart; and what is asked about a job that is to run again. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/digest/tree.h"
#include "tests/daemon/array_steps.h"

#define ONE_LEVEL LOCAL "levels = 1\n"

static const char lines[] = "a 1\nb \"2\"\nc 3\n";

static struct wire_message submission(const char *token, const char *tasks)
{
    static const char *command[] = {"/bin/echo", "{1}"};
    struct wire_message m = lab_submission(token, 1);
    m.u.submit.tasks = tasks;
    m.u.submit.lines = lines;
    m.u.submit.command = (struct wire_strs){command, 2};
    m.u.submit.ticket = ARRAY_TICKET;
    m.u.submit.output = "o.%A.%a";
    return m;
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The ticket is that of the task, and the proof behind it is of this line at its place. */
static void check_proof(const char *ticket, unsigned number, const char *line)
{
    uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES], root[TREE_DIGEST_BYTES], made[TREE_DIGEST_BYTES];
    uint8_t *bytes = &proof[0][0];
    struct tree *tree = tree_create(lines);
    char head[80];
    size_t size;
    snprintf(head, sizeof(head), ARRAY_TICKET "/%u/", number);
    assert_memory_equal(ticket, head, strlen(head));
    ticket += strlen(head);
    size = strlen(ticket) / 2;
    assert_in_range(size, TREE_DIGEST_BYTES, sizeof(proof));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(digit(ticket[2 * i]) << 4 | digit(ticket[2 * i + 1]));
    tree_root(tree, root);
    assert_true(tree_root_of(line, strlen(line), number - 1, tree_count(tree),
                             (const uint8_t(*)[TREE_DIGEST_BYTES])proof, size / TREE_DIGEST_BYTES, made));
    assert_memory_equal(made, root, sizeof(root));
    tree_destroy(tree);
}

static const char *value_of(const struct wire_start *start, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < start->environment.count; i++)
        if (strncmp(start->environment.items[i], name, length) == 0 && start->environment.items[i][length] == '=')
            return start->environment.items[i] + length + 1;
    return "";
}

static void run_task(struct fake *host, uint64_t array, unsigned number, const char *line)
{
    struct wire_message m;
    fake_expect(host, WIRE_open, &m);
    assert_int_equal(m.u.open.job, array + number);
    check_proof(m.u.open.ticket, number, line);
    wire_message_fini(&m);
    host_event(host, WIRE_opened, array + number, 1);
    fake_expect(host, WIRE_start, &m);
    assert_string_equal(m.u.start.argv.items[1], "{1}"); /* as it was signed */
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_LINE"), line);
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_LINES"), "");
    wire_message_fini(&m);
    host_started(host, array + number, 1, 0);
}

static void expect_line(struct fake *host, uint64_t job, const char *state, const char *line)
{
    struct wire_message answer;
    lab_query_until(host, job, state, &answer);
    assert_string_equal(only(&answer)->line, line);
    wire_message_fini(&answer);
}

static void ask(struct fake *host, uint32_t uid, const char *user, uint64_t job, struct wire_message *answer)
{
    struct wire_message m = {.type = WIRE_query_asked, .u.query_asked = {.job = job}};
    host_relay(host, 1, uid, user, &m);
    host_expect_answer(host, 1, WIRE_asked, answer);
}

/* What runs again has all but what was the job's own: its lines too, where it is an array. */
static void expect_asked(struct fake *host, uint64_t job, const char *text)
{
    struct wire_message answer;
    ask(host, 2001, "alice", job, &answer);
    assert_int_equal(answer.type, WIRE_asked);
    assert_string_equal(answer.u.asked.command.items[1], "{1}");
    assert_string_equal(answer.u.asked.output, "o.%A.%a");
    assert_string_equal(answer.u.asked.tasks, "3-9:3%1");
    assert_string_equal(answer.u.asked.lines, text);
    assert_int_equal(answer.u.asked.environment.count, 0);
    assert_string_equal(answer.u.asked.ticket, "");
    assert_string_equal(answer.u.asked.token, "");
    wire_message_fini(&answer);
    ask(host, 2002, "bob", job, &answer);
    assert_int_equal(answer.type, WIRE_error);
    assert_string_equal(answer.u.error.code, WIRE_CODE_NOT_PERMITTED);
    wire_message_fini(&answer);
}

static void each_task_has_its_line(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = submission("a", "3-9:3%1"), answer;
    char got[20];
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    uint64_t array = lab_submit(&host, &m, got, sizeof(got));
    run_task(&host, array, 1, "a 1");
    expect_line(&host, array, "queued", "");
    expect_line(&host, array + 1, "running", "a 1");
    expect_line(&host, array + 3, "queued", "c 3");
    expect_asked(&host, array, lines);
    expect_asked(&host, array + 3, lines); /* which has no row yet */
    host_exited(&host, array + 1, 1, 0, "command", 1, 0);
    end_job(&host, array + 1, 1, 0.5);
    expect_line(&host, array + 1, "done", "a 1");
    run_task(&host, array, 2, "b \"2\"");
    expect_line(&host, array + 2, "running", "b \"2\"");
    array_verb(&host, WIRE_hold, array, "9", NULL); /* a job of its own from now on */
    expect_line(&host, array + 3, "held", "c 3");
    array_verb(&host, WIRE_release, array, "9", NULL); /* answered when all that is on disk */
    fake_close(&host);
    lab_stop(&lab, SIGKILL);
    lab_start(&lab);
    struct wire_holding held[] = {{.job = array + 2, .attempt = 1}};
    host_open(&host, &lab, "ws1", 2, &(struct host_options){.holdings = held, .nholdings = 1});
    expect_line(&host, array + 2, "running", "b \"2\"");
    host_exited(&host, array + 2, 1, 0, "command", 0, 0);
    end_job(&host, array + 2, 1, 0.5);
    run_task(&host, array, 3, "c 3");
    host_exited(&host, array + 3, 1, 0, "command", 0, 0);
    end_job(&host, array + 3, 1, 0.5);
    expect_line(&host, array, "done", "");
    kill_and_begin(&lab, &host, NULL); /* now all of it is in the store only */
    for (unsigned i = 1; i <= 3; i++)
        expect_line(&host, array + i, "done", i == 1 ? "a 1" : i == 2 ? "b \"2\"" : "c 3");
    expect_asked(&host, array, lines);
    expect_asked(&host, array + 1, "");
    ask(&host, 2001, "alice", array + 100, &answer);
    assert_string_equal(answer.u.error.code, WIRE_CODE_NO_SUCH_JOB);
    wire_message_fini(&answer);
    fake_close(&host);
    lab_destroy(&lab);
}

/* One that never ran is asked for when its array has ended, which keeps less of its submission. */
static void a_cancelled_task_has_its_line(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = submission("a", "3-9:3%1");
    char got[20];
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    uint64_t array = lab_submit(&host, &m, got, sizeof(got));
    run_task(&host, array, 1, "a 1");
    array_verb(&host, WIRE_cancel, array, "6-9:3", NULL);
    host_exited(&host, array + 1, 1, 0, "command", 0, 0);
    end_job(&host, array + 1, 1, 0.5);
    expect_line(&host, array, "done", "");
    expect_line(&host, array + 2, "cancelled", "b \"2\"");
    expect_line(&host, array + 3, "cancelled", "c 3");
    fake_close(&host);
    lab_destroy(&lab);
}

static void bad_lines_are_refused(void **state)
{
    struct lab lab;
    struct fake host;
    struct wire_message m = submission("a", "1-4"), one = submission("b", "");
    char *many = malloc(700 << 10);
    (void)state;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "there are 3 lines, and 4 tasks");
    refused(&host, 2001, &one, WIRE_CODE_REFUSED, "there are 3 lines, and 0 tasks");
    m = submission("c", "1-3");
    m.u.submit.lines = "a\n\nb\n";
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "number 2 is empty");
    for (size_t i = 0; i < 64000; i++)
        memcpy(many + 10 * i, "abcdefghi\n", 11);
    m.u.submit.tasks = "1-64000";
    m.u.submit.lines = many;
    refused(&host, 2001, &m, WIRE_CODE_REFUSED, "more than 640 KiB");
    fake_close(&host);
    lab_destroy(&lab);
    free(many);
}

/* As large as it may be: it is taken, shown and started as any other one. */
static void many_lines(void **state)
{
    enum { LINES = 100000 };
    struct lab lab;
    struct fake host;
    struct wire_message m = submission("a", "1-100000%1"), open;
    char *many = malloc(4 * LINES + 1), got[20];
    (void)state;
    for (size_t i = 0; i < LINES; i++)
        snprintf(many + 4 * i, 5, "%c%c%c\n", (char)('a' + i % 26), (char)('a' + i / 26 % 26),
                 (char)('a' + i / 676 % 26));
    m.u.submit.lines = many;
    lab_create(&lab, ONE_LEVEL);
    lab_start(&lab);
    host_open(&host, &lab, "ws1", 2, NULL);
    uint64_t array = lab_submit(&host, &m, got, sizeof(got));
    fake_expect(&host, WIRE_open, &open);
    assert_int_equal(open.u.open.job, array + 1);
    assert_int_equal(strlen(open.u.open.ticket), strlen(ARRAY_TICKET "/1/") + 2 * TREE_PROOF_MAX * TREE_DIGEST_BYTES);
    wire_message_fini(&open);
    fake_close(&host);
    lab_destroy(&lab);
    free(many);
}

/* A host whose rsd does not know lines gets no task, and an elmer that does not is not asked without them. */
static void a_host_of_before_gets_no_task(void **state)
{
    struct lab lab;
    struct fake host, newer;
    struct wire_message m = submission("a", "1-3"), open;
    struct err err = ERR_INIT;
    char got[20];
    (void)state;
    lab_create(&lab, "name = ws1\nhosts = ws2 ws1\nheartbeat = 1s\nallocator = v1\nlevels = 1\n");
    lab_start(&lab);
    lab.minor = WIRE_LINES_MINOR - 1;
    host_open(&host, &lab, "ws2", 4, NULL);
    lab.minor = WIRE_MINOR;
    host_open(&newer, &lab, "ws1", 1, NULL);
    uint64_t array = lab_submit(&newer, &m, got, sizeof(got));
    fake_expect(&newer, WIRE_open, &open);
    assert_int_equal(open.u.open.job, array + 1);
    wire_message_fini(&open);
    fake_expect_none(&host, WIRE_open, 300);
    assert_int_equal(wire_check_said(&m, WIRE_LINES_MINOR - 1, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "--array-file"));
    fake_close(&host);
    fake_close(&newer);
    lab_destroy(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_task_has_its_line),
                                       cmocka_unit_test(a_cancelled_task_has_its_line),
                                       cmocka_unit_test(bad_lines_are_refused), cmocka_unit_test(many_lines),
                                       cmocka_unit_test(a_host_of_before_gets_no_task)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
