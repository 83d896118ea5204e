/* test_versions.c - what two minor versions say to each other, with a table that has a history
 * (versions.def). */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/wire/wire.h"

static const char *const texts[] = {
    "{\"type\":\"old\",\"id\":1,\"text\":\"a\",\"parts\":[{\"number\":7}]}",
    "{\"type\":\"old\",\"id\":1,\"text\":\"a\",\"later\":\"b\",\"list\":[1,2],\"parts\":[{\"number\":7}]}",
    "{\"type\":\"old\",\"id\":1,\"text\":\"a\",\"later\":\"b\",\"list\":[1,2],\"last\":true,\"parts\":[{\"number\":7,"
    "\"added\":\"c\"}]}",
};

static void the_sender_leaves_out_what_came_later(void **state)
{
    struct wire_part part = {.number = 7, .added = "c"};
    uint64_t list[] = {1, 2};
    struct wire_message message = {.type = WIRE_old, .id = 1};

    (void)state;
    message.u.old.text = "a";
    message.u.old.later = "b";
    message.u.old.list.items = list;
    message.u.old.list.count = 2;
    message.u.old.last = true;
    message.u.old.parts.items = &part;
    message.u.old.parts.count = 1;
    for (unsigned minor = 0; minor < 3; minor++) {
        char *json;
        size_t size;

        assert_int_equal(wire_encode(&message, minor, &json, &size, NULL), 0);
        assert_string_equal(json, texts[minor]);
        free(json);
    }
}

static void the_receiver_takes_exactly_its_minor(void **state)
{
    (void)state;
    for (unsigned minor = 0; minor < 3; minor++) {
        for (unsigned sent = 0; sent < 3; sent++) {
            struct wire_message message;
            struct err err = ERR_INIT;
            int result = wire_decode(texts[sent], strlen(texts[sent]), minor, &message, &err);

            assert_int_equal(result, minor == sent ? 0 : -EBADMSG);
            if (result != 0)
                assert_non_null(strstr(err.text, sent < minor ? "is missing" : "unknown key"));
            wire_message_fini(&message);
        }
    }
}

static void what_an_old_peer_does_not_say_is_empty(void **state)
{
    struct wire_message message;

    (void)state;
    assert_int_equal(wire_decode(texts[0], strlen(texts[0]), 0, &message, NULL), 0);
    assert_string_equal(message.u.old.later, "");
    assert_int_equal(message.u.old.list.count, 0);
    assert_false(message.u.old.last);
    assert_int_equal(message.u.old.parts.items[0].number, 7);
    assert_string_equal(message.u.old.parts.items[0].added, "");
    wire_message_fini(&message);
}

static void a_later_message_is_neither_sent_nor_taken(void **state)
{
    struct wire_message message = {.type = WIRE_younger, .id = 1, .u.younger = {.number = 7}}, decoded;
    struct err err = ERR_INIT;
    uint8_t *frame;
    char *json;
    size_t size;

    (void)state;
    assert_int_equal(wire_encode(&message, 0, &json, &size, &err), -EPROTONOSUPPORT);
    assert_string_equal(err.text,
                        "younger: the other side speaks version 1.0 of Elmer's protocol, and this message came "
                        "with 1.1: install the newer Elmer there too");
    assert_int_equal(wire_encode_frame(&message, 0, &frame, &size, NULL), -EPROTONOSUPPORT);
    assert_int_equal(wire_encode(&message, 1, &json, &size, NULL), 0);
    assert_string_equal(json, "{\"type\":\"younger\",\"id\":1,\"number\":7}");
    err_clear(&err);
    assert_int_equal(wire_decode(json, size, 0, &decoded, &err), -EBADMSG);
    assert_string_equal(err.text, "unknown message type \"younger\"");
    wire_message_fini(&decoded);
    assert_int_equal(wire_decode(json, size, 1, &decoded, NULL), 0);
    wire_message_fini(&decoded);
    free(json);
}

/* rsd and a supervisor of another build: one of them hears late which minor the other one knows, or never. */
static void what_was_there_before_stays_as_it_was(void **state)
{
    struct wire_message old = {.type = WIRE_old, .id = 1, .u.old = {.text = "a", .later = "b"}}, decoded;
    struct wire_message younger = {.type = WIRE_younger, .id = 1, .u.younger = {.number = 7}};
    char *json;
    size_t size;

    (void)state;
    for (unsigned knows = 0; knows < 3; knows++) {
        for (unsigned hears = 0; hears < 3; hears++) {
            assert_int_equal(wire_encode(&old, knows | WIRE_LATER_ONLY, &json, &size, NULL), 0);
            assert_int_equal(wire_decode(json, size, hears | WIRE_LATER_ONLY, &decoded, NULL), 0);
            assert_string_equal(decoded.u.old.later, "");
            wire_message_fini(&decoded);
            assert_int_equal(wire_decode(json, size, WIRE_MINOR_LASTING, &decoded, NULL), 0);
            wire_message_fini(&decoded);
            free(json);
        }
    }
    assert_int_equal(wire_encode(&younger, 0 | WIRE_LATER_ONLY, &json, &size, NULL), -EPROTONOSUPPORT);
    assert_int_equal(wire_encode(&younger, 1 | WIRE_LATER_ONLY, &json, &size, NULL), 0);
    assert_int_equal(wire_decode(json, size, 0 | WIRE_LATER_ONLY, &decoded, NULL), -EBADMSG);
    assert_int_equal(wire_decode(json, size, 1 | WIRE_LATER_ONLY, &decoded, NULL), 0);
    assert_int_equal(decoded.u.younger.number, 7);
    wire_message_fini(&decoded);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sender_leaves_out_what_came_later),
        cmocka_unit_test(the_receiver_takes_exactly_its_minor),
        cmocka_unit_test(what_an_old_peer_does_not_say_is_empty),
        cmocka_unit_test(a_later_message_is_neither_sent_nor_taken),
        cmocka_unit_test(what_was_there_before_stays_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
