/* life.c - a job from its allocation to its end.
 *
 * Normal: life_start() enters it into the table and owes each of its hosts an order and an OPEN. When the last host has
 * opened, LAUNCH is owed, once (life_part_opened), and that it was is stored before it goes out. The shell says
 * launched: RUNNING. The exit of its last process, or of its only one: ENDING, END is owed to each host (life_end).
 * When the last host has reported its group empty: DONE; only then it leaves the table, all below it move up, and the
 * queue is looked at again. Failures: whatever goes wrong before is the same way to ENDING with another reason; the
 * first reason stays. A host that is down counts as empty; when it comes back with the group it is told END again.
 * Until start_timeout_ms a job is RUNNING or ends; for a restored one that counts from when its last awaited host is
 * up, because nothing could be asked of it before. Invariant: unopened and unempty count the parts that they name;
 * entries are in the table exactly while STARTING, RUNNING or ENDING. A job with requeue that a host took away goes
 * from ENDING back to QUEUED instead (put_back, lease.c).
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/moves.h"

#define STARTING(node) LIST_ITEM(node, struct job, in_start)

/* The first state of a part is PART_OPENING, of a restored one that of its job. From PART_EMPTY: the host has the group
 * after all. */
static const struct moves_row part_states[] = {
    [PART_OPENING] = {"opening", MOVE_TO(PART_OPEN) | MOVE_TO(PART_ENDING) | MOVE_TO(PART_EMPTY)},
    [PART_OPEN] = {"open", MOVE_TO(PART_ENDING) | MOVE_TO(PART_EMPTY)},
    [PART_ENDING] = {"ending", MOVE_TO(PART_ENDING) | MOVE_TO(PART_EMPTY)},
    [PART_EMPTY] = {"empty", MOVE_TO(PART_ENDING)},
};

static void part_move(struct part *part, enum part_state state)
{
    MOVES_CHECK("part of a job", part_states, part->state, state);
    part->state = state;
}

/* Enters the table; used for new and for restored jobs. The processors are set, in order. */
void life_link_cluster(struct core *core, struct job *job, struct part *parts, int nparts)
{
    job->info.processors = job->processors;
    job->info.exited = job->exited;
    job->parts = parts;
    job->nparts = nparts;
    lease_note_hosts(job);
    for (int i = 0; i < nparts; i++) {
        parts[i].job = job;
        list_append(&parts[i].host->parts, &parts[i].on_host);
        room_promise(&parts[i]);
        host_owe_order(core, parts[i].host);
    }
    list_append(&core->active, &job->in_active);
    core->nactive++;
    if (!job->info.notice)
        user_takes(job->user);
    array_task_clusters(core, job, true);
    topology_enter(core, job);
    job->level_since_ms = core->now_ms;
}

static int level_of_new(const struct core *core, const struct job *job)
{
    int level = 0;

    for (uint32_t i = 0; !job->info.notice && i < job->info.nprocs; i++) {
        const struct core_processor *at = &job->processors[i];
        const struct alloc_processor *processor = &core->hosts[at->host]->processors[at->cpu];
        assert(processor->present && processor->next_level < core->options.levels);
        if (processor->next_level > level)
            level = processor->next_level;
    }
    return level;
}

/* Takes processors, parts and exited. */
void life_start(struct core *core, struct job *job, struct core_processor *processors, struct part *parts, int nparts,
                uint8_t *exited)
{
    if (job->in_queue.in)
        queue_remove(core, job);
    job->processors = processors;
    job->exited = exited;
    job->info.attempt++;
    job->info.allocation = core->next_allocation++;
    job->info.reason = REASON_NONE;
    job->info.launched = false;
    job->info.lease_ms = lease_for(core, job, parts, nparts);
    memset(job->info.level_ms, 0, sizeof(job->info.level_ms));
    job_set_text(job, NULL);
    job->deadline_ms = core->now_ms + core->options.start_timeout_ms;
    job->unopened = nparts;
    job->unempty = nparts;
    for (int i = 0; i < nparts; i++) {
        assert(parts[i].state == PART_OPENING);
        parts[i].send = true;
    }
    job_move(core, job, JOB_STARTING);
    life_link_cluster(core, job, parts, nparts);
    list_append(&core->starting, &job->in_start);
    cluster_enter(core, job, level_of_new(core, job));
    cluster_count_starting(core, job, +1);
    cluster_touch(core, job);
}

/* No longer STARTING: its load can show from now on. */
static void leave_start(struct core *core, struct job *job)
{
    list_remove(&job->in_start);
    list_remove(&job->in_launch);
    cluster_count_starting(core, job, -1);
    cluster_touch(core, job);
}

static void leave_cluster(struct core *core, struct job *job)
{
    uint32_t changed;

    job_account(job, core->now_ms);
    cluster_touch(core, job);
    changed = level_close_gap(core, job);
    for (int i = 0; i < job->nparts; i++) {
        host_owe_order(core, job->parts[i].host);
        list_remove(&job->parts[i].on_host);
        room_take_back(&job->parts[i]);
    }
    free(job->parts);
    job->parts = NULL;
    job->nparts = 0;
    list_remove(&job->in_active);
    core->nactive--;
    topology_leave(core, job);
    if (job->info.notice) {
        notice_look(core, notice_host(core, job));
        return;
    }
    user_gives(core, job->user);
    array_task_clusters(core, job, false);
    queue_changed_rows(core, changed);
}

/* As it was before this attempt, except for the attempt's number and what lost hosts may still have of it. */
static void put_back(struct core *core, struct job *job)
{
    free(job->processors);
    free(job->exited);
    job->processors = NULL;
    job->exited = NULL;
    job->info.processors = NULL;
    job->info.exited = NULL;
    job->info.exits = 0;
    job->info.exit_status = -1;
    job->info.signal = 0;
    job->info.failed_rank = UINT32_MAX;
    job->launched = job->info.launched = job->restored = false;
    job_move(core, job, JOB_QUEUED);
    queue_add(core, job);
}

static void all_empty(struct core *core, struct job *job)
{
    bool again = lease_goes_again(job);

    leave_cluster(core, job);
    job->info.level = CORE_NO_LEVEL;
    if (again) {
        put_back(core, job);
    } else {
        lease_drop_all(job);
        job_move(core, job, JOB_DONE);
    }
}

static void part_end(struct core *core, struct part *part)
{
    part_move(part, PART_ENDING);
    part->send = true;
    host_owe(core, part->host);
}

void life_end(struct core *core, struct job *job, enum reason reason, char *text)
{
    if (job->info.state == JOB_STARTING)
        leave_start(core, job);
    job_move(core, job, JOB_ENDING);
    job->info.reason = reason;
    job_set_text(job, text);
    job->unempty = 0;
    for (int i = 0; i < job->nparts; i++) {
        struct part *part = &job->parts[i];
        if (part->host->info.state != CORE_HOST_DOWN) {
            part_end(core, part);
            job->unempty++;
        } else {
            part_move(part, PART_EMPTY);
            if (lease_goes_again(job))
                lease_claim_lost(core, part);
        }
    }
    if (job->unempty == 0)
        all_empty(core, job);
}

void life_part_opened(struct core *core, struct part *part)
{
    struct job *job = part->job;

    part_move(part, PART_OPEN);
    if (--job->unopened > 0 || job->launched)
        return;
    job->launched = true;
    if (!job->info.launched)
        emit_owe_persist(core, job);
    job->info.launched = true;
    list_append(&core->launch, &job->in_launch);
}

/* ENDING: this host has nothing of the job any more. May make the job DONE, and then part is gone. */
void life_part_empty(struct core *core, struct part *part)
{
    struct job *job = part->job;

    if (part->state == PART_EMPTY)
        return;
    part_move(part, PART_EMPTY);
    if (--job->unempty == 0)
        all_empty(core, job);
}

/* ENDING: its host is given up. As life_part_empty(), but nobody knows whether it is. */
void life_part_lost(struct core *core, struct part *part)
{
    if (lease_goes_again(part->job) && part->state != PART_EMPTY)
        lease_claim_lost(core, part);
    life_part_empty(core, part);
}

/* ENDING: the host has the group, whatever we believed. */
void life_part_end_again(struct core *core, struct part *part)
{
    if (part->state == PART_EMPTY)
        part->job->unempty++;
    lease_drop(core, part->job, part->host);
    part_end(core, part);
}

void life_launched(struct core *core, struct job *job)
{
    leave_start(core, job);
    job_move(core, job, JOB_RUNNING);
}

/* The status of a job is that of the lowest rank that failed, else 0. */
void life_exited(struct core *core, struct job *job, uint32_t rank, int exit_status, int signal)
{
    uint8_t bit = (uint8_t)(1u << (rank % 8));
    bool failed = exit_status != 0 || signal != 0;

    if ((job->exited[rank / 8] & bit) != 0)
        return;
    job->exited[rank / 8] |= bit;
    job->info.exits++;
    if (failed && rank < job->info.failed_rank) {
        job->info.failed_rank = rank;
        job->info.exit_status = signal != 0 ? -1 : exit_status;
        job->info.signal = signal;
    } else if (job->info.failed_rank == UINT32_MAX) {
        job->info.exit_status = 0;
    }
    emit_owe_persist(core, job);
    after_ran(core, job); /* that they were started may be told later */
    if (job->info.exits == job_ranks(job) && job->info.state != JOB_ENDING)
        life_end(core, job, REASON_EXITED, NULL);
}

bool life_part_exited(const struct part *part)
{
    const struct job *job = part->job;
    uint32_t first = (uint32_t)part->first, end = first + (uint32_t)part->ncpus;

    for (uint32_t rank = first; rank < end && rank < job_ranks(job); rank++)
        if ((job->exited[rank / 8] & (1u << (rank % 8))) == 0)
            return false;
    return true;
}

static char *timeout_text(const struct core *core, const struct job *job)
{
    char text[400];
    size_t used;
    int n = snprintf(text, sizeof(text),
                     "not started within %lld s, waited for:", (long long)(core->options.start_timeout_ms / 1000));

    assert(n > 0 && (size_t)n < sizeof(text));
    used = (size_t)n;
    if (job->launched)
        snprintf(text + used, sizeof(text) - used, " its processes");
    for (int i = 0; i < job->nparts; i++) {
        if (job->parts[i].state != PART_OPENING)
            continue;
        n = snprintf(text + used, sizeof(text) - used, " %s", job->parts[i].host->name);
        if (n < 0 || (size_t)n >= sizeof(text) - used) {
            text[used] = '\0'; /* as many names as fit */
            break;
        }
        used += (size_t)n;
    }
    return job_copy_text(text);
}

/* A start that waits for a silent host is not the job's fault: with requeue it goes again. */
static bool waits_for_suspect(const struct job *job)
{
    for (int i = 0; i < job->nparts; i++)
        if (job->info.lease_ms > 0 && job->parts[i].host->info.state == CORE_HOST_SILENT)
            return true;
    return false;
}

/* It is up or given up some time. */
static bool waits_for_awaited(const struct job *job)
{
    for (int i = 0; i < job->nparts; i++)
        if (job->parts[i].host->info.state == CORE_HOST_AWAITED)
            return true;
    return false;
}

/* To the end of the list, which is in the order of deadlines. */
static void start_anew(struct core *core, struct job *job)
{
    job->deadline_ms = core->now_ms + core->options.start_timeout_ms;
    list_remove(&job->in_start);
    list_append(&core->starting, &job->in_start);
}

void life_host_linked(struct core *core, struct host *host)
{
    LIST_FOR_EACH (node, &host->parts) {
        struct job *job = LIST_ITEM(node, struct part, on_host)->job;
        if (job->info.state == JOB_STARTING)
            start_anew(core, job);
    }
}

void life_put_off(struct core *core, int64_t ms)
{
    LIST_FOR_EACH (node, &core->starting)
        STARTING(node)->deadline_ms += ms;
}

void life_check_deadlines(struct core *core)
{
    struct node *node;

    while ((node = list_first(&core->starting)) && STARTING(node)->deadline_ms <= core->now_ms) {
        struct job *job = STARTING(node);
        if (waits_for_awaited(job))
            start_anew(core, job);
        else
            life_end(core, job, waits_for_suspect(job) ? REASON_HOST_LOST : REASON_START_TIMEOUT,
                     timeout_text(core, job));
    }
}
