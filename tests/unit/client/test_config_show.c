/* test_config_show.c - eadmin config show: every key, its value, and where that comes from. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "client/config_show.h"
#include "elmer/settings.h"
#include "rsd/config.h"
#include "tests/unit/client/config_bed.h"
#include "tests/unit/scratch.h"

/* A line "text   ; from", whatever is between. */
static void shown(const char *text, const char *from)
{
    for (const char *line = bed.out; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        size_t length = strcspn(line, "\n"), end = strlen(from);

        if (strncmp(line, text, strlen(text)) == 0 && line[strlen(text)] == ' ' && length > end &&
            strncmp(line + length - end, from, end) == 0)
            return;
    }
    fail_msg("no line %s ; %s in\n%s", text, from, bed.out);
}

static void values_have_their_places(void **state)
{
    char from[200];

    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\nheartbeat = 60s\nhosts = ws1 ws2\n[host ws2]\ncpus = 0-1\n");
    assert_true(scratch_mkdir(bed.dir, "a.conf.d"));
    bed_put("a.conf.d/x.conf", "[elmer]\nhosts = ws1 ws2 ws3\nhost_timeout = 2m\n[host ws2]\naddress = 10.0.0.2\n");
    assert_int_equal(bed_show(config_show_elmer, false), 0);
    assert_string_equal(bed.err, "");
    snprintf(from, sizeof(from), "; %s:3", bed.conf);
    shown("heartbeat = 60s", from);
    snprintf(from, sizeof(from), "; %s.d/x.conf:2", bed.conf);
    shown("hosts = ws1 ws2 ws3", from);
    shown("levels = 3", "; default");
    shown("lease = 180s", "; default"); /* which follows from the heartbeat */
    shown("# listen = none", "; default");
    shown("store = " ELMER_STATEDIR "/elmer.db", "; compiled in");
    assert_non_null(strstr(bed.out, "[host ws2]\ncpus = 0-1 "));
    snprintf(from, sizeof(from), "; %s.d/x.conf:5", bed.conf);
    shown("address = 10.0.0.2", from);
    bed_said_not("transport");
}

/* What is in force is shown, and why it is not what the file says. */
static void what_elmer_leaves_out_is_not_shown(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\nhosts = ws1 ws2\n[host ws2]\ncpus = 0-1\naddress = ws2\n");
    assert_int_equal(bed_show(config_show_elmer, false), 0);
    bed_said("a.conf:6: address = ws2: no numeric IPv4 address");
    assert_non_null(strstr(bed.out, "[host ws2]\ncpus = 0-1 "));
    assert_null(strstr(bed.out, "address ="));
}

/* What is shown can be used as the file. */
static void it_is_a_file_itself(void **state)
{
    static char first[BED_TEXT];
    struct settings settings = {0};
    struct err err = ERR_INIT;

    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\nhosts = ws1 ws2\nlevels = 5\n[host ws2]\ncpus = 0-1\n");
    assert_int_equal(bed_show(config_show_elmer, false), 0);
    snprintf(first, sizeof(first), "%s", bed.out);
    bed_put("a.conf", first);
    if (settings_load(&settings, bed.conf, true, &err) != 0)
        fail_msg("%s in\n%s", err.text, first);
    assert_int_equal(settings.core.levels, 5);
    assert_int_equal(settings.nhosts, 2);
    settings_fini(&settings);
}

static void every_key_has_a_line(void **state)
{
    char line[300];

    (void)state;
    bed_begin();
    for (int pass = 0; pass < 2; pass++) {
        bed_put("a.conf", "");
        assert_int_equal(bed_show(config_show_rsd, pass == 0), 0);
        for (const struct ini_key *key = rsd_config_keys; key->name; key++) {
            bool plain = !(key->flags & INI_WORDS);

            if (!key->normal)
                continue;
            snprintf(line, sizeof(line), "%s%s =%s%s", plain ? "" : "# ", key->name, plain ? " " : "",
                     plain ? key->normal : "");
            if (strcmp(key->name, "name") != 0)
                shown(line, key->flags & INI_BUILT ? "; compiled in" : "; default");
        }
    }
    assert_int_equal(bed_show(config_show_elmer, true), 0);
    shown("# name = the host name up to the first dot", "; default");
    shown("# cpus = those that its rsd(8) may use", "; default");
    shown("seed = 0", "; default");
    shown("levels = 3", "; default"); /* follows from others, and is a value */
}

static void what_is_wrong_is_told_instead(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nlevels = 17\nthreshold = 2\n");
    assert_int_equal(bed_show(config_show_elmer, false), 1);
    bed_said("a.conf:2: levels = 17: ");
    bed_said("a.conf:3: threshold = 2: ");
    assert_string_equal(bed.out, "");
    assert_int_equal(bed_show(config_show_elmer, true), 0); /* which needs no file */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_places),      cmocka_unit_test(what_elmer_leaves_out_is_not_shown),
        cmocka_unit_test(it_is_a_file_itself),           cmocka_unit_test(every_key_has_a_line),
        cmocka_unit_test(what_is_wrong_is_told_instead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
