/* outside_long.c - a start of elmer that has many jobs in its store, beside one that has three.
 *
 * Nobody submits 110,000 jobs in a test: one that has ended and one that waits are, and their rows are copied while
 * elmer is down. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/faults/outside.h"

enum { ENDED = 100000, WAITING = 10000, PART = 10000, START_MS = 30000, COST_MS = 2000, COST_TIMES = 30 };

static bool execute(struct world *world, sqlite3 *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) == SQLITE_OK)
        return true;
    err_set(&world->err, -1, "%s: %s", sql, text ? text : "?");
    sqlite3_free(text);
    return false;
}

/* The rows of this job, count times, under new ids from first on. */
static bool copy_rows(struct world *world, sqlite3 *db, uint64_t job, unsigned first, unsigned count)
{
    static const char *const tables[][2] = {{"job", "id"}, {"state", "job"}};
    char sql[700];
    for (unsigned from = first; from < first + count; from += PART)
        for (int t = 0; t < 2; t++) {
            snprintf(sql, sizeof(sql),
                     "CREATE TEMP TABLE one AS SELECT * FROM main.%s WHERE %s = %" PRIu64 ";"
                     "CREATE TEMP TABLE many AS WITH RECURSIVE n(i) AS (SELECT %u UNION ALL SELECT i + 1 FROM n WHERE "
                     "i < %u)"
                     " SELECT n.i AS n, one.* FROM n, one;"
                     "UPDATE many SET %s = n;%s"
                     "ALTER TABLE many DROP COLUMN n;"
                     "INSERT INTO main.%s SELECT * FROM many; DROP TABLE one; DROP TABLE many;"
                     "PRAGMA wal_checkpoint(TRUNCATE)",
                     tables[t][0], tables[t][1], job, from, from + PART - 1, tables[t][1],
                     t == 0 ? "UPDATE many SET token = 'copy-' || n;" : "", tables[t][0]);
            if (!execute(world, db, sql))
                return false;
        }
    return true;
}

static bool fill(struct world *world, uint64_t ended, uint64_t waiting)
{
    sqlite3 *db = NULL;
    bool done = sqlite3_open(WORLD_STORE, &db) == SQLITE_OK && execute(world, db, "PRAGMA temp_store = MEMORY") &&
                copy_rows(world, db, ended, 1000, ENDED) && copy_rows(world, db, waiting, 1000 + ENDED, WAITING);
    sqlite3_close(db);
    return done;
}

/* CPU time of its main thread. */
static int64_t cost_ms(pid_t pid)
{
    char path[60];
    long long ns = -1;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lld", &ns) != 1)
        ns = -1;
    if (file)
        fclose(file);
    return ns / 1000000;
}

int outside_many_jobs(struct world *world, void *data)
{
    const char *argv[] = {"esubmit", "-o", "/dev/null", "4", "true", NULL};
    char said[1000];
    struct seen seen;
    (void)data;
    if (outside_begin(world))
        return 1;
    outside_touch(WORLD "/work/end");
    CHECK(outside_await_state(world, 2, "done"), "job 2 does not end");
    CHECK(world_command(world, false, said, sizeof(said), argv) == 0, "%s", said);
    world_stop_elmer(world, SIGTERM);
    world_start_elmer(world);
    CHECK(world_answers(world, START_MS), "no answer");
    int64_t of_three = cost_ms(world->elmer);
    world_stop_elmer(world, SIGTERM);
    CHECK(fill(world, 2, 3), "%s", world->err.text);
    int64_t begin = world_now_ms();
    world_start_elmer(world);
    CHECK(world_answers(world, START_MS), "no answer");
    int64_t cost = cost_ms(world->elmer);
    printf("# elmer's first answer with %d jobs queued and %d in its history: %" PRId64 " ms, %" PRId64
           " ms of CPU time, with 3 jobs %" PRId64 "\n",
           WAITING + 1, ENDED, world_now_ms() - begin, cost, of_three);
    CHECK(cost > 0 && cost <= COST_MS, "the start takes too long");
    CHECK(cost <= COST_TIMES * (of_three + 1), "the start takes too long for a machine on which another one is short");
    CHECK(outside_query(1000 + ENDED + WAITING - 1, &seen) && strcmp(seen.state, "queued") == 0, "%s", seen.state);
    CHECK(outside_query(1000 + ENDED - 1, &seen) && strcmp(seen.state, "done") == 0, "%s", seen.state);
    CHECK(outside_query(1, &seen) && strcmp(seen.state, "running") == 0, "%s", seen.state);
    return 0;
}
