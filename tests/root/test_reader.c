/* test_reader.c - output that the supervisor reads for its user: with his rights, and none of another process. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/root/bed.h"

enum { BIG = 40000, PART = 16 << 10 };

static char work[120], output[140];

/* Job 1 writes to work/read, and waits; only its user may read that. */
static void begin(const char *script)
{
    const struct level alone = {1, 0, true};
    const char *argv[] = {"sh", "-c", script, NULL};
    snprintf(work, sizeof(work), "%s/work", rig.dir);
    snprintf(output, sizeof(output), "%s/read", work);
    rig_order(&rig, 1, &alone, 1);
    rig_open(&rig, 1, 1);
    rig_start_at(&rig, 0, argv, work, "read", "read", true);
    rig_started(&rig);
}

static void ask(uint64_t id, uint64_t process, int64_t offset)
{
    struct wire_message message = {.type = WIRE_read_file, .id = id};
    message.u.read_file.job = 1;
    message.u.read_file.attempt = 1;
    message.u.read_file.process = process;
    message.u.read_file.offset = offset;
    rig_send(&rig, &message);
}

static void expect_part(uint64_t id, int64_t offset, int64_t size, const char *data)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
    assert_string_equal(message.u.file_part.text, "");
    assert_int_equal(message.id, id);
    assert_int_equal(message.u.file_part.job, 1);
    assert_int_equal(message.u.file_part.offset, offset);
    assert_int_equal(message.u.file_part.size, size);
    assert_string_equal(message.u.file_part.data, data);
    wire_message_fini(&message);
}

static void expect_refusal(const char *word)
{
    struct wire_message message;
    rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
    assert_string_equal(message.u.file_part.data, "");
    if (!strstr(message.u.file_part.text, word))
        fail_msg("\"%s\" does not say %s", message.u.file_part.text, word);
    wire_message_fini(&message);
}

static off_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* Any bytes, from the beginning, from the end, and what there is not. */
static void test_bytes(void **state)
{
    (void)state;
    begin("printf 'a\\0\\377\\nz'; exec sleep 60");
    rig_until(size_of(output) == 5);
    ask(7, 0, 0);
    expect_part(7, 0, 5, "6100ff0a7a");
    ask(8, 0, -2);
    expect_part(8, 3, 5, "0a7a");
    ask(9, 0, -100);
    expect_part(9, 0, 5, "6100ff0a7a");
    ask(10, 0, 100);
    expect_part(10, 100, 5, "");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
    ask(11, 0, 0); /* of a job that has ended */
    expect_refusal("not");
}

/* As much as fits into a message, and no more. */
static void test_big(void **state)
{
    struct wire_message message;
    (void)state;
    begin("head -c 40000 /dev/zero; exec sleep 60");
    rig_until(size_of(output) == BIG);
    ask(7, 0, -BIG);
    rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
    assert_string_equal(message.u.file_part.text, "");
    assert_int_equal(strlen(message.u.file_part.data), 2 * PART);
    assert_int_equal(message.u.file_part.size, BIG);
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static void test_refused(void **state)
{
    (void)state;
    begin("exec sleep 60");
    ask(7, 1, 0);
    expect_refusal("has not been started here");
    assert_int_equal(unlink(output), 0);
    ask(8, 0, 0);
    expect_refusal("its output cannot be read by nobody: No such file");
    assert_int_equal(symlink("/etc/shadow", output), 0); /* with his own rights only */
    ask(9, 0, 0);
    expect_refusal("its output cannot be read by nobody: Permission denied");
    unlink(output);
    assert_int_equal(symlink("/dev/zero", output), 0); /* no end */
    ask(10, 0, 0);
    expect_refusal("no file with an end");
    unlink(output);
    assert_int_equal(mkfifo(output, 0666), 0); /* nobody writes: it must not wait */
    ask(11, 0, 0);
    expect_refusal("no file with an end");
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

static pid_t supervisor_of(uint64_t job)
{
    pid_t pids[4];
    assert_in_range(rig_pids(&rig, job, "sup", pids, 4), 1, 4);
    return pids[0];
}

static bool is_read(uint64_t id)
{
    struct wire_message message;
    bool read;
    ask(id, 0, 0);
    rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
    read = *message.u.file_part.text == '\0';
    assert_int_equal(message.u.file_part.again, !read);
    wire_message_fini(&message);
    return read;
}

/* The supervisor is above all jobs: some parts at once, and then as many as take 1 % of a CPU, see rsd/root/reading.c.
 */
static void test_cost(void **state)
{
    enum { SECONDS = 4, MS_PER_SECOND = 10 };
    double used, each;
    pid_t supervisor;
    uint64_t id = 0;
    unsigned parts = 0;
    int64_t end;
    (void)state;
    begin("head -c 40000 /dev/zero; exec sleep 60"); /* the job's own: it stays until it is ended */
    rig_until(size_of(output) == BIG);
    supervisor = supervisor_of(1);
    used = -rig_thread_ms(supervisor);
    while (is_read(++id))
        assert_true(id < 1000);
    each = (used + rig_thread_ms(supervisor)) / (double)(id - 1);
    used = -rig_thread_ms(supervisor);
    for (end = rig_now_ms() + SECONDS * 1000; rig_now_ms() < end; poll(NULL, 0, 20))
        parts += is_read(++id);
    used += rig_thread_ms(supervisor);
    print_message("a part: %.3f ms above all jobs, %.1f ms in a second, %u parts\n", each, used / SECONDS, parts);
    assert_true(parts > 0);
    assert_true(used <= SECONDS * MS_PER_SECOND + each);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

/* Who asks twice at once is told so, and neither is lost; a supervisor that a new rsd has adopted reads, too. */
static void test_again(void **state)
{
    struct wire_message message;
    size_t told = 0;
    (void)state;
    begin("echo; exec sleep 60");
    rig_until(size_of(output) == 1);
    for (uint64_t i = 0; i < 60; i++)
        ask(100 + i, 0, 0);
    for (int i = 0; i < 60; i++) {
        rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
        assert_true(message.u.file_part.again == (*message.u.file_part.text != '\0'));
        told += message.u.file_part.again;
        wire_message_fini(&message);
    }
    assert_in_range(told, 1, 59);
    assert_true(60 - told < 40); /* so many at once, and what a slow machine takes for it */
    rig_root_kill(&rig, SIGKILL);
    rig_root_start(&rig);
    resync(&message);
    do { /* until it may be read again */
        ask(7, 0, 0);
        wire_message_fini(&message);
        rig_expect(&rig, WIRE_file_part, RIG_WAIT_MS, &message);
    } while (message.u.file_part.again);
    assert_string_equal(message.u.file_part.data, "0a");
    wire_message_fini(&message);
    rig_end(&rig, 1, 0);
    rig_empty(&rig, 1, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_big, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_refused, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_cost, bed_up, bed_down),
        cmocka_unit_test_setup_teardown(test_again, bed_up, bed_down),
    };
    int possible;
    alarm(300); /* whatever goes wrong: an end */
    possible = rig_possible();
    if (possible != 0)
        return possible;
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
