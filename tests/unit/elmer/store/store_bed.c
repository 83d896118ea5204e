/* store_bed.c - see store_bed.h. */
#include "config.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "elmer/store/store.h"
#include "lib/base/clock.h"
#include "tests/unit/elmer/store/store_bed.h"
#include "tests/unit/scratch.h"

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

static void on_damage(const char *text, void *data)
{
    struct bed *bed = data;
    snprintf(bed->damage, sizeof(bed->damage), "%s", text);
}

int open_store(struct bed *bed, struct err *err)
{
    static const struct store_callbacks callbacks = {on_commit, on_failure, on_damage};
    *err = (struct err)ERR_INIT;
    bed->committed = 0;
    return store_open(&bed->loop, bed->path, &callbacks, bed, &bed->store, err);
}

void close_store(struct bed *bed)
{
    store_close(bed->store);
    bed->store = NULL;
    uv_run(&bed->loop, UV_RUN_DEFAULT);
}

int setup(void **state)
{
    static struct bed bed;
    struct err err;
    bed = (struct bed){.dir = "/tmp/elmer-store-XXXXXX"};
    assert_non_null(scratch_dir(bed.dir));
    snprintf(bed.path, sizeof(bed.path), "%s/db", bed.dir);
    assert_int_equal(uv_loop_init(&bed.loop), 0);
    assert_int_equal(open_store(&bed, &err), 0);
    *state = &bed;
    return 0;
}

int teardown(void **state)
{
    static const char *const names[] = {"", "-wal", "-shm", ".lock"};
    struct bed *bed = *state;
    char path[80];
    if (bed->store) /* the test has failed before its end: that is what is to be read, and not that a handle is open */
        close_store(bed);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s%s", bed->path, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(bed->dir), 0);
    return 0;
}

struct record *make(uint64_t id, uint32_t uid, const char *token, enum job_state state, bool first)
{
    static const char *command[] = {"/bin/x", "\"quoted\" \xc3\xa9\n"};
    static const char *const hosts[] = {"ws1", "ws2"};
    static const struct record_processor processors[] = {{"ws1", 0}, {"ws2", 3}};
    static const struct record_usage usage[] = {{"ws1", 1, 1.25, 4096}, {"ws2", 1, 2.5, -1}};
    static const char *const lost[] = {"ws2", "?"};
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
        r->launched = true;
        r->lease_ms = 120000;
        r->level_ms[1] = 55;
        r->usage = usage;
        r->nusage = 2;
    }
    r->hosts = hosts;
    r->nhosts = 2;
    if (state == JOB_QUEUED) {
        r->lost = lost;
        r->nlost = 2;
    }
    if (first) {
        struct wire_message m = {
            .type = WIRE_submit,
            .u.submit = {.token = token, .nprocs = 2, .each = true, .name = "x", .dir = "/d", .command = {command, 2}}};
        struct err err = ERR_INIT;
        char *json;
        assert_int_equal(record_json(&m, &json, &r->json_minor, &err), 0);
        r->json = arena_strdup(&r->memory, json);
        free(json);
    }
    return r;
}

void await(struct bed *bed, uint64_t number)
{
    while (bed->committed < number)
        uv_run(&bed->loop, UV_RUN_ONCE);
}

void collect(struct record *record, void *data)
{
    struct bed *bed = data;
    assert_true(bed->nfound < sizeof(bed->found) / sizeof(*bed->found));
    bed->found[bed->nfound++] = record;
}

void drop_found(struct bed *bed)
{
    for (size_t i = 0; i < bed->nfound; i++)
        record_destroy(bed->found[i]);
    bed->nfound = 0;
}

void answer(struct record **records, size_t count, const char *error, void *data)
{
    struct bed *bed = data;
    bed->answers++;
    snprintf(bed->error, sizeof(bed->error), "%s", error ? error : "");
    for (size_t i = 0; i < count; i++)
        collect(records[i], bed);
}

/* ---- history ---- */

struct record *make_ended(uint64_t id, int64_t ended_ms)
{
    char token[24];
    snprintf(token, sizeof(token), "t%d", (int)id);
    struct record *r = make(id, 5, token, JOB_DONE, true);
    r->user = id % 10 ? "alice" : "bob";
    r->ended_ms = ended_ms;
    return r;
}

size_t history_since(struct bed *bed, uint64_t before, const char *user, int64_t since_ms, size_t count)
{
    size_t answers = bed->answers;
    drop_found(bed);
    store_read_history(bed->store, before, user, since_ms, count, answer, bed);
    while (bed->answers == answers)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    return bed->nfound;
}
size_t history(struct bed *bed, uint64_t before, const char *user, size_t count)
{
    return history_since(bed, before, user, 0, count);
}

enum { AWAIT_MS = 60000 };

void await_history(struct bed *bed, size_t wanted)
{
    const int64_t deadline_ms = mono_ms(mono_now()) + AWAIT_MS;
    while (history(bed, INT64_MAX, "", 400) != wanted)
        if (mono_ms(mono_now()) >= deadline_ms)
            fail_msg("%zu jobs in the history, not %zu", bed->nfound, wanted);
}
