/* test_config.c - rsd.conf: what is accepted, and what is said of the rest. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rsd/config.h"
#include "tests/unit/scratch.h"

static char dir[] = "/tmp/elmer-rsd-conf-XXXXXX";

static struct rsd_config configure(const char *text, const char *word)
{
    struct rsd_config config;
    struct err err = ERR_INIT;
    char path[100];
    int result;
    rsd_config_default(&config);
    assert_true(scratch_put(dir, "rsd.conf", text));
    snprintf(path, sizeof(path), "%s/rsd.conf", dir);
    result = rsd_config_read(&config, path, false, NULL, &err);
    if (!word && result < 0)
        fail_msg("%s", err.text);
    if (word && (result == 0 || !strstr(err.text, word)))
        fail_msg("\"%s\" does not say %s", err.text, word);
    return config;
}

static void test_configuration(void **state)
{
    struct rsd_config several;
    (void)state;
    configure("[rsd]\nname = ws1\nmode = idle\nminimum_uid = 500\n", NULL);
    configure("[rsd]\nname = ws1\nelmer = queue.example:7777\npki = /etc/elmer/pki\n", NULL);
    configure("[rsd]\npki = pki\n", "begins with /");
    configure("[rsd]\nelmer = localhost:7777\ntransport = plain\n", ":3");
    configure("[rsd]\nelmer = localhost:7777\ntransport = plain\n", "take this line out, then \"eadmin token\"");
    configure("[rsd]\nmode = fast\n", "auto, rt, idle or none");
    configure("[rsd]\nmodus = rt\n", "mode");
    configure("[rsd]\nelmer = nowhere\n", "HOST:PORT");
    configure("[rsd]\nelmer = ws1:7110 ws2\n", "HOST:PORT");
    configure("[rsd]\nelmer = ws1:7110 /run/elmer/elmer-host.sock\n", "HOST:PORT");
    configure("[rsd]\nelmer = ,\n", "empty");
    configure("[rsd]\nelmer = a:1 b:1 c:1 d:1 e:1\n", "at most 4");
    several = configure("[rsd]\nelmer =  ws1:7110,\tws2:7110 , [::1]:7110\n", NULL);
    assert_string_equal(several.elmer, "ws1:7110 ws2:7110 [::1]:7110");
    assert_true(rsd_config_has_elmer(&several, "ws1:7110"));
    assert_true(rsd_config_has_elmer(&several, "[::1]:7110"));
    assert_false(rsd_config_has_elmer(&several, "s2:7110"));
    assert_false(rsd_config_has_elmer(&several, "ws2:711"));
    configure("[rsd]\nminimum_uid = -4\n", "rsd.conf:2");
    configure("[rsd]\nname = -x\n", "host name");
    configure("[rsd]\nrundir = /a/very/long/path/that/leaves/no/room/for/the/names/of/sockets\n", "at most 55");
    configure("[rsd]\ncgroup_root = relative\n", "begins with /");
    configure("[rsd]\ntickets = require\nticket_dir = /x\n", NULL);
    configure("[rsd]\ntickets = accept\n", NULL);
    configure("[rsd]\nvouch = all, !ws7\nvouch_users = alice bob\n", NULL);
    configure("[rsd]\nvouch = -x\n", "can be no name");
    configure("[rsd]\ntickets = no\n", "require is needed, or accept");
    configure("[rsd]\nticket_dir = x\n", "begins with /");
    configure("[rsd]\ntmpdir_size = 10%\n", NULL);
    configure("[rsd]\ntmpdir_size = 500M\n", NULL);
    configure("[rsd]\ntmpdir_size = 4G\n", NULL);
    configure("[rsd]\ntmpdir_size = none\n", NULL);
    configure("[rsd]\ntmpdir_size = 51%\n", "up to 50%");
    configure("[rsd]\ntmpdir_size = 0M\n", "up to 50%");
    configure("[rsd]\ntmpdir_size = -1G\n", "up to 50%");
    configure("[rsd]\ntmpdir_size = 4GB\n", "up to 50%");
    configure("[rsd]\ntmpdir_size = 500\n", "up to 50%");
    configure("[rsd]\nmemory = all\n", NULL);
    configure("[rsd]\nmemory = 100%\n", NULL);
    configure("[rsd]\nmemory = 6G\n", NULL);
    configure("[rsd]\nmemory = 101%\n", "up to 100%");
    configure("[rsd]\nmemory = 0G\n", "up to 100%");
    configure("[rsd]\nmemory = 6\n", "up to 100%");
    configure("[rsd]\nmemory = none\n", "up to 100%");
    configure("[rsd]\ndeny_users = -x\n", "\"-x\" can be no name");
    configure("[rsd]\ndeny_groups = sudo, a:b\n", "\"a:b\" can be no name");
    configure("[rsd]\ndeny_groups = ,\n", "names are needed");
    configure("[rsd]\ndeny_groups =\n", "names are needed");
    configure("[rsd]\naccount = elmer-account\n", "begins with /");
}

static void test_names_that_are_denied(void **state)
{
    struct rsd_config config;
    (void)state;
    config = configure("[rsd]\nname = ws1\n", NULL);
    assert_string_equal(config.deny_groups, "sudo wheel docker lxd disk libvirt adm");
    assert_string_equal(config.deny_users, "");
    config = configure("[rsd]\ndeny_users = alice,bob  carol\t, dave\ndeny_groups = none\naccount = none\n", NULL);
    assert_string_equal(config.deny_users, "alice bob carol dave");
    assert_string_equal(config.deny_groups, "");
    assert_string_equal(config.account, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_names_that_are_denied),
    };
    if (!scratch_dir(dir))
        return 1;
    return cmocka_run_group_tests_name("rsd.conf", tests, NULL, NULL);
}
