/* test_escape.c - what is typed at eattach: what goes on to the terminal, and what is meant for itself. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "client/escape.h"

static void test_escapes(void **state)
{
    static const struct {
        const char *typed, *goes_on;
        enum escape_do last;
    } table[] = {
        {"ls\r", "ls\r", ESCAPE_NOTHING}, {"~.", "", ESCAPE_LEAVE},           {"ls\r~.", "ls\r", ESCAPE_LEAVE},
        {"ls\n~.", "ls\n", ESCAPE_LEAVE}, {"cd ~.", "cd ~.", ESCAPE_NOTHING}, /* within a line it is a ~ */
        {"~~.", "~.", ESCAPE_NOTHING},    {"~~\r~.", "~\r", ESCAPE_LEAVE},    {"~?", "", ESCAPE_HELP},
        {"~?~.", "", ESCAPE_LEAVE},       {"~", "", ESCAPE_NOTHING}, /* it waits for what follows */
        {"~/x", "~/x", ESCAPE_NOTHING},   {"~\r~.", "~\r", ESCAPE_LEAVE},     {"\r\r~.", "\r\r", ESCAPE_LEAVE},
        {" ~.", " ~.", ESCAPE_NOTHING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct escape escape = {.in_line = false};
        enum escape_do what = ESCAPE_NOTHING;
        uint8_t out[64];
        size_t size = 0;

        for (const char *c = table[i].typed; *c; c++) {
            size_t before = size;

            what = escape_take(&escape, (uint8_t)*c, out, &size);
            assert_true(size - before <= 2);
        }
        out[size] = 0;
        assert_string_equal((char *)out, table[i].goes_on);
        assert_int_equal(what, table[i].last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_escapes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
