/* test_hex.c - bytes as hexadecimal digits, and back. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/hex.h"

static void test_round(void **state)
{
    uint8_t bytes[256], back[256];
    char text[2 * sizeof(bytes) + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    hex_write(bytes, sizeof(bytes), text);
    assert_int_equal(strlen(text), 2 * sizeof(bytes));
    assert_memory_equal(text, "000102030405060708090a0b0c0d0e0f10", 34);
    assert_true(hex_read(text, back, sizeof(back)));
    assert_memory_equal(back, bytes, sizeof(bytes));
    hex_write(bytes, 0, text);
    assert_string_equal(text, "");
    assert_true(hex_read("", back, 0));
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"",     "0",    "00",   "0000 ", "000",  "00000", "000g",
                                      "00:0", "00/0", "00`0", "AB00",  " 000", "0x00"};
    uint8_t bytes[2];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(hex_read(bad[i], bytes, sizeof(bytes)));
    assert_true(hex_read_digits("ff00 and more", bytes, 2)); /* what is behind is not looked at */
    assert_true(bytes[0] == 0xff && bytes[1] == 0);
    assert_false(hex_read_digits("ff0", bytes, 2)); /* nor what is behind the NUL */
    assert_false(hex_read_digits("", bytes, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
