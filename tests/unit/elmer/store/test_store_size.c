/* test_store_size.c - the file of the store gets smaller again, while it is written. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elmer/store/sql.h"
#include "lib/base/clock.h"
#include "tests/unit/elmer/store/store_bed.h"

enum { JOBS = 3000, KEPT = 100, TEXT_BYTES = 3000, LONG_BYTES = STORE_LARGE_BYTES + 100, LINE_BYTES = 4000 };

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_size;
}

static int64_t pragma(const char *path, const char *sql)
{
    sqlite3 *db;
    struct err err = ERR_INIT;
    int64_t value = -1;
    assert_int_equal(sql_open(path, false, &db, &err), 0);
    assert_int_equal(sql_integer(db, sql, &value, &err), 0);
    sqlite3_close(db);
    return value;
}

/* The next one has an environment of some KB. */
static struct record *make_large(uint64_t id)
{
    struct record *r = make_ended(id, (int64_t)id * 1000);
    char *text = arena_alloc(&r->memory, TEXT_BYTES + 1);
    memset(text, 'x', TEXT_BYTES);
    text[TEXT_BYTES] = 0;
    r->text = text;
    return r;
}

static void fill(struct bed *bed)
{
    uint64_t last = 0;
    for (uint64_t id = 1; id <= JOBS; id++)
        last = store_put(bed->store, make_large(id));
    await(bed, last);
}

static void wait_for_size(struct bed *bed, uint64_t *id, off_t wanted)
{
    enum { WRITES = 20000 };
    for (int i = 0; size_of(bed->path) > wanted; i++) {
        if (i == WRITES)
            fail_msg("the store still has %lld bytes, not %lld", (long long)size_of(bed->path), (long long)wanted);
        uint64_t number = store_put(bed->store, make(++*id, 5, "", JOB_DONE, false)); /* of no job: a commit alone */
        store_want(bed->store, number);
        await(bed, number);
        store_trim(bed->store, &(struct store_limits){.jobs = KEPT, .age_ms = INT64_C(1) << 50});
    }
}

static void test_shrinks(void **state)
{
    struct bed *bed = *state;
    struct err err;
    uint64_t id = JOBS;
    fill(bed);
    close_store(bed);
    off_t full = size_of(bed->path);
    assert_true(full > (off_t)JOBS * TEXT_BYTES);
    assert_int_equal(open_store(bed, &err), 0);
    wait_for_size(bed, &id, full / 5);
    assert_int_equal(history(bed, INT64_MAX, "", 400), KEPT);
    assert_int_equal(bed->found[0]->id, JOBS);
    drop_found(bed);
    close_store(bed);
    assert_true(pragma(bed->path, "PRAGMA freelist_count") > 0); /* some are kept for what comes */
    assert_int_equal(open_store(bed, &err), 0);
    close_store(bed);
}

/* One that an elmer of before has made becomes such a file when it is small. */
static void test_from_before(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    sqlite3 *db;
    await(bed, store_put(bed->store, make_ended(1, 1000)));
    close_store(bed);
    assert_int_equal(pragma(bed->path, "PRAGMA auto_vacuum"), 2);
    assert_int_equal(sql_open(bed->path, true, &db, &err), 0);
    if (sql_execute(db, "PRAGMA auto_vacuum = NONE; VACUUM", &err))
        fail_msg("%s", err.text);
    sqlite3_close(db);
    assert_int_equal(pragma(bed->path, "PRAGMA auto_vacuum"), 0);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(history(bed, INT64_MAX, "", 10), 1);
    drop_found(bed);
    close_store(bed);
    assert_int_equal(pragma(bed->path, "PRAGMA auto_vacuum"), 2);
}

static void test_copy(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    char copy[80];
    snprintf(copy, sizeof(copy), "%s/copy", bed->dir);
    await(bed, store_put(bed->store, make_ended(1, 1000)));
    assert_int_equal(store_copy(bed->path, copy, &err), 0);
    assert_int_equal(pragma(copy, "PRAGMA auto_vacuum"), 2);
    unlink(copy);
    close_store(bed);
}

/* ---- a clock that was wrong ---- */

/* After a power cut the clock is forty days ahead, and by it a job ends: the others are not older for that. */
static void test_clock_ahead(void **state)
{
    struct bed *bed = *state;
    const int64_t day = 86400000, now = wall_now().ms;
    struct err err;
    for (uint64_t id = 1; id <= 8; id++)
        store_put(bed->store, make_ended(id, now - 40 * day - (int64_t)id));
    await(bed, 8);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    await(bed, store_put(bed->store, make_ended(9, now)));
    store_trim(bed->store, &(struct store_limits){.jobs = 7, .age_ms = 30 * day}); /* seven: to see that it was done */
    await_history(bed, 7);
    drop_found(bed);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0); /* also if elmer is restarted meanwhile, and a job has ended by it */
    store_trim(bed->store, &(struct store_limits){.jobs = 6, .age_ms = 30 * day});
    await_history(bed, 6);
    drop_found(bed);
    close_store(bed);
}

static void test_age(void **state)
{
    const int64_t day = 86400000;
    struct trim_clock clock = {.opened_ms = 100 * day, .opened_mono_ms = 5, .last_end_ms = 60 * day};
    (void)state;
    assert_int_equal(trim_age(&clock, 50 * day, 6), 50 * day);
    assert_true(trim_age(&clock, 30 * day, 6) > 100 * day);
    assert_int_equal(trim_age(&clock, 30 * day, 5 + day), 30 * day);
    clock.last_end_ms = 0; /* no job has ended yet */
    assert_int_equal(trim_age(&clock, 30 * day, 6), 30 * day);
    clock.last_end_ms = 200 * day; /* behind */
    assert_int_equal(trim_age(&clock, 30 * day, 6), 30 * day);
}

static int64_t certificates(struct bed *bed)
{
    return pragma(bed->path, "SELECT count(*) FROM certificate");
}

/* Renewals leave one behind each. */
static void test_certificates(void **state)
{
    struct bed *bed = *state;
    const int64_t day = 86400000, now = wall_now().ms;
    uint64_t last = 0;
    for (int i = 0; i < 30; i++) {
        struct certificate c = {.host = "ws1", .issued_ms = now - (i + 1) * day, .end_ms = now - i * day};
        snprintf(c.serial, sizeof(c.serial), "AA%02d", i);
        c.revoked_ms = i % 3 ? c.end_ms - 1 : 0; /* one that nobody has revoked stays */
        last = store_put_certificate(bed->store, &c);
    }
    await(bed, last);
    store_trim(bed->store, &(struct store_limits){.jobs = 100, .age_ms = 10 * day});
    for (int i = 0; certificates(bed) != 16; i++)
        if (i == 3000)
            fail_msg("%d certificates", (int)certificates(bed));
    close_store(bed);
}

/* ---- large submissions ---- */

/* Bytes, of which not one is a character of its own. */
static struct record *make_long(uint64_t id)
{
    static const char character[] = "\xF0\x9F\x98\x80";
    static char text[LONG_BYTES + sizeof(character)], line[LINE_BYTES + sizeof(character)];
    const char *command[] = {"/bin/x", id % 4 == 1 ? text : text + LINE_BYTES};
    struct record *r = make_ended(id, (int64_t)id * 1000);
    struct wire_message m = {
        .type = WIRE_submit,
        .u.submit = {.token = r->token, .nprocs = 2, .each = true, .name = "x", .dir = "/d", .command = {command, 2}}};
    struct err err = ERR_INIT;
    char *json;
    for (size_t i = 0; i < LONG_BYTES; i += strlen(character))
        memcpy(text + i, character, sizeof(character));
    memcpy(line, text, LINE_BYTES);
    if (id % 4 == 3)
        r->line = line; /* with what is left of the command it is large */
    assert_int_equal(record_json(&m, &json, &r->json_minor, &err), 0);
    r->json = arena_strdup(&r->memory, json);
    free(json);
    return r;
}

/* Waits until so many small ones are left, and as many large ones, of which the first returned is the oldest. */
static uint64_t oldest_long(struct bed *bed, size_t small, size_t large)
{
    uint64_t oldest = 0;
    size_t count = 0;
    await_history(bed, small + large);
    for (size_t i = 0; i < bed->nfound; i++)
        if (bed->found[i]->id % 2) {
            oldest = bed->found[i]->id; /* the latest first */
            count++;
        }
    assert_int_equal(count, large);
    return oldest;
}

static int64_t in_use(const struct bed *bed)
{
    return (pragma(bed->path, "PRAGMA page_count") - pragma(bed->path, "PRAGMA freelist_count")) *
           pragma(bed->path, "PRAGMA page_size");
}

/* Who submits long commands and cancels them fills the disk; the jobs of others stay. */
static void test_large_ones_give_way(void **state)
{
    const int64_t old_ms = INT64_C(1) << 50;
    struct bed *bed = *state;
    struct store_limits limits = store_limits_of(2 * KEPT - 1, old_ms);
    uint64_t last = 0;
    for (uint64_t id = 1; id <= 2 * KEPT; id++)
        last = store_put(bed->store, id % 2 ? make_long(id) : make_ended(id, (int64_t)id * 1000));
    await(bed, last);
    assert_true(limits.bytes > STORE_OTHER_BYTES && limits.large_bytes > 0);
    limits.bytes = 1;
    store_trim(bed->store, &limits); /* much too much, but of others: the first one goes, by its number */
    assert_int_equal(oldest_long(bed, KEPT, KEPT - 1), 3);
    limits.bytes = in_use(bed) - 1;
    limits.large_bytes = 0;
    store_trim(bed->store, &limits); /* a little too much */
    assert_int_equal(oldest_long(bed, KEPT, KEPT - 1 - TRIM_LARGE), 2 * TRIM_LARGE + 3);
    limits.bytes = 1; /* more than can be removed */
    limits.large_bytes = (KEPT - 2 * TRIM_LARGE) * LONG_BYTES;
    store_trim(bed->store, &limits);
    assert_int_equal(oldest_long(bed, KEPT, KEPT - 1 - 2 * TRIM_LARGE), 4 * TRIM_LARGE + 3);
    limits.jobs = 2 * KEPT - 2 - 2 * TRIM_LARGE;
    store_trim(bed->store, &limits); /* as many as they may be; only the oldest one goes, which is small */
    assert_int_equal(oldest_long(bed, KEPT - 1, KEPT - 1 - 2 * TRIM_LARGE), 4 * TRIM_LARGE + 3);
    limits.large_bytes = 0;
    store_trim(bed->store, &limits);
    (void)oldest_long(bed, KEPT - 1, 0);
    drop_found(bed);
    close_store(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clock_ahead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_certificates, setup, teardown),
        cmocka_unit_test(test_age),
        cmocka_unit_test_setup_teardown(test_shrinks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_from_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_ones_give_way, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
