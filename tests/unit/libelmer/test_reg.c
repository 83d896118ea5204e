/* elmer_register() and elmer_hosts(): the list of the job's hosts. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libelmer/elmer_reg.h"

static int register_list(const char *list)
{
    assert_int_equal(setenv("ELMER_HOSTS", list, 1), 0);
    return elmer_register();
}

static void test_outside_elmer(void **state)
{
    int n = 7;
    (void)state;
    unsetenv("ELMER_HOSTS");
    errno = 0;
    assert_int_equal(elmer_register(), 0);
    assert_int_equal(errno, ENOENT);
    assert_null(elmer_hosts(&n));
    assert_int_equal(n, 0);
}

static void test_names_in_order(void **state)
{
    int n = 0;
    (void)state;
    assert_int_equal(register_list("ws1:ws1:node-2.example.org"), 3);
    char **hosts = elmer_hosts(&n);
    assert_int_equal(n, 3);
    assert_string_equal(hosts[0], "ws1");
    assert_string_equal(hosts[1], "ws1");
    assert_string_equal(hosts[2], "node-2.example.org");
    assert_null(hosts[3]);
    assert_ptr_equal(elmer_hosts(NULL), hosts);
}

static void test_register_again_replaces(void **state)
{
    (void)state;
    assert_int_equal(register_list("a:b"), 2);
    assert_int_equal(register_list("c"), 1);
    assert_string_equal(elmer_hosts(NULL)[0], "c");
    unsetenv("ELMER_HOSTS");
    assert_int_equal(elmer_register(), 0);
    assert_null(elmer_hosts(NULL));
}

static void test_environment_may_change_afterwards(void **state)
{
    (void)state;
    assert_int_equal(register_list("ws1:ws2"), 2);
    setenv("ELMER_HOSTS", "xxx:yyy", 1);
    assert_string_equal(elmer_hosts(NULL)[1], "ws2");
}

static void test_malformed_is_refused_and_keeps_the_old(void **state)
{
    static const char *const bad[] = {"", ":", "a:", ":a", "a::b", "a b", "a:b\n", "a/b", "a:\xc3\xa4"};
    (void)state;
    assert_int_equal(register_list("old"), 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        errno = 0;
        assert_int_equal(register_list(bad[i]), -1);
        assert_int_equal(errno, EINVAL);
        assert_string_equal(elmer_hosts(NULL)[0], "old");
    }
}

static void test_limits(void **state)
{
    enum { NAMES = 65536 };
    (void)state;
    char name[255];
    memset(name, 'a', sizeof(name));
    name[253] = '\0';
    assert_int_equal(register_list(name), 1);
    name[253] = 'a';
    name[254] = '\0';
    assert_int_equal(register_list(name), -1);

    char *list = malloc(2 * (NAMES + 1));
    assert_non_null(list);
    for (size_t i = 0; i < NAMES + 1; i++)
        memcpy(list + 2 * i, "h:", 2);
    list[2 * NAMES - 1] = '\0';
    assert_int_equal(register_list(list), NAMES);
    list[2 * NAMES - 1] = ':';
    list[2 * NAMES + 1] = '\0';
    assert_int_equal(register_list(list), -1);
    free(list);
    unsetenv("ELMER_HOSTS");
    assert_int_equal(elmer_register(), 0); /* frees */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside_elmer),
        cmocka_unit_test(test_names_in_order),
        cmocka_unit_test(test_register_again_replaces),
        cmocka_unit_test(test_environment_may_change_afterwards),
        cmocka_unit_test(test_malformed_is_refused_and_keeps_the_old),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
