/* test_lease.c - jobs with a lease on this machine's kernel: nothing of them is left when the lease is over, whichever
 * part of rsd is dead or stands still by then. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/root/bed.h"

enum { LEASE_MS = 3000, LATE_MS = 1000 /* of a busy machine; elmer's margin is more */ };

static const char *const stubborn[] = {"sh", "-c", "trap '' TERM; sleep 120; sleep 120", NULL};
static const char *const slow[] = {"sh", "-c", "trap : TERM; echo; while :; do sleep 1; done", NULL};
static const char *const soft[] = {"sleep", "120", NULL};

static int up(void **state)
{
    const struct level levels[] = {{1, 0, true}};
    bed_up(state);
    rig_order(&rig, 1, levels, 1);
    return 0;
}

/* Returns when, by the clock of contacts, it was. */
static int64_t contact(int64_t said_ms)
{
    struct wire_message message = {.type = WIRE_contact, .u.contact.said_ms = (uint64_t)said_ms};
    rig_send(&rig, &message);
    return said_ms;
}

static void expect_opened(void)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_opened, 5000, &message);
    wire_message_fini(&message);
}

static int64_t run(const char *const *argv)
{
    int64_t said_ms = contact(boot_ms());
    rig_ask_open(&rig, 1, 1, LEASE_MS);
    expect_opened();
    rig_run(&rig, 1, argv);
    return said_ms;
}

/* Whether there are any; the group may vanish meanwhile. */
static size_t processes(void)
{
    char path[4300], text[100];
    snprintf(path, sizeof(path), "%s/1.1/job/cgroup.procs", rig.groups);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, sizeof(text), file) : 0;
    if (file)
        fclose(file);
    return got;
}

/* It lives at first, and nothing of it is left when its lease is over. */
static void ends_in_time(int64_t said_ms)
{
    assert_true(processes() > 0);
    while (processes() > 0) {
        if (boot_ms() > said_ms + LEASE_MS + LATE_MS)
            fail_msg("it runs longer than its lease");
        poll(NULL, 0, 10);
    }
    assert_true(boot_ms() >= said_ms + LEASE_MS / 2 - LATE_MS);
    print_message("ended %d ms after the contact\n", (int)(boot_ms() - said_ms));
}

/* It has written its line. */
static bool has_begun(void)
{
    char path[100];
    struct stat status;
    snprintf(path, sizeof(path), "%s/work/out", rig.dir);
    return stat(path, &status) == 0 && status.st_size > 0;
}

static void expect_lost(const char *words)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_lost, 5000, &message);
    if (!strstr(message.u.lost.text, words))
        fail_msg("\"%s\" does not say \"%s\"", message.u.lost.text, words);
    wire_message_fini(&message);
}

static void is_final(void)
{
    struct wire_message message;
    contact(boot_ms());
    rig_ask_open(&rig, 1, 1, LEASE_MS);
    rig_expect(&rig, WIRE_open_failed, 5000, &message);
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Lost, not exited: how its processes take that is not told. */
static void test_ends_by_itself(void **state)
{
    int64_t said_ms = run(stubborn);
    (void)state;
    ends_in_time(said_ms);
    expect_lost("had no contact with elmer");
    rig_expect_none(&rig, WIRE_exited, 200);
    is_final();
}

static void test_contacts_keep_it(void **state)
{
    int64_t said_ms = run(soft), begin_ms = said_ms;
    (void)state;
    contact(boot_ms() + 3600000); /* not in the future, whatever the network half says */
    while (boot_ms() < begin_ms + 2 * LEASE_MS) {
        said_ms = contact(boot_ms());
        poll(NULL, 0, 200);
    }
    contact(begin_ms); /* an older one takes nothing away */
    ends_in_time(said_ms);
    expect_lost("had no contact");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Without contact nothing begins; elmer sends it again. */
static void test_needs_a_contact(void **state)
{
    (void)state;
    rig_ask_open(&rig, 1, 1, LEASE_MS);
    contact(boot_ms() - LEASE_MS);
    rig_ask_open(&rig, 1, 1, LEASE_MS);
    rig_expect_none(&rig, WIRE_opened, 300);
    assert_false(rig_exists(&rig, 1));
    contact(boot_ms());
    rig_ask_open(&rig, 1, 1, LEASE_MS);
    expect_opened();
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_no_lease_no_end(void **state)
{
    const struct level alone = {1, 0, true};
    (void)state;
    contact(boot_ms());
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, soft);
    rig_expect_none(&rig, WIRE_lost, LEASE_MS);
    assert_true(processes() > 0);
    rig_order(&rig, 2, &alone, 1);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* A long grace of an end that was asked for ends with the lease, too. */
static void test_shortens_a_grace(void **state)
{
    int64_t said_ms = run(slow);
    (void)state;
    rig_until(has_begun());
    rig_end(&rig, 1, 60000);
    ends_in_time(said_ms);
    assert_true(boot_ms() > said_ms + LEASE_MS / 2);
    rig_empty(&rig, 1, 5000);
}

/* rsd is dead: its supervisor does it. The next rsd finds nothing. */
static void test_rsd_dead(void **state)
{
    int64_t said_ms = run(stubborn);
    (void)state;
    rig_root_kill(&rig, SIGKILL);
    ends_in_time(said_ms);
    rig_root_start(&rig);
    expect_holdings(0);
    rig_expect_none(&rig, WIRE_exited, 200);
    assert_false(rig_exists(&rig, 1));
}

/* The same when it stands still; when it goes on it says that the job is lost. */
static void test_rsd_frozen(void **state)
{
    int64_t said_ms = run(stubborn);
    (void)state;
    kill(rig.root_half, SIGSTOP);
    ends_in_time(said_ms);
    kill(rig.root_half, SIGCONT);
    expect_lost("");
    rig_expect_none(&rig, WIRE_exited, 200);
    is_final();
}

/* The next rsd knows the lease of what it adopts, and counts from what it hears itself. */
static void test_adopted(void **state)
{
    int64_t said_ms = run(stubborn);
    char path[120];
    (void)state;
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    expect_holdings(1);
    for (int i = 0; i < LEASE_MS / 200 + 3; i++) {
        said_ms = contact(boot_ms());
        poll(NULL, 0, 200);
    }
    ends_in_time(said_ms);
    expect_lost("had no contact with elmer");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    snprintf(path, sizeof(path), "%s/run/sup/1.1.lease", rig.dir);
    assert_int_equal(access(path, F_OK), -1);
}

/* elmer may have died between, and use the number of the attempt again. */
static void test_end_of_what_never_was(void **state)
{
    struct wire_message message;
    (void)state;
    rig_end(&rig, 1, 0);
    rig_expect(&rig, WIRE_empty, 5000, &message);
    wire_message_fini(&message);
    expect_holdings(0);
    rig_open(&rig, 1, 1);
    rig_run(&rig, 1, soft);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, bed_down)
        TEST(test_ends_by_itself),  TEST(test_contacts_keep_it), TEST(test_needs_a_contact),
        TEST(test_no_lease_no_end), TEST(test_shortens_a_grace), TEST(test_rsd_dead),
        TEST(test_rsd_frozen),      TEST(test_adopted),          TEST(test_end_of_what_never_was),
    };
    int possible;
    alarm(900); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
