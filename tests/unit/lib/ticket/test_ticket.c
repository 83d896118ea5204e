/* test_ticket.c - what a ticket covers: every change on the way has a name. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/lib/ticket/submission.h"

/* ---- encoding ---- */

static void a_ticket_survives_its_text(void **state)
{
    struct cluster c;
    static struct ticket t, again;
    static char text[TICKET_TEXT_MAX + 1], other[TICKET_TEXT_MAX + 1];
    (void)state;
    cluster_init(&c);
    make(&c, &t, true);
    ticket_encode(&t, text);
    assert_why(ticket_decode(text, &again), TICKET_GOOD);
    assert_memory_equal(&t, &again, sizeof(t));
    ticket_encode(&again, other);
    assert_string_equal(text, other);
    assert_why(ticket_check_chain(&again, &c.trust), TICKET_GOOD);
}

static void the_longest_ticket_has_room(void **state)
{
    static struct ticket t, again;
    static char text[TICKET_TEXT_MAX + 1];
    (void)state;
    t = (struct ticket){.counter = UINT64_MAX, .uid = UINT32_MAX, .nprocs = UINT32_MAX};
    memset(t.host, 'h', TICKET_HOST_MAX);
    memset(t.user, 'u', TICKET_USER_MAX);
    memset(t.name, 'n', TICKET_NAME_MAX);
    memset(t.token, 't', TICKET_NAME_MAX);
    memset(t.output, 'o', TICKET_PATH_MAX);
    memset(t.errors, 'e', TICKET_PATH_MAX);
    ticket_encode(&t, text);
    assert_why(ticket_decode(text, &again), TICKET_GOOD);
    assert_memory_equal(&t, &again, sizeof(t));
}

static void a_ticket_cut_short_at_any_byte_is_garbled(void **state)
{
    struct cluster c;
    static struct ticket t, again;
    static char text[TICKET_TEXT_MAX + 1];
    size_t length;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    ticket_encode(&t, text);
    length = strlen(text);
    memcpy(text + length, "00", 3);
    assert_why(ticket_decode(text, &again), TICKET_GARBLED);
    for (size_t i = length; i-- > 0;) {
        text[i] = 0;
        assert_why(ticket_decode(text, &again), i ? TICKET_GARBLED : TICKET_MISSING);
    }
}

/* elmer reads no more than that: what is behind may be of a newer kind. */
static void the_host_is_read_by_itself(void **state)
{
    struct cluster c;
    static struct ticket t;
    static char text[TICKET_TEXT_MAX + 1];
    char host[TICKET_HOST_MAX + 1];
    size_t end = 2 * (strlen("elmer ticket 1\n") + 2 + strlen("ws1"));
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    assert_string_equal(t.host, "ws1");
    ticket_encode(&t, text);
    assert_true(ticket_host(text, host));
    assert_string_equal(host, "ws1");
    text[end] = 0;
    assert_true(ticket_host(text, host));
    while (end-- > 0) {
        text[end] = 0;
        assert_false(ticket_host(text, host));
    }
    memset(t.host, 'h', TICKET_HOST_MAX);
    ticket_encode(&t, text);
    assert_true(ticket_host(text, host));
    assert_string_equal(host, t.host);
    text[0] = '7';
    assert_false(ticket_host(text, host));
    memcpy(t.host, "w 1", 4);
    ticket_encode(&t, text);
    assert_false(ticket_host(text, host));
}

/* Whatever digit is another, wherever: it cannot be read, or the chain does not hold. */
static void every_changed_digit_is_seen(void **state)
{
    struct cluster c;
    static struct ticket t, again;
    static char text[TICKET_TEXT_MAX + 1];
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    ticket_encode(&t, text);
    for (size_t i = 0; text[i]; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        assert_false(ticket_decode(text, &again) == TICKET_GOOD && ticket_check_chain(&again, &c.trust) == TICKET_GOOD);
        text[i] = was == 'g' ? 'a' : 'g';
        assert_why(ticket_decode(text, &again), TICKET_GARBLED);
        text[i] = was;
    }
}

/* ---- the chain ---- */

static void another_clusters_ticket_is_refused(void **state)
{
    struct cluster c, other;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    cluster_init(&other);
    make(&other, &t, false);
    assert_why(ticket_check_chain(&t, &other.trust), TICKET_GOOD);
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_OTHER_CLUSTER);
}

/* A key that is certified for ws1 does not sign for ws3, and one that was believed is believed for its host only. */
static void a_host_does_not_sign_for_another(void **state)
{
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_GOOD);
    memcpy(t.host, "ws3", 4);
    assert_true(ticket_sign(&t, c.secret));
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_OTHER_CLUSTER);
}

static void a_changed_ticket_is_forged(void **state)
{
    struct cluster c;
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    t.uid = 1001;
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_FORGED);
}

/* What held is looked up byte for byte from then on, and nothing else is. */
static void what_held_is_checked_once(void **state)
{
    struct cluster c;
    static struct ticket t, forged;
    (void)state;
    cluster_init(&c);
    make(&c, &t, false);
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_GOOD);
    for (int i = 0; i < 2; i++) {
        forged = t;
        forged.uid += i == 0;
        forged.signature[63] ^= i == 1;
        assert_why(ticket_check_chain(&forged, &c.trust), TICKET_FORGED);
        assert_why(ticket_check_chain(&t, &c.trust), TICKET_GOOD);
    }
    assert_int_equal(c.trust.next_held, 1);
    c.trust.held[0].signature[0] ^= 1; /* one that never held, where it is looked for */
    memcpy(t.signature, c.trust.held[0].signature, sizeof(t.signature));
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_GOOD);
}

/* A host without a cluster believes itself, and nobody else. */
static void a_host_believes_its_own_key(void **state)
{
    struct cluster c;
    struct ticket_trust alone = {.own_host = "ws1"};
    static struct ticket t;
    (void)state;
    cluster_init(&c);
    memset(c.certificate, 0, sizeof(c.certificate));
    make(&c, &t, false);
    assert_why(ticket_check_chain(&t, &alone), TICKET_OTHER_CLUSTER);
    memcpy(alone.own, c.key, sizeof(alone.own));
    assert_why(ticket_check_chain(&t, &alone), TICKET_GOOD);
    assert_why(ticket_check_chain(&t, &c.trust), TICKET_OTHER_CLUSTER);
    memcpy(alone.own_host, "ws2", 4);
    assert_why(ticket_check_chain(&t, &alone), TICKET_OTHER_CLUSTER);
}

static void every_refusal_has_its_words(void **state)
{
    (void)state;
    for (int i = 0; i < TICKET_REFUSAL_COUNT; i++) {
        assert_non_null(ticket_refusal_name((enum ticket_refusal)i));
        assert_non_null(ticket_refusal_text((enum ticket_refusal)i));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(ticket_refusal_text((enum ticket_refusal)i),
                                    ticket_refusal_text((enum ticket_refusal)k));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_survives_its_text),
        cmocka_unit_test(the_longest_ticket_has_room),
        cmocka_unit_test(a_ticket_cut_short_at_any_byte_is_garbled),
        cmocka_unit_test(the_host_is_read_by_itself),
        cmocka_unit_test(every_changed_digit_is_seen),
        cmocka_unit_test(another_clusters_ticket_is_refused),
        cmocka_unit_test(a_host_does_not_sign_for_another),
        cmocka_unit_test(a_changed_ticket_is_forged),
        cmocka_unit_test(what_held_is_checked_once),
        cmocka_unit_test(a_host_believes_its_own_key),
        cmocka_unit_test(every_refusal_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
