/* test_counter.c - which certificate of elmer is the latest. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/pki/ca.h"
#include "lib/pki/x509.h"
#include "tests/unit/scratch.h"

#define NOW INT64_C(1800000000000) /* ms */

/* Whoever has elmer's old key does not get it renewed, and what is made next is later, also after a restored backup. */
static void elmers_certificates_are_counted(void **state)
{
    static const char *const names[] = {"ws1"};
    struct ca ca;
    struct pki_certificate facts;
    char proof[PKI_PROOF_SIZE], *key, *request, *made[3], *next = NULL, dir[64], path[100];
    uint64_t counters[3], latest;
    struct err err = ERR_INIT;

    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test_counter.XXXXXX");
    assert_non_null(scratch_dir(dir));
    assert_int_equal(ca_create(dir, "ws1", NOW, &err), 0);
    assert_int_equal(ca_open(dir, &ca, &err), 0);
    assert_int_equal(pki_key_create(&key, &err), 0);
    assert_int_equal(pki_request_create(key, "ws1", &request, &err), 0);
    assert_int_equal(pki_prove(key, request, proof, &err), 0);
    assert_int_equal(ca_counter(&ca, &latest, &err), 0);
    assert_int_equal(latest, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ca_issue_elmer(&ca, request, names, 1, NOW + (i == 2), &made[i], &err), 0);
        assert_int_equal(pki_inspect(made[i], &facts, &err), 0);
        counters[i] = facts.counter;
        assert_true(i == 0 || counters[i] > counters[i - 1]);
        assert_int_equal(ca_counter(&ca, &latest, &err), 0);
        assert_int_equal(latest, counters[i]);
    }
    assert_int_equal(ca_sign_renew(&ca, made[1], proof, request, NOW, &next, &err), -EACCES);
    assert_non_null(strstr(err.text, "was replaced"));
    err_clear(&err);
    assert_int_equal(ca_sign_renew(&ca, made[2], proof, request, NOW, &next, &err), 0);
    assert_int_equal(pki_inspect(next, &facts, &err), 0);
    assert_int_equal(facts.counter, counters[2]);
    free(made[0]);
    snprintf(path, sizeof(path), "%s/elmer.counter", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ca_issue_elmer(&ca, request, names, 1, NOW + 10000, &made[0], &err), 0);
    assert_int_equal(pki_inspect(made[0], &facts, &err), 0);
    assert_true(facts.counter > counters[2]);
    for (int i = 0; i < 3; i++)
        free(made[i]);
    free(next);
    free(request);
    pki_key_free(key);
    ca_close(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(elmers_certificates_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
