/* array_steps.c - see array_steps.h. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/daemon/array_steps.h"

uint64_t array_submit(struct fake *host, const char *token, const char *tasks, const char *state)
{
    static const char *command[] = {"/bin/echo", "{}"};
    struct wire_message m = lab_submission(token, 1);
    char got[20];
    m.u.submit.tasks = tasks;
    m.u.submit.command = (struct wire_strs){command, 2};
    m.u.submit.ticket = ARRAY_TICKET;
    m.u.submit.output = "o.%A.%a";
    uint64_t id = lab_submit(host, &m, got, sizeof(got));
    if (state)
        assert_string_equal(got, state);
    return id;
}

static const char *value_of(const struct wire_start *start, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < start->environment.count; i++)
        if (strncmp(start->environment.items[i], name, length) == 0 && start->environment.items[i][length] == '=')
            return start->environment.items[i] + length + 1;
    return "";
}

/* Opens and starts as it should, with this index. */
void array_run_task(struct fake *host, uint64_t array, unsigned number, const char *index)
{
    struct wire_message m;
    char text[80];
    fake_expect(host, WIRE_open, &m);
    assert_int_equal(m.u.open.job, array + number);
    snprintf(text, sizeof(text), ARRAY_TICKET "/%u", number);
    assert_string_equal(m.u.open.ticket, text);
    wire_message_fini(&m);
    host_event(host, WIRE_opened, array + number, 1);
    fake_expect(host, WIRE_start, &m);
    assert_int_equal(m.u.start.job, array + number);
    assert_string_equal(m.u.start.argv.items[1], "{}"); /* as it was signed */
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_INDEX"), index);
    snprintf(text, sizeof(text), "%" PRIu64, array);
    assert_string_equal(value_of(&m.u.start, "ELMER_ARRAY_ID"), text);
    snprintf(text, sizeof(text), "o.%" PRIu64 ".%s", array, index);
    assert_string_equal(m.u.start.output, text);
    wire_message_fini(&m);
    host_started(host, array + number, 1, 0);
}

void array_end_task(struct fake *host, uint64_t task, int status)
{
    host_exited(host, task, 1, 0, "command", status, 0);
    end_job(host, task, 1, 0.5);
}

void array_expect(struct fake *host, uint64_t array, const char *state, const char *waiting, unsigned ok,
                  unsigned failed)
{
    struct wire_message answer;
    lab_query_until(host, array, state, &answer);
    assert_string_equal(only(&answer)->tasks_waiting, waiting);
    assert_int_equal(only(&answer)->tasks_ok, ok);
    assert_int_equal(only(&answer)->tasks_failed, failed);
    wire_message_fini(&answer);
}

void array_expect_task(struct fake *host, uint64_t array, unsigned number, const char *state, int index)
{
    struct wire_message answer;
    lab_query_until(host, array + number, state, &answer);
    assert_int_equal(only(&answer)->array, array);
    assert_int_equal(only(&answer)->index, index);
    wire_message_fini(&answer);
}

/* A verb about tasks, as alice. */
void array_verb(struct fake *host, enum wire_type type, uint64_t array, const char *tasks, const char *code)
{
    struct wire_message m = {.type = type}, answer;
    /* the five have the same fields */
    m.u.cancel.job = array;
    m.u.cancel.tasks = tasks;
    host_relay(host, 1, 2001, "alice", &m);
    host_expect_answer(host, 1, WIRE_done, &answer);
    if (code && (answer.type != WIRE_error || strcmp(answer.u.error.code, code) != 0))
        fail_msg("%s: not refused so: %s", tasks, answer.type == WIRE_error ? answer.u.error.text : "done");
    if (!code && answer.type != WIRE_done)
        fail_msg("%s: %s", tasks, answer.u.error.text);
    wire_message_fini(&answer);
}
