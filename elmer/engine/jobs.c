#include "config.h"

#include "elmer/engine/internal.h"
#include "elmer/engine/jobs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "elmer/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

void jobs_init(struct jobs *jobs)
{
    *jobs = (struct jobs){0};
    jobs->last_ended = &jobs->ended;
    if (getrandom(&jobs->salt, sizeof(jobs->salt), GRND_NONBLOCK) != sizeof(jobs->salt))
        jobs->salt = (uint64_t)(uintptr_t)jobs;
}

enum { TOKEN_OF_TASK = 72 };
enum { AFTER_COST = 100 }; /* of one thing that a job waits for, in the core */

static void end_free(struct engine_job_end *end)
{
    if (end)
        free(end->json);
    free(end);
}

static void job_free(struct engine_job *job)
{
    wire_message_fini(&job->submission);
    free(job->user);
    free(job->usage);
    polls_clear(job);
    for (size_t i = 0; i < job->nmissing; i++)
        free(job->missing[i]);
    free(job->missing);
    end_free(job->end);
    end_free(job->of_task);
    tree_destroy(job->lines);
    free(job->line);
    free(job);
}

void jobs_fini(struct jobs *jobs)
{
    size_t cursor = 0;
    for (struct engine_job *job; (job = map_next(&jobs->by_id, &cursor));)
        job_free(job);
    map_fini(&jobs->by_id);
    map_fini(&jobs->by_token);
    cursor = 0;
    for (void *bytes; (bytes = map_next(&jobs->bytes, &cursor));)
        free(bytes);
    map_fini(&jobs->bytes);
}

static uint64_t hash(const struct jobs *jobs, uint32_t uid, const char *token)
{
    uint64_t h = jobs->salt ^ (uid * 0x9e3779b97f4a7c15u);
    for (; *token; token++) {
        h = (h ^ (unsigned char)*token) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return h;
}

struct engine_job *jobs_find(const struct jobs *jobs, uint64_t id)
{
    return map_get(&jobs->by_id, id);
}

const struct engine_job *jobs_by_token(const struct jobs *jobs, uint32_t uid, const char *token)
{
    const struct engine_job *job = map_get(&jobs->by_token, hash(jobs, uid, token));
    while (job && (job->uid != uid || job->refused || strcmp(job_submit(job)->token, token) != 0))
        job = job->same_token;
    return job;
}

static size_t *bytes_of(struct jobs *jobs, uint32_t uid)
{
    size_t *bytes = map_get(&jobs->bytes, uid);
    if (!bytes) {
        bytes = mem_zalloc(sizeof(*bytes));
        map_put(&jobs->bytes, uid, bytes);
    }
    return bytes;
}

size_t jobs_bytes(const struct jobs *jobs, uint32_t uid)
{
    const size_t *bytes = map_get(&jobs->bytes, uid);
    return bytes ? *bytes : 0;
}

size_t jobs_bytes_of_all(const struct jobs *jobs)
{
    return jobs->bytes_of_all;
}

static void uncount(struct jobs *jobs, struct engine_job *job)
{
    if (job->noted) {
        jobs->ended_bytes -= job->bytes;
    } else {
        size_t *bytes = bytes_of(jobs, job->uid);
        *bytes -= job->bytes;
        if (*bytes == 0) /* who lies about his users has a new one for each job */
            free(map_remove(&jobs->bytes, job->uid));
        jobs->bytes_of_all -= job->bytes;
    }
    job->bytes = 0;
}

/* A task is found by its array's token. Its submission counts with its array's, and it has nothing of its own but where
 * it may run. */
static void enter(struct jobs *jobs, struct engine_job *job)
{
    assert(!map_get(&jobs->by_id, job->id));
    map_put(&jobs->by_id, job->id, job);
    job->bytes = job->of ? jobs_task_bytes(job->of) : job->submission.bytes + job_submit(job)->after.count * AFTER_COST;
    *bytes_of(jobs, job->uid) += job->bytes;
    jobs->bytes_of_all += job->bytes;
    if (job->of)
        return;
    uint64_t key = hash(jobs, job->uid, job_submit(job)->token);
    job->same_token = map_get(&jobs->by_token, key);
    map_put(&jobs->by_token, key, job);
}

struct engine_job *jobs_add(struct jobs *jobs, uint64_t id, uint32_t uid, const char *user,
                            struct wire_message *submission)
{
    assert(submission->type == WIRE_submit);
    struct engine_job *job = mem_zalloc(sizeof(*job));
    *job = (struct engine_job){.id = id,
                               .uid = uid,
                               .user = mem_strdup(user),
                               .submission = *submission,
                               .submitted_ms = -1,
                               .started_ms = -1,
                               .ended_ms = -1};
    submission->memory = NULL;
    snprintf(job->name, sizeof(job->name), "%s", job_submit(job)->name); /* one made for it lives with the request */
    job->submission.u.submit.name = job->name;
    enter(jobs, job);
    return job;
}

/* NULL: it has none. */
static const struct tree *lines_of(struct engine_job *array)
{
    if (*job_submit(array)->lines && !array->lines)
        array->lines = mem_checked(tree_create(job_submit(array)->lines));
    return array->lines;
}

const char *jobs_line(struct engine_job *array, uint32_t ordinal, struct arena *memory)
{
    const struct tree *lines = lines_of(array);
    size_t length;
    if (!lines || ordinal >= tree_count(lines))
        return "";
    const char *line = tree_line(lines, ordinal, &length);
    return arena_format(memory, "%.*s", (int)length, line);
}

const char *jobs_line_proof(const struct engine_job *task, struct arena *memory)
{
    const struct tree *lines = task->line && task->of ? lines_of(task->of) : NULL;
    uint8_t proof[TREE_PROOF_MAX][TREE_DIGEST_BYTES];
    int nproof = lines && task->task < tree_count(lines) ? tree_proof(lines, task->task, proof) : 0;
    char *text = arena_alloc(memory, 2 * sizeof(proof) + 1);
    (void)mem_checked(nproof < 0 ? NULL : text);
    for (size_t i = 0; i < (size_t)nproof * TREE_DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", proof[i / TREE_DIGEST_BYTES][i % TREE_DIGEST_BYTES]);
    text[2 * (size_t)nproof * TREE_DIGEST_BYTES] = 0;
    return text;
}

/* Of its line the mean, because that is the same for all of them. */
size_t jobs_task_bytes(const struct engine_job *array)
{
    size_t hosts = job_submit(array)->hosts.count * sizeof(int);
    return array->lines ? hosts + strlen(job_submit(array)->lines) / tree_count(array->lines) + 1 : hosts;
}

const struct engine_job_end *jobs_task_end(struct engine_job *array)
{
    struct engine_job_end end = {0};
    struct err err = ERR_INIT;
    if (array->of_task)
        return array->of_task;
    struct wire_message submission = array->submission;
    submission.u.submit.lines = ""; /* it has its own, in a column */
    if (record_end(&submission, &end.json, &end.minor, end.environment_sha256, &err) &&
        record_json(&submission, &end.json, &end.minor, &err))
        log_error("job=%llu its submission cannot be encoded: %s", (unsigned long long)array->id, err.text);
    return array->of_task = mem_copy(&end, 1, sizeof(end));
}

struct engine_job *jobs_add_task(struct jobs *jobs, uint64_t id, struct engine_job *array)
{
    struct engine_job *job = mem_zalloc(sizeof(*job));
    *job = (struct engine_job){.id = id,
                               .uid = array->uid,
                               .user = mem_strdup(array->user),
                               .of = array,
                               .array = array->id,
                               .task = (uint32_t)(id - array->id) - 1,
                               .submitted_ms = array->submitted_ms,
                               .started_ms = -1,
                               .ended_ms = -1};
    snprintf(job->name, sizeof(job->name), "%s", array->name);
    (void)jobs_task_end(array); /* while the array has its environment */
    if (lines_of(array)) {
        struct arena memory = {0};
        job->line = mem_strdup(jobs_line(array, job->task, &memory));
        arena_fini(&memory);
    }
    enter(jobs, job);
    return job;
}

void jobs_remove(struct jobs *jobs, struct engine_job *job)
{
    assert(map_get(&jobs->by_id, job->id) == job);
    uncount(jobs, job);
    map_remove(&jobs->by_id, job->id);
    if (job->array) {
        job_free(job);
        return;
    }
    uint64_t key = hash(jobs, job->uid, job_submit(job)->token);
    struct engine_job *first = map_get(&jobs->by_token, key);
    if (first == job && job->same_token)
        map_put(&jobs->by_token, key, job->same_token);
    else if (first == job)
        map_remove(&jobs->by_token, key);
    else
        for (; first; first = first->same_token)
            if (first->same_token == job)
                first->same_token = job->same_token;
    job_free(job);
}

/* Of a task that has ended: what it needs when its array is gone. */
static void leave_array(struct engine_job *job)
{
    const struct engine_job_end *end = jobs_task_end(job->of);
    job->end = mem_copy(end, 1, sizeof(*end));
    job->end->json = mem_strdup(end->json ? end->json : "");
}

/* What nobody needs any more, and may be large: only what is shown of an ended job stays. */
static void drop_environment(struct engine_job *job)
{
    struct wire_message kept = {0};
    struct err err = ERR_INIT;
    if (job->of)
        leave_array(job);
    if (!job->end)
        return; /* engine_persist() has said why */
    char *json = job->end->json;
    int result = mem_result(wire_decode(json, strlen(json), job->end->minor, &kept, &err));
    free(json);
    job->end->json = NULL;
    if (result) {
        log_error("job=%llu its environment stays in memory: %s", (unsigned long long)job->id, err.text);
        return;
    }
    tree_destroy(job->lines); /* of the text that goes; lines_of() makes it again */
    job->lines = NULL;
    wire_message_fini(&job->submission);
    job->submission = kept;
    job->submission.u.submit.name = job->name;
    job->of = NULL;
}

void jobs_note_ended(struct jobs *jobs, struct engine_job *job)
{
    assert(!job->noted); /* once */
    uncount(jobs, job);
    drop_environment(job);
    job->bytes = job->submission.bytes + (job->line ? strlen(job->line) : 0);
    jobs->ended_bytes += job->bytes;
    job->noted = true;
    *jobs->last_ended = job;
    jobs->last_ended = &job->next_ended;
    jobs->nended++;
}

struct engine_job *jobs_oldest(const struct jobs *jobs, size_t kept)
{
    return jobs->nended > kept || jobs->ended_bytes > JOBS_ENDED_BYTES ? jobs->ended : NULL;
}

void jobs_drop(struct jobs *jobs, struct engine_job *job)
{
    assert(jobs->nended > 0);
    assert(job == jobs->ended);
    jobs->ended = job->next_ended;
    if (!jobs->ended)
        jobs->last_ended = &jobs->ended;
    jobs->nended--;
    jobs_remove(jobs, job);
}

void job_set_usage(struct engine_job *job, const char *host, uint32_t attempt, double cpu_seconds,
                   int64_t memory_peak_bytes)
{
    struct record_usage usage = {host, attempt, cpu_seconds, memory_peak_bytes};
    for (size_t n = 0; n < job->nusage; n++) {
        size_t i = (job->usage_next + n) % job->nusage;
        if (job->usage[i].attempt == attempt && strcmp(job->usage[i].host, host) == 0) {
            job->usage[i] = usage;
            job->usage_next = i + 1;
            return;
        }
    }
    job->usage = mem_grow(job->usage, &job->usage_capacity, job->nusage + 1, sizeof(*job->usage));
    job->usage[job->nusage++] = usage;
}

void job_add_missing(struct engine_job *job, const char *host)
{
    job->missing = mem_grow(job->missing, &job->missing_capacity, job->nmissing + 1, sizeof(*job->missing));
    job->missing[job->nmissing++] = mem_strdup(host);
}

void job_name_lost(const struct core *core, const struct core_job *state, struct arena *memory, struct record *record)
{
    const char **lost = arena_array(memory, (size_t)state->nlost, sizeof(*lost));
    for (int i = 0; i < state->nlost; i++)
        lost[i] = state->lost[i] < 0 ? RECORD_UNKNOWN_HOST : core_host(core, state->lost[i])->name;
    record->lost = lost;
    record->nlost = (uint32_t)state->nlost;
}

/* Those that it may use: of the configuration, and such as are missing there. */
static void copy_hosts(const struct core *core, const struct engine_job *job, const struct core_job *state,
                       struct record *r)
{
    size_t count = 0;
    if (!state->hosts)
        return;
    const char **hosts = arena_array(&r->memory, (size_t)state->nhosts + job->nmissing, sizeof(*hosts));
    for (int i = 0; i < state->nhosts; i++)
        hosts[count++] = core_host(core, state->hosts[i])->name;
    for (size_t i = 0; i < job->nmissing; i++)
        hosts[count++] = arena_strdup(&r->memory, job->missing[i]);
    assert(count); /* without any it would be written as one that may use all */
    r->hosts = hosts;
    r->nhosts = (uint32_t)count;
}

static void copy_cluster(const struct core *core, struct record *record, const struct core_job *state)
{
    if (state->processors) {
        struct record_processor *processors = arena_array(&record->memory, state->nprocs, sizeof(*processors));
        for (uint32_t i = 0; i < state->nprocs; i++)
            processors[i] =
                (struct record_processor){core_host(core, state->processors[i].host)->name, state->processors[i].cpu};
        record->processors = processors;
        record->nprocessors = state->nprocs;
    }
    if (state->nafter)
        record->after = memcpy(arena_array(&record->memory, (size_t)state->nafter, sizeof(*state->after)), state->after,
                               (size_t)state->nafter * sizeof(*state->after));
    if (state->ngone)
        record->gone = memcpy(arena_array(&record->memory, (size_t)state->ngone, sizeof(*state->gone)), state->gone,
                              (size_t)state->ngone * sizeof(*state->gone));
    if (state->exited) {
        record->exited_size = ((size_t)(state->each ? state->nprocs : 1) + 7) / 8;
        record->exited = memcpy(arena_alloc(&record->memory, record->exited_size), state->exited, record->exited_size);
    }
}

/* The store wants a token for each row. A task's is longer than a client may send, so it meets nobody else's. */
static const char *token_of_task(const struct engine_job *job, char token[TOKEN_OF_TASK])
{
    snprintf(token, TOKEN_OF_TASK, "%065llu", (unsigned long long)job->id);
    return token;
}

void job_glance(const struct core *core, const struct engine_job *job, const struct core_job *state, struct record *r)
{
    static char token[TOKEN_OF_TASK]; /* for a moment, as the record */
    const struct engine_job_end *end = job->of ? jobs_task_end(job->of) : job->end;
    *r = (struct record){.user = job->user,
                         .token = job->array ? token_of_task(job, token) : job_submit(job)->token,
                         .submitted_ms = job->submitted_ms,
                         .started_ms = job->started_ms,
                         .ended_ms = job->ended_ms,
                         .begin_notice = job->begin_notice,
                         .end_notice = job->end_notice,
                         .polls = "",
                         .environment_sha256 = end ? end->environment_sha256 : "",
                         .line = job->line ? job->line : "",
                         .submit = job_submit(job)};
#define GLANCE_KEPT(name, type, record, core, ...) JOB_IF(COPIED, core, r->name = state->name;)
    JOB_FIELDS(JOB_NONE, GLANCE_KEPT, JOB_NONE)
    if (state->nprocs > 1 && !record_ended(r))
        r->mesh_rows = state->mesh_rows;
    r->text = state->text ? state->text : "";
    r->after = state->after;
    r->nafter = (uint32_t)state->nafter;
    r->gone = state->gone;
    r->ngone = (uint32_t)state->ngone;
    r->refused = core_survey(core, job->id, &r->survey);
    memcpy(r->level_ms, state->level_ms, sizeof(r->level_ms));
    r->accounted_mono_ms = state->level_until_ms;
    r->accounted_ms = wall_now().ms - (mono_ms(mono_now()) - state->level_until_ms);
    r->boot = boot_number();
    r->started_ms = limits_started_ms(job, state->level_until_ms, r->accounted_ms);
}

struct record *job_record(const struct core *core, const struct engine_job *job, const struct core_job *state,
                          bool with_json)
{
    struct record *r = record_create();
    job_glance(core, job, state, r);
    r->user = arena_strdup(&r->memory, r->user);
    r->token = arena_strdup(&r->memory, r->token);
    r->environment_sha256 = arena_strdup(&r->memory, r->environment_sha256);
    r->notice = state->notice;
    r->dropped = job->refused || (job->of && job->of->refused);
    r->text = arena_strdup(&r->memory, r->text);
    r->polls = polls_text(job, state->attempt, &r->memory);
    r->line = arena_strdup(&r->memory, r->line);
    job_name_lost(core, state, &r->memory, r);
    copy_cluster(core, r, state);
    copy_hosts(core, job, state, r);
    if (job->nusage) {
        r->usage = memcpy(arena_array(&r->memory, job->nusage, sizeof(*job->usage)), job->usage,
                          job->nusage * sizeof(*job->usage));
        r->nusage = job->nusage;
    }
    if (with_json && job->of) { /* its array stays until the last of its rows is on disk */
        const struct engine_job_end *end = jobs_task_end(job->of);
        r->json = end->json ? end->json : "";
        r->json_minor = end->minor;
    } else if (with_json) {
        struct err err = ERR_INIT;
        char *json = NULL;
        if (record_json(&job->submission, &json, &r->json_minor, &err))
            log_error("job=%llu its submission cannot be encoded: %s", (unsigned long long)job->id, err.text);
        r->json = arena_strdup(&r->memory, json ? json : "");
        free(json);
    }
    return r;
}
