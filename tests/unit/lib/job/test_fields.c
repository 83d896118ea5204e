/* test_fields.c - how rows of job.def become code, with a table of two rows of each kind; and what must hold for every
 * row of the table that there is. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "elmer/store/store.h"
#include "lib/job/fields.h"
#include "lib/wire/wire.h"

/* ---- what becomes of a row ---- */

#define TABLE(ASKED, KEPT, MADE)                                                                                       \
    KEPT(number, UINT(9), VALUE(uint64_t), CORE, COLUMN(1, INTEGER, ""), SINCE(0), SINCE(2), ALL, NO, NO)              \
    ASKED(title, LINE(64), CORE(bool), SINCE(3), SINCE(4), NO, OWNER, NO, NO, NO)                                      \
    ASKED(names, STRS(5), NO, SINCE(0), NO, NO, OWNER, NO, NO, NO)                                                     \
    KEPT(hidden, NO, OWN, OWN, NO, NO, NO, ALL, NO, NO)                                                                \
    KEPT(items, LIST(usage, 7), VALUE(int), RESTORED, NO, MADE_SINCE(1), NO, ALL, NO, NO)                              \
    MADE(times, DOUBLES(16), NO, SINCE(2), ALL, NO, NO)                                                                \
    MADE(word, STR(32), MADE_SINCE(0), NO, ALL, NO, NO)

#define F(kind, name, limit, since) "F " #kind " " #name " " #limit " " #since "\n"
#define L(type, name, limit, since) "L " #type " " #name " " #limit " " #since "\n"

static void rows_become_fields_of_messages(void **state)
{
    (void)state;
    assert_string_equal("" TABLE(JOB_SUBMIT_ASKED, JOB_NONE, JOB_NONE), "F STR title 64 3\n"
                                                                        "F STRS names 5 0\n");
    assert_string_equal("" TABLE(JOB_VIEW_ASKED, JOB_VIEW_KEPT, JOB_VIEW_MADE), "F UINT number 9 0\n"
                                                                                "F STR title 64 4\n"
                                                                                "L usage items 7 1\n"
                                                                                "F STR word 32 0\n");
    assert_string_equal("" TABLE(JOB_RUNNING_ASKED, JOB_RUNNING_KEPT, JOB_RUNNING_MADE), "F UINT number 9 2\n"
                                                                                         "F DOUBLES times 16 2\n");
}
#undef F
#undef L

/* Those that the core has: by its own type if users ask for it, by that of the record if it is copied. */
static void rows_become_members(void **state)
{
    struct {
        TABLE(JOB_CORE_ASKED, JOB_NONE, JOB_NONE)
    } event = {.title = true};
    struct {
        TABLE(JOB_NONE, JOB_CORE_KEPT, JOB_NONE)
    } view = {.number = UINT64_MAX, .items = -1};
    (void)state;
    assert_int_equal(sizeof(event), sizeof(bool));
    assert_true(event.title);
    assert_true(view.number == UINT64_MAX && view.items == -1);
    assert_int_equal(sizeof(view), 2 * sizeof(uint64_t));
}

#define YES_IF(question, cell) (0 JOB_IF(question, cell, +1))

static void cells_answer(void **state)
{
    (void)state;
    assert_int_equal(YES_IF(VALUE, SINCE(1)), 1);
    assert_int_equal(YES_IF(VALUE, MADE_SINCE(1)), 0);
    assert_int_equal(YES_IF(VALUE, NO), 0);
    assert_int_equal(YES_IF(SENT, SINCE(1)), 1);
    assert_int_equal(YES_IF(SENT, MADE_SINCE(1)), 1);
    assert_int_equal(YES_IF(SENT, NO), 0);
    assert_int_equal(YES_IF(COPIED, CORE) + YES_IF(COPIED, RESTORED), 2);
    assert_int_equal(YES_IF(COPIED, OWN) + YES_IF(COPIED, NO), 0);
    assert_int_equal(YES_IF(RESTORED, RESTORED), 1);
    assert_int_equal(YES_IF(RESTORED, CORE) + YES_IF(RESTORED, OWN) + YES_IF(RESTORED, NO), 0);
    assert_int_equal(YES_IF(EVENT, CORE(int)), 1);
    assert_int_equal(YES_IF(EVENT, NO), 0);
    assert_int_equal(YES_IF(PLAIN, OPTION(1, int, "")) + YES_IF(PLAIN, MEMBER(1, int, "")), 2);
    assert_int_equal(YES_IF(PLAIN, OWN_OPTION(1, int, "")) + YES_IF(PLAIN, MEMBERS(1, int, a, b, "")), 0);
    assert_int_equal(YES_IF(LINE, LINE(3)), 1);
    assert_int_equal(YES_IF(LINE, STR(3)) + YES_IF(LINE, BOOL) + YES_IF(LINE, UINT(3)) + YES_IF(LINE, STRS(3)), 0);
    assert_int_equal(JOB_LIMIT(LINE(64)), 64);
}

/* Others see nothing of what is the owner's, and that is not zero where zero would say something. */
static void what_others_see(void **state)
{
    (void)state;
    for (int all = 0; all <= 1; all++) {
        assert_int_equal(JOB_SEEN_ALL(all, 5, JOB_EMPTY(INT(9))), 5);
        assert_int_equal(JOB_SEEN_OWNER(all, 5, JOB_EMPTY(INT(9))), all ? 5 : -1);
    }
    assert_int_equal(JOB_EMPTY(UINT(9)), 0);
    assert_false(JOB_EMPTY(BOOL));
    assert_string_equal(JOB_EMPTY(STR(9)), "");
    assert_string_equal(JOB_EMPTY(LINE(9)), "");
    assert_int_equal(JOB_EMPTY(STRS(9)).count, 0);
}

/* ---- what holds for each row of job.def ---- */

#define NUMBER_OF_SINCE(minor)                     minor
#define NUMBER_OF_MADE_SINCE(minor)                minor
#define NUMBER_OF_NO                               (-1)
#define SCHEMA_OF_COLUMN(schema, how, declaration) schema, declaration
#define SCHEMA_OF_IN_JOB                           0, ""
#define SCHEMA_OF_IN_USAGE                         0, ""
#define SCHEMA_OF_NO                               0, ""
#define KEY_OF_JSON(form, key)                     #key
#define KEY_OF_NO                                  ""

/* Words of the table, before they are anything else. */
#define ROW_ASKED(name, type, core, since, shown, line, seen, json, option, member)                                    \
    {'A', #name, #type, NUMBER_OF_##since, NUMBER_OF_##shown, NUMBER_OF_##line, #seen, KEY_OF_##json, 0, ""},
#define ROW_KEPT(name, type, record, core, column, shown, line, seen, json, member)                                    \
    {'K', #name, #type, -1, NUMBER_OF_##shown, NUMBER_OF_##line, #seen, KEY_OF_##json, SCHEMA_OF_##column},
#define ROW_MADE(name, type, shown, line, seen, json, member)                                                          \
    {'M', #name, #type, -1, NUMBER_OF_##shown, NUMBER_OF_##line, #seen, KEY_OF_##json, 0, ""},

static const struct row {
    char kind;
    const char *name, *type;
    int since, shown, line;
    const char *seen, *key;
    int schema;
    const char *declaration;
} rows[] = {JOB_FIELDS(ROW_ASKED, ROW_KEPT, ROW_MADE)};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A peer must be able to have what a message has, and an old store what is in a column. */
static void versions_are_such_as_there_are(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (row->since > WIRE_MINOR || row->shown > WIRE_MINOR || row->line > WIRE_MINOR)
            fail_msg("%s: sent since a minor version that is to come", row->name);
        if (row->kind == 'A' && row->shown >= 0 && row->shown < row->since)
            fail_msg("%s: shown before it could be asked for", row->name);
        if (row->schema > STORE_SCHEMA)
            fail_msg("%s: stored since a schema that is to come", row->name);
        if (row->schema > 1 && strstr(row->declaration, "NOT NULL") && !strstr(row->declaration, "DEFAULT"))
            fail_msg("%s: rows that are there when its schema comes have no value", row->name);
    }
}

/* What a user writes is his own affair, but for how many processors he wants and in which shape, and how
 * many tasks: that text is numbers, which elmer has looked at. */
static void texts_of_users_are_their_owners(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        bool text = begins(row->type, "STR") || begins(row->type, "LINE");
        if (row->kind == 'A' && text && strcmp(row->seen, "OWNER") != 0 && strcmp(row->name, "tasks") != 0)
            fail_msg("%s: a text of the user's that others may see", row->name);
        if (strcmp(row->seen, "OWNER") != 0 && strcmp(row->seen, "ALL") != 0)
            fail_msg("%s: seen by %s", row->name, row->seen);
    }
}

static void keys_of_json_are_different(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < i && *rows[i].key; k++)
            if (strcmp(rows[i].key, rows[k].key) == 0)
                fail_msg("%s and %s have the key \"%s\"", rows[k].name, rows[i].name, rows[i].key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_fields_of_messages),
        cmocka_unit_test(rows_become_members),
        cmocka_unit_test(cells_answer),
        cmocka_unit_test(what_others_see),
        cmocka_unit_test(versions_are_such_as_there_are),
        cmocka_unit_test(texts_of_users_are_their_owners),
        cmocka_unit_test(keys_of_json_are_different),
    };
    return cmocka_run_group_tests_name("fields of a job", tests, NULL, NULL);
}
