/* test_ticket_hosts.c - what the administrator of a host has to say: whose tickets are believed there, and when they
 * are required; and that a job keeps there what it was opened with. */
#include "config.h"

#include "tests/root/ticket_bed.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rsd/root/cpus.h"
#include "tests/unit/scratch.h"

/* Another host of this cluster: its key is certified by the same CA. */
static void host_of_cluster(struct ticket_keys *other, const char *name, const uint8_t secret[TICKET_KEY_BYTES],
                            const uint8_t authority[TICKET_KEY_BYTES])
{
    uint8_t bytes[TICKET_BYTES_MAX], certificate[TICKET_SIGNATURE_BYTES];
    struct err err = ERR_INIT;
    char dir[64] = "/tmp/test_tickets.XXXXXX";
    if (other != &keys) {
        assert_non_null(scratch_dir(dir));
        assert_int_equal(ticket_keys_open(other, dir, name, &err), 0);
    }
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes(name, other->key, bytes), certificate));
    assert_int_equal(ticket_keys_certify(other, authority, certificate, &err), 0);
}

/* A removed host's key is certified still, and its administrator, with who has taken elmer, submits by it. This host's
 * administrator has the last word. */
static void a_host_that_is_not_believed_is_refused(void **state)
{
    struct wire_submit submit = submission();
    struct ticket_keys ws7, ws8;
    struct ticket_counter counters[2] = {{0}, {0}};
    struct err err = ERR_INIT;
    uint8_t secret[TICKET_KEY_BYTES], authority[TICKET_KEY_BYTES];
    (void)state;
    assert_true(ticket_key_create(secret, authority));
    host_of_cluster(&keys, "testhost", secret, authority);
    host_of_cluster(&ws7, "ws7", secret, authority);
    host_of_cluster(&ws8, "ws8", secret, authority);
    rig_root_kill(&rig, SIGKILL);
    rig.vouch = "all !ws7";
    rig.vouch_users = "all";
    give_to_program();
    rig_root_start(&rig);
    assert_int_equal(desk_sign(&ws7, &counters[0], &submit, NOBODY, "nobody", text, &err), 0);
    refused(1, 1, text, TICKET_NOT_VOUCHED);
    assert_int_equal(desk_sign(&ws8, &counters[1], &submit, NOBODY, "nobody", text, &err), 0);
    opened(2, 1, text);
    ended(2, 1);
    rig_root_kill(&rig, SIGKILL);
    rig.vouch_users = "alice";
    rig_root_start(&rig);
    assert_int_equal(desk_sign(&ws8, &counters[1], &submit, NOBODY, "nobody", text, &err), 0);
    refused(3, 1, text, TICKET_NOT_VOUCHED);
    opened(4, 1, sign(&submit)); /* of this host itself */
    runs(4, 1);
    ended(4, 1);
    ticket_keys_close(&ws7);
    ticket_keys_close(&ws8);
}

/* ---- from a version without tickets, and back ---- */

static bool is_there(const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/run/sup/%s", rig.dir, name);
    return access(path, F_OK) == 0;
}

/* A job that was here before tickets were required goes on, with processes that come later; the next one needs one. And
 * a job with a ticket goes on where there is nobody any more to judge it; nothing is left of either. */
static void jobs_go_on_when_tickets_come_and_go(void **state)
{
    struct wire_submit submit = submission();
    char dir[sizeof(rig.keys)];
    (void)state;
    rig_root_kill(&rig, SIGKILL);
    snprintf(dir, sizeof(dir), "%s", rig.keys);
    rig.keys[0] = 0; /* as before there were tickets */
    rig_root_start(&rig);
    opened(1, 1, "");
    runs(1, 1);
    rig_root_kill(&rig, SIGKILL);
    snprintf(rig.keys, sizeof(rig.keys), "%s", dir);
    rig_root_start(&rig);
    refused(2, 1, "", TICKET_MISSING);
    runs_as(1, 1, 1);
    opened(3, 1, sign(&submit));
    runs(3, 1);
    assert_true(is_there("3.1.ticket"));
    ended(1, 1);
    rig_root_kill(&rig, SIGKILL);
    rig.keys[0] = 0;
    rig_root_start(&rig);
    runs_as(3, 1, 1);
    ended(3, 1);
    rig_until(!is_there("3.1.ticket") && !is_there("3.1"));
    assert_int_equal(lines_of("ran"), 4);
}

/* Neither what its ticket says nor whether it has one is known, so nothing is started for it, required or not. */
static void where_a_ticket_cannot_be_read_nothing_is_started(void **state)
{
    struct wire_submit submit = submission();
    struct wire_message start, answer;
    char path[200];
    (void)state;
    opened(1, 1, sign(&submit));
    rig_root_kill(&rig, SIGKILL);
    snprintf(path, sizeof(path), "%s/run/sup/1.1.ticket", rig.dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0); /* for ELOOP, which is as good as EMFILE */
    rig_root_start(&rig);
    start = start_of(1, 1);
    rig_send(&rig, &start);
    rig_expect(&rig, WIRE_start_failed, WAIT_MS, &answer);
    assert_non_null(strstr(answer.u.start_failed.text, "(ticket unreadable)"));
    wire_message_fini(&answer);
    assert_int_equal(lines_of("ran"), 0);
    ended(1, 1);
    rig_until(!is_there("1.1.ticket"));
}

/* ---- processors ---- */

static uint64_t some[3];

/* Of a host with fewer the same one again: what counts is how many are named. */
static struct wire_uints cpus(size_t count)
{
    uint64_t list[CPU_SETSIZE];
    cpu_set_t mine;
    size_t there;
    assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
    there = cpus_to_list(&mine, list);
    for (size_t i = 0; i < count; i++)
        some[i] = list[i % there];
    return (struct wire_uints){some, count};
}

static void ordered_to(uint64_t generation, size_t count)
{
    struct wire_order_entry entry = {.job = 1, .attempt = 1, .level = 0, .lowest = true, .cpus = cpus(count)};
    struct wire_message order = {.type = WIRE_order}, answer;
    order.u.order.generation = generation;
    order.u.order.entries.items = &entry;
    order.u.order.entries.count = 1;
    rig_send(&rig, &order);
    rig_expect(&rig, WIRE_ordered, WAIT_MS, &answer);
    wire_message_fini(&answer);
}

/* Its ticket is for two, of which elmer has given it one here. */
static void a_job_gets_no_more_processors_than_it_was_opened_with(void **state)
{
    static const char *sleeper[] = {"/bin/sleep", "100"};
    struct wire_submit submit = submission();
    struct wire_message open, start, answer;
    cpu_set_t its;
    char path[200];
    pid_t pid;
    (void)state;
    submit.command = STRS(sleeper);
    submit.each = true;
    sign(&submit);
    opened(1, 1, text);
    open = open_of(1, 1, text);
    open.u.open.cpus = cpus(2);
    expect_refusal(&open, TICKET_TOO_MANY_PROCESSORS);
    start = start_of(1, 1);
    start.u.start.argv = STRS(sleeper);
    start.u.start.cpus = cpus(1);
    rig_send(&rig, &start);
    pid = rig_started(&rig);
    assert_int_equal(sched_getaffinity(0, sizeof(its), &its), 0);
    assert_int_equal(sched_setaffinity(pid, sizeof(its), &its), 0); /* as its user may, until it is looked at */
    ordered_to(1, 2);
    assert_int_equal(sched_getaffinity(pid, sizeof(its), &its), 0);
    assert_int_equal(CPU_COUNT(&its), 1);
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    start.u.start.process = 1;
    start.u.start.cpus = cpus(2);
    not_started(&start, TICKET_TOO_MANY_PROCESSORS);
    open.u.open.cpus = cpus(2);
    expect_refusal(&open, TICKET_TOO_MANY_PROCESSORS);
    opened(1, 1, text);
    rig_root_kill(&rig, SIGKILL);
    snprintf(path, sizeof(path), "%s/run/sup/1.1.cpus", rig.dir); /* a job of an rsd of before */
    assert_int_equal(unlink(path), 0);
    rig_root_start(&rig);
    open.u.open.cpus = cpus(2);
    rig_send(&rig, &open);
    rig_expect(&rig, WIRE_opened, WAIT_MS, &answer);
    wire_message_fini(&answer);
    assert_true(is_there("1.1.cpus"));
    open.u.open.cpus = cpus(3);
    expect_refusal(&open, TICKET_TOO_MANY_PROCESSORS);
    ended(1, 1);
    rig_until(!is_there("1.1.cpus"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_that_is_not_believed_is_refused, up, down),
        cmocka_unit_test_setup_teardown(jobs_go_on_when_tickets_come_and_go, up, down),
        cmocka_unit_test_setup_teardown(where_a_ticket_cannot_be_read_nothing_is_started, up, down),
        cmocka_unit_test_setup_teardown(where_a_ticket_cannot_be_read_nothing_is_started, up_accepting, down),
        cmocka_unit_test_setup_teardown(a_job_gets_no_more_processors_than_it_was_opened_with, up, down),
    };
    int possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
