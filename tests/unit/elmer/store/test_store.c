/* test_store.c - what is put into the store, and comes out of it again: jobs, history, hosts, certificates. */
#include "config.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "elmer/store/store.h"
#include "tests/unit/elmer/fakes/warned.h"
#include "tests/unit/elmer/store/store_bed.h"

/* Threads are started by the store alone. */
static int thread_result;
int __wrap_uv_thread_create(uv_thread_t *thread, uv_thread_cb entry, void *data);
int __real_uv_thread_create(uv_thread_t *thread, uv_thread_cb entry, void *data);

int __wrap_uv_thread_create(uv_thread_t *thread, uv_thread_cb entry, void *data)
{
    return thread_result ? thread_result : __real_uv_thread_create(thread, entry, data);
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
    assert_true(r->launched);
    assert_int_equal(r->lease_ms, 120000);
    assert_int_equal(r->nlost, 0);
    assert_false(bed->found[1]->launched);
    assert_int_equal(bed->found[1]->nlost, 2);
    assert_string_equal(bed->found[1]->lost[1], "?");
    drop_found(bed);
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

/* Many looks at once are answered in their order, together with other reads between them, and what is closed is let go.
 */
static void test_many_finds(void **state)
{
    enum { COUNT = 300 };
    struct bed *bed = *state;
    uint64_t second = 2;
    char token[8];
    store_put(bed->store, make(1, 5, "1", JOB_DONE, true));
    store_put(bed->store, make(2, 5, "290", JOB_DONE, true));
    await(bed, 2);
    for (int i = 0; i < COUNT; i++) {
        snprintf(token, sizeof(token), "%d", i);
        store_find(bed->store, 5, token, answer, bed);
        if (i == 100)
            store_read(bed->store, &second, 1, answer, bed);
    }
    while (bed->answers < COUNT + 1)
        uv_run(&bed->loop, UV_RUN_ONCE);
    assert_string_equal(bed->error, "");
    assert_int_equal(bed->nfound, 3);
    assert_int_equal(bed->found[0]->id, 1);
    assert_int_equal(bed->found[1]->id, 2); /* by its id */
    assert_int_equal(bed->found[2]->id, 2);
    drop_found(bed);
    for (int i = 0; i < COUNT; i++)
        store_find(bed->store, 5, "1", answer, bed);
    close_store(bed);
    assert_int_equal(bed->answers, COUNT + 1);
}

/* As the store counts them, for its check after a crash. */
static uint64_t commits(const struct bed *bed)
{
    char path[80];
    uint64_t count = 0;
    snprintf(path, sizeof(path), "%s.lock", bed->path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "commits %" SCNu64, &count), 1);
    fclose(file);
    return count;
}

/* What nobody waits for is written soon, but together; what somebody waits for takes the others along. */
static void test_together(void **state)
{
    struct bed *bed = *state;
    await(bed, store_put(bed->store, make(1, 5, "first", JOB_RUNNING, true)));
    uint64_t before = commits(bed), last = 0;
    for (uint64_t id = 1; id <= 300; id++) {
        char token[32];
        snprintf(token, sizeof(token), "%" PRIu64, id);
        last = store_put(bed->store, make(id, 5, token, JOB_RUNNING, id > 1));
    }
    await(bed, last);
    assert_true(commits(bed) > before);
    assert_true(commits(bed) - before < 100);
    before = commits(bed);
    for (uint64_t id = 1; id <= 20; id++) {
        store_put(bed->store, make(id, 5, "", JOB_RUNNING, false));
        last = store_put(bed->store, make(id + 20, 5, "", JOB_RUNNING, false));
        store_want(bed->store, last);
        await(bed, last);
    }
    assert_true(commits(bed) - before <= 40);
    store_want(bed->store, last); /* it is there */
    await(bed, store_put(bed->store, make(1, 5, "", JOB_DONE, false)));
    close_store(bed);
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

/* ---- history ---- */

static void test_history(void **state)
{
    struct bed *bed = *state;
    const int64_t day = 86400000;
    for (uint64_t id = 1; id <= 300; id++) /* 250 and 251 wait */
        store_put(bed->store, id / 2 == 125 ? make(id, 5, id == 250 ? "a" : "b", JOB_QUEUED, true)
                                            : make_ended(id, (int64_t)id * day));
    await(bed, 300);
    assert_int_equal(history(bed, INT64_MAX, "", 5), 5);
    assert_int_equal(bed->found[0]->id, 300);
    assert_int_equal(bed->found[4]->id, 296);
    assert_int_equal(history(bed, 252, "", 2), 2); /* the two that wait are not in it */
    assert_int_equal(bed->found[0]->id, 249);
    assert_int_equal(history(bed, INT64_MAX, "bob", 400), 29);
    assert_int_equal(bed->found[1]->id, 290);
    assert_int_equal(bed->found[0]->nusage, 2);
    assert_int_equal(history_since(bed, INT64_MAX, "", 290 * day, 400), 11);
    assert_int_equal(bed->found[10]->id, 290);
    assert_int_equal(history_since(bed, 295, "bob", 280 * day, 400), 2);
    assert_int_equal(history_since(bed, INT64_MAX, "", 300 * day + 1, 400), 0);

    store_trim(bed->store, &(struct store_limits){.jobs = 120, .age_ms = 1000 * day});
    await_history(bed, 120);
    assert_int_equal(bed->found[119]->id, 179);
    /* by age, counted from the last end: the clock is decades ahead of it */
    store_trim(bed->store, &(struct store_limits){.jobs = 1000, .age_ms = 9 * day});
    await_history(bed, 10);
    assert_int_equal(bed->found[9]->id, 291);
    /* late news of a job that is gone change nothing, and the store goes on */
    store_put(bed->store, make(3, 5, "t3", JOB_DONE, false));
    store_put(bed->store, make(250, 5, "a", JOB_RUNNING, false));
    await(bed, 302);
    assert_int_equal(history(bed, INT64_MAX, "", 400), 10);
    drop_found(bed);
    close_store(bed);
}

static struct record *make_notice(enum job_state state, enum core_verdict verdict, bool first)
{
    struct record *r = make(5, 5, "n", state, first);
    struct core_after *after = arena_array(&r->memory, 1, sizeof(*after));
    *after = (struct core_after){.job = 1, .kind = AFTER_ANY, .verdict = verdict};
    r->after = after;
    r->nafter = 1;
    r->notice = true;
    return r;
}

/* A notice that is run again asks for the job that it tells about, which may have ended before it came. */
static void test_notice(void **state)
{
    struct bed *bed = *state;
    struct record *ended = make_notice(JOB_DONE, CORE_MET, false);
    for (uint64_t id = 1; id <= 4; id++)
        store_put(bed->store, make_ended(id, (int64_t)id));
    store_put(bed->store, make_notice(JOB_QUEUED, CORE_MET, true));
    await(bed, 5);
    await(bed, store_put(bed->store, make_notice(JOB_RUNNING, CORE_MET, false)));
    store_trim(bed->store, &(struct store_limits){.jobs = 2, .age_ms = 1000});
    await_history(bed, 3);
    assert_int_equal(bed->found[2]->id, 1);
    ended->ended_ms = 5;
    ended->nafter = 0; /* elmer was restarted meanwhile */
    await(bed, store_put(bed->store, ended));
    store_trim(bed->store, &(struct store_limits){.jobs = 2, .age_ms = 1000});
    await_history(bed, 2);
    assert_int_equal(bed->found[1]->id, 4);
    drop_found(bed);
    close_store(bed);
}

static void count_host(const struct host_row *host, void *data)
{
    struct bed *bed = data;
    bed->answers++;
    if (strcmp(host->name, "ws1") == 0)
        assert_true(host->row.up && !host->row.drained && host->row.ncpus == 4);
    else
        assert_true(strcmp(host->name, "ws2") == 0 && !host->row.up && host->row.drained && host->row.ncpus == 0);
}

/* The last row of each host counts. */
static void test_hosts(void **state)
{
    struct bed *bed = *state;
    struct err err;
    struct host_row ws1 = {.name = "ws1", .row = {.up = true, .ncpus = 4}}, ws2 = {.name = "ws2", .row = ws1.row};
    store_put_host(bed->store, &ws1);
    store_put_host(bed->store, &ws2);
    ws2.row = (struct core_host_row){.drained = true};
    store_put_host(bed->store, &ws2);
    await(bed, 3);
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    bed->answers = 0;
    assert_int_equal(store_load_hosts(bed->store, count_host, bed, &err), 0);
    assert_int_equal(bed->answers, 2);
    close_store(bed);
}

/* A submission that was refused after all leaves nothing behind, also when it was written meanwhile; its token is free.
 */
static void test_dropped(void **state)
{
    struct bed *bed = *state;
    struct record *dropped;
    struct err err;
    uint64_t next_job, next_allocation;
    for (uint64_t id = 1; id < 3; id++) {
        if (id == 2)
            await(bed, store_put(bed->store, make(2, 5, "one", JOB_RUNNING, true)));
        else
            store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true));
        dropped = make(id, 5, "one", JOB_DONE, false);
        dropped->dropped = true;
        store_put(bed->store, dropped);
    }
    await(bed, store_put(bed->store, make(3, 5, "one", JOB_QUEUED, true)));
    close_store(bed);
    assert_int_equal(open_store(bed, &err), 0);
    assert_int_equal(store_load(bed->store, collect, bed, &next_job, &next_allocation, &err), 0);
    assert_int_equal(bed->nfound, 1);
    assert_int_equal(bed->found[0]->id, 3);
    assert_int_equal(next_job, 4);
    drop_found(bed);
    assert_int_equal(history(bed, INT64_MAX, "", 5), 0);
    close_store(bed);
}

static void find_certificate(const struct certificate *certificate, void *data)
{
    struct certificate *wanted = data;
    if (strcmp(certificate->serial, wanted->serial) == 0)
        *wanted = *certificate;
}

static void test_certificates(void **state)
{
    struct bed *bed = *state;
    struct certificate one = {.serial = "0A01", .host = "ws2", .issued_ms = 1000, .end_ms = 9000}, found = one,
                       other = {.serial = "0A02"};
    struct err err = ERR_INIT;
    store_put_certificate(bed->store, &one);
    one.revoked_ms = 2000; /* what comes later counts */
    await(bed, store_put_certificate(bed->store, &one));
    close_store(bed);
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(store_load_certificates(bed->store, find_certificate, &found, &err), 0);
    assert_memory_equal(&found, &one, sizeof(one));
    assert_int_equal(store_load_certificates(bed->store, find_certificate, &other, &err), 0);
    assert_string_equal(other.host, "");
    close_store(bed);
}

/* It says why, and leaves nothing behind: the loop can be closed, and the next one opens the file. */
static void test_no_thread(void **state)
{
    struct bed *bed = *state;
    struct err err = ERR_INIT;
    close_store(bed);
    thread_result = UV_EAGAIN;
    assert_int_equal(open_store(bed, &err), UV_EAGAIN);
    thread_result = 0;
    assert_null(bed->store);
    assert_non_null(strstr(err.text, "cannot start the thread that writes the store: resource temporarily"));
    assert_false(uv_loop_alive(&bed->loop));
    if (open_store(bed, &err))
        fail_msg("%s", err.text);
    await(bed, store_put(bed->store, make(1, 5, "one", JOB_RUNNING, true)));
    close_store(bed);
}

/* While nothing can be written: those that are not kept are counted, and told once. */
static void test_decisions_lost(void **state)
{
    const struct decision decision = {.at_ms = 1000, .what = "held", .job = 1, .by = "bob"};
    struct bed *bed = *state;
    uint64_t last = 0;
    store_hold(bed->store, true);
    for (int i = 0; i < STORE_DECISIONS_WAITING + 3; i++)
        last = store_put_decision(bed->store, &decision);
    store_hold(bed->store, false);
    await(bed, last);
    assert_string_equal(warned, "eadmin log lacks 3 decisions, because 4096 waited for the store: they are in this log "
                                "only");
    await(bed, store_put_decision(bed->store, &decision));
    assert_null(strstr(warned + 1, "eadmin")); /* no more */
    close_store(bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_finds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_history, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_certificates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(test_decisions_lost, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
