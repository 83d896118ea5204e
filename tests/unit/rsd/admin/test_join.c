/* test_join.c - what rsd --join writes beside rsd.conf; what elmer remembers of certificates is in test_store.c. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rsd/admin/join.h"

static void fragment_has_what_is_needed(void **state)
{
    char *text = join_conf_text("ws1:7110", NULL);

    (void)state;
    assert_string_equal(text, "# Written by rsd --join; it counts more than rsd.conf.\n[rsd]\nelmer = ws1:7110\n");
    free(text);
    text = join_conf_text("ws1:7110", "ws7");
    assert_non_null(strstr(text, "[rsd]\nelmer = ws1:7110\nname = ws7\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragment_has_what_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
