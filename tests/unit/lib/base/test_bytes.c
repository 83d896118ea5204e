/* test_bytes.c - amounts of memory, read and written. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/bytes.h"

static void test_bytes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } texts[] = {{0, "0 KiB"},
                 {1023, "0.9 KiB"},
                 {1 << 20, "1 MiB"},
                 {(uint64_t)8 << 30, "8 GiB"},
                 {((uint64_t)2 << 30) + (1 << 29), "2.5 GiB"},
                 {((uint64_t)8 << 30) - 1, "7.9 GiB"},
                 {UINT64_MAX, "16777215.9 TiB"}};
    static const char *const bad[] = {"",    "4", "G", "4GB", "4g", "-4G", "0G", "1.5G", "1025T", "9999999999999G",
                                      "4 G", "4P"};
    char text[BYTES_TEXT];
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_string_equal(bytes_text(text, texts[i].bytes), texts[i].text);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(bytes_parse(bad[i], &bytes));
    assert_true(bytes_parse("512M", &bytes) && bytes == 512 << 20);
    assert_true(bytes_parse("1024T", &bytes) && bytes == (uint64_t)1 << 50);
    assert_true(bytes_parse("1K", &bytes) && bytes == 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
