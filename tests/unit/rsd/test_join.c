/* test_join.c - what rsd --join makes of rsd.conf, and what elmer remembers of certificates is in test_store.c. */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rsd/join.h"

static void edited(const char *before, const char *name, const char *after)
{
    char *text = join_conf_edit(before, "ws1:7110", name);

    assert_non_null(text);
    assert_string_equal(text, after);
    free(text);
    text = join_conf_edit(after, "ws1:7110", name);
    assert_string_equal(text, after); /* again changes nothing */
    free(text);
}

static void a_new_file_has_what_is_needed(void **state)
{
    (void)state;
    edited(NULL, NULL, "[rsd]\nelmer = ws1:7110\n");
    edited("", "ws7", "[rsd]\nelmer = ws1:7110\nname = ws7\n");
}

static void everything_else_stays(void **state)
{
    (void)state;
    edited("# ours\n[rsd]\nmode = idle ; slow\n\n[other]\nelmer = kept\n", NULL,
           "# ours\n[rsd]\nelmer = ws1:7110\nmode = idle ; slow\n\n[other]\nelmer = kept\n");
    edited("[other]\nx = 1", NULL, "[other]\nx = 1\n[rsd]\nelmer = ws1:7110\n");
    edited("[rsd]\n#elmer = old:1\nelmer_note = x\n", NULL,
           "[rsd]\nelmer = ws1:7110\n#elmer = old:1\nelmer_note = x\n");
}

static void ours_take_the_place_of_the_old(void **state)
{
    (void)state;
    edited("[rsd]\nmode = rt\n  elmer=old:1\nname = a\n", NULL, "[rsd]\nmode = rt\nelmer = ws1:7110\nname = a\n");
    edited(" [ rsd ]\nname = a\nelmer = old:1\n", "b", " [ rsd ]\nelmer = ws1:7110\nname = b\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file_has_what_is_needed),
        cmocka_unit_test(everything_else_stays),
        cmocka_unit_test(ours_take_the_place_of_the_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
