/* test_columns.c - every field of job.def that is stored comes back, and the store has exactly those columns. It goes
 * over the table, so that a field which is forgotten somewhere fails. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elmer/store/columns.h"
#include "elmer/store/sql.h"
#include "tests/unit/scratch.h"

struct bed {
    char dir[40], path[60];
    sqlite3 *db;
    struct sql_writer *writer;
    struct sql_reader reader;
};

static void open_bed(struct bed *bed)
{
    struct err err = ERR_INIT;
    bool checked;
    if (sql_open(bed->path, true, &bed->db, &err) || sql_prepare(bed->db, bed->path, &checked, &err) ||
        sql_writer_create(bed->db, &bed->writer, &err) || sql_open(bed->path, false, &bed->reader.db, &err))
        fail_msg("%s", err.text);
}

static void close_bed(struct bed *bed)
{
    sql_reader_close(&bed->reader);
    sql_writer_destroy(bed->writer);
    sqlite3_close(bed->db);
}

static int setup(void **state)
{
    static struct bed bed;
    bed = (struct bed){.dir = "/tmp/elmer-columns-XXXXXX"};
    assert_non_null(scratch_dir(bed.dir));
    snprintf(bed.path, sizeof(bed.path), "%s/db", bed.dir);
    open_bed(&bed);
    *state = &bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    close_bed(bed);
    unlink(bed->path);
    assert_int_equal(rmdir(bed->dir), 0);
    return 0;
}

/* ---- a value of its own for each field ---- */

static void fill_number(void *value, size_t size, int number)
{
    const uint64_t wide = (uint64_t)number;
    if (size == 8)
        memcpy(value, &wide, size);
    else if (size == 4)
        memcpy(value, &number, size);
    else
        *(bool *)value = true;
}

static void fill_text(void *value, size_t size, int number)
{
    (void)size;
    static char texts[64][32];
    assert_in_range(number, 0, 63);
    snprintf(texts[number], sizeof(texts[number]), "text %d \"\xc3\xa9\"", number);
    *(const char **)value = texts[number];
}

static void fill_state(void *value, size_t size, int number)
{
    (void)number;
    memcpy(value, &(enum job_state){JOB_ENDING}, size);
}

static void fill_reason(void *value, size_t size, int number)
{
    (void)number;
    memcpy(value, &(enum reason){REASON_KILLED}, size);
}

#define FILLER_OF(name)                                                                                                \
    (strcmp(#name, "state") == 0    ? fill_state                                                                           \
     : strcmp(#name, "reason") == 0 ? fill_reason                                                                          \
                                : _Generic(r->name, const char *: fill_text, default: fill_number))
#define FILL(name)                       FILLER_OF(name)(&r->name, sizeof(r->name), ++number);
#define FILL_KEPT(name, type, cell, ...) JOB_IF_(IS_VALUE_##cell, FILL(name))
#define IS_VALUE_VALUE(ctype)            YES
#define IS_VALUE_OWN                     NO

static const struct record_processor processors[] = {{"ws1", 0}, {"ws2", 65535}};
static const char *const hosts[] = {"ws1", "ws2"}, *const lost[] = {"ws2", "?"};
static const uint8_t exited[] = {3, 1};
static const struct core_after after[] = {
    {.job = 1, .verdict = CORE_OPEN}, {.job = 2, .verdict = CORE_NEVER}, {.job = 3, .verdict = CORE_MET}};

static struct record *make(void)
{
    static const char json[] =
        "{\"type\":\"submit\",\"id\":0,\"token\":\"t\",\"name\":\"n\",\"nprocs\":2,\"each\":true,"
        "\"pvm\":false,\"command\":[\"c\"],\"dir\":\"/\",\"output\":\"\",\"errors\":\"\","
        "\"environment\":[],\"hosts\":[],\"umask\":18,\"submit_host\":\"\"";
    struct record *r = record_create();
    int number = 0;
    JOB_FIELDS(JOB_NONE, FILL_KEPT, JOB_NONE)
    r->token = "t";
    r->processors = processors;
    r->nprocessors = 2;
    r->hosts = hosts;
    r->nhosts = 2;
    r->lost = lost;
    r->nlost = 2;
    r->after = after;
    r->nafter = 3;
    r->exited = exited;
    r->exited_size = sizeof(exited);
    for (int i = 0; i < CORE_MAX_LEVELS; i++)
        r->level_ms[i] = i * 1000;
    struct wire_message submission;
    struct err err = ERR_INIT;
    char *now = arena_format(&r->memory, "%s}", json), *encoded;
    if (wire_decode(now, strlen(now), 0, &submission, &err) || record_json(&submission, &encoded, &r->json_minor, &err))
        fail_msg("%s", err.text);
    r->json = arena_strdup(&r->memory, encoded);
    free(encoded);
    wire_message_fini(&submission);
    return r;
}

/* ---- tests ---- */

static void keep(struct record *record, void *data)
{
    *(struct record **)data = record;
}

static struct record *store_and_read(struct bed *bed, struct record *wanted)
{
    struct record *found = NULL;
    struct err err = ERR_INIT;
    const struct sql_rows rows = {.records = &wanted, .count = 1};
    if (sql_write(bed->writer, &rows, 1, &err) ||
        sql_read(&bed->reader, SQL_BY_ID, wanted->id, "", 0, 1, keep, &found, &err))
        fail_msg("%s", err.text);
    assert_non_null(found);
    return found;
}

static void expect_number(const char *name, int64_t found, int64_t wanted)
{
    if (found != wanted)
        fail_msg("%s: %" PRId64 " went into the store and %" PRId64 " came out", name, wanted, found);
}

static void expect_text(const char *name, const char *found, const char *wanted)
{
    if (strcmp(found, wanted) != 0)
        fail_msg("%s: \"%s\" went into the store and \"%s\" came out", name, wanted, found);
}

#define TEXT_OF(value)   _Generic(value, const char * : (value), default : "")
#define NUMBER_OF(value) _Generic(value, const char * : 0, default : (value))
#define EXPECT(name)                                                                                                   \
    expect_text(#name, TEXT_OF(found->name), TEXT_OF(wanted->name));                                                   \
    expect_number(#name, (int64_t)NUMBER_OF(found->name), (int64_t)NUMBER_OF(wanted->name));
#define STORED_COLUMN(schema, how, declaration)          YES
#define STORED_IN_JOB                                    YES
#define STORED_IN_USAGE                                  NO
#define STORED_NO                                        NO
#define EXPECT_KEPT(name, type, cell, core, column, ...) EXPECT_IF(IS_VALUE_##cell, STORED_##column, name)
#define EXPECT_IF(...)                                   EXPECT_IF_(__VA_ARGS__)
#define EXPECT_IF_(value, stored, name)                  JOB_CODE(value, EXPECT_##stored(name))
#define EXPECT_YES(name)                                 EXPECT(name)
#define EXPECT_NO(name)

static void every_value_comes_back(void **state)
{
    struct record *wanted = make(), *found = store_and_read(*state, wanted);
    JOB_FIELDS(JOB_NONE, EXPECT_KEPT, JOB_NONE)
    assert_int_equal(found->nprocessors, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(found->processors[i].host, processors[i].host);
        assert_int_equal(found->processors[i].cpu, processors[i].cpu);
        assert_string_equal(found->hosts[i], hosts[i]);
        assert_string_equal(found->lost[i], lost[i]);
    }
    assert_int_equal(found->nafter, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(found->after[i].verdict, after[i].verdict);
    assert_int_equal(found->nhosts, 2);
    assert_int_equal(found->nlost, 2);
    assert_int_equal(found->exited_size, sizeof(exited));
    assert_memory_equal(found->exited, exited, sizeof(exited));
    assert_memory_equal(found->level_ms, wanted->level_ms, sizeof(wanted->level_ms));
    record_destroy(found);
    record_destroy(wanted);
}

/* What is not known is NULL in the store, and not known again. */
static void what_is_not_known_stays_so(void **state)
{
    struct record *wanted = record_create(), *full = make(), *found;
    wanted->id = 1;
    wanted->json = full->json;
    wanted->token = "t";
    wanted->submitted_ms = 1;
    found = store_and_read(*state, wanted);
    JOB_FIELDS(JOB_NONE, EXPECT_KEPT, JOB_NONE)
    assert_int_equal(found->level, CORE_NO_LEVEL);
    assert_int_equal(found->started_ms, -1);
    assert_null(found->exited);
    assert_int_equal(found->nprocessors + found->nhosts + found->nlost + found->nafter, 0);
    record_destroy(found);
    record_destroy(full);
    record_destroy(wanted);
}

static void the_store_has_these_columns(void **state)
{
    struct bed *bed = *state;
    bool seen[100] = {false};
    sqlite3_stmt *s;
    assert_true(ncolumns < sizeof(seen));
    assert_int_equal(
        sqlite3_prepare_v2(bed->db, "SELECT name FROM pragma_table_info('state') WHERE name <> 'job'", -1, &s, NULL),
        SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        size_t i = 0;
        while (i < ncolumns && strcmp(columns[i].name, name) != 0)
            i++;
        if (i == ncolumns)
            fail_msg("the column %s of the store is not in job.def", name);
        seen[i] = true;
    }
    sqlite3_finalize(s);
    for (size_t i = 0; i < ncolumns; i++)
        if (!seen[i])
            fail_msg("the store has no column %s", columns[i].name);
}

/* Tables and indices that came with a later schema, also such as this test has never heard of. */
static void drop_later(sqlite3 *db, int64_t schema)
{
    static const struct {
        const char *name;
        int64_t schema;
    } known[] = {{"migration", 1},
                 {"meta", 1},
                 {"job", 1},
                 {"state", 1},
                 {"usage", 1},
                 {"certificate", 3},
                 {"host", 5},
                 {"setting", 6},
                 {"state_unfinished", 1},
                 {"state_ended", 2},
                 {"state_environment", 7},
                 {"awaited", 9},
                 {"awaited_waiter", 9},
                 {"decision", 11},
                 {"decision_admin", 11}};
    char *drop = mem_strdup("");
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT name, type FROM sqlite_schema WHERE sql IS NOT NULL", -1, &s, NULL),
                     SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 0);
        size_t i = 0;
        while (i < sizeof(known) / sizeof(*known) && strcmp(known[i].name, name) != 0)
            i++;
        if (i < sizeof(known) / sizeof(*known) && known[i].schema <= schema)
            continue;
        char *longer = mem_format("%sDROP %s IF EXISTS %s;", drop, (const char *)sqlite3_column_text(s, 1), name);
        free(drop);
        drop = longer;
    }
    sqlite3_finalize(s);
    assert_int_equal(sqlite3_exec(db, drop, NULL, NULL, NULL), SQLITE_OK);
    free(drop);
}

/* Each schema that a store was ever released with is brought to this one, and what it knew is still there. */
static void older_stores_are_taken_over(void **state)
{
    struct bed *bed = *state;
    for (int64_t schema = STORE_SCHEMA - 1; schema >= 3; schema--) {
        struct record *wanted = make(), *found = store_and_read(bed, wanted);
        char *sql = mem_format("DELETE FROM migration WHERE version > %" PRId64 "; PRAGMA user_version = %" PRId64,
                               schema, schema);
        record_destroy(found);
        drop_later(bed->db, schema);
        if (schema < 11) /* where there is one */
            (void)sqlite3_exec(bed->db, "ALTER TABLE host DROP COLUMN joined", NULL, NULL, NULL);
        assert_int_equal(sqlite3_exec(bed->db, sql, NULL, NULL, NULL), SQLITE_OK);
        free(sql);
        for (size_t i = 0; i < ncolumns; i++) {
            if (columns[i].schema <= schema)
                continue;
            sql = mem_format("ALTER TABLE state DROP COLUMN %s", columns[i].name);
            if (sqlite3_exec(bed->db, sql, NULL, NULL, NULL))
                fail_msg("%s: %s", sql, sqlite3_errmsg(bed->db));
            free(sql);
        }
        for (size_t i = 0; schema >= 5 && schema < 11 && i < 3; i++) {
            static const char *const drained[] = {"drained_by", "drained_text", "drained_ms"};
            sql = mem_format("ALTER TABLE host DROP COLUMN %s", drained[i]);
            assert_int_equal(sqlite3_exec(bed->db, sql, NULL, NULL, NULL), SQLITE_OK);
            free(sql);
        }
        close_bed(bed);
        open_bed(bed);
        the_store_has_these_columns(state);
        struct err err = ERR_INIT;
        found = NULL;
        if (sql_read(&bed->reader, SQL_BY_ID, wanted->id, "", 0, 1, keep, &found, &err))
            fail_msg("schema %" PRId64 ": %s", schema, err.text);
        assert_non_null(found);
        assert_int_equal(found->attempt, wanted->attempt);
        assert_int_equal(found->ended_ms, wanted->ended_ms);
        assert_string_equal(found->text, wanted->text);
        record_destroy(found);
        record_destroy(wanted);
    }
}

static void a_newer_submission_is_not_taken_for_damage(void **state)
{
    struct bed *bed = *state;
    struct record *wanted = make(), *found = store_and_read(bed, wanted);
    struct err err = ERR_INIT;
    record_destroy(found);
    found = NULL;
    assert_int_equal(sqlite3_exec(bed->db, "UPDATE job SET minor = 999", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sql_read(&bed->reader, SQL_BY_ID, wanted->id, "", 0, 1, keep, &found, &err), -EPROTO);
    assert_non_null(strstr(err.text, "start the newer elmer that wrote it"));
    assert_null(found);
    record_destroy(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_value_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_known_stays_so, setup, teardown),
        cmocka_unit_test_setup_teardown(the_store_has_these_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(older_stores_are_taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(a_newer_submission_is_not_taken_for_damage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
