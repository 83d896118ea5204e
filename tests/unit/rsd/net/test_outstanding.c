/* test_outstanding.c - the requests that a program waits for, and the bytes that count for its user meanwhile. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "rsd/net/outstanding.h"

static const struct quota_limits limits = {.daemon = "rsd",
                                           .config = "rsd.conf",
                                           .connections = 10,
                                           .requests = 10,
                                           .burst = 10,
                                           .bytes_of_all = 4 * (size_t)QUOTA_BYTES};

static void test_without_a_quota(void **state)
{
    static struct outstanding all;
    char text[QUOTA_TEXT];
    (void)state;
    for (uint64_t id = 1; id <= REQUESTS_MAX; id++)
        assert_true(outstanding_add(&all, NULL, id, SIZE_MAX / 2, text));
    assert_int_equal(all.count, REQUESTS_MAX);
    for (uint64_t id = 1; id <= REQUESTS_MAX; id++)
        assert_true(outstanding_has(&all, id));
    assert_false(outstanding_has(&all, 0));
    assert_false(outstanding_has(&all, REQUESTS_MAX + 1));
    outstanding_remove(&all, REQUESTS_MAX + 1); /* there is none */
    assert_int_equal(all.count, REQUESTS_MAX);
    outstanding_remove(&all, 1); /* the first, one in the middle, the last */
    outstanding_remove(&all, 30);
    outstanding_remove(&all, REQUESTS_MAX);
    assert_int_equal(all.count, REQUESTS_MAX - 3);
    for (uint64_t id = 1; id <= REQUESTS_MAX; id++)
        assert_int_equal(outstanding_has(&all, id), id != 1 && id != 30 && id != REQUESTS_MAX);
}

static void test_bytes_of_the_user(void **state)
{
    struct quotas *quotas = quotas_create(&limits);
    struct quota *quota = quota_of(quotas, 1000, 0);
    static struct outstanding all, others;
    char text[QUOTA_TEXT] = "";
    (void)state;
    all.quota = others.quota = quota; /* two programs of his */
    assert_true(outstanding_add(&all, quotas, 1, QUOTA_BYTES / 2, text));
    assert_true(outstanding_add(&others, quotas, 1, QUOTA_BYTES / 2, text));
    assert_false(outstanding_add(&all, quotas, 2, 1, text));
    assert_true(strlen(text) > 0);
    assert_int_equal(all.count, 1);
    assert_false(outstanding_has(&all, 2));
    outstanding_remove(&all, 2); /* it was never there: it gives nothing back */
    assert_false(outstanding_add(&all, quotas, 2, 1, text));
    outstanding_remove(&others, 1);
    assert_true(outstanding_has(&all, 1));
    assert_true(outstanding_add(&all, quotas, 2, QUOTA_BYTES / 2, text));
    assert_false(outstanding_add(&all, quotas, 3, 1, text));
    outstanding_remove(&all, 1);
    outstanding_remove(&all, 2);
    assert_true(outstanding_add(&all, quotas, 4, QUOTA_BYTES, text)); /* all of it is back, and no more */
    assert_false(outstanding_add(&all, quotas, 5, 1, text));
    outstanding_remove(&all, 4);
    quotas_destroy(quotas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_quota),
        cmocka_unit_test(test_bytes_of_the_user),
    };
    return cmocka_run_group_tests_name("outstanding requests", tests, NULL, NULL);
}
