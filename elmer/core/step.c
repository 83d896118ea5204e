/* step.c - the one entry. An event is checked, dispatched, the queue is looked at, and what is owed is written down.
 *
 * Events about hosts have a handler each. Events about jobs are decided by the table below for every state, and for
 * jobs, attempts and hosts that do not belong together any more (PAST).
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Part is that of the event's host, NULL for events of clients and of the engine. */
typedef int job_handler(struct core *core, struct job *job, struct part *part, const struct event *event);

static int answer(struct core *core, enum answer what)
{
    core->reply.answered = true;
    core->reply.answer = what;
    return 0;
}

/* ---- clients ---- */

static int submit(struct core *core, const struct event *event)
{
    const int *allowed = event->u.submit.hosts;
    uint32_t nprocs = event->u.submit.nprocs, mesh_rows = event->u.submit.mesh_rows;
    const struct core_demand demand = {.memory_bytes = event->u.submit.memory_bytes,
                                       .per_host = event->u.submit.per_host};
    int *hosts, nhosts;
    enum answer verdict;
    struct job *job;

    if (allowed && event->u.submit.nhosts < 0)
        return -EINVAL;
    for (int i = 0; allowed && i < event->u.submit.nhosts; i++)
        if (allowed[i] < 0 || allowed[i] >= core->nhosts)
            return -EINVAL;
    if (!after_valid(event->u.submit.after, event->u.submit.nafter, core->next_job))
        return -EINVAL;
    if (event->u.submit.ntasks > CORE_MAX_TASKS)
        return -EINVAL;
    if (event->u.submit.notice && (nprocs != 1 || event->u.submit.ntasks > 0 || !allowed || room_is_asked(&demand)))
        return -EINVAL;
    if (demand.memory_bytes > MEMORY_MAX_BYTES)
        return -EINVAL;
    if (!event->u.submit.notice && !topology_rows(core, nprocs, &mesh_rows))
        return answer(core, ANSWER_REFUSED_SIZE);
    verdict = reach_judge(core, nprocs, mesh_rows, &demand, event->u.submit.notice, allowed, event->u.submit.nhosts,
                          event->u.submit.needs, &hosts, &nhosts);
    if (verdict != ANSWER_OK)
        return answer(core, verdict);
    job = job_create(core->next_job, event->u.submit.uid, hosts, nhosts);
    free(hosts);
    user_enter(core, job);
    job_take_submitted(job, event);
    job->info.mesh_rows = mesh_rows;
    if (event->u.submit.ntasks > 0)
        array_create(job, event->u.submit.ntasks, event->u.submit.task_limit);
    core->next_job += 1 + event->u.submit.ntasks;
    index_insert(core, job);
    emit_owe_persist(core, job);
    after_take(core, job, event->u.submit.after, event->u.submit.nafter);
    queue_add(core, job);
    core->reply.job = job->info.id;
    return answer(core, ANSWER_OK);
}

static bool permitted(const struct job *job, const struct event *event)
{
    return event->u.by.admin || event->u.by.uid == job->info.uid;
}

static int not_known(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)job, (void)part, (void)event;
    return answer(core, ANSWER_NO_SUCH_JOB);
}

static int wrong_state(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    return answer(core, permitted(job, event) ? ANSWER_WRONG_STATE : ANSWER_NOT_PERMITTED);
}

/* What is asked for is so already. */
static int already(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    return answer(core, permitted(job, event) ? ANSWER_OK : ANSWER_NOT_PERMITTED);
}

static int cancel(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    if (!permitted(job, event))
        return answer(core, ANSWER_NOT_PERMITTED);
    queue_remove(core, job);
    lease_drop_all(job);
    job_set_text(job, job_copy_text(event->u.by.text));
    job->info.reason = REASON_CANCELLED;
    job_move(core, job, JOB_CANCELLED);
    return answer(core, ANSWER_OK);
}

static int hold(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    if (!permitted(job, event))
        return answer(core, ANSWER_NOT_PERMITTED);
    job_move(core, job, JOB_HELD);
    job->info.reason = REASON_HELD;
    job_set_text(job, job_copy_text(event->u.by.text));
    queue_changed_job(core, job);
    return answer(core, ANSWER_OK);
}

static int release(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    if (!permitted(job, event))
        return answer(core, ANSWER_NOT_PERMITTED);
    job_move(core, job, JOB_QUEUED);
    job_set_text(job, NULL);
    queue_changed_job(core, job);
    return answer(core, ANSWER_OK);
}

static int top(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    if (!permitted(job, event))
        return answer(core, ANSWER_NOT_PERMITTED);
    if (job->info.notice)
        return answer(core, ANSWER_WRONG_STATE);
    return answer(core, top_job(core, job));
}

static int kill_job(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    if (!permitted(job, event))
        return answer(core, ANSWER_NOT_PERMITTED);
    life_end(core, job, REASON_KILLED, job_copy_text(event->u.by.text));
    return answer(core, ANSWER_OK);
}

/* It is ending already; if it was to go again, it is not any more. */
static int kill_ending(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    if (permitted(job, event) && lease_goes_again(job)) {
        job->info.reason = REASON_KILLED;
        job_set_text(job, job_copy_text(event->u.by.text));
        lease_drop_all(job);
        emit_owe_persist(core, job);
    }
    return already(core, job, part, event);
}

/* ---- hosts and the engine, about jobs ---- */

static int ignore(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)core, (void)job, (void)part, (void)event;
    return 0;
}

static int opened(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)job, (void)event;
    if (part->state == PART_OPENING)
        life_part_opened(core, part);
    return 0;
}

/* The host had reported it empty, or was down: it has it after all. */
static int opened_late(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)job, (void)event;
    if (part->state == PART_EMPTY)
        life_part_end_again(core, part);
    return 0;
}

static int opened_past(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    struct job *waiting = index_find(core, event->job);

    (void)job, (void)part;
    host_add_leftover(core, core->hosts[event->host], event->job, event->attempt);
    if (waiting && waiting->info.attempt == event->attempt)
        lease_opened_past(core, waiting, core->hosts[event->host]);
    return 0;
}

static int fail(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part;
    life_end(core, job, event->u.failed.reason, job_copy_text(event->u.failed.text));
    return 0;
}

/* Launched before a restart, and this host has nothing more to do in it: the end that it was told was not on disk. Also
 * where none of its processes was: what became of them is known elsewhere. */
static bool has_ended_before(const struct part *part)
{
    const struct job *job = part->job;

    return job->restored && job->info.launched && life_part_exited(part);
}

static int open_failed(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    if (part->state != PART_OPENING)
        return 0;
    if (!has_ended_before(part))
        return fail(core, job, part, event);
    life_part_opened(core, part);
    return 0;
}

static int launched(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)part, (void)event;
    if (job->launched)
        life_launched(core, job);
    return 0;
}

static int exited(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    uint32_t rank = event->u.exited.rank;

    (void)part;
    core->reply.acknowledge = true;
    if (job->info.launched && rank < job_ranks(job) && job->processors[rank].host == event->host)
        life_exited(core, job, rank, event->u.exited.exit_status, event->u.exited.signal);
    return 0;
}

static int exited_past(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)job, (void)part, (void)event;
    core->reply.acknowledge = true;
    return 0;
}

/* END goes to this host too: an OPEN that was sent again may still be under way, and END is final. But after a restart
 * it may have been told END by us, because the last process of the job had exited: that is sent at once, and the
 * exit may not have been on disk. The host where it was tells us again. */
static int vanished(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    static const char text[] = "the job's processes on a host are gone: its supervisor ended without being told to";

    (void)event;
    if (job->restored && job->info.state == JOB_RUNNING && life_part_exited(part))
        return 0;
    if (part->state == PART_OPENING && has_ended_before(part)) {
        life_part_opened(core, part);
        return 0;
    }
    life_end(core, job, REASON_LOST, job_copy_text(text));
    return 0;
}

static int emptied(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    (void)job, (void)event;
    life_part_empty(core, part);
    return 0;
}

static int emptied_past(struct core *core, struct job *job, struct part *part, const struct event *event)
{
    struct job *waiting = index_find(core, event->job);

    (void)job, (void)part;
    host_drop_leftover(core, core->hosts[event->host], event->job, event->attempt);
    if (waiting && waiting->info.attempt == event->attempt)
        lease_drop(core, waiting, core->hosts[event->host]);
    return 0;
}

/* ---- the table ---- */

enum { PAST = JOB_STATE_COUNT };

/* Without a cluster an attempt has no part on any host: that is PAST too, so columns of queued and ended jobs repeat
 * it. */
/* clang-format off */
static job_handler *const decisions[EVENT_TYPE_COUNT][JOB_STATE_COUNT + 1] = {
    /*                       QUEUED        HELD          STARTING     RUNNING      ENDING       DONE          CANCELLED     STARTED       PAST */
    [EVENT_CANCEL] =        {cancel,       cancel,       wrong_state, wrong_state, wrong_state, wrong_state,  wrong_state, wrong_state,   not_known},
    [EVENT_KILL] =          {wrong_state,  wrong_state,  kill_job,    kill_job,    kill_ending, wrong_state,  wrong_state, wrong_state,   not_known},
    [EVENT_HOLD] =          {hold,         already,      wrong_state, wrong_state, wrong_state, wrong_state,  wrong_state, wrong_state,   not_known},
    [EVENT_RELEASE] =       {already,      release,      wrong_state, wrong_state, wrong_state, wrong_state,  wrong_state, wrong_state,   not_known},
    [EVENT_TOP] =           {top,          top,          wrong_state, wrong_state, wrong_state, wrong_state,  wrong_state, wrong_state,   not_known},
    [EVENT_OPENED] =        {opened_past,  opened_past,  opened,      ignore,      opened_late, opened_past,  opened_past, opened_past,   opened_past},
    [EVENT_OPEN_FAILED] =   {ignore,       ignore,       open_failed, ignore,      ignore,      ignore,       ignore, ignore,             ignore},
    [EVENT_LAUNCHED] =      {ignore,       ignore,       launched,    ignore,      ignore,      ignore,       ignore, ignore,             ignore},
    [EVENT_LAUNCH_FAILED] = {ignore,       ignore,       fail,        fail,        ignore,      ignore,       ignore, ignore,             ignore},
    [EVENT_EXITED] =        {exited_past,  exited_past,  exited,      exited,      exited,      exited_past,  exited_past, exited_past,   exited_past},
    [EVENT_ABORT] =         {ignore,       ignore,       fail,        fail,        ignore,      ignore,       ignore, ignore,             ignore},
    [EVENT_EMPTY] =         {emptied_past, emptied_past, vanished,    vanished,    emptied,     emptied_past, emptied_past, emptied_past, emptied_past},
};
/* clang-format on */

static bool by_client(enum event_type type)
{
    return type == EVENT_CANCEL || type == EVENT_KILL || type == EVENT_HOLD || type == EVENT_RELEASE ||
           type == EVENT_TOP;
}

/* What a host says counts for its own part of the job only. */
static bool by_host(const struct event *event)
{
    enum event_type type = event->type;

    return type == EVENT_OPENED || type == EVENT_OPEN_FAILED || type == EVENT_EXITED || type == EVENT_EMPTY ||
           (type == EVENT_ABORT && event->host >= 0);
}

static int decide(struct core *core, const struct event *event)
{
    struct job *job = index_find(core, event->job);
    struct part *part = NULL;
    int state;

    if (by_host(event) && !core_host_up(&core->hosts[event->host]->info))
        return 0;
    if (job && !by_client(event->type) && job->info.attempt != event->attempt)
        job = NULL;
    if (job && by_host(event)) {
        part = job_part(job, event->host);
        if (!part)
            job = NULL;
    }
    state = job ? (int)job->info.state : PAST;
    core->reply.job = event->job;
    if (job && job->array && by_client(event->type))
        return array_verb(core, job, event);
    if (by_client(event->type) && event->u.by.tasks)
        return -EINVAL;
    return decisions[event->type][state](core, job, part, event);
}

static int tick(struct core *core, const struct event *event)
{
    int64_t stalled_ms = event->u.stalled_ms;

    core->timer_ms = INT64_MAX;
    if (stalled_ms > 0) {
        life_put_off(core, stalled_ms);
        core->gather_until_ms += stalled_ms;
    }
    array_settle_restored(core);
    life_check_deadlines(core);
    lease_check(core);
    host_check_confirmed(core);
    return 0;
}

static int gather(struct core *core, const struct event *event)
{
    core->gather_until_ms = event->now_ms + core->options.gather_ms;
    return 0;
}

static int (*const handlers[EVENT_TYPE_COUNT])(struct core *core, const struct event *event) = {
    [EVENT_SUBMIT] = submit,
    [EVENT_CANCEL] = decide,
    [EVENT_KILL] = decide,
    [EVENT_HOLD] = decide,
    [EVENT_RELEASE] = decide,
    [EVENT_TOP] = decide,
    [EVENT_DRAIN] = host_drain,
    [EVENT_UNDRAIN] = host_drain,
    [EVENT_SET] = setting_set,
    [EVENT_CONFIGURE] = configure,
    [EVENT_HOST_ADD] = configure_add,
    [EVENT_HOST_RETIRE] = configure_retire,
    [EVENT_HOST_UP] = host_up,
    [EVENT_HOST_SILENT] = host_silent,
    [EVENT_HOST_HEARD] = host_heard,
    [EVENT_HOST_DOWN] = host_down,
    [EVENT_REPORT] = host_report,
    [EVENT_ORDERED] = host_ordered,
    [EVENT_OPENED] = decide,
    [EVENT_OPEN_FAILED] = decide,
    [EVENT_LAUNCHED] = decide,
    [EVENT_LAUNCH_FAILED] = decide,
    [EVENT_EXITED] = decide,
    [EVENT_ABORT] = decide,
    [EVENT_EMPTY] = decide,
    [EVENT_TICK] = tick,
    [EVENT_GATHER] = gather,
};

static bool has_host(const struct event *event)
{
    enum event_type type = event->type;

    return by_host(event) || type == EVENT_DRAIN || type == EVENT_UNDRAIN || type == EVENT_HOST_RETIRE ||
           type == EVENT_HOST_UP || type == EVENT_HOST_SILENT || type == EVENT_HOST_HEARD || type == EVENT_HOST_DOWN ||
           type == EVENT_REPORT || type == EVENT_ORDERED;
}

static bool valid(const struct core *core, const struct event *event)
{
    if ((unsigned)event->type >= EVENT_TYPE_COUNT || event->now_ms < core->now_ms)
        return false;
    if (event->type == EVENT_TICK && (event->u.stalled_ms < 0 || event->u.stalled_ms > event->now_ms))
        return false;
    return !has_host(event) || (event->host >= 0 && event->host < core->nhosts);
}

int core_step(struct core *core, const struct event *event, struct actions *actions)
{
    int result;

    if (!valid(core, event))
        return -EINVAL;
    core->now_ms = event->now_ms;
    memset(&core->reply, 0, sizeof(core->reply));
    result = handlers[event->type](core, event);
    if (result != 0)
        return result;
    if (!list_empty(&core->doomed))
        after_cancel_doomed(core);
    if (!list_empty(&core->noticing))
        notice_run(core);
    queue_run(core);
    emit_all(core, event, actions);
    return 0;
}
