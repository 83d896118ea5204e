/* test_waits.c - the page by which the processes of a job hear whether it is alone and say how they wait: who makes it,
 * when it is told, and what a job does to it that would rather harm. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rsd/sup/waits.h"
#include "tests/root/bed.h"

static const struct level alone[] = {{1, 0, true}}, above[] = {{1, 0, false}, {2, 1, true}};
static char path[120];

static void run(uint64_t job, const char *script, const char *processors)
{
    const char *argv[] = {"sh", "-c", script, NULL}, *environment[] = {"PATH=/usr/bin:/bin", processors, NULL};
    struct wire_message message = {.type = WIRE_start};
    struct wire_start *start = &message.u.start;
    char dir[100];
    snprintf(dir, sizeof(dir), "%s/work", rig.dir);
    snprintf(path, sizeof(path), "%s/run/jobs/1.1/" WAITS_FILE, rig.dir);
    *start = (struct wire_start){.job = job,
                                 .attempt = 1,
                                 .role = "command",
                                 .argv = {argv, 3},
                                 .environment = {environment, 2},
                                 .dir = dir,
                                 .output = "out",
                                 .errors = "out",
                                 .umask = 022,
                                 .cpus = {&rig.cpu, 1}};
    rig_send(&rig, &message);
    rig_started(&rig);
}

static void begin(const char *script)
{
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    run(1, script, "ELMER_NPROCS=2");
}

static uint32_t told_alone(void)
{
    struct page_head head = {.alone = UINT32_MAX};
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
        head.alone = UINT32_MAX;
    if (fd >= 0)
        close(fd);
    return head.alone;
}

static void put(size_t slot, const struct page_slot *value)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, value, sizeof(*value), (off_t)(offsetof(struct page, slots) + slot * sizeof(*value))),
                     sizeof(*value));
    close(fd);
}

/* The process in slot 7 counts on by so much before each word of it, until one says so. */
static void until_polls(struct page_slot *slot, uint64_t more, const char *polls)
{
    for (int i = 0; i < 20; i++) {
        struct wire_message message;
        slot->rounds += more;
        put(7, slot);
        rig_expect(&rig, WIRE_waits, 2000, &message);
        bool same = strcmp(message.u.waits.polls, polls) == 0;
        assert_int_equal(message.u.waits.job, 1);
        assert_true(message.u.waits.spun_us <= 100 * 1000000);
        wire_message_fini(&message);
        if (same)
            return;
    }
    fail_msg("it is never said that \"%s\" polls", polls);
}

/* The page is its user's and nobody else's; he is told that he is alone, and that he is not before the job below is
 * opened. */
static void test_alone(void **state)
{
    struct stat st;
    (void)state;
    begin("exec sleep 60");
    rig_until(told_alone() == 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, NOBODY);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    rig_order(&rig, 2, above, 2);
    rig_open(&rig, 2, 2);
    rig_until(told_alone() == 0);
    rig_end(&rig, 2, 0);
    rig_empty(&rig, 2, 5000);
    rig_order(&rig, 3, alone, 1);
    rig_until(told_alone() == 1);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Who waits for nobody has no page, and nobody asks him each second. */
static void test_one_processor(void **state)
{
    (void)state;
    rig_order(&rig, 1, alone, 1);
    rig_open(&rig, 1, 1);
    run(1, "exec sleep 60", "ELMER_NPROCS=1");
    rig_expect_none(&rig, WIRE_waits, 1500);
    assert_true(access(path, F_OK) < 0 && errno == ENOENT);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_polls(void **state)
{
    struct page_slot slot = {.pid = 1, .rank = 3, .cannot_sleep = 1};
    struct wire_message resync = {.type = WIRE_resync}, answer;
    (void)state;
    begin("exec sleep 60");
    rig_until(told_alone() == 1);
    until_polls(&slot, 0, "");
    until_polls(&slot, 1000000, "3");
    until_polls(&slot, 0, "");
    slot.cannot_sleep = 0;
    until_polls(&slot, 1000000, "");
    slot.cannot_sleep = 1;
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig); /* the next one asks too */
    rig_send(&rig, &resync);
    rig_expect(&rig, WIRE_root_state, RIG_WAIT_MS, &answer);
    wire_message_fini(&answer);
    until_polls(&slot, 1000000, "3");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* A job that cuts it short, fills it with anything, puts something else in its place: its supervisor lives, and the
 * job ends as any. */
static void test_hostile(void **state)
{
    struct wire_message message;
    (void)state;
    begin("cd \"$ELMER_TMPDIR\"; f=" WAITS_FILE "; i=0; while [ $i -lt 50 ]; do i=$((i+1)); : >$f; "
          "head -c 16384 /dev/urandom >$f; : >$f; head -c 40000 /dev/zero | tr '\\0' '\\377' >$f; done; rm $f; mkfifo "
          "$f; "
          "exec sleep 60");
    for (int i = 0; i < 3; i++) {
        rig_expect(&rig, WIRE_waits, 2000, &message);
        wire_message_fini(&message);
    }
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alone, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_one_processor, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_polls, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_hostile, bed_up, bed_down),
    };
    int possible;
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    return possible ? possible : cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
