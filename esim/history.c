/* history.c - rows of the store to jobs.
 *
 * The columns are those of lib/job/job.def: one that goes from there is missed when this is compiled. The store is read
 * in a copy (snapshot.h), of every schema up to the one that is known. */
#include "config.h"

#include "esim/history.h"

#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esim/service.h"
#include "esim/snapshot.h"
#include "lib/base/str.h"
#include "lib/job/fields.h"
#include "lib/memory/map.h"
#include "lib/wire/wire.h"

enum { START_MS = 60000 /* no start takes longer: core_options.start_timeout_ms */ };
enum { APPLICATION_ID = 0x454c4d52 /* "ELMR" */, HOST_TABLE_SINCE = 5, SETTING_TABLE_SINCE = 6 };
enum { SINCE_UNTIL = 2 }; /* what queries may ask for: ?1 and ?2 */

/* ---- the columns ---- */

#define SCHEMA_COLUMN(since, how, declaration)             YES, since
#define SCHEMA_IN_JOB                                      YES, 1
#define SCHEMA_IN_USAGE                                    YES, 1
#define SCHEMA_NO                                          NO, 0
#define SCHEMA_KEPT(name, type, record, core, column, ...) SCHEMA(SCHEMA_##column, name)
#define SCHEMA(...)                                        SCHEMA_(__VA_ARGS__)
#define SCHEMA_(answer, since, name)                       JOB_CODE(answer, schema_of_##name = (since), )
enum { JOB_FIELDS(JOB_NONE, SCHEMA_KEPT, JOB_NONE) };

/* COLUMN(name, in SQL) */
#define COLUMNS(COLUMN)                                                                                                \
    COLUMN(id, "j.id")                                                                                                 \
    COLUMN(uid, "j.uid")                                                                                               \
    COLUMN(user, "j.user")                                                                                             \
    COLUMN(submitted_ms, "j.submitted_ms")                                                                             \
    COLUMN(state, "s.state")                                                                                           \
    COLUMN(reason, "s.reason")                                                                                         \
    COLUMN(attempt, "s.attempt")                                                                                       \
    COLUMN(allocation, "s.allocation")                                                                                 \
    COLUMN(processors, "s.processors")                                                                                 \
    COLUMN(started_ms, "s.started_ms")                                                                                 \
    COLUMN(ended_ms, "s.ended_ms")                                                                                     \
    COLUMN(hosts, "s.hosts")                                                                                           \
    COLUMN(level_ms, "s.level_ms")                                                                                     \
    COLUMN(usage, "(SELECT sum(cpu_seconds) FROM usage u WHERE u.job = j.id AND u.attempt = s.attempt)")
#define PLACE(name, sql) AT_##name,
#define TEXT(name, sql)  sql ", "
#define CHECK(name, sql) _Static_assert(schema_of_##name == 1, "every store has it");
enum { COLUMNS(PLACE) AT_MINOR, AT_SUBMISSION, AT_ARRAY, AT_TASK_LIMIT };
COLUMNS(CHECK)

#define QUERY(array, where)                                                                                            \
    "SELECT " COLUMNS(TEXT) "j.minor, j.submission, " array " FROM job j JOIN state s ON s.job = j.id "                \
                            "WHERE j.submitted_ms < ?2 AND (j.submitted_ms >= ?1 OR s.ended_ms > ?1)" where            \
                            " ORDER BY j.submitted_ms, j.id"
/* The tasks of an array are jobs, it is none. */
static const char query_before_arrays[] = QUERY("0, 0", "");
static const char query[] =
    QUERY("s.array, (SELECT a.task_limit FROM state a WHERE a.job = s.array)", " AND s.ntasks = 0");
_Static_assert(schema_of_array == schema_of_ntasks && schema_of_task_limit == schema_of_ntasks, "one query has them");

/* Jobs that had processors, or were to have them, before ?1. */
static const char query_earlier[] = "SELECT j.submitted_ms, s.ended_ms FROM job j JOIN state s ON s.job = j.id "
                                    "WHERE j.submitted_ms < ?1 AND s.started_ms IS NOT NULL AND s.ended_ms IS NOT NULL "
                                    "ORDER BY j.submitted_ms, j.id";

/* ---- while it is read ---- */

struct host {
    const char *name;
    int cpus;      /* that the store says; 0: unknown */
    int seen;      /* that jobs had */
    bool in, used; /* up and not drained; jobs had it */
    bool drained;
    int number; /* among those that are kept */
};

struct reading {
    struct history *history;
    struct host *hosts;
    size_t nhosts, hosts_capacity, jobs_capacity;
    struct map names, seen; /* of hosts by a hash of the name; of processors */
    int64_t since_ms;
    int64_t busy_ms, until_ms; /* of jobs before that, so far: since when there was always one, and the last end */
    char *fault;
    size_t size;
};

static int host_number(struct reading *r, const char *name, size_t length)
{
    uint64_t key = 0xcbf29ce484222325u; /* FNV-1a */
    const struct host *host;
    int *number;

    for (size_t i = 0; i < length; i++)
        key = (key ^ (unsigned char)name[i]) * 0x100000001b3u;
    for (const int *at; (at = map_get(&r->names, key)); key++) {
        host = &r->hosts[*at];
        if (strlen(host->name) == length && memcmp(host->name, name, length) == 0)
            return *at;
    }
    r->hosts = mem_grow(r->hosts, &r->hosts_capacity, r->nhosts + 1, sizeof(*r->hosts));
    r->hosts[r->nhosts] = (struct host){.name = arena_format(&r->history->memory, "%.*s", (int)length, name)};
    number = arena_alloc(&r->history->memory, sizeof(*number));
    *number = (int)r->nhosts++;
    map_put(&r->names, key, number);
    return *number;
}

/* "HOST:CPU HOST:CPU .."; false: it is none. */
static bool read_processors(struct reading *r, const char *text, struct history_job *job)
{
    uint32_t *at = arena_array(&r->history->memory, job->nprocs, sizeof(*at)), count = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, " "), name = length;
        int host;
        long cpu;
        while (name > 0 && text[name - 1] != ':')
            name--;
        if (name < 2 || name == length || count == job->nprocs)
            return false;
        cpu = strtol(text + name, NULL, 10);
        host = host_number(r, text, name - 1);
        if (cpu < 0 || cpu > UINT16_MAX || host > UINT16_MAX)
            return false;
        at[count] = (uint32_t)host << 16 | (uint32_t)cpu;
        if (!map_get(&r->seen, at[count])) {
            map_put(&r->seen, at[count], r);
            r->hosts[host].seen++;
        }
        r->hosts[host].used = true;
        count++;
        text += length + (text[length] == ' ');
    }
    job->at = at;
    return count == job->nprocs && count > 0;
}

static void read_allowed(struct reading *r, const char *text, struct history_job *job)
{
    int *hosts = arena_array(&r->history->memory, strlen(text) / 2 + 1, sizeof(*hosts));

    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (length > 0)
            hosts[job->nhosts++] = host_number(r, text, length);
        text += length + (text[length] == ' ');
    }
    job->hosts = job->nhosts > 0 ? hosts : NULL;
}

/* Time at levels counts from the allocation: a start takes some time, in which nobody else has the processors. */
static void read_levels(struct history *h, const char *text, struct history_job *job)
{
    int64_t sum_ms = 0, begin_ms;

    for (int i = 1; *text != '\0' && i <= CORE_MAX_LEVELS; i++) {
        char *end;
        int64_t ms = strtoll(text, &end, 10);
        if (ms < 0 || ms > job->ended_ms || end == text)
            break;
        sum_ms += ms;
        if (ms > 0 && i > h->levels)
            h->levels = i;
        text = end;
    }
    begin_ms = job->ended_ms - sum_ms;
    job->allocated_ms = begin_ms < job->submitted_ms ? job->submitted_ms : begin_ms;
    if (job->allocated_ms > job->started_ms || job->started_ms - job->allocated_ms > START_MS)
        job->allocated_ms = job->started_ms;
}

static const char *words(sqlite3_stmt *s, int at)
{
    const char *text = (const char *)sqlite3_column_text(s, at);

    return text ? text : "";
}

static void read_after(struct history *h, const char *const *items, size_t count, struct history_job *job)
{
    struct after *after = count > 0 ? arena_array(&h->memory, count, sizeof(*after)) : NULL;
    char why[AFTER_WHY];

    for (size_t i = 0; i < count; i++)
        if (after_parse(items[i], &after[job->nafter], why) == 0)
            job->nafter++;
    job->after = after;
}

static bool read_submission(sqlite3_stmt *s, struct history_job *job, struct reading *r)
{
    struct wire_message message;
    struct err err = ERR_INIT;
    const char *json = words(s, AT_SUBMISSION);
    int minor = sqlite3_column_int(s, AT_MINOR);

    if (minor > WIRE_MINOR || wire_decode(json, strlen(json), (unsigned)minor, &message, &err) != 0) {
        snprintf(r->fault, r->size, "the submission of job %" PRIu64 " cannot be read: %.120s", job->id,
                 minor > WIRE_MINOR ? "it is of a newer elmer" : err.text);
        return false;
    }
    if (message.type == WIRE_submit && !message.u.submit.notice) {
        job->nprocs = (uint32_t)message.u.submit.nprocs;
        job->mesh_rows = (uint32_t)message.u.submit.mesh_rows;
        job->memory_bytes = message.u.submit.memory_bytes;
        job->per_host = (uint32_t)message.u.submit.per_host;
        read_after(r->history, message.u.submit.after.items, message.u.submit.after.count, job);
    }
    wire_message_fini(&message);
    return true;
}

/* Why a job that has ended is none that can be replayed, or how it was different: counted. */
static bool of_use(struct history *h, sqlite3_stmt *s)
{
    const char *reason = words(s, AT_reason);
    bool lost = strcmp(reason, reason_name(REASON_HOST_LOST)) == 0 || strcmp(reason, reason_name(REASON_LOST)) == 0;

    if (sqlite3_column_type(s, AT_ended_ms) == SQLITE_NULL) {
        h->unfinished++;
        return false;
    }
    if (strcmp(words(s, AT_state), job_state_name(JOB_CANCELLED)) == 0) {
        h->cancelled++;
        return false;
    }
    if (sqlite3_column_type(s, AT_started_ms) == SQLITE_NULL || words(s, AT_processors)[0] == '\0') {
        h->never_started++;
        return false;
    }
    if (sqlite3_column_int64(s, AT_started_ms) < sqlite3_column_int64(s, AT_submitted_ms) ||
        sqlite3_column_int64(s, AT_ended_ms) < sqlite3_column_int64(s, AT_started_ms)) { /* a clock was set meanwhile */
        h->backwards++;
        return false;
    }
    h->lost += lost;
    h->killed += strcmp(reason, reason_name(REASON_KILLED)) == 0;
    h->again += sqlite3_column_int64(s, AT_attempt) > 1;
    return true;
}

static bool read_row(struct reading *r, sqlite3_stmt *s)
{
    struct history *h = r->history;
    struct history_job *job;

    if (!of_use(h, s))
        return true;
    h->jobs = mem_grow(h->jobs, &r->jobs_capacity, h->njobs + 1, sizeof(*h->jobs));
    job = &h->jobs[h->njobs];
    *job = (struct history_job){.id = (uint64_t)sqlite3_column_int64(s, AT_id),
                                .uid = (uint32_t)sqlite3_column_int64(s, AT_uid),
                                .user = words(s, AT_user),
                                .allocation = (uint64_t)sqlite3_column_int64(s, AT_allocation),
                                .submitted_ms = sqlite3_column_int64(s, AT_submitted_ms),
                                .started_ms = sqlite3_column_int64(s, AT_started_ms),
                                .ended_ms = sqlite3_column_int64(s, AT_ended_ms),
                                .cpu_s = -1};
    job->user = h->njobs > 0 && strcmp(h->jobs[h->njobs - 1].user, job->user) == 0
                    ? h->jobs[h->njobs - 1].user
                    : arena_strdup(&h->memory, job->user);
    job->array = (uint64_t)sqlite3_column_int64(s, AT_ARRAY);
    job->task_limit = (uint32_t)sqlite3_column_int64(s, AT_TASK_LIMIT);
    job->measured = job->submitted_ms >= r->since_ms;
    if (sqlite3_column_type(s, AT_usage) != SQLITE_NULL)
        job->cpu_s = sqlite3_column_double(s, AT_usage);
    if (!read_submission(s, job, r))
        return false;
    if (job->nprocs == 0) /* a notice, which was on no processor */
        return true;
    if (!read_processors(r, words(s, AT_processors), job)) {
        snprintf(r->fault, r->size, "the row of job %" PRIu64 " makes no sense: its processors", job->id);
        return false;
    }
    read_allowed(r, words(s, AT_hosts), job);
    read_levels(h, words(s, AT_level_ms), job);
    h->unknown_use += job->cpu_s < 0;
    h->measured += job->measured;
    h->njobs++;
    return true;
}

/* Each row of the answer goes to take(). since_until: SINCE_UNTIL of them, or NULL. */
static bool each_row(sqlite3 *db, const char *sql, const int64_t *since_until,
                     bool (*take)(struct reading *r, sqlite3_stmt *s), struct reading *r)
{
    sqlite3_stmt *s = NULL;
    int step = SQLITE_ERROR;
    bool good = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK;

    for (int i = 0; good && since_until && i < SINCE_UNTIL && i < sqlite3_bind_parameter_count(s); i++)
        sqlite3_bind_int64(s, i + 1, since_until[i]);
    while (good && (step = sqlite3_step(s)) == SQLITE_ROW)
        good = take(r, s);
    if (step != SQLITE_ROW && step != SQLITE_DONE) {
        snprintf(r->fault, r->size, "the store cannot be read: %.150s", sqlite3_errmsg(db));
        good = false;
    }
    sqlite3_finalize(s);
    return good;
}

static bool take_earlier(struct reading *r, sqlite3_stmt *s)
{
    int64_t submitted_ms = sqlite3_column_int64(s, 0), ended_ms = sqlite3_column_int64(s, 1);

    if (submitted_ms >= r->until_ms)
        r->busy_ms = submitted_ms;
    if (ended_ms > r->until_ms)
        r->until_ms = ended_ms;
    return true;
}

static bool take_host(struct reading *r, sqlite3_stmt *s)
{
    const char *name = words(s, 0);
    bool up = sqlite3_column_int(s, 1) != 0, drained = sqlite3_column_int(s, 3) != 0;
    int64_t cpus = sqlite3_column_int64(s, 2);
    int number = host_number(r, name, strlen(name)); /* may move the hosts */
    struct host *host = &r->hosts[number];

    host->cpus = cpus > 0 && cpus <= CORE_MAX_CPUS ? (int)cpus : 0;
    host->in = up && !drained && host->cpus > 0;
    host->drained = drained;
    return true;
}

static bool take_setting(struct reading *r, sqlite3_stmt *s)
{
    int setting = core_setting_by_name(words(s, 0)), value;

    if (setting == SETTING_ALLOCATOR && (value = core_allocator_by_name(words(s, 1))) >= 0)
        r->history->allocator = (enum core_allocator)value;
    if (setting == SETTING_POLICY && (value = core_policy_by_name(words(s, 1))) >= 0)
        r->history->policy = (enum core_policy)value;
    return true;
}

static bool take_version(struct reading *r, sqlite3_stmt *s)
{
    int64_t application = sqlite3_column_int64(s, 0), schema = sqlite3_column_int64(s, 1);

    if (application != APPLICATION_ID)
        snprintf(r->fault, r->size, "this is not a store of elmer");
    else if (schema < 1 || schema > HISTORY_SCHEMA)
        snprintf(r->fault, r->size,
                 "it has schema %" PRId64
                 ", and this esim knows schemas 1 to %d: use the esim of the elmer that wrote it",
                 schema, HISTORY_SCHEMA);
    else
        r->history->levels = (int)schema; /* for a moment */
    return r->history->levels > 0;
}

/* ---- the machine ---- */

/* Hosts that jobs had, and those that are there now; the rest of the store's are of other times. */
static void keep_hosts(struct reading *r)
{
    struct history *h = r->history;

    h->cpus = arena_array(&h->memory, r->nhosts + 1, sizeof(*h->cpus));
    h->hosts = arena_array(&h->memory, r->nhosts + 1, sizeof(*h->hosts));
    for (size_t i = 0; i < r->nhosts; i++) {
        struct host *host = &r->hosts[i];
        host->number = -1;
        if (!host->in && !host->used)
            continue;
        host->number = h->nhosts;
        h->hosts[h->nhosts] = host->name;
        h->cpus[h->nhosts++] = host->cpus > host->seen ? host->cpus : host->seen;
        h->drained += host->drained;
    }
    for (size_t i = 0; i < h->njobs; i++) {
        int *hosts = (int *)h->jobs[i].hosts, count = 0;
        for (int k = 0; k < h->jobs[i].nhosts; k++)
            if (r->hosts[hosts[k]].number >= 0)
                hosts[count++] = r->hosts[hosts[k]].number;
        h->jobs[i].nhosts = count;
        h->jobs[i].hosts = count > 0 ? hosts : NULL;
        h->bound += count > 0;
    }
}

static void sum_up(struct history *h)
{
    double *turnaround = mem_array(h->measured + 1, sizeof(*turnaround)), wait = 0;
    size_t n = 0;

    for (size_t i = 0; i < h->njobs; i++) {
        const struct history_job *job = &h->jobs[i];
        if (!job->measured)
            continue;
        turnaround[n++] = (double)(job->ended_ms - job->submitted_ms) / 1000;
        wait += (double)(job->started_ms - job->submitted_ms) / 1000;
    }
    h->turnaround = stats_batches(turnaround, n);
    h->wait = n > 0 ? wait / (double)n : 0;
    h->median = stats_quantile(turnaround, n, 0.5);
    h->p95 = stats_quantile(turnaround, n, 0.95);
    free(turnaround);
}

static bool read_all(struct reading *r, sqlite3 *db, int64_t since_ms, int64_t until_ms)
{
    int64_t since_until[SINCE_UNTIL] = {since_ms, until_ms};
    static const char versions[] = "SELECT (SELECT application_id FROM pragma_application_id), user_version "
                                   "FROM pragma_user_version";
    int schema;

    if (!each_row(db, versions, NULL, take_version, r))
        return false;
    schema = r->history->levels;
    r->history->levels = 1;
    if ((schema >= HOST_TABLE_SINCE &&
         !each_row(db, "SELECT name, up, cpus, drained FROM host ORDER BY name", NULL, take_host, r)) ||
        (schema >= SETTING_TABLE_SINCE &&
         !each_row(db, "SELECT name, value FROM setting WHERE value IS NOT NULL", NULL, take_setting, r)) ||
        !each_row(db, query_earlier, since_until, take_earlier, r))
        return false;
    if (r->until_ms > since_ms)
        since_until[0] = r->busy_ms;
    if (!each_row(db, schema >= schema_of_ntasks ? query : query_before_arrays, since_until, read_row, r))
        return false;
    if (r->history->measured == 0)
        snprintf(r->fault, r->size, "no job that has ended was submitted in that time");
    return r->history->measured > 0;
}

struct history *history_read(const char *path, int64_t since_ms, int64_t until_ms, char *fault, size_t size)
{
    char why[300] = "";
    struct reading r = {.since_ms = since_ms, .until_ms = INT64_MIN, .fault = why, .size = sizeof(why)};
    struct snapshot snapshot;
    sqlite3 *db = NULL;
    bool good;

    if (!snapshot_take(&snapshot, path, fault, size))
        return NULL;
    r.history = mem_zalloc(sizeof(*r.history));
    r.history->allocator = ALLOCATOR_COUNT;
    r.history->policy = POLICY_COUNT;
    good = sqlite3_open_v2(snapshot.path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK;
    if (!good)
        snprintf(why, sizeof(why), "%.150s", db ? sqlite3_errmsg(db) : "no memory");
    good = good && read_all(&r, db, since_ms, until_ms);
    sqlite3_close(db);
    snapshot_drop(&snapshot);
    if (good) {
        keep_hosts(&r);
        service_estimate(r.history->jobs, r.history->njobs);
        sum_up(r.history);
    } else {
        snprintf(fault, size, "%.150s: %s", path, why);
        history_destroy(r.history);
    }
    free(r.hosts);
    map_fini(&r.names);
    map_fini(&r.seen);
    return good ? r.history : NULL;
}

void history_destroy(struct history *history)
{
    if (!history)
        return;
    arena_fini(&history->memory);
    free(history->jobs);
    free(history);
}
