/* test_settings.c - elmer.conf: defaults, values, and what is wrong with it. */
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

#include "elmer/settings.h"

static int load_watched(const char *text, const struct ini_watch *watch, struct settings *settings, struct err *err)
{
    char path[] = "/tmp/elmer-conf-XXXXXX";
    int fd = mkstemp(path);
    *err = (struct err)ERR_INIT;
    *settings = (struct settings){0};
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int result = settings_load_watched(settings, path, true, watch, err);
    unlink(path);
    return result;
}

static int load(const char *text, struct settings *settings, struct err *err)
{
    return load_watched(text, NULL, settings, err);
}

static void wrong(const char *text, const char *words)
{
    struct settings settings;
    struct err err;
    int result = load(text, &settings, &err);
    if (result >= 0)
        fail_msg("accepted: %s", text);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
}

static void test_settings(void **state)
{
    struct settings s;
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(settings_load(&s, "/nonexistent/elmer.conf", false, &err), 0);
    assert_int_equal(s.nhosts, 1);
    assert_string_equal(s.hosts[0].name, s.name);
    assert_null(s.listen);
    assert_int_equal(s.core.levels, 3);
    assert_int_equal(s.core.allocator, ALLOCATOR_V2);
    assert_int_equal(s.core.policy, POLICY_FCFS);
    assert_int_equal(s.core.fresh_ms, 6000);
    assert_int_equal(s.minimum_uid, 1000);
    assert_int_equal(s.host_messages, 10000);
    assert_true(s.host_messages_burst > s.user_requests_burst);
    settings_fini(&s);
    assert_int_equal(settings_load(&s, "/nonexistent/elmer.conf", true, &err), -ENOENT);

    assert_int_equal(
        load("[host b]\ncpus = 0-2,5\naddress = 10.0.0.2\n[elmer]\nadmin_hosts = b, c\nhosts = a b, c\nlisten = "
             "0.0.0.0:6500\nlevels = 4\nallocator = v1\n"
             "threshold = 0.5\nreport_interval = 500ms\nfresh_intervals = 4\nsettle = 1s\nkill_grace = 0\n",
             &s, &err),
        0);
    assert_int_equal(s.nhosts, 3);
    assert_string_equal(s.hosts[1].name, "b");
    assert_int_equal(s.hosts[1].ncpus, 4);
    assert_int_equal(s.hosts[1].cpus[3], 5);
    assert_string_equal(s.hosts[1].address, "10.0.0.2");
    assert_null(s.hosts[0].cpus);
    assert_true(!s.hosts[0].admin && s.hosts[1].admin && s.hosts[2].admin);
    assert_int_equal(s.core.levels, 4);
    assert_int_equal(s.core.fresh_ms, 2000);
    assert_int_equal(s.core.settle_ms, 1000);
    assert_int_equal(s.kill_grace_ms, 0);
    settings_fini(&s);
}

/* In a cube there is one level, and an allocator for it. */
static void test_settings_cube(void **state)
{
    struct settings s;
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(load("[elmer]\nhosts = a b c d\ntopology = cube\n", &s, &err), 0);
    assert_int_equal(s.core.topology, TOPOLOGY_CUBE);
    assert_int_equal(s.core.levels, 1);
    assert_int_equal(s.core.allocator, ALLOCATOR_CUBE_AFL);
    settings_fini(&s);
}

static void test_settings_wrong(void **state)
{
    (void)state;
    wrong("[elmer]\nlevls = 3\n", ":2: ");
    wrong("[elmer]\nlevls = 3\n", "levels");
    wrong("[elmer]\nlevels = 17\n", "17");
    wrong("[elmer]\nlevels = 17\n", "16");
    wrong("[elmer]\nlevels = 0\n", "levels");
    wrong("[elmer]\nthreshold = 1.0\n", "threshold");
    wrong("[elmer]\nthreshold = nan\n", "nan");
    wrong("[elmer]\nallocator = v3\n", "known are: ");
    wrong("[elmer]\nallocator = v3\n", core_allocator_names());
    wrong("[elmer]\npolicy = lcfs\n", "known are: ");
    wrong("[elmer]\npolicy = lcfs\n", core_policy_names());
    wrong("[elmer]\ntopology = ring\n", "known are: none cube");
    wrong("[elmer]\nallocator = cube-afl\n", "topology = cube");
    wrong("[elmer]\ntopology = cube\nlevels = 2\n", "levels must be 1");
    wrong("[elmer]\nhosts = a b c\ntopology = cube\n", "power of two");
    wrong("[elmer]\nlisten = 6500\n", "HOST:PORT");
    wrong("[elmer]\nlisten = 127.0.0.1:6500\ntransport = plain\n", ":3: ");
    wrong("[elmer]\nlisten = 127.0.0.1:6500\ntransport = plain\n", "take this line out, then as root \"eadmin init\"");
    wrong("[elmer]\nhistory_days = 30\n", ":2: history_days = 30: the key is called history_age, and takes a unit: "
                                          "write history_age = 30d");
    wrong("[elmer]\nhistory_days = a year\n", "write history_age = 365d");
    wrong("[elmer]\nhistory_day = 30\n", "the nearest known key is history_age");
    wrong("[elmer]\npki = certificates\n", "must begin with '/'");
    wrong("[elmer]\nhosts = a b a\n", "twice");
    wrong("[elmer]\nhosts = a -b\n", "-b");
    wrong("[elmer]\nhosts = ,\n", "no host");
    wrong("[elmer]\nadmin_hosts = a, c\nhosts = a b\n", ":2: admin_hosts: \"c\" is no host");
    wrong("[elmer]\nhosts = a\n[host b]\ncpus = 0\n", ":4: section [host b]");
    wrong("[host b]\naddress = 10.0.0.1\n[elmer]\nhosts = a\n", ":2: section [host b]");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = 1,0\n", "increase");
    wrong("[elmer]\nhosts = a\n[host b]\naddress = b\n", ":4: section [host b]");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = x\n", "CPU numbers");
    wrong("[elmer]\nhosts = a\n[host a]\ncpus = 0-70000\n", "CPU numbers");
    wrong("[elmer]\nhosts = a\n[host a]\ncpu = 0\n", "cpus");
    wrong("[elmer]\nstore = elmer.db\n", "'/'");
    wrong("[elmer]\nheartbeat = 20s\n", ":2: host_timeout");
    wrong("[elmer]\nheartbeat = 20s\nhost_timeout = 30s\n", ":3: host_timeout");
    wrong("[elmer]\nlease = 4s\n", "lease");
    wrong("[elmer]\nlease = 10s\n", ":2: lease (10000 ms) must be at least three times the heartbeat");
    wrong("[elmer]\nheartbeat = 10s\nlease = 20s\n", ":3: lease");
    wrong("[elmer]\nseed = -1\n", "seed");
    wrong("[elmer]\nhost_messages = 99\n", "host_messages");
    wrong("[elmer]\nhost_messages_burst = 999\n", "host_messages_burst");
    wrong("[elmer]\nkill_grace = soon\n", "soon");
    wrong("[emler]\nlevels = 3\n", "elmer");
}

static char faults[1000];

static void on_problem(const char *text, void *data)
{
    (void)data;
    fail_msg("%s", text);
}

static void on_fault(const char *text, void *data)
{
    (void)data;
    snprintf(faults, sizeof(faults), "%s", text);
}

/* The address of host a is a fault, but elmer begins, with none in its place. */
static void left_out(const char *address)
{
    const struct ini_watch watch = {.problem = on_problem, .fault = on_fault};
    char text[200], line[100];
    struct settings s;
    struct err err;
    faults[0] = 0;
    snprintf(text, sizeof(text), "[elmer]\nhosts = a\n[host a]\ncpus = 1\naddress = %s\n", address);
    snprintf(line, sizeof(line), ":5: address = %s: no numeric IPv4 address", address);
    assert_int_equal(load_watched(text, &watch, &s, &err), 0);
    assert_string_equal(err.text, "");
    if (!strstr(faults, line))
        fail_msg("\"%s\" does not contain \"%s\"", faults, line);
    assert_null(s.hosts[0].address);
    assert_int_equal(s.hosts[0].cpus[0], 1);
    assert_int_equal(s.ngiven, 2); /* so a reload sees no change from no address to this one */
    settings_fini(&s);
    assert_int_equal(load(text, &s, &err), 0); /* and who wants to hear of nothing */
    settings_fini(&s);
}

/* A release took any word. */
static void test_faulty_address(void **state)
{
    (void)state;
    left_out("a");
    left_out("2001:db8::1");
    left_out("10.0.0");
    left_out("ws2.example.org");
}

static char changes[1000];

static void on_changed(const struct settings_change *change, void *data)
{
    size_t used = strlen(changes);
    (void)data;
    snprintf(changes + used, sizeof(changes) - used, "%s%s%s%s;", change->name, *change->host ? " " : "", change->host,
             change->live ? "" : "!");
}

/* What counts at once, and, with a '!', what needs a restart. */
static void expect_changes(const char *was, const char *is, const char *expected)
{
    struct settings running, next;
    struct err err = ERR_INIT;
    changes[0] = 0;
    assert_int_equal(load(was, &running, &err), 0);
    assert_int_equal(load(is, &next, &err), 0);
    settings_adopt(&running, &next, on_changed, NULL);
    assert_string_equal(changes, expected);
    settings_fini(&running);
    settings_fini(&next);
}

#define TWO       "[elmer]\nhosts = a b\n"
#define ONE       "[elmer]\nhosts = a\n"
#define OF_B(key) "[host b]\n" key "\n"

static void test_reload_of_hosts(void **state)
{
    (void)state;
    expect_changes(TWO, TWO, "");
    expect_changes(ONE, TWO OF_B("cpus = 1"), "hosts;cpus b;");
    expect_changes(TWO OF_B("cpus = 1"), TWO OF_B("cpus = 2"), "cpus b!;");
    expect_changes(TWO OF_B("cpus = 1"), TWO, "cpus b!;");
    expect_changes(TWO OF_B("cpus = 1\naddress = 10.0.0.2"), ONE, "hosts;");          /* its section goes with it */
    expect_changes(TWO OF_B("address = ws2"), TWO OF_B("address = ws2.example"), ""); /* faults: there is none */
    expect_changes(TWO OF_B("address = 10.0.0.2"), TWO OF_B("address = ws2"), "address b!;");
    expect_changes(TWO OF_B("address = ws2"), TWO OF_B("address = 10.0.0.2"), "address b!;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_settings), cmocka_unit_test(test_settings_wrong),
                                       cmocka_unit_test(test_settings_cube), cmocka_unit_test(test_faulty_address),
                                       cmocka_unit_test(test_reload_of_hosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
