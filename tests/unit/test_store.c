/* test_store.c - the store: what goes in comes out, in order, also after a crash between; and which files it refuses.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elmer/store.h"

struct bed {
    char dir[40], path[60];
    uv_loop_t loop;
    struct store *store;
    uint64_t committed;
    struct record *found[16];
    size_t nfound, answers;
    char error[200];
};

static void on_commit(uint64_t number, void *data)
{
    struct bed *bed = data;
    assert_true(number > bed->committed);
    bed->committed = number;
}

static void on_failure(const char *text, void *data)
{
    (void)data;
    fail_msg("store: %s", text);
}

static int open_store(struct bed *bed, struct err *err)
{
    static const struct store_callbacks callbacks = {on_commit, on_failure};
    *err = (struct err)ERR_INIT;
    bed->committed = 0;
    return store_open(&bed->loop, bed->path, &callbacks, bed, &bed->store, err);
}

static void close_store(struct bed *bed)
{
    store_close(bed->store);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
}

static int setup(void **state)
{
    static struct bed bed;
    struct err err;
    bed = (struct bed){.dir = "/tmp/elmer-store-XXXXXX"};
    assert_non_null(mkdtemp(bed.dir));
    snprintf(bed.path, sizeof(bed.path), "%s/db", bed.dir);
    assert_int_equal(uv_loop_init(&bed.loop), 0);
    assert_int_equal(open_store(&bed, &err), 0);
    *state = &bed;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"", "-wal", "-shm", ".lock"};
    struct bed *bed = *state;
    char path[80];
    assert_int_equal(uv_loop_close(&bed->loop), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s%s", bed->path, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(bed->dir), 0);
    return 0;
}

static struct record *make(uint64_t id, uint32_t uid, const char *token, enum job_state state, bool first)
{
    static const char *command[] = {"/bin/x", "\"quoted\" \xc3\xa9\n"};
    static const char *const hosts[] = {"ws1", "ws2"};
    static const struct record_processor processors[] = {{"ws1", 0}, {"ws2", 3}};
    static const struct record_usage usage[] = {{"ws1", 1, 1.25, 4096}, {"ws2", 1, 2.5, -1}};
    static const uint8_t exited[] = {3};
    struct record *r = record_create();
    r->id = id;
    r->uid = uid;
    r->user = "alice";
    r->token = arena_strdup(&r->memory, token);
    r->submitted_ms = 1000 + (int64_t)id;
    r->state = state;
    r->reason = state == JOB_DONE ? REASON_EXITED : state == JOB_QUEUED ? REASON_WAITING : REASON_NONE;
    r->text = "why; \"so\"";
    if (state != JOB_QUEUED) {
        r->attempt = 1;
        r->allocation = id + 100;
        r->level = 1;
        r->processors = processors;
        r->nprocessors = 2;
        r->exited = exited;
        r->exited_size = 1;
        r->exits = 2;
        r->exit_status = 7;
        r->failed_rank = 1;
        r->started_ms = 2000;
        r->level_ms[1] = 55;
        r->usage = usage;
        r->nusage = 2;
    }
    r->hosts = hosts;
    r->nhosts = 2;
    if (first) {
        struct wire_message m = {
            .type = WIRE_submit,
            .u.submit = {.token = token, .nprocs = 2, .each = true, .name = "x", .dir = "/d", .command = {command, 2}}};
        struct err err = ERR_INIT;
        char *json;
        size_t size;
        assert_int_equal(wire_encode(&m, WIRE_MINOR, &json, &size, &err), 0);
        r->json = arena_strdup(&r->memory, json);
        free(json);
    }
    return r;
}

static void await(struct bed *bed, uint64_t number)
{
    while (bed->committed < number)
        uv_run(&bed->loop, UV_RUN_ONCE);
}

static void collect(struct record *record, void *data)
{
    struct bed *bed = data;
    assert_true(bed->nfound < 16);
    bed->found[bed->nfound++] = record;
}

static void drop_found(struct bed *bed)
{
    for (size_t i = 0; i < bed->nfound; i++)
        record_destroy(bed->found[i]);
    bed->nfound = 0;
}

static void answer(struct record **records, size_t count, const char *error, void *data)
{
    struct bed *bed = data;
    bed->answers++;
    snprintf(bed->error, sizeof(bed->error), "%s", error ? error : "");
    for (size_t i = 0; i < count; i++)
        collect(records[i], bed);
}

static void tokens(uint32_t uid, const char *token, void *data)
{
    struct bed *bed = data;
    assert_int_equal(uid, 5);
    assert_string_equal(token, "three");
    bed->answers++;
}

static void test_round(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    uint64_t next_job, next_allocation;
    store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true));
    store_put(bed->store, make(2, 5, "two", JOB_QUEUED, true));
    store_put(bed->store, make(3, 5, "three", JOB_RUNNING, true));
    assert_int_equal(store_put(bed->store, make(3, 5, "three", JOB_DONE, false)),
                     4); /* replaces, keeps the submission */
    await(bed, 4);
    assert_int_equal(store_committed(bed->store), 4);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(next_job, 4);
    assert_int_equal(next_allocation, 104);
    assert_int_equal(bed->nfound, 2);
    const struct record *r = bed->found[0];
    assert_int_equal(r->id, 1);
    assert_int_equal(r->uid, 5);
    assert_string_equal(r->user, "alice");
    assert_string_equal(r->token, "one");
    assert_int_equal(r->submitted_ms, 1001);
    assert_int_equal(r->state, JOB_RUNNING);
    assert_string_equal(r->text, "why; \"so\"");
    assert_int_equal(r->attempt, 1);
    assert_int_equal(r->allocation, 101);
    assert_int_equal(r->level, 1);
    assert_int_equal(r->nprocessors, 2);
    assert_string_equal(r->processors[1].host, "ws2");
    assert_int_equal(r->processors[1].cpu, 3);
    assert_int_equal(r->nhosts, 2);
    assert_string_equal(r->hosts[1], "ws2");
    assert_int_equal(r->exited_size, 1);
    assert_int_equal(r->exited[0], 3);
    assert_int_equal(r->exits, 2);
    assert_int_equal(r->exit_status, 7);
    assert_int_equal(r->failed_rank, 1);
    assert_int_equal(r->started_ms, 2000);
    assert_int_equal(r->ended_ms, -1);
    assert_int_equal(r->level_ms[1], 55);
    assert_int_equal(r->level_ms[0], 0);
    assert_int_equal(r->nusage, 2);
    assert_true(r->usage[0].cpu_seconds > 1.24 && r->usage[0].cpu_seconds < 1.26);
    assert_int_equal(r->usage[0].memory_peak_bytes, 4096);
    assert_int_equal(r->usage[1].memory_peak_bytes, -1);
    assert_int_equal(r->submit->nprocs, 2);
    assert_true(r->submit->each);
    assert_string_equal(r->submit->command.items[1], "\"quoted\" \xc3\xa9\n");
    assert_int_equal(bed->found[1]->state, JOB_QUEUED);
    assert_int_equal(bed->found[1]->level, CORE_NO_LEVEL);
    assert_int_equal(bed->found[1]->nprocessors, 0);
    drop_found(bed);
    assert_int_equal(store_load_tokens(bed->store, tokens, bed, &err), 0);
    assert_int_equal(bed->answers, 1);
    close_store(bed);
}

static void test_read(void **state)
{
    struct bed *bed = *state;
    uint64_t ids[] = {2, 9, 1};
    store_put(bed->store, make(1, 5, "t", JOB_DONE, true));
    store_put(bed->store, make(2, 6, "t", JOB_DONE, true)); /* another user's */
    await(bed, 2);
    store_read(bed->store, ids, 3, answer, bed);
    store_find(bed->store, 6, "t", answer, bed);
    store_find(bed->store, 7, "t", answer, bed);
    while (bed->answers < 3)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    assert_int_equal(bed->nfound, 3);
    assert_int_equal(bed->found[0]->id, 2);
    assert_int_equal(bed->found[1]->id, 1);
    assert_int_equal(bed->found[2]->id, 2);
    drop_found(bed);
    /* closed while reads are under way */
    store_read(bed->store, ids, 3, answer, bed);
    store_read(bed->store, ids, 3, answer, bed);
    close_store(bed);
    assert_int_equal(bed->answers, 3);
}

/* What was put is on disk after store_close(), without a turn of the loop. */
static void test_close_writes(void **state)
{
    struct bed *bed = *state;
    struct err err;
    uint64_t next_job, next_allocation;
    for (uint64_t id = 1; id <= 10; id++) {
        char token[8];
        snprintf(token, sizeof(token), "%d", (int)id);
        store_put(bed->store, make(id, 5, token, JOB_QUEUED, true));
    }
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 10);
    assert_int_equal(next_job, 11);
    drop_found(bed);
    close_store(bed);
}

static void refused(struct bed *bed, int code, const char *words)
{
    struct err err;
    assert_int_equal(open_store(bed, &err), code);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
}

static void sql(struct bed *bed, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(bed->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void test_refused(void **state)
{
    struct bed *bed = *state;
    struct store *first = bed->store;
    refused(bed, -EBUSY, "another elmer");
    bed->store = first;
    store_put(bed->store, make(1, 5, "t", JOB_QUEUED, true));
    close_store(bed);
    sql(bed, "PRAGMA user_version = 99");
    refused(bed, -EPROTO, "schema 99");
    sql(bed, "PRAGMA user_version = 1; PRAGMA application_id = 7");
    refused(bed, -EPROTO, "another program");
    sql(bed, "PRAGMA application_id = 1162628434");
    sql(bed, "PRAGMA journal_mode = DELETE"); /* all of it in one file */
    int fd = open(bed->path, O_WRONLY);
    assert_true(fd >= 0);
    for (off_t at = 4096; at < 20 * 4096; at += 512) /* behind the first page */
        assert_int_equal(pwrite(fd, "garbagegarbage", 14, at), 14);
    refused(bed, -EUCLEAN, "damaged");
    assert_int_equal(pwrite(fd, "no database at all", 18, 0), 18);
    close(fd);
    refused(bed, -EUCLEAN, "damaged");
    snprintf(bed->path, sizeof(bed->path), "%s/none/db", bed->dir);
    refused(bed, -ENOENT, "directory");
    snprintf(bed->path, sizeof(bed->path), "%s/db", bed->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
