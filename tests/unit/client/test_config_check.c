/* test_config_check.c - eadmin config check: what is good in one line, and one line for everything that is wrong. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/config_check.h"
#include "lib/base/clock.h"
#include "tests/unit/client/config_bed.h"
#include "tests/unit/scratch.h"

/* A configuration of three hosts, and more lines. */
static int check(const char *more)
{
    bed_put_f("a.conf", "[elmer]\nname = ws1\nhosts = ws1 ws2 ws3\npki = %s\nstore = %s/elmer.db\nsocket = %s/s\n%s",
              bed.pki, bed.dir, bed.dir, more);
    return bed_run(config_check_elmer, bed.user);
}

static int check_rsd(const char *more)
{
    bed_put_f("a.conf",
              "[rsd]\nuser = %s\npki = %s\nnetwork = /bin/sh\nsupervisor = /bin/sh\nspawn = /bin/sh\nescapes = "
              "/bin/sh\naccount = "
              "none\nticket_program = /bin/sh\ntickets = accept\n%s",
              bed.user, bed.pki, more);
    return bed_run(config_check_rsd, bed.user);
}

static void expect_date(int days)
{
    char date[16];

    config_date(wall_now().ms / 1000 + days * 86400L, date);
    assert_non_null(strstr(bed.out, date));
}

static void what_is_good_is_one_line(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, 100);
    assert_int_equal(check("listen = ws1:7110\n"), 0);
    assert_non_null(strstr(bed.out, "OK: 3 hosts, listen ws1:7110, TLS until 2"));
    expect_date(100);
    assert_int_equal(bed_lines(), 0);
    assert_int_equal(check("listen = *:7110\n"), 0);
    bed_put_f("a.conf", "[elmer]\nname = ws1\nstore = %s/elmer.db\n", bed.dir);
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    assert_string_equal(bed.out, "OK: 1 host, no listen: for this host alone\n");
}

static void all_that_is_wrong_is_told(void **state)
{
    (void)state;
    bed_begin();
    bed.names[2][0] = NULL;
    assert_true(scratch_mkdir(bed.dir, "a.conf.d"));
    bed_put("a.conf.d/x.conf", "[elmer]\nheartbeat = 5y\nstore = /no-such-place/elmer.db\n");
    bed.bind_error = EADDRINUSE;
    assert_int_equal(check("listen = ws1:7110\nlevels = 17\nlevls = 3\nadmin_group = no-such-group\n"), 1);
    bed_said("a.conf:8: levels = 17: must be");
    bed_said("a.conf:9: unknown key levls (value 3)");
    bed_said("a.conf.d/x.conf:2: heartbeat = 5y: must be");
    bed_said("a.conf:7: listen = ws1:7110: ws1:7110: cannot listen there: Address already in use; another program has "
             "it");
    bed_said("there are no certificates yet; eadmin init");
    bed_said("a.conf:3: hosts = ws3: this name is not known here");
    bed_said(
        "a.conf.d/x.conf:3: store = /no-such-place/elmer.db: the directory /no-such-place: No such file or directory");
    bed_said("a.conf:10: admin_group = no-such-group: there is no such group");
    assert_int_equal(bed_lines(), 8);
    assert_string_equal(bed.out, "");
}

/* elmer begins with it, and does without. */
static void an_address_that_elmer_leaves_out_is_told(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, 100);
    assert_int_equal(check("listen = ws1:7110\n[host ws2]\naddress = ws2\ncpus = 0\n"), 1);
    bed_said("a.conf:9: address = ws2: no numeric IPv4 address");
    assert_int_equal(bed_lines(), 1);
    assert_string_equal(bed.out, "");
}

static void own_names_that_are_loopback_are_refused(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", "127.0.0.1", 100);
    bed.names[0][1] = "127.0.1.1";
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said(
        "a.conf:7: listen = ws1:7110: the name ws1 stands for 127.0.1.1 on this host, which no other host reaches: "
        "in /etc/hosts write ");
    bed_said(":7110 (or *:7110 for all addresses)");
    assert_int_equal(bed_lines(), 1);
    bed.names[0][1] = "127.0.0.1";
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("stands for 127.0.0.1");
    assert_int_equal(check("listen = 127.0.0.1:7110\n"), 1);
    bed_said("only this host reaches that address, and there are other hosts (ws2, ws3)");
    assert_int_equal(check("listen = *:7110\n"), 0); /* elmer is reached, whatever its own host calls itself */
    bed.names[0][1] = "192.0.2.1";
    bed.names[1][1] = "127.0.1.1";
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("a.conf:3: hosts = ws2: this name stands for 127.0.1.1 here, which is this host itself");
}

/* As with the full name of the queue host. */
static void other_names_of_this_host_are_refused(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, 100);
    bed.names[2][1] = bed.own;
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said(
        "a.conf:3: hosts = ws3: 192.0.2.1 is this host, and its daemons call it ws1: write ws1 here, or name = ws3");
    assert_int_equal(bed_lines(), 1);
}

static void addresses_are_tried(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, 100);
    bed.bind_error = EADDRNOTAVAIL;
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("it is no address of this host");
    bed.bind_error = EACCES;
    assert_int_equal(check("listen = ws1:711\n"), 1);
    bed_said("take a port above 1023");
    assert_int_equal(check("listen = ghost:7110\n"), 1);
    bed_said("a.conf:7: listen = ghost:7110: the name ghost is not known here");
    assert_int_equal(check(""), 1);
    bed_said("a.conf:3: hosts: there are other hosts (ws2, ws3), and elmer does not listen for them: add listen = "
             "ws1:7110");
}

/* The port is elmer's if elmer has it, not if any elmer runs. */
static void ports_of_others_are_told(void **state)
{
    char line[64];
    unsigned port;
    int elmer, fd;

    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, 100);
    bed.bind_error = EADDRINUSE;
    fd = bed_listen("0.0.0.0", geteuid(), &port);
    snprintf(line, sizeof(line), "listen = *:%u\n", port);
    assert_int_equal(check(line), 1);
    bed_said("another program has it: ss -ltnp says which");
    elmer = bed_serve();
    assert_int_equal(check(line), 0);
    close(fd);
    assert_int_equal(check(line), 1); /* it listens nowhere */
    bed_said("another program has it");
    if (geteuid() == 0) {
        fd = bed_listen("0.0.0.0", 65534, &port);
        snprintf(line, sizeof(line), "listen = ws1:%u\n", port);
        assert_int_equal(check(line), 1);
        bed_said("another program has it");
        close(fd);
    }
    close(elmer);
}

static void certificates_are_looked_at(void **state)
{
    char path[120];

    (void)state;
    bed_begin();
    bed_make_pki(true, "ws1", NULL, -3);
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("host.crt ended on 2");
    bed_make_pki(true, "ws9", NULL, 100);
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("a.conf:2: name = ws1: the certificate in ");
    bed_said(" is that of ws9: eadmin init");
    bed_said("the certificate does not name ws1, by which other hosts are to reach elmer: eadmin init --address ws1");
    bed_make_pki(false, "ws1", NULL, 100);
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("this is not the certificate of a queue host");
    bed_make_pki(true, "ws1", NULL, 100);
    snprintf(path, sizeof(path), "%s/host.key", bed.pki);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("others than its owner may read this key: chmod 600");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(check("listen = ws1:7110\n"), 1);
    bed_said("there is no host.key; eadmin init");
    assert_int_equal(bed_lines(), 1);
}

/* Nobody judges the dates of the CA's own certificate, and hosts keep the one that they have joined with. */
static void a_ca_that_is_over_stops_nothing(void **state)
{
    (void)state;
    bed_begin();
    bed.ca_days = -3;
    bed_make_pki(true, "ws1", NULL, 100);
    assert_int_equal(check("listen = ws1:7110\n"), 0);
    bed_said("warning: the CA's own certificate ended on 2");
    bed_said(": nobody judges that, and eadmin init, as root, renews it");
    assert_int_equal(bed_lines(), 1);
    expect_date(100);
    bed_make_pki(false, "ws2", NULL, 100);
    assert_int_equal(check_rsd("elmer = ws1:7110\nname = ws2\n"), 0);
    assert_int_equal(bed_lines(), 0);
    expect_date(100);
}

/* Root finds out what the daemon's user may not. */
static void it_looks_as_the_daemon_does(void **state)
{
    (void)state;
    bed_begin();
    assert_int_equal(check("listen = *:7110\n"), 1);
    assert_int_equal(bed_run(config_check_elmer, "no-such-user"), 1);
    bed_said("there is no user no-such-user, which elmer is to run as: run systemd-sysusers");
    if (geteuid() != 0)
        return;
    bed_make_pki(true, "ws1", NULL, 100);
    assert_int_equal(check("listen = *:7110\n"), 0);
    assert_int_equal(bed_run(config_check_elmer, "nobody"), 1);
    bed_said("the user nobody cannot read ");
    bed_said("/pki/host.key: Permission denied; chown nobody ");
    bed_said("the user nobody may not write to the directory ");
    assert_int_equal(chmod(bed.conf, 0600), 0);
    assert_int_equal(bed_run(config_check_elmer, "nobody"), 1);
    bed_said("a.conf: the user nobody cannot read it: Permission denied; chmod 644 ");
}

/* ---- rsd.conf ---- */

/* A store that is not where its unit lets elmer write; what a drop-in adds to it counts. */
static void units_that_may_not_write_are_told(void **state)
{
    (void)state;
    bed_begin();
    bed_put("unit", "ReadWritePaths=\nStateDirectory=elmer\nProtectSystem=strict\n");
    bed_put_f("a.conf", "[elmer]\nname = ws1\nstore = %s/elmer.db\n", bed.dir);
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    bed_said("warning: store is in ");
    bed_said("where elmer may not write: systemctl edit elmer, [Service], ReadWritePaths=");
    assert_int_equal(bed_lines(), 1);
    bed_put_f("unit", "ReadWritePaths=/srv -%s/\nStateDirectory=elmer\nProtectSystem=strict\n", bed.dir);
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    assert_int_equal(bed_lines(), 0);
    bed_put("unit", "ReadWritePaths=\nStateDirectory=elmer\nProtectSystem=full\n");
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    assert_int_equal(bed_lines(), 0);
    bed_put("unit", "ReadWritePaths=/\nStateDirectory=\nProtectSystem=strict\n");
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    assert_int_equal(bed_lines(), 0);
    bed_put_f("unit", "ReadWritePaths=%sx\nStateDirectory=elmer srv\nProtectSystem=strict\n", bed.dir);
    assert_int_equal(bed_run(config_check_elmer, bed.user), 0);
    assert_int_equal(bed_lines(), 1);
}

static void files_of_rsd(void **state)
{
    (void)state;
    bed_begin();
    bed_make_pki(false, "ws2", NULL, 100);
    assert_int_equal(check_rsd("elmer = ws1:7110\nname = ws2\n"), 0);
    assert_non_null(strstr(bed.out, "OK: host ws2, elmer ws1:7110, TLS until 2"));
    expect_date(100);
    assert_int_equal(check_rsd("elmer = ws1:7110\nname = ws3\nmode = fast\npvmd = /no-such-place\nproc_stat = /none\n"),
                     1);
    bed_said("a.conf:13: mode = fast: ");
    bed_said("a.conf:14: pvmd = /no-such-place: this program: No such file or directory");
    bed_said("a.conf:15: proc_stat = /none: No such file");
    bed_said("a.conf:12: name = ws3: the certificate in ");
    assert_int_equal(bed_lines(), 4);
    if (!getpwnam("elmer-ticket")) {
        bed_put_f("a.conf", "[rsd]\nuser = %s\ntickets = require\n", bed.user);
        assert_int_equal(bed_run(config_check_rsd, bed.user), 1);
        bed_said("a.conf:3: tickets = require: there is no user elmer-ticket here: run systemd-sysusers");
    }
    bed.names[0][1] = "127.0.1.1";
    assert_int_equal(check_rsd("elmer = ws1:7110\nname = ws2\n"), 1);
    bed_said("a.conf:11: elmer = ws1:7110: the name ws1 stands for 127.0.1.1 here, which is this host itself");
    assert_int_equal(check_rsd("elmer = ghost:7110\nname = ws2\n"), 1);
    bed_said("the name ghost is not known here");
    bed_put("a.conf", "[rsd]\nuser = no-such-user\nelmer = /no-such-place/s\nnetwork = /etc/passwd\n");
    assert_int_equal(bed_run(config_check_rsd, NULL), 1);
    bed_said("a.conf:2: user = no-such-user: there is no such user");
    bed_said("a.conf:3: elmer = /no-such-place/s: no elmer has made /no-such-place on this host");
    bed_said("a.conf:4: network = /etc/passwd: this is no program");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_good_is_one_line),
        cmocka_unit_test(all_that_is_wrong_is_told),
        cmocka_unit_test(an_address_that_elmer_leaves_out_is_told),
        cmocka_unit_test(own_names_that_are_loopback_are_refused),
        cmocka_unit_test(other_names_of_this_host_are_refused),
        cmocka_unit_test(addresses_are_tried),
        cmocka_unit_test(ports_of_others_are_told),
        cmocka_unit_test(certificates_are_looked_at),
        cmocka_unit_test(a_ca_that_is_over_stops_nothing),
        cmocka_unit_test(it_looks_as_the_daemon_does),
        cmocka_unit_test(units_that_may_not_write_are_told),
        cmocka_unit_test(files_of_rsd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
