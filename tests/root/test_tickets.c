/* test_tickets.c - a hostile network half, and so a hostile elmer, against the root half with tickets = require: what
 * was not asked for by the job's user does not run, each for a reason with a name. */
#include "config.h"

#include "tests/root/ticket_bed.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/scratch.h"

/* ---- what is refused ---- */

static void a_job_without_a_ticket_is_refused(void **state)
{
    (void)state;
    refused(1, 1, "", TICKET_MISSING);
}

static void another_users_ticket_is_refused(void **state)
{
    struct wire_submit submit = submission();
    struct wire_message open;
    (void)state;
    open = open_of(1, 1, sign(&submit));
    open.u.open.uid = 65533;
    expect_refusal(&open, TICKET_OTHER_USER);
    open.u.open.uid = NOBODY;
    open.u.open.user = "daemon";
    expect_refusal(&open, TICKET_OTHER_USER);
}

static void a_changed_ticket_is_refused(void **state)
{
    struct wire_submit submit = submission();
    size_t length;
    (void)state;
    sign(&submit);
    length = strlen(text);
    text[length - 1] = text[length - 1] == '0' ? '1' : '0';
    refused(1, 1, text, TICKET_FORGED);
    text[length - 2] = 0;
    refused(1, 1, text, TICKET_GARBLED);
}

static void another_clusters_ticket_is_refused(void **state)
{
    struct wire_submit submit = submission();
    struct ticket_keys other;
    struct ticket_counter first = {0};
    struct err err = ERR_INIT;
    char dir[64] = "/tmp/test_tickets.XXXXXX";
    (void)state;
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ticket_keys_open(&other, dir, "testhost", &err), 0);
    assert_int_equal(desk_sign(&other, &first, &submit, NOBODY, "nobody", text, &err), 0);
    refused(1, 1, text, TICKET_OTHER_CLUSTER);
    ticket_keys_close(&other);
}

static void what_was_not_asked_for_does_not_run(void **state)
{
    static const char *evil[] = {"/bin/sh", "-c", "echo evil >>ran"};
    static const char *preload[] = {"PATH=/usr/bin:/bin", "LANG=C", "ELMER_RANK=0", "LD_PRELOAD=/tmp/evil.so"};
    static const char *daemon[] = {"pvmd", "-ntesthost"};
    struct wire_submit submit = submission();
    struct wire_message start = start_of(1, 1);
    (void)state;
    opened(1, 1, sign(&submit));
    start.u.start.argv = STRS(evil);
    not_started(&start, TICKET_OTHER_COMMAND);
    start = start_of(1, 1);
    start.u.start.environment = STRS(preload);
    not_started(&start, TICKET_OTHER_ENVIRONMENT);
    start = start_of(1, 1);
    start.u.start.dir = "/";
    not_started(&start, TICKET_OTHER_PLACE);
    start = start_of(1, 1);
    start.u.start.umask = 0;
    not_started(&start, TICKET_OTHER_PLACE);
    start = start_of(1, 1);
    start.u.start.output = "ran";
    not_started(&start, TICKET_OTHER_OUTPUT);
    start = start_of(1, 1);
    start.u.start.process = 1; /* it has two processors, and one process */
    not_started(&start, TICKET_NO_SUCH_RANK);
    start = start_of(1, 1);
    start.u.start.role = "pvmd";
    start.u.start.process = 2;
    start.u.start.capture = true;
    start.u.start.argv = STRS(daemon);
    not_started(&start, TICKET_OTHER_HELPER);
    runs(1, 1);
    assert_int_equal(lines_of("ran"), 1);
    ended(1, 1);
}

/* ---- what is refused the second time ---- */

static void a_job_runs_once(void **state)
{
    struct wire_submit submit = submission();
    struct wire_message start, answer;
    (void)state;
    sign(&submit);
    opened(1, 1, text);
    opened(2, 1, text); /* of another number: nothing has run yet */
    runs(1, 1);
    start = start_of(1, 1); /* the same process again: told again, not started */
    rig_send(&rig, &start);
    rig_expect(&rig, WIRE_started, WAIT_MS, &answer);
    wire_message_fini(&answer);
    start = start_of(2, 1);
    rig_send(&rig, &start);
    rig_expect(&rig, WIRE_start_failed, WAIT_MS, &answer);
    assert_non_null(strstr(answer.u.start_failed.text, "(ticket used)"));
    wire_message_fini(&answer);
    ended(1, 1);
    ended(2, 1);
    refused(1, 1, text, TICKET_USED);
    refused(1, 2, text, TICKET_USED);
    refused(3, 1, text, TICKET_USED);
    assert_int_equal(lines_of("ran"), 1);
}

static void a_requeued_job_runs_once_in_each_attempt(void **state)
{
    struct wire_submit submit = submission();
    (void)state;
    submit.requeue = true;
    sign(&submit);
    opened(1, 2, text);
    runs(1, 2);
    ended(1, 2);
    refused(1, 2, text, TICKET_USED);
    refused(1, 1, text, TICKET_USED);
    opened(1, 3, text);
    runs(1, 3);
    ended(1, 3);
    assert_int_equal(lines_of("ran"), 2);
}

/* An open that has led to nothing is no use of the ticket. */
static void a_ticket_that_has_started_nothing_is_good_again(void **state)
{
    struct wire_submit submit = submission();
    (void)state;
    sign(&submit);
    opened(1, 1, text);
    ended(1, 1);
    opened(1, 1, text);
    runs(1, 1);
    ended(1, 1);
}

/* Killed at once after the start: the next root half, which knows the ticket of the job that is here, and the record.
 */
static void the_next_root_half_knows_what_was_used(void **state)
{
    static const char *evil[] = {"/bin/sh", "-c", "echo evil >>ran"};
    struct wire_submit submit = submission();
    struct wire_message start;
    static char first[TICKET_TEXT_MAX + 1];
    (void)state;
    submit.nprocs = 2;
    submit.each = true;
    snprintf(first, sizeof(first), "%s", sign(&submit));
    opened(1, 1, first);
    runs(1, 1);
    opened(2, 1, sign(&submit)); /* it has started nothing */
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    start = start_of(1, 1);
    start.u.start.process = 1;
    start.u.start.argv = STRS(evil);
    rig_send(&rig, &start);
    struct wire_message answer;
    rig_expect(&rig, WIRE_start_failed, WAIT_MS, &answer);
    assert_non_null(strstr(answer.u.start_failed.text, "(ticket other-command)"));
    wire_message_fini(&answer);
    start.u.start.argv = STRS(command); /* the second process, for which there was no time */
    rig_send(&rig, &start);
    rig_expect(&rig, WIRE_exited, WAIT_MS, &answer);
    wire_message_fini(&answer);
    ended(1, 1);
    refused(1, 1, first, TICKET_USED);
    runs(2, 1);
    ended(2, 1);
    refused(2, 1, text, TICKET_USED);
    assert_int_equal(lines_of("ran"), 3);
}

/* A network half that ends brings that about whenever it likes. */
static void a_restart_makes_no_second_use_of_a_ticket(void **state)
{
    struct wire_submit submit = submission();
    struct wire_message start, answer;
    (void)state;
    sign(&submit);
    opened(1, 1, text);
    opened(2, 1, text); /* nothing has run yet */
    runs(1, 1);
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    start = start_of(2, 1);
    rig_send(&rig, &start);
    rig_expect(&rig, WIRE_start_failed, WAIT_MS, &answer);
    assert_non_null(strstr(answer.u.start_failed.text, "(ticket used)"));
    wire_message_fini(&answer);
    ended(1, 1);
    ended(2, 1);
    assert_int_equal(lines_of("ran"), 1);
}

/* ---- the way through an upgrade ---- */

static void without_require_jobs_run_as_before(void **state)
{
    struct wire_submit submit = submission();
    struct wire_message start;
    static const char *other[] = {"/bin/sh", "-c", "echo other >>out"};
    (void)state;
    opened(1, 1, "");
    ended(1, 1);
    sign(&submit);
    text[strlen(text) - 1] ^= 1; /* '0' <-> '1', 'a' <-> '`' or so */
    refused(2, 1, text, strspn(text, "0123456789abcdef") == strlen(text) ? TICKET_FORGED : TICKET_GARBLED);
    opened(3, 1, sign(&submit));
    start = start_of(3, 1);
    start.u.start.argv = STRS(other);
    not_started(&start, TICKET_OTHER_COMMAND);
    ended(3, 1);
}

/* ---- the desk ---- */

static bool ask(const struct wire_message *message, struct wire_message *answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct channel channel;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool got;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/ticket.sock", rig.dir);
    rig_until(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    assert_int_equal(channel_init(&channel, fd, WIRE_FROM_ROOT, 1 << 20), 0);
    channel.minor = WIRE_TICKET_MINOR;
    got = channel_send_all(&channel, message, rig_now_ms() + 10 * WAIT_MS, NULL) == 0 &&
          channel_receive(&channel, answer, rig_now_ms() + 10 * WAIT_MS, NULL) == 1;
    channel_fini(&channel);
    return got;
}

/* Who asks is who the kernel says he is. */
static void the_desk_signs_for_the_one_who_asks(void **state)
{
    struct wire_message message = {.type = WIRE_submit}, answer;
    struct ticket_trust trust;
    static struct ticket ticket, next;
    (void)state;
    message.u.submit = submission();
    assert_true(ask(&message, &answer));
    assert_int_equal(answer.type, WIRE_ticket);
    assert_int_equal(ticket_decode(answer.u.ticket.ticket, &ticket), TICKET_GOOD);
    ticket_keys_trust(&keys, &trust);
    assert_int_equal(ticket_check_chain(&ticket, &trust), TICKET_GOOD);
    assert_int_equal(ticket.uid, getuid());
    assert_string_equal(ticket.name, "s");
    assert_int_equal(ticket.nprocs, 2);
    wire_message_fini(&answer);
    assert_true(ask(&message, &answer));
    assert_int_equal(ticket_decode(answer.u.ticket.ticket, &next), TICKET_GOOD);
    assert_true(next.counter > ticket.counter);
    wire_message_fini(&answer);
    message.u.submit.nprocs = 0;
    assert_true(ask(&message, &answer));
    assert_int_equal(answer.type, WIRE_error);
    wire_message_fini(&answer);
    message.type = WIRE_ping; /* nothing else is answered */
    assert_false(ask(&message, &answer));
    message = (struct wire_message){.type = WIRE_submit};
    message.u.submit = submission();
    assert_true(ask(&message, &answer));
    wire_message_fini(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_job_without_a_ticket_is_refused, up, down),
        cmocka_unit_test_setup_teardown(another_users_ticket_is_refused, up, down),
        cmocka_unit_test_setup_teardown(a_changed_ticket_is_refused, up, down),
        cmocka_unit_test_setup_teardown(another_clusters_ticket_is_refused, up, down),
        cmocka_unit_test_setup_teardown(what_was_not_asked_for_does_not_run, up, down),
        cmocka_unit_test_setup_teardown(a_job_runs_once, up, down),
        cmocka_unit_test_setup_teardown(a_requeued_job_runs_once_in_each_attempt, up, down),
        cmocka_unit_test_setup_teardown(a_ticket_that_has_started_nothing_is_good_again, up, down),
        cmocka_unit_test_setup_teardown(the_next_root_half_knows_what_was_used, up, down),
        cmocka_unit_test_setup_teardown(a_restart_makes_no_second_use_of_a_ticket, up, down),
        cmocka_unit_test_setup_teardown(without_require_jobs_run_as_before, up_accepting, down),
        cmocka_unit_test_setup_teardown(the_desk_signs_for_the_one_who_asks, up, down),
    };
    int possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
