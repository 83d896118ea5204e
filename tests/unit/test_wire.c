/* test_wire.c - every message survives the way to JSON and back; each rule of strictness refuses. */
#include "config.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "libelmer/wire/table.h"
#include "tests/unit/wire_fill.h"

static void every_message_round_trips(void **state)
{
    (void)state;
    for (enum wire_type type = 0; type < WIRE_TYPE_COUNT; type++) {
        for (unsigned seed = 0; seed < 50; seed++) {
            struct wire_message in, out;
            struct err err = ERR_INIT;
            char *json, *again;
            size_t size, size_again;

            wire_fill(&in, type, seed * 7919u + type);
            assert_int_equal(wire_encode(&in, 0, &json, &size, &err), 0);
            assert_int_equal(strlen(json), size);
            assert_int_equal(wire_decode(json, size, 0, &out, &err), 0);
            assert_string_equal(err.text, "");
            wire_assert_same(&in, &out);
            assert_int_equal(wire_encode(&out, 0, &again, &size_again, &err), 0);
            assert_string_equal(json, again);
            wire_message_fini(&out);
            wire_fill_free(&in);
            free(json);
            free(again);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_round_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
