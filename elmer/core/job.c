/* job.c - one job, the moves between its states, and the index by which jobs are found.
 *
 * The index is an array in the order of ids. Ids only grow, so new jobs are appended; a forgotten job leaves an empty
 * entry, and when half of them are empty the array is packed.
 */
#include "elmer/core/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/moves.h"

static const struct moves_row states[JOB_STATE_COUNT] = {
    [JOB_QUEUED] = {"queued",
                    MOVE_TO(JOB_HELD) | MOVE_TO(JOB_STARTING) | MOVE_TO(JOB_CANCELLED) | MOVE_TO(JOB_STARTED)},
    [JOB_HELD] = {"held", MOVE_TO(JOB_QUEUED) | MOVE_TO(JOB_CANCELLED) | MOVE_TO(JOB_STARTED)},
    [JOB_STARTING] = {"starting", MOVE_TO(JOB_RUNNING) | MOVE_TO(JOB_ENDING)},
    [JOB_RUNNING] = {"running", MOVE_TO(JOB_ENDING)},
    [JOB_ENDING] = {"ending", MOVE_TO(JOB_DONE) | MOVE_TO(JOB_QUEUED)},
    [JOB_DONE] = {"done", 0},
    [JOB_CANCELLED] = {"cancelled", 0},
    [JOB_STARTED] = {"started", MOVE_TO(JOB_DONE) | MOVE_TO(JOB_CANCELLED)},
};

const char *job_state_name(enum job_state state)
{
    return (unsigned)state < JOB_STATE_COUNT ? states[state].name : "unknown";
}

static const char *const reason_names[REASON_COUNT] = {
    [REASON_NONE] = "",
    [REASON_WAITING] = "waiting",
    [REASON_HELD] = "held",
    [REASON_AT_LIMIT] = "at-limit",
    [REASON_TOO_FEW_UP] = "too-few-up",
    [REASON_LEASE] = "lease",
    [REASON_AWAITING_HOSTS] = "awaiting-hosts",
    [REASON_EXITED] = "exited",
    [REASON_KILLED] = "killed",
    [REASON_CANCELLED] = "cancelled",
    [REASON_HOST_LOST] = "host-lost",
    [REASON_START_FAILED] = "start-failed",
    [REASON_START_TIMEOUT] = "start-timeout",
    [REASON_HELPER_FAILED] = "pvm-failed", /* its name since there was but one launcher with helpers */
    [REASON_LOST] = "lost",
    [REASON_TIME_LIMIT] = "time-limit",
    [REASON_CPU_LIMIT] = "cpu-limit",
    [REASON_AFTER] = "after",
    [REASON_NEVER] = "never",
    [REASON_TASK_LIMIT] = "task-limit",
    [REASON_MEMORY_LIMIT] = "memory-limit",
    [REASON_TASKS_FAILED] = "tasks-failed",
};

const char *reason_name(enum reason reason)
{
    return (unsigned)reason < REASON_COUNT ? reason_names[reason] : "unknown";
}

/* ---- moves ---- */

void job_move(struct core *core, struct job *job, enum job_state state)
{
    MOVES_CHECK("job", states, job->info.state, state);
    job->info.state = state;
    emit_owe_persist(core, job);
    if (state == JOB_RUNNING)
        after_ran(core, job);
    if (state == JOB_DONE || state == JOB_CANCELLED) {
        after_ended(core, job);
        array_task_ended(core, job);
    }
}

bool job_has_cluster(const struct job *job)
{
    return job_state_has_cluster(job->info.state);
}

/* ---- one job ---- */

struct job *job_create(uint64_t id, uint32_t uid, const int *hosts, int nhosts)
{
    struct job *job = mem_zalloc(sizeof(*job));

    if (hosts)
        job->hosts = mem_copy(hosts, (size_t)nhosts, sizeof(*hosts));
    list_init(&job->waiters);
    job->info.id = job->info.place = id;
    job->info.uid = uid;
    job->info.hosts = job->hosts;
    job->info.nhosts = hosts ? nhosts : 0;
    job->info.state = JOB_QUEUED;
    job->info.text = "";
    job->info.level = CORE_NO_LEVEL;
    job->info.exit_status = -1;
    job->info.failed_rank = UINT32_MAX;
    return job;
}

void job_take_submitted(struct job *job, const struct event *event)
{
#define TAKE_SUBMITTED(name, type, core, ...) JOB_IF(EVENT, core, job->info.name = event->u.submit.name;)
    JOB_FIELDS(TAKE_SUBMITTED, JOB_NONE, JOB_NONE)
}

void job_take_asked(struct job *job, const struct core_job *from)
{
#define TAKE_ASKED(name, type, core, ...) JOB_IF(EVENT, core, job->info.name = from->name;)
    JOB_FIELDS(TAKE_ASKED, JOB_NONE, JOB_NONE)
}

void job_destroy(struct job *job)
{
    if (!job)
        return;
    after_free(job);
    array_free(job);
    free(job->processors);
    free(job->hosts);
    free(job->text);
    free(job->exited);
    free(job->parts);
    free(job->claims);
    free(job->lost);
    free(job->last);
    free(job);
}

char *job_copy_text(const char *text)
{
    return text && text[0] != '\0' ? mem_strndup(text, JOB_TEXT_MAX) : NULL;
}

void job_set_text(struct job *job, char *text)
{
    free(job->text);
    job->text = text;
    job->info.text = text ? text : "";
}

uint32_t job_ranks(const struct job *job)
{
    return job->info.each ? job->info.nprocs : 1;
}

void job_account(struct job *job, int64_t now_ms)
{
    if (!job_has_cluster(job))
        return;
    job->info.level_ms[job->info.level] += now_ms - job->level_since_ms;
    job->level_since_ms = now_ms;
}

/* Hosts answer one after the other, and most in their order: it is the next one, or the one of before. */
static struct part *next_part(struct job *job, int host)
{
    for (int i = job->last_part; i < job->nparts && i <= job->last_part + 1; i++)
        if (job->parts[i].host->index == host) {
            job->last_part = i;
            return &job->parts[i];
        }
    return NULL;
}

struct part *job_part(struct job *job, int host)
{
    int low = 0, high = job->nparts;
    struct part *next = next_part(job, host);

    if (next)
        return next;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (job->parts[middle].host->index < host)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == job->nparts || job->parts[low].host->index != host)
        return NULL;
    job->last_part = low;
    return &job->parts[low];
}

/* ---- the index ---- */

/* The first entry whose id is at least this. Ids rise by one or more from entry to entry, so it is no farther from the
 * last one than they are, and mostly just there. */
static size_t index_at(const struct core *core, uint64_t id)
{
    size_t low = 0, high = core->nindex;

    if (high > 0 && id <= core->index[high - 1].id) {
        uint64_t behind = core->index[high - 1].id - id;
        low = behind < high ? high - 1 - (size_t)behind : 0;
        if (core->index[low].id >= id)
            return low;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->index[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct job *index_find(const struct core *core, uint64_t id)
{
    size_t at = index_at(core, id);

    return at < core->nindex && core->index[at].id == id ? core->index[at].job : NULL;
}

struct job *index_from(const struct core *core, uint64_t id)
{
    size_t at = index_at(core, id);

    while (at < core->nindex && !core->index[at].job)
        at++;
    return at < core->nindex ? core->index[at].job : NULL;
}

void index_insert(struct core *core, struct job *job)
{
    size_t at = index_at(core, job->info.id);

    if (at < core->nindex && core->index[at].id == job->info.id) { /* forgotten once, restored now */
        assert(!core->index[at].job);
        core->index[at].job = job;
        core->nforgotten--;
        return;
    }
    core->index = mem_grow(core->index, &core->index_capacity, core->nindex + 1, sizeof(*core->index));
    memmove(&core->index[at + 1], &core->index[at], (core->nindex - at) * sizeof(*core->index));
    core->index[at] = (struct index_entry){.id = job->info.id, .job = job};
    core->nindex++;
}

static void index_pack(struct core *core)
{
    size_t kept = 0;

    for (size_t i = 0; i < core->nindex; i++)
        if (core->index[i].job)
            core->index[kept++] = core->index[i];
    core->nindex = kept;
    core->nforgotten = 0;
}

/* ---- queries ---- */

/* Brings what is computed late up to date. */
static const struct core_job *refresh(const struct core *core, struct job *job)
{
    job_account(job, core->now_ms);
    job->info.level_until_ms = core->now_ms;
    job->info.ahead = 0;
    if (job->info.state == JOB_QUEUED)
        job->info.reason = queue_reason(core, job);
    for (int i = 0; i < job->info.nlost; i++)
        job->lost[i] = job->claims[i].host ? job->claims[i].host->index : -1;
    job->info.lost = job->info.nlost > 0 ? job->lost : NULL;
    job->info.lost_ms = lease_left_ms(core, job);
    if (job->in_queue.in)
        job->info.ahead = queue_ahead(job);
    return &job->info;
}

const struct core_job *core_job(const struct core *core, uint64_t id)
{
    struct job *job = index_find(core, id);

    return job ? refresh(core, job) : NULL;
}

uint64_t core_above(const struct core *core, uint64_t id, uint32_t rank)
{
    const struct job *job = index_find(core, id), *above;

    if (!job || !job_has_cluster(job) || rank >= job->info.nprocs)
        return 0;
    above = cluster_above(core, job, &job->processors[rank]);
    return above ? above->info.id : 0;
}

bool core_had_part(const struct core *core, uint64_t id, int host)
{
    const struct job *job = index_find(core, id);

    if (!job)
        return false;
    for (uint32_t i = 0; job->info.processors && i < job->info.nprocs; i++)
        if (job->processors[i].host == host)
            return true;
    return lease_was_there(job, core->hosts[host]);
}

struct job *index_array_of(const struct core *core, uint64_t id)
{
    size_t at = index_at(core, id);
    struct job *array = NULL;

    if (at < core->nindex && core->index[at].id == id && core->index[at].job)
        return NULL;
    while (at > 0 && !core->index[at - 1].job)
        at--;
    if (at > 0)
        array = core->index[at - 1].job;
    if (array && array->info.array != 0)
        array = index_find(core, array->info.array);
    return array && array->array && id > array->info.id && id <= array->info.id + array->info.ntasks ? array : NULL;
}

const struct core_job *core_array_of(const struct core *core, uint64_t id)
{
    struct job *array = index_array_of(core, id);

    return array ? refresh(core, array) : NULL;
}

const struct core_job *core_next_job(const struct core *core, uint64_t *cursor)
{
    for (size_t at = index_at(core, *cursor + 1); at < core->nindex; at++) {
        if (!core->index[at].job)
            continue;
        *cursor = core->index[at].id;
        return refresh(core, core->index[at].job);
    }
    return NULL;
}

void core_forget(struct core *core, uint64_t id)
{
    struct job *job = index_find(core, id);

    if (!job || (job->info.state != JOB_DONE && job->info.state != JOB_CANCELLED))
        return;
    assert(!node_linked(&job->in_persist)); /* its last row was told */
    core->index[index_at(core, id)].job = NULL;
    user_leave(core, job);
    job_destroy(job);
    if (++core->nforgotten > 32 && core->nforgotten > core->nindex / 2)
        index_pack(core);
}
