/* test_journal.c - what the journal is told, that it finds the entry of the catalog, and that it never makes us wait.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/journal.h"
#include "lib/base/log.h"
#include "tests/unit/scratch.h"

static const char *record_of(int level, const char *format, const char *text)
{
    static char record[JOURNAL_RECORD_MAX];
    size_t size = journal_record("elmer", level, format, text, record);
    assert_true(size < sizeof(record));
    record[size] = '\0';
    return record;
}

static void test_fields(void **state)
{
    (void)state;
    assert_string_equal(record_of(LOG_LEVEL_INFO, "x", "job=12 user=alice done exit=7 ran=61s hosts=ws2,ws3+4"),
                        "PRIORITY=6\nSYSLOG_IDENTIFIER=elmer\nSYSLOG_FACILITY=3\nELMER_JOB=12\nELMER_USER=alice\n"
                        "ELMER_HOST=ws2\nELMER_HOST=ws3\n"
                        "MESSAGE=job=12 user=alice done exit=7 ran=61s hosts=ws2,ws3+4\n");
}

/* What others have chosen stands behind a colon, a quote or a parenthesis, and makes no field. */
static void test_forged(void **state)
{
    static const char *const lines[] = {"host=ws2 drained by=carol reason=\"job=9 user=root\" from=ws1",
                                        "host=ws2 is given up: job=9 user=root", "host=ws2 link (job=9) user=root"};
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *record = record_of(LOG_LEVEL_NOTICE, "x", lines[i]);
        assert_non_null(strstr(record, "\nELMER_HOST=ws2\n"));
        assert_null(strstr(record, "\nELMER_JOB="));
        assert_null(strstr(record, "\nELMER_USER="));
    }
}

/* However much is in it: whole lines. */
static void test_much(void **state)
{
    char text[4000] = "hosts=";
    const char *record;
    unsigned count = 0;
    (void)state;
    for (int i = 0; i < 400; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sws%d", i > 0 ? "," : "", i);
    record = record_of(LOG_LEVEL_INFO, "x", text);
    for (const char *at = record; (at = strstr(at, "ELMER_HOST=")); at++)
        count++;
    assert_int_equal(count, 16);
    assert_int_equal(record[strlen(record) - 1], '\n');
    memset(text, 'a', sizeof(text) - 1);
    record = record_of(LOG_LEVEL_INFO, "x", text);
    assert_int_equal(record[strlen(record) - 1], '\n');
    assert_non_null(strstr(record, text));
}

/* The number does not depend on the width of a type, nor on what is filled in. */
static void test_id(void **state)
{
    char a[JOURNAL_ID_SIZE], b[JOURNAL_ID_SIZE];
    (void)state;
    journal_id("job=%lu was lost after %d s: %s", a);
    journal_id("job=%llu was lost after %-5zu s: %.10s", b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 32);
    journal_id("job=%lu was found after %d s: %s", b);
    assert_string_not_equal(a, b);
    journal_id("%s", a);
    assert_string_equal(a, "");
    assert_null(strstr(record_of(LOG_LEVEL_NOTICE, "a line of words", "x"), "MESSAGE_ID"));
    assert_non_null(strstr(record_of(LOG_LEVEL_WARNING, "a line of words", "x"), "\nMESSAGE_ID="));
}

/* The entries that tests/lint/catalog has written have the numbers that are sent. */
static void test_catalog(void **state)
{
    char id[JOURNAL_ID_SIZE], entry[60], line[300];
    FILE *file = fopen(TOP_SRCDIR "/systemd/elmer.catalog", "r");
    bool found = false;
    (void)state;
    assert_non_null(file);
    journal_id("host=%s is down: nothing heard for %" PRId64 " s; its jobs end", id);
    snprintf(entry, sizeof(entry), "-- %s\n", id);
    while (!found && fgets(line, sizeof(line), file))
        found = strcmp(line, entry) == 0;
    assert_true(found);
    assert_non_null(fgets(line, sizeof(line), file));
    assert_string_equal(line, "Subject: host=<host> is down: nothing heard for <n> s; its jobs end\n");
    fclose(file);
}

/* A journal that reads nothing: lines are lost, and nobody waits. */
static void test_full(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dir[] = "/tmp/elmer-journal-XXXXXX", bytes[1000];
    int server, client;
    bool taken = true;
    int64_t begin_ms;
    (void)state;
    assert_non_null(scratch_dir(dir));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir);
    assert_true(journal_open(address.sun_path) < 0); /* nobody is there */
    server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof(address)), 0);
    client = journal_open(address.sun_path);
    assert_true(client >= 0);
    assert_true(journal_send(client, "MESSAGE=x\n", 10));
    assert_int_equal(recv(server, bytes, sizeof(bytes), 0), 10);
    begin_ms = mono_ms(mono_now());
    for (int i = 0; taken && i < 1000000; i++)
        taken = journal_send(client, "MESSAGE=x\n", 10);
    assert_false(taken);
    assert_true(mono_ms(mono_now()) - begin_ms < 20000);
    close(server);
    assert_false(journal_send(client, "MESSAGE=x\n", 10)); /* it is gone */
    close(client);
    unlink(address.sun_path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields),  cmocka_unit_test(test_forged),
                                       cmocka_unit_test(test_much),    cmocka_unit_test(test_id),
                                       cmocka_unit_test(test_catalog), cmocka_unit_test(test_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
