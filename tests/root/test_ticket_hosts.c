/* test_ticket_hosts.c - what the administrator of a host has to say: whose tickets are believed there, and when they
 * are required. */
#include "config.h"

#include "tests/root/ticket_bed.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_that_is_not_believed_is_refused, up, down),
        cmocka_unit_test_setup_teardown(jobs_go_on_when_tickets_come_and_go, up, down),
    };
    int possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
