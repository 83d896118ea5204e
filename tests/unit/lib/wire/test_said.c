/* test_said.c - what a message says that an earlier version of the protocol cannot. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wire/wire.h"

/* What would be left out in silence. */
static void what_cannot_be_said_is_refused(void **state)
{
    struct wire_message submit = {.type = WIRE_submit}, query = {.type = WIRE_query};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(wire_check_said(&query, 0, &err), 0);
    assert_int_equal(wire_check_said(&submit, 0, &err), 0);
    submit.u.submit.ticket = "00"; /* nobody has asked for one: without it the hosts decide */
    assert_int_equal(wire_check_said(&submit, WIRE_TICKET_MINOR - 1, &err), 0);
    submit.u.submit.requeue = true;
    assert_int_equal(wire_check_said(&submit, WIRE_LEASE_MINOR, &err), 0);
    assert_int_equal(wire_check_said(&submit, WIRE_LEASE_MINOR - 1, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "--requeue: the other side speaks version 1.1"));
    submit.u.submit.requeue = false;
    submit.u.submit.comment = "";
    assert_int_equal(wire_check_said(&submit, 0, &err), 0);
    submit.u.submit.comment = "c";
    assert_int_equal(wire_check_said(&submit, 4, &err), 0);
    err_clear(&err);
    assert_int_equal(wire_check_said(&submit, 3, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "--comment: the other side speaks version 1.3"));
    assert_non_null(strstr(err.text, "came with 1.4"));
    submit.u.submit.comment = "";
    submit.u.submit.keep_never = true;
    err_clear(&err);
    assert_int_equal(wire_check_said(&submit, 5, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "--if-never: the other side speaks version 1.5"));
    submit.u.submit.keep_never = false;
    submit.u.submit.tasks = "1-3";
    err_clear(&err);
    assert_int_equal(wire_check_said(&submit, WIRE_ARRAY_MINOR, &err), 0);
    assert_int_equal(wire_check_said(&submit, WIRE_ARRAY_MINOR - 1, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "--array: the other side speaks version 1.7"));
}

/* Nothing is lost in the least version that has all that is said. */
static void the_least_version_that_says_all(void **state)
{
    struct wire_message submit = {.type = WIRE_submit}, top = {.type = WIRE_top}, read;
    struct err err = ERR_INIT;
    char *json;
    size_t size;

    (void)state;
    assert_int_equal(wire_minor_said(&submit), 0);
    assert_int_equal(wire_minor_said(&top), 6); /* came with that */
    submit.u.submit.name = "n";
    assert_int_equal(wire_minor_said(&submit), 0);
    submit.u.submit.comment = "c";
    assert_int_equal(wire_minor_said(&submit), 4);
    submit.u.submit.tasks = "1-3";
    submit.u.submit.requeue = true;
    assert_int_equal(wire_minor_said(&submit), WIRE_ARRAY_MINOR);
    assert_int_equal(wire_encode(&submit, WIRE_ARRAY_MINOR, &json, &size, &err), 0);
    assert_null(strstr(json, "terminal")); /* a field of 1.10 */
    assert_int_equal(wire_decode(json, size, WIRE_ARRAY_MINOR, &read, &err), 0);
    assert_string_equal(read.u.submit.comment, "c");
    assert_string_equal(read.u.submit.tasks, "1-3");
    assert_true(read.u.submit.requeue);
    assert_int_equal(wire_minor_said(&read), WIRE_ARRAY_MINOR);
    wire_message_fini(&read);
    free(json);
}

/* Left out, it would be about the whole job. */
static void tasks_that_cannot_be_named_are_refused(void **state)
{
    static const enum wire_type verbs[] = {WIRE_cancel, WIRE_kill, WIRE_hold, WIRE_release, WIRE_top};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct wire_message message = {.type = verbs[i]};
        message.u.cancel.job = 57; /* the five begin with the same fields */
        message.u.cancel.tasks = "";
        assert_int_equal(wire_check_said(&message, WIRE_ARRAY_MINOR - 1, &err), 0);
        message.u.cancel.tasks = "3";
        assert_int_equal(wire_check_said(&message, WIRE_ARRAY_MINOR, &err), 0);
        err_clear(&err);
        assert_int_equal(wire_check_said(&message, WIRE_ARRAY_MINOR - 1, &err), -EPROTONOSUPPORT);
        assert_non_null(strstr(err.text, "tasks of an array: the other side speaks version 1.7"));
        assert_non_null(strstr(err.text, "came with 1.8"));
    }
    struct wire_message kill = {.type = WIRE_kill, .u.kill = {.job = 57, .tasks = "", .reason = "for people"}};
    assert_int_equal(wire_check_said(&kill, 0, NULL), 0); /* without it the same is done */
}

static void what_is_written_the_same(void **state)
{
    (void)state;
    assert_true(wire_is_same(WIRE_wait, 0, WIRE_MINOR));
    assert_true(wire_is_same(WIRE_hold, WIRE_ARRAY_MINOR, WIRE_MINOR));
    assert_false(wire_is_same(WIRE_kill, WIRE_MINOR, WIRE_ARRAY_MINOR - 1)); /* which has no tasks */
    assert_false(wire_is_same(WIRE_kill, WIRE_ARRAY_MINOR - 1, WIRE_MINOR));
    assert_false(wire_is_same(WIRE_top, 5, 5));           /* came with 6 */
    assert_false(wire_is_same(WIRE_jobs, 0, WIRE_MINOR)); /* a job has more fields */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_said_is_refused),
        cmocka_unit_test(the_least_version_that_says_all),
        cmocka_unit_test(tasks_that_cannot_be_named_are_refused),
        cmocka_unit_test(what_is_written_the_same),
    };

    return cmocka_run_group_tests_name("what is said", tests, NULL, NULL);
}
