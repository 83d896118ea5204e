/* test_record.c - the process that writes which tickets were used: what it is told after a SIGTERM, which comes to all
 * processes of the unit, is on disk, too; and for whom the last one was. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rsd/tickets/record.h"
#include "tests/unit/scratch.h"

enum { LOOKS = 10000 }; /* of a millisecond */

static char dir[64];
static int used, fd;
static pid_t recorder;

static void begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/test_record.XXXXXX");
    assert_non_null(scratch_dir(dir));
    used = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(used >= 0);
    recorder = record_start(used, &fd);
    assert_true(recorder > 0);
}

static void end(void)
{
    int status;
    close(fd);
    assert_int_equal(waitpid(recorder, &status, 0), recorder);
    assert_int_equal(status, 0);
}

static void tell(uint64_t job)
{
    struct record record;
    memset(&record, 0, sizeof(record));
    record.last.job = job;
    assert_int_equal(write(fd, &record, sizeof(record)), sizeof(record));
}

static uint64_t last_job(void)
{
    struct record_user last;
    record_load_last(used, &last);
    return last.job;
}

static void what_is_told_after_a_sigterm(void **state)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)state;
    begin();
    assert_int_equal(last_job(), 0);
    tell(7);
    for (int i = 0; i < LOOKS && last_job() != 7; i++)
        nanosleep(&pause, NULL);
    assert_int_equal(last_job(), 7);
    assert_int_equal(kill(recorder, SIGTERM), 0);
    for (uint64_t job = 8; job <= 100; job++)
        tell(job);
    end();
    assert_int_equal(last_job(), 100);
    close(used);
}

/* Of an earlier or a later version: nobody is known, until it is written again. */
static void the_last_one_in_another_size(void **state)
{
    char bytes[sizeof(struct record_user) + 8] = {1};
    (void)state;
    begin();
    tell(7);
    end();
    assert_int_equal(last_job(), 7);
    for (size_t size = sizeof(struct record_user) - 8; size <= sizeof(bytes); size += 16) {
        int file = openat(used, "last", O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_int_equal(write(file, bytes, size), size);
        close(file);
        assert_int_equal(last_job(), 0);
    }
    recorder = record_start(used, &fd);
    tell(8);
    end();
    assert_int_equal(last_job(), 8);
    close(used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_after_a_sigterm),
        cmocka_unit_test(the_last_one_in_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
