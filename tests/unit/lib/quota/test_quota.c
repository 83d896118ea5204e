/* test_quota.c - what one user may do: connections, requests, bytes; and that users who have gone are forgotten. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "lib/quota/bucket.h"
#include "lib/quota/quota.h"

enum { ALICE = 1001, BOB = 1002, ALL = 40 << 20 };

static struct quotas *quotas;
static char text[QUOTA_TEXT];

static int setup(void **state)
{
    (void)state;
    quotas = quotas_create(&(struct quota_limits){.daemon = "elmer",
                                                  .config = "elmer.conf",
                                                  .connections = 100,
                                                  .requests = 10,
                                                  .burst = 20,
                                                  .request_bytes = 100000,
                                                  .bytes_of_all = ALL});
    return !quotas;
}

static int teardown(void **state)
{
    (void)state;
    quotas_destroy(quotas);
    return 0;
}

static void connections(void **state)
{
    struct quota *alice = quota_of(quotas, ALICE, 0);

    (void)state;
    assert_ptr_equal(quota_of(quotas, ALICE, 0), alice);
    for (int i = 0; i < 64; i++)
        assert_int_equal(quota_connect(quotas, alice, 0, true, text), QUOTA_FINE);
    assert_int_equal(quota_connect(quotas, alice, 0, true, text), QUOTA_CUT);
    assert_non_null(strstr(text, "elmer has few places left, and while this is so a user may have 64"));
    for (int i = 64; i < 100; i++)
        assert_int_equal(quota_connect(quotas, alice, 0, false, text), QUOTA_FINE);
    assert_int_equal(quota_connect(quotas, alice, 0, false, text), QUOTA_CUT);
    assert_non_null(strstr(text, "a user may have 100 (user_connections in elmer.conf)"));
    assert_int_equal(quota_connect(quotas, quota_of(quotas, BOB, 0), 0, false, text), QUOTA_FINE);
    quota_disconnect(alice);
    assert_int_equal(quota_connect(quotas, alice, 0, false, text), QUOTA_FINE);
}

static void requests(void **state)
{
    struct quota *alice = quota_of(quotas, ALICE, 0);

    (void)state;
    assert_int_equal(quota_request(quotas, alice, 0, 100001, text), QUOTA_REFUSE);
    assert_non_null(strstr(text, "it has 100001 bytes and may have 100000 (user_request_bytes in elmer.conf)"));
    alice->requests.missing = 0;
    assert_int_equal(quota_request(quotas, alice, 0, 3 << 14, text), QUOTA_FINE); /* counts as four */
    for (int i = 0; i < 16; i++)
        assert_int_equal(quota_request(quotas, alice, 0, 10, text), QUOTA_FINE);
    for (int i = 0; i < 19; i++)
        assert_int_equal(quota_request(quotas, alice, 0, 10, text), QUOTA_REFUSE);
    assert_non_null(strstr(text, "a user may send 10 in a second (user_requests in elmer.conf) and 20 at once"));
    assert_int_equal(quota_request(quotas, alice, 0, 10, text), QUOTA_CUT);
    assert_int_equal(quota_connect(quotas, alice, 0, false, text), QUOTA_CUT);
    assert_int_equal(quota_connect(quotas, alice, 99, false, text), QUOTA_CUT); /* one request comes back in 100 ms */
    assert_non_null(strstr(text, "a user may send 10 in a second"));
    assert_int_equal(quota_connect(quotas, alice, 101, false, text), QUOTA_FINE);
    assert_int_equal(quota_request(quotas, quota_of(quotas, BOB, 0), 0, 10, text), QUOTA_FINE);
    assert_int_equal(quota_request(quotas, alice, 2200, 10, text), QUOTA_FINE);
}

static void bytes(void **state)
{
    struct quota *alice = quota_of(quotas, ALICE, 0), *bob = quota_of(quotas, BOB, 0), *carol = quota_of(quotas, 3, 0);

    (void)state;
    assert_true(quota_keep(quotas, alice, QUOTA_BYTES / 2, text));
    assert_false(budget_is_short(&alice->bytes));
    assert_true(quota_keep(quotas, alice, QUOTA_BYTES / 2, text));
    assert_true(budget_is_short(&alice->bytes));
    assert_false(quota_keep(quotas, alice, 1, text));
    assert_non_null(strstr(text, "elmer keeps 16 MiB of requests without answer"));
    assert_true(quota_keep(quotas, bob, QUOTA_BYTES, text));
    assert_true(quota_keep(quotas, carol, ALL - 2 * QUOTA_BYTES, text)); /* as much as for all */
    assert_false(quota_keep(quotas, carol, 1, text));
    budget_give(&alice->bytes, QUOTA_BYTES / 2);
    assert_false(budget_is_short(&alice->bytes));
    assert_true(quota_keep(quotas, carol, 1, text));
    assert_false(quota_keep(quotas, alice, SIZE_MAX, text));
    assert_false(quota_keep(quotas, alice, SIZE_MAX - 5, text));
}

/* Every user of a university has logged in once, and one who sends too much comes back at once. */
static void those_who_have_gone_are_forgotten(void **state)
{
    struct quota *stays, *owes, *keeps;

    (void)state;
    assert_int_equal(quota_connect(quotas, stays = quota_of(quotas, 1, 0), 0, false, text), QUOTA_FINE);
    assert_true(quota_keep(quotas, keeps = quota_of(quotas, 2, 0), 100, text));
    owes = quota_of(quotas, 3, 0);
    for (int i = 0; i < 40; i++)
        (void)quota_request(quotas, owes, 0, 10, text);
    for (uint32_t uid = 1000; uid < 101000; uid++) {
        struct quota *quota = quota_of(quotas, uid, 1000);

        assert_int_equal(quota_connect(quotas, quota, 1000, false, text), QUOTA_FINE);
        quota_disconnect(quota);
        assert_true(quotas_count(quotas) <= 200);
    }
    assert_ptr_equal(quota_of(quotas, 1, 1000), stays);
    assert_ptr_equal(quota_of(quotas, 2, 1000), keeps);
    assert_ptr_equal(quota_of(quotas, 3, 1000), owes);
    assert_int_equal(quota_request(quotas, owes, 1000, 10, text), QUOTA_REFUSE);
    for (uint32_t uid = 1000; uid < 2000; uid++) /* long after */
        (void)quota_of(quotas, uid, 100000);
    assert_true(quotas_count(quotas) <= 200);
    assert_int_equal(quota_request(quotas, quota_of(quotas, 3, 100000), 100000, 10, text), QUOTA_FINE);
}

static void a_bucket_gives_what_comes_back(void **state)
{
    struct bucket bucket = {0};

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(bucket_take(&bucket, 5000, 2, 10, 1), BUCKET_ENOUGH);
    assert_int_equal(bucket_take(&bucket, 5000, 2, 10, 1), BUCKET_EMPTY);
    assert_int_equal(bucket_take(&bucket, 6000, 2, 10, 1), BUCKET_ENOUGH); /* two came back, one was owed */
    assert_int_equal(bucket_take(&bucket, 6000, 2, 10, 1), BUCKET_EMPTY);
    assert_int_equal(bucket_take(&bucket, 6000, 2, 10, 1000), BUCKET_OVERDRAWN);
    assert_int_equal(bucket_check(&bucket, 6499, 2, 10, 0), BUCKET_EMPTY); /* never more than a burst is owed */
    assert_int_equal(bucket_check(&bucket, 6499, 2, 10, 1), BUCKET_OVERDRAWN);
    assert_int_equal(bucket_check(&bucket, 6501, 2, 10, 1), BUCKET_EMPTY);
    assert_int_equal(bucket_check(&bucket, 10999, 2, 10, 0), BUCKET_EMPTY);
    assert_int_equal(bucket_check(&bucket, 11000, 2, 10, 0), BUCKET_ENOUGH);
    assert_int_equal(bucket_take(&bucket, 1000000, 2, 10, 10), BUCKET_ENOUGH);
    assert_int_equal(bucket_take(&bucket, 1000000, 2, 10, 1), BUCKET_EMPTY);
}

static void all_or_nothing(void **state)
{
    struct bucket bucket = {0};

    (void)state;
    assert_true(bucket_take_if(&bucket, 1000, 2, 10, 10));
    assert_false(bucket_take_if(&bucket, 1000, 2, 10, 1));
    assert_false(bucket_take_if(&bucket, 1500, 2, 10, 2)); /* one has come back, and stays */
    assert_true(bucket_take_if(&bucket, 1500, 2, 10, 1));
    assert_false(bucket_take_if(&bucket, 1000000, 2, 10, 11)); /* more than a burst is never there */
    assert_true(bucket_take_if(&bucket, 1000000, 2, 10, 10));
}

/* Three seconds at once, then 50 ms in each; nobody else waits for that. */
static void work(void **state)
{
    struct quota *alice = quota_of(quotas, ALICE, 0);

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(quota_work_wait(alice, 0), 0);
        quota_worked(alice, 0, 300);
    }
    assert_int_equal(quota_work_wait(alice, 0), 0);
    quota_worked(alice, 0, 100);
    assert_in_range(quota_work_wait(alice, 0), 2000, 2001);
    assert_int_equal(quota_work_wait(quota_of(quotas, BOB, 0), 0), 0);
    assert_in_range(quota_work_wait(alice, 1000), 1000, 1001);
    assert_int_equal(quota_work_wait(alice, 2001), 0);
    for (int i = 0; i < 100; i++)
        quota_worked(alice, 2001, 300); /* no more is owed than that again */
    assert_in_range(quota_work_wait(alice, 2001), 60000, 60001);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {T(connections),
                                       T(requests),
                                       T(work),
                                       T(bytes),
                                       T(those_who_have_gone_are_forgotten),
                                       cmocka_unit_test(a_bucket_gives_what_comes_back),
                                       cmocka_unit_test(all_or_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
