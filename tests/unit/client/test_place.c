/* test_place.c - eadmin init --hosts, --listen: the fragment that it writes, and what it refuses before it writes any.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/eadmin_place.h"
#include "elmer/settings.h"
#include "lib/base/file.h"
#include "tests/unit/client/config_bed.h"
#include "tests/unit/scratch.h"

static struct place_wish wish;
static struct place_undo undo;
static char listen_now[300];

static int place(const char *path, bool required, const char *user)
{
    struct settings settings = {0};
    struct err err = ERR_INIT;
    int result;

    (void)user;
    assert_int_equal(settings_load(&settings, path, required, &err), 0);
    place_undo_fini(&undo);
    result = place_cluster(&wish, path, required, &settings, &undo);
    snprintf(listen_now, sizeof(listen_now), "%s", settings.listen ? settings.listen : "");
    settings_fini(&settings);
    return result;
}

static int run(const char *hosts, const char *listen)
{
    wish = (struct place_wish){.hosts = hosts, .listen = listen};
    return bed_run(place, bed.user);
}

/* What it says after its first line, which is a comment; "": there is none. */
static void expect_fragment(const char *lines)
{
    char path[200], text[2000] = "", *rest = text;
    FILE *file;

    snprintf(path, sizeof(path), "%s.d/50-init.conf", bed.conf);
    file = fopen(path, "r");
    if (file) {
        size_t size = fread(text, 1, sizeof(text) - 1, file);

        text[size] = 0;
        fclose(file);
        assert_memory_equal(text, "# Written by eadmin init", 24);
        rest = strchr(text, '\n');
        assert_non_null(rest);
        rest++;
    }
    assert_string_equal(rest, lines);
}

static void the_name_is_found(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\nlevels = 2\n");
    assert_int_equal(run("ws1,ws2, ws3", NULL), 0);
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2 ws3\n");
    assert_string_equal(listen_now, "ws1:7110");
    assert_int_equal(bed_lines(), 0);
    assert_int_equal(run("ws1 ws2", NULL), 0); /* again: what was not named stays */
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2\n");
    assert_int_equal(run(NULL, "192.0.2.1:7200"), 0);
    expect_fragment("[elmer]\nlisten = 192.0.2.1:7200\nhosts = ws1 ws2\n");
    assert_int_equal(run(NULL, NULL), 0); /* --now alone */
    expect_fragment("[elmer]\nlisten = 192.0.2.1:7200\nhosts = ws1 ws2\n");
}

/* What the administrator's file says of the address is not said again. */
static void the_files_count(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\nlisten = ws1:7300\n");
    assert_int_equal(run("ws1 ws2", NULL), 0);
    expect_fragment("[elmer]\nhosts = ws1 ws2\n");
    assert_string_equal(listen_now, "ws1:7300");
    assert_true(scratch_put(bed.dir, "a.conf.d/90-mine.conf", "[elmer]\nhosts = ws1\n"));
    assert_int_equal(run("ws1 ws3", NULL), 1);
    bed_said("another file in");
    bed_said("counts more than 50-init.conf: take that out");
    expect_fragment("[elmer]\nhosts = ws1 ws2\n"); /* as it was */
}

/* The files are another host's, whose place this one takes: the port stays. */
static void another_host_takes_the_place(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws2\nlisten = ws1:7300\nhosts = ws1 ws2\n");
    wish = (struct place_wish){.here = true};
    assert_int_equal(bed_run(place, bed.user), 0);
    expect_fragment("[elmer]\nlisten = ws2:7300\n");
    assert_string_equal(listen_now, "ws2:7300");
    wish = (struct place_wish){.here = true, .listen = "192.0.2.1"};
    assert_int_equal(bed_run(place, bed.user), 0);
    assert_string_equal(listen_now, "192.0.2.1:7110");
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws2\nlisten = *:7300\nhosts = ws1 ws2\n");
    wish = (struct place_wish){.here = true};
    assert_int_equal(bed_run(place, bed.user), 0);
    assert_string_equal(listen_now, "*:7300");
    expect_fragment("");
}

static void names_of_the_loopback_are_refused(void **state)
{
    (void)state;
    bed_begin();
    bed.names[0][1] = "127.0.1.1";
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    assert_int_equal(run("ws1 ws2", NULL), 1);
    bed_said("the name ws1 stands for 127.0.1.1 on this host, which no other host reaches: in /etc/hosts write ");
    bed_said("in place of the line with 127.0.1.1, then eadmin init again; or name an address: eadmin init --listen ");
    assert_int_equal(bed_lines(), 1);
    expect_fragment("");
    assert_int_equal(run("ws1 ws2", "localhost"), 1);
    assert_int_equal(run("ws1 ws2", "127.0.0.1:7110"), 1);
    expect_fragment("");
    assert_int_equal(run("ws1 ws2", "192.0.2.1"), 0); /* an address does */
    expect_fragment("[elmer]\nlisten = 192.0.2.1:7110\nhosts = ws1 ws2\n");
}

static void names_that_nobody_knows_are_refused(void **state)
{
    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    assert_int_equal(run("ws1 ghost", NULL), 1);
    bed_said("the name ghost is not known here: ");
    bed_said("write it with its address into /etc/hosts of every host, or into the DNS");
    assert_int_equal(bed_lines(), 1);
    bed.names[1][1] = "127.0.0.1";
    assert_int_equal(run("ws1 ws2", NULL), 1);
    bed_said("the name ws2 stands for 127.0.0.1 here, which is this host itself");
    assert_int_equal(run("ws1", "nowhere"), 1);
    bed_said("the name nowhere is not known here: ");
    assert_int_equal(run("ws1", "/run/socket"), 2);
    assert_int_equal(run("ws1", "ws1:99999"), 2);
    assert_int_equal(run("ws1,a/b", NULL), 2);
    assert_int_equal(run(" , ", NULL), 2);
    expect_fragment("");
}

/* The queue host has a name that its daemons do not use. */
static void a_full_name_is_refused(void **state)
{
    (void)state;
    bed_begin();
    bed.names[3][0] = "ws1.lab", bed.names[3][1] = bed.own;
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    assert_int_equal(run("ws1.lab ws2", NULL), 1);
    bed_said("ws1.lab (192.0.2.1) is this host, and its daemons call it ws1: write ws1, or \"name = ws1.lab\" into "
             "elmer.conf and rsd.conf");
    assert_int_equal(bed_lines(), 1);
    expect_fragment("");
    assert_int_equal(run("ws1 ws2", NULL), 0);
    bed_put("a.conf", "[elmer]\nname = ws1.lab\n");
    assert_int_equal(run("ws1.lab ws2", NULL), 0);
}

/* Else the next eadmin init, or token, could not even read it. */
static void what_is_refused_leaves_all_as_it_was(void **state)
{
    char path[200];

    (void)state;
    bed_begin();
    snprintf(path, sizeof(path), "%s.d", bed.conf);
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    assert_int_equal(run("ws1,ws2 ws2", NULL), 2);
    bed_said("--hosts names ws2 twice: name each host once");
    assert_int_equal(run("ws2,ws22", NULL), 1); /* another name, which nobody knows */
    bed_said_not("twice");
    assert_int_equal(run(NULL, "192.0.2.1:4294967298"), 2);
    assert_int_not_equal(access(path, F_OK), 0);

    bed.bind_error = EADDRNOTAVAIL;
    assert_int_equal(run("ws1 ws2", "192.0.2.9"), 1);
    bed_said("192.0.2.9:7110: cannot listen there: Cannot assign requested address; it is no address of this host: ip "
             "address shows those that are");
    assert_int_equal(bed_lines(), 1);
    bed.bind_error = EADDRINUSE;
    assert_int_equal(run("ws1 ws2", NULL), 1);
    bed_said("another program has it: ss -ltnp says which; stop it, or take another port");
    assert_int_not_equal(access(path, F_OK), 0);
    bed.bind_error = 0;

    /* what is found out when all is read together */
    bed_put("a.conf", "[elmer]\nname = ws1\nhosts = ws1 ws2\nadmin_hosts = ws2\n");
    assert_int_equal(run("ws1 ws3", NULL), 1);
    bed_said("admin_hosts: \"ws2\" is no host of the cluster");
    assert_int_equal(bed_lines(), 1);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(run("ws1 ws2 ws3", NULL), 0);
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2 ws3\n");
    assert_int_equal(run("ws1 ws3", NULL), 1);
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2 ws3\n");
}

static int take_back(const char *path, bool required, const char *user)
{
    (void)path, (void)required, (void)user;
    place_undo(&undo);
    return 0;
}

/* A later step of eadmin init. */
static void it_can_be_taken_back(void **state)
{
    char path[200];

    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    snprintf(path, sizeof(path), "%s.d", bed.conf);
    assert_int_equal(run("ws1 ws2", NULL), 0);
    assert_non_null(strstr(bed.out, "50-init.conf says listen = ws1:7110, hosts = ws1 ws2.\n"));
    bed_run(take_back, bed.user);
    assert_non_null(strstr(bed.out, "50-init.conf is as it was before.\n"));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(run("ws1 ws2", NULL), 0);
    assert_int_equal(run("ws1 ws2 ws3", NULL), 0);
    bed_run(take_back, bed.user);
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2\n");
    assert_true(scratch_put(bed.dir, "mine", "[elmer]\nhosts = ws1\n")); /* what cannot be kept is not replaced */
    snprintf(path, sizeof(path), "%s.d/50-init.conf", bed.conf);
    assert_int_equal(rename(path, bed.pki), 0);
    assert_int_equal(symlink("../mine", path), 0);
    assert_int_equal(run("ws1 ws2", NULL), 1);
    bed_said("50-init.conf: ");
    bed_said("; move it away, then eadmin init again");
    assert_int_equal(rename(bed.pki, path), 0);
    bed_run(take_back, bed.user); /* nothing, by now */
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2\n");
}

static bool has(const char *name, const char *text)
{
    char path[200], *found = NULL;
    bool same;

    snprintf(path, sizeof(path), "%s.d/%s", bed.conf, name);
    same = file_read(AT_FDCWD, path, 2000, &found, NULL) == 0 && strcmp(found, text) == 0;
    free(found);
    return same;
}

/* What an administrator has written into it is not lost. */
static void what_else_it_says_is_kept(void **state)
{
    static const char mine[] = "[elmer]\nhosts = ws1\n# we like it\nlevels = 2\n";
    const char *old;
    char path[200];

    (void)state;
    bed_begin();
    bed_put("a.conf", "[elmer]\nname = ws1\n");
    snprintf(path, sizeof(path), "%s.d", bed.conf);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(scratch_put(path, "50-init.conf", mine));
    assert_int_equal(run("ws1 ws2", NULL), 0);
    expect_fragment("[elmer]\nlisten = ws1:7110\nhosts = ws1 ws2\n");
    assert_true(has("50-init.conf.old", mine));
    assert_non_null(strstr(bed.out, "50-init.conf said before is in 50-init.conf.old now, and does not count.\n"));
    assert_int_equal(run("ws1 ws3", NULL), 0); /* and what eadmin init has written is not kept */
    assert_null(strstr(bed.out, "said before"));

    assert_true(scratch_put(path, "50-init.conf", "# mine\n"));
    assert_int_equal(run("ws1 ws2", NULL), 0);
    assert_true(has("50-init.conf.old", mine));
    old = strstr(bed.out, "50-init.conf.old.");
    assert_non_null(old);
    snprintf(path, sizeof(path), "%.*s", (int)strcspn(old, " "), old);
    assert_true(has(path, "# mine\n"));
    bed_run(take_back, bed.user);
    assert_true(has("50-init.conf", "# mine\n"));
    assert_false(has(path, "# mine\n")); /* it stands where it stood */
}

static int is_free(const char *path, bool required, const char *user)
{
    (void)required;
    (void)user;
    return place_is_free(path, "ws1");
}

static void a_host_of_another_cluster_begins_none(void **state)
{
    static const struct {
        const char *elmer;
        int code;
    } table[] = {{"ws2:7110", 1},       {"ws2:7110 ws3:7110", 1}, {"nowhere:7110", 1},
                 {"192.0.2.2:7110", 1}, {"ws1:7110", 0},          {"ws2:7110 ws1:7110", 0},
                 {"local:7110", 0},     {"127.0.0.1:7110", 0},    {"/run/elmer/host.sock", 0}};

    (void)state;
    bed_begin();
    bed.names[3][0] = "local", bed.names[3][1] = "127.0.1.1";
    assert_int_equal(bed_run(is_free, bed.user), 0); /* there is no rsd.conf */
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        bed_put_f("a.conf", "[rsd]\n\nelmer = %s\n", table[i].elmer);
        assert_int_equal(bed_run(is_free, bed.user), table[i].code);
        assert_int_equal(bed_lines(), table[i].code);
        if (table[i].code)
            bed_said("a.conf:3), which has its queue host: to add hosts to it, eadmin token there; if this one is to");
    }
    bed_put("a.conf", "[rsd]\nmode = idle\n");
    assert_int_equal(bed_run(is_free, bed.user), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_found),
        cmocka_unit_test(the_files_count),
        cmocka_unit_test(another_host_takes_the_place),
        cmocka_unit_test(names_of_the_loopback_are_refused),
        cmocka_unit_test(names_that_nobody_knows_are_refused),
        cmocka_unit_test(a_full_name_is_refused),
        cmocka_unit_test(what_is_refused_leaves_all_as_it_was),
        cmocka_unit_test(it_can_be_taken_back),
        cmocka_unit_test(what_else_it_says_is_kept),
        cmocka_unit_test(a_host_of_another_cluster_begins_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
