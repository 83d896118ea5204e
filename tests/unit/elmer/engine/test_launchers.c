/* test_launchers.c - how messages name launchers. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "elmer/engine/launchers.h"

static void test_asked_for(void **state)
{
    (void)state;
    assert_int_equal(launcher_of(&(struct wire_submit){0}), LAUNCHER_PLAIN);
    assert_int_equal(launcher_of(&(struct wire_submit){.each = true}), LAUNCHER_EACH);
    assert_int_equal(launcher_of(&(struct wire_submit){.pvm = true}), LAUNCHER_PVM);
    assert_int_equal(launcher_of(&(struct wire_submit){.each = true, .pvm = true}), LAUNCHER_PVM);
}

static void test_hosts(void **state)
{
    char text[40];
    uint32_t without = launchers_of_host(&(struct wire_host_hello){0});
    uint32_t with = launchers_of_host(&(struct wire_host_hello){.pvm = true});
    (void)state;
    assert_true(launchers_have(without, LAUNCHER_PLAIN) && launchers_have(without, LAUNCHER_EACH));
    assert_false(launchers_have(without, LAUNCHER_PVM));
    assert_true(launchers_have(with, LAUNCHER_PLAIN) && launchers_have(with, LAUNCHER_PVM));
    assert_null(launcher_needs(LAUNCHER_PLAIN));
    assert_null(launcher_needs(LAUNCHER_EACH));
    assert_string_equal(launcher_needs(LAUNCHER_PVM), "PVM");
    assert_string_equal(launchers_describe(without, text, sizeof(text)), "PVM no");
    assert_string_equal(launchers_describe(with, text, sizeof(text)), "PVM yes");
    assert_string_equal(launchers_describe(with, text, 4), "PVM"); /* cut */
}

static void test_open(void **state)
{
    struct wire_open open = {0};
    (void)state;
    launcher_tell_host(LAUNCHER_PLAIN, &open);
    launcher_tell_host(LAUNCHER_EACH, &open);
    assert_false(open.pvm);
    launcher_tell_host(LAUNCHER_PVM, &open);
    assert_true(open.pvm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
