/* test_config_doc.c - rsd.conf(5) has every key and its default. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rsd/config.h"
#include "tests/unit/config_doc.h"

static void test_manual(void **state)
{
    (void)state;
    config_doc_check("man/rsd.conf.5", rsd_config_keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_manual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
