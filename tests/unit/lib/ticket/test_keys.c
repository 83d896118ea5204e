/* test_keys.c - a host's ticket key stays, and no number of its tickets comes twice. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/ticket/keys.h"
#include "tests/unit/scratch.h"

static void new_dir(char dir[64])
{
    snprintf(dir, 64, "/tmp/test_keys.XXXXXX");
    assert_non_null(scratch_dir(dir));
}

static void a_key_stays(void **state)
{
    struct ticket_keys keys, again;
    struct err err = ERR_INIT;
    struct stat st;
    char dir[64];
    (void)state;
    new_dir(dir);
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_int_equal(ticket_keys_open(&again, dir, "ws1", &err), 0);
    assert_memory_equal(keys.key, again.key, sizeof(keys.key));
    assert_memory_equal(keys.secret, again.secret, sizeof(keys.secret));
    assert_false(keys.certified);
    assert_int_equal(fstatat(keys.dir, "key", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(file_write(keys.dir, "key", "0123\n", 0600, &err), 0);
    ticket_keys_close(&again);
    assert_int_equal(ticket_keys_open(&again, dir, "ws1", &err), -EINVAL);
    ticket_keys_close(&again);
    ticket_keys_close(&keys);
}

static void a_certificate_is_for_one_host(void **state)
{
    struct ticket_keys keys, again;
    uint8_t secret[TICKET_KEY_BYTES], authority[TICKET_KEY_BYTES], signature[TICKET_SIGNATURE_BYTES];
    uint8_t bytes[TICKET_BYTES_MAX];
    struct err err = ERR_INIT;
    char dir[64];
    (void)state;
    new_dir(dir);
    assert_true(ticket_key_create(secret, authority));
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes("ws2", keys.key, bytes), signature));
    assert_int_equal(ticket_keys_certify(&keys, authority, signature, &err), -EACCES);
    assert_true(ticket_sign_bytes(secret, bytes, ticket_certified_bytes("ws1", keys.key, bytes), signature));
    err_clear(&err);
    assert_int_equal(ticket_keys_certify(&keys, authority, signature, &err), 0);
    ticket_keys_close(&keys);
    assert_int_equal(ticket_keys_open(&again, dir, "ws1", &err), 0);
    assert_true(again.certified);
    assert_memory_equal(again.authority, authority, sizeof(authority));
    ticket_keys_close(&again);
    assert_int_equal(ticket_keys_open(&again, dir, "ws2", &err), 0);
    assert_false(again.certified);
    ticket_keys_close(&again);
}

static void no_number_comes_twice(void **state)
{
    struct ticket_keys keys;
    struct err err = ERR_INIT;
    uint64_t last = 0, number = 0;
    char dir[64];
    (void)state;
    new_dir(dir);
    assert_int_equal(ticket_keys_open(&keys, dir, "ws1", &err), 0);
    for (int life = 0; life < 3; life++) {
        struct ticket_counter counter = {0};
        for (int i = 0; i < 2500; i++) {
            assert_int_equal(ticket_counter_next(&keys, &counter, 1, &number, &err), 0);
            assert_true((life == 0 && i == 0) || number > last);
            last = number;
        }
    }
    assert_true(last < 10000);
    assert_int_equal(unlinkat(keys.dir, "counter", 0), 0);
    struct ticket_counter lost = {0};
    assert_int_equal(ticket_counter_next(&keys, &lost, 1, &number, &err), -ENOENT);
    assert_non_null(strstr(err.text, "join again"));
    ticket_keys_close(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_stays),
        cmocka_unit_test(a_certificate_is_for_one_host),
        cmocka_unit_test(no_number_comes_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
