/* arrays.c - random walks of a core with arrays. The hosts obey at once, or when the walk lets them; a walk submits
 * arrays and jobs of several users, ends tasks well and badly, cancels, kills, holds, releases and moves arrays and
 * tasks of them, loses hosts, and restarts the core from what was stored: after whole steps, as the store does it.
 * core_check() looks at each step by brute force. Here it is looked at that each task is started at most once in an
 * attempt, by their order, that nobody who came later and fits is before a task that is eligible, and that in the end
 * each task has run to its end, was cancelled while it waited, or was killed, and is counted so. */
#include "tests/sim/top.h"
#include "tests/sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS = 3, CPUS = 2, STEPS = 150, IDS = 4096, USERS = 3, RANGES = 3, AFTER = 2 };

struct row { /* as stored */
    struct core_job job;
    struct core_processor processors[HOSTS * CPUS];
    uint8_t exited[HOSTS * CPUS];
    struct core_range gone[CORE_MAX_GONE];
    struct core_after after[AFTER];
    bool there;
};

struct walk {
    struct core *core;
    struct core_options options;
    int64_t now_ms;
    uint64_t random;
    bool up[HOSTS], slow; /* slow: what hosts should say waits */
    struct event waiting[512];
    int nwaiting;
    struct row *rows;      /* [IDS] by id */
    uint32_t started[IDS]; /* highest attempt whose launch was decided and stored */
    uint64_t steps;
    char fault[600];
    uint64_t *tasks; /* in all walks: that were started */
};

static uint32_t draw(struct walk *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static void fail(struct walk *w, const char *what, uint64_t job)
{
    if (w->fault[0] == '\0')
        snprintf(w->fault, sizeof(w->fault), "job %llu: %s", (unsigned long long)job, what);
}

static void step(struct walk *w, struct event event);

/* ---- the store ---- */

static void store(struct walk *w, uint64_t id)
{
    const struct core_job *job = core_job(w->core, id);
    struct row *row = id < IDS ? &w->rows[id] : NULL;

    if (!job || !row) {
        fail(w, "is to be written, and is not known", id);
        return;
    }
    if (row->there && (row->job.state == JOB_DONE || row->job.state == JOB_CANCELLED) && job->state != row->job.state)
        fail(w, "goes on after its end", id);
    row->there = true;
    row->job = *job;
    for (int i = 0; i < job->nafter; i++)
        row->after[i] = job->after[i];
    row->job.after = row->after;
    row->job.nlost = 0;
    row->job.lost = NULL;
    row->job.text = NULL;
    if (job->processors) {
        memcpy(row->processors, job->processors, job->nprocs * sizeof(*job->processors));
        memcpy(row->exited, job->exited, sizeof(uint8_t));
    }
    row->job.processors = job->processors ? row->processors : NULL;
    row->job.exited = job->exited ? row->exited : NULL;
    row->job.hosts = NULL;
    if (job->ngone > 0)
        memcpy(row->gone, job->gone, (size_t)job->ngone * sizeof(*job->gone));
    row->job.gone = row->gone;
}

/* ---- hosts ---- */

static void answer_of(struct walk *w, const struct action *action)
{
    struct event event = {.host = action->host, .job = action->job, .attempt = action->attempt};

    if (action->type == ACTION_ORDER) {
        event.type = EVENT_ORDERED;
        event.u.generation = action->generation;
    } else if (action->type == ACTION_OPEN) {
        event.type = EVENT_OPENED;
    } else if (action->type == ACTION_END) {
        event.type = EVENT_EMPTY;
    } else if (action->type == ACTION_LAUNCH) {
        event.type = EVENT_LAUNCHED;
        event.host = -1;
        if (w->started[action->job] >= action->attempt && w->rows[action->job].job.state != JOB_STARTING)
            fail(w, "an attempt of it is launched twice", action->job);
        *w->tasks += w->rows[action->job].job.array != 0;
        w->started[action->job] = action->attempt;
    } else {
        return;
    }
    if (w->nwaiting < (int)(sizeof(w->waiting) / sizeof(w->waiting[0])))
        w->waiting[w->nwaiting++] = event; /* else it is sent again */
}

static void hear(struct walk *w)
{
    struct event event = w->waiting[0];

    memmove(w->waiting, w->waiting + 1, (size_t)--w->nwaiting * sizeof(w->waiting[0]));
    step(w, event);
}

/* ---- steps ---- */

static uint32_t plain_waiting(const struct core_job *array)
{
    uint32_t count = 0;

    for (uint32_t at = core_next_task(array, 0); at < array->ntasks; at = core_next_task(array, at + 1))
        count++;
    return count;
}

/* A task that starts is the first that waits in its array before the step. */
static void look_at_start(struct walk *w, const struct core_job *job, const struct row *array)
{
    if (!array->there)
        return; /* it was submitted by this step */
    if (job->attempt == 1 && job->state == JOB_STARTING && !w->rows[job->id].there &&
        core_next_task(&array->job, job->task - 1) != job->task - 1)
        fail(w, "a task starts that does not wait", job->id);
    if (plain_waiting(&array->job) != core_tasks_waiting(&array->job))
        fail(w, "tasks that wait are counted wrongly", array->job.id);
}

/* Nobody else's job is between an array and its task that becomes a job of its own. */
static void look_at_place(struct walk *w, const struct core_job *task)
{
    const struct core_job *array = core_job(w->core, task->array), *other;
    uint64_t cursor = 0;

    if (array && (task->place > array->place ||
                  (task->state == JOB_QUEUED && array->state == JOB_QUEUED && task->ahead > array->ahead)))
        fail(w, "its place is behind its array", task->id);
    while (array && (other = core_next_job(w->core, &cursor)))
        if (other->uid != task->uid && other->place >= task->place && other->place <= array->place)
            fail(w, "its place is one before another user's job, and its array's behind", task->id);
}

static void step(struct walk *w, struct event event)
{
    char text[400] = "";
    struct top_fault fault = {NULL, 0};
    struct actions actions;

    if (w->fault[0] != '\0')
        return;
    actions_init(&actions);
    event.now_ms = w->now_ms;
    if (top_step(w->core, &event, &actions, &fault) != 0)
        fail(w, "the step is refused", event.job);
    if (fault.text)
        fail(w, fault.text, fault.job);
    if (core_check(w->core, text, sizeof(text)) != 0)
        fail(w, text, event.job);
    w->steps++;
    for (size_t i = 0; i < actions.count; i++)
        if (actions.items[i].type == ACTION_PERSIST) {
            const struct core_job *job = core_job(w->core, actions.items[i].job);
            if (job && job->array != 0 && job->array < IDS)
                look_at_start(w, job, &w->rows[job->array]);
            if (job && job->array != 0 && job->id < IDS && !w->rows[job->id].there && event.type != EVENT_TOP)
                look_at_place(w, job);
        }
    for (size_t i = 0; i < actions.count; i++) /* all of a step, or nothing */
        if (actions.items[i].type == ACTION_PERSIST)
            store(w, actions.items[i].job);
    for (size_t i = 0; i < actions.count; i++)
        answer_of(w, &actions.items[i]);
    actions_fini(&actions);
    while (!w->slow && w->nwaiting > 0 && w->fault[0] == '\0')
        hear(w);
}

static void host_up(struct walk *w, int host)
{
    static const int cpus[CPUS] = {0, 1};
    struct event event = {.type = EVENT_HOST_UP, .host = host};
    struct core_holding holdings[IDS / 8];

    event.u.up.cpus = cpus;
    event.u.up.ncpus = CPUS;
    event.u.up.generation = w->steps + 1000;
    for (uint64_t id = 1; id < IDS; id++) { /* it has what it was given */
        const struct core_job *job = w->rows[id].there ? core_job(w->core, id) : NULL;
        for (uint32_t i = 0; job && job->processors && i < job->nprocs && job->state != JOB_DONE; i++)
            if (job->processors[i].host == host && (i == 0 || job->processors[i - 1].host != host))
                holdings[event.u.up.nholdings++] = (struct core_holding){id, job->attempt};
    }
    event.u.up.holdings = holdings;
    w->up[host] = true;
    step(w, event);
}

static void make_core(struct walk *w)
{
    static const char *const names[HOSTS] = {"ws1", "ws2", "ws3"};

    w->core = core_create(&w->options);
    for (int i = 0; i < HOSTS; i++) {
        core_add_host(w->core, names[i]);
        core_expect_cpus(w->core, i, CPUS);
    }
}

static int by_allocation(const void *a, const void *b)
{
    const struct core_job *x = *(const struct core_job *const *)a, *y = *(const struct core_job *const *)b;

    return (x->allocation > y->allocation) - (x->allocation < y->allocation);
}

static bool has_cluster(const struct core_job *job)
{
    return job->state == JOB_STARTING || job->state == JOB_RUNNING || job->state == JOB_ENDING;
}

/* What the store says of one that the core does not know. */
static enum core_end stored_end(const struct walk *w, uint64_t id)
{
    const struct core_job *job = &w->rows[id].job;

    return !w->rows[id].there ? CORE_END_FORGOTTEN
                              : core_end_of(job->state, job->reason, job->exit_status, job->signal, job->ran);
}

/* What was decided about who waits for what, and then whether it is the same. */
static void look_at_verdicts(struct walk *w, enum core_verdict (*verdicts)[AFTER], bool compare)
{
    for (uint64_t id = 1; id < IDS; id++) {
        const struct core_job *job = core_job(w->core, id);
        bool waits = job && (job->state == JOB_QUEUED || job->state == JOB_HELD) && job->attempt == 0;
        for (int i = 0; waits && i < job->nafter; i++)
            if (!compare)
                verdicts[id][i] = job->after[i].verdict;
            else if (job->after[i].verdict != verdicts[id][i])
                fail(w, "what it waits for is decided otherwise after a restart", id);
    }
}

/* As engine/recover.c does it: those with a cluster first. */
static void restart(struct walk *w)
{
    static enum core_verdict verdicts[IDS][AFTER];
    struct core_job *found[IDS];
    int n = 0;

    look_at_verdicts(w, verdicts, false);
    core_destroy(w->core);
    make_core(w);
    w->nwaiting = 0;
    for (uint64_t id = 1; id < IDS; id++)
        if (w->rows[id].there && has_cluster(&w->rows[id].job))
            found[n++] = &w->rows[id].job;
    qsort(found, (size_t)n, sizeof(found[0]), by_allocation);
    for (uint64_t id = 1; id < IDS; id++)
        if (w->rows[id].there && !has_cluster(&w->rows[id].job) && w->rows[id].job.state != JOB_DONE &&
            w->rows[id].job.state != JOB_CANCELLED)
            found[n++] = &w->rows[id].job;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < found[i]->nafter; k++)
            w->rows[found[i]->id].after[k].end = stored_end(w, found[i]->after[k].job);
        if (core_restore_job(w->core, found[i], w->now_ms) != 0)
            fail(w, "cannot be restored", found[i]->id);
    }
    look_at_verdicts(w, verdicts, true);
    for (uint64_t id = 1; id < IDS; id++)
        if (w->rows[id].there)
            core_set_next(w->core, id + 1 + w->rows[id].job.ntasks, w->rows[id].job.allocation + 1);
    step(w, (struct event){.type = EVENT_TICK, .host = -1});
    for (int i = 0; i < HOSTS; i++)
        if (w->up[i])
            host_up(w, i);
        else
            step(w, (struct event){.type = EVENT_HOST_DOWN, .host = i});
}

/* ---- what disturbs ---- */

static void submit(struct walk *w, uint32_t ntasks)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1};
    struct core_after after[AFTER];
    uint64_t next = core_next_id(w->core);

    if (next + ntasks + 1 >= IDS)
        return;
    event.u.submit.uid = 1 + draw(w, USERS);
    event.u.submit.nprocs = 1 + draw(w, 3);
    event.u.submit.requeue = draw(w, 3) == 0;
    event.u.submit.ntasks = ntasks;
    event.u.submit.task_limit = draw(w, 2) * (1 + draw(w, 3));
    if (draw(w, 3) == 0 && next > 1) { /* for jobs, arrays and tasks, which may wait in their array or have gone */
        for (int i = 0; i < AFTER; i++) {
            after[i] = (struct core_after){.job = 1 + draw(w, (uint32_t)next - 1),
                                           .kind = (enum after_kind)draw(w, AFTER_KIND_COUNT)};
            after[i].end = stored_end(w, after[i].job);
        }
        event.u.submit.after = after;
        event.u.submit.nafter = AFTER;
    }
    step(w, event);
}

/* An array, a task of one, or a job. */
static uint64_t any_job(struct walk *w)
{
    uint64_t next = core_next_id(w->core), id = next > 1 ? 1 + draw(w, (uint32_t)next - 1) : 1;

    for (; id > 0 && !core_job(w->core, id); id--)
        ;
    return id;
}

static void by_client(struct walk *w, enum event_type type)
{
    struct event event = {.type = type, .host = -1, .request = 1, .job = any_job(w)};
    const struct core_job *job = core_job(w->core, event.job);
    struct core_range ranges[RANGES];
    uint32_t at = 0;

    event.u.by.uid = 1 + draw(w, USERS);
    event.u.by.admin = draw(w, 2) == 0;
    for (int i = 0; job && job->ntasks > 0 && draw(w, 3) > 0 && i < RANGES; i++) {
        ranges[i].from = at + draw(w, job->ntasks);
        ranges[i].to = ranges[i].from + 1 + draw(w, 4);
        at = ranges[i].to;
        if (at > job->ntasks)
            break;
        event.u.by.tasks = ranges;
        event.u.by.ntasks = i + 1;
    }
    step(w, event);
}

static void end_one(struct walk *w)
{
    uint64_t id = any_job(w), first = id;
    const struct core_job *job;

    while (id > 0 && (!(job = core_job(w->core, id)) || job->state != JOB_RUNNING))
        id--;
    for (uint64_t next = core_next_id(w->core); id == 0 && first < next; first++)
        if ((job = core_job(w->core, first)) && job->state == JOB_RUNNING)
            id = first;
    job = id > 0 ? core_job(w->core, id) : NULL;
    if (job) {
        struct event event = {
            .type = EVENT_EXITED, .job = id, .attempt = job->attempt, .host = job->processors[0].host};
        event.u.exited.exit_status = draw(w, 4) == 0 ? 3 : 0;
        step(w, event);
    }
}

static void lose_host(struct walk *w)
{
    int host = (int)draw(w, HOSTS);

    if (!w->up[host]) {
        host_up(w, host);
        return;
    }
    w->up[host] = false;
    for (int i = 0; i < w->nwaiting; i++) /* nothing of it arrives any more */
        if (w->waiting[i].host == host)
            w->waiting[i--] = w->waiting[--w->nwaiting];
    step(w, (struct event){.type = EVENT_HOST_DOWN, .host = host, .u.down.silence_ms = 0});
}

static void disturb(struct walk *w)
{
    static const enum event_type verbs[] = {EVENT_HOLD, EVENT_RELEASE, EVENT_RELEASE, EVENT_TOP,
                                            EVENT_TOP,  EVENT_TOP,     EVENT_CANCEL,  EVENT_KILL};
    uint32_t what = draw(w, 100);

    w->now_ms += 1 + draw(w, 200);
    if (what < 12)
        submit(w, 1 + draw(w, 12));
    else if (what < 20)
        submit(w, 0);
    else if (what < 62)
        end_one(w);
    else if (what < 78)
        by_client(w, verbs[draw(w, sizeof(verbs) / sizeof(verbs[0]))]);
    else if (what < 82)
        lose_host(w);
    else if (what < 86)
        w->slow = !w->slow;
    else if (what < 94 && w->nwaiting > 0)
        hear(w);
    else if (what < 97)
        restart(w);
    else
        step(w, (struct event){.type = EVENT_TICK, .host = -1});
}

/* ---- the end ---- */

static void judge_array(struct walk *w, const struct core_job *array)
{
    uint32_t ok = 0, failed = 0, gone = 0, lowest = UINT32_MAX;

    for (uint32_t i = 0; i < array->ntasks; i++) {
        const struct row *row = &w->rows[array->id + 1 + i];
        bool well =
            row->there && row->job.state == JOB_DONE && row->job.reason == REASON_EXITED && row->job.exit_status == 0;
        bool badly = row->there && row->job.state == JOB_DONE && !well;
        ok += well;
        failed += badly;
        gone += !row->there || row->job.state == JOB_CANCELLED;
        if (badly && lowest == UINT32_MAX)
            lowest = i;
        if (row->there && row->job.state != JOB_DONE && row->job.state != JOB_CANCELLED)
            fail(w, "its array has ended, and it has not", row->job.id);
    }
    if (ok != array->tasks_ok || failed != array->tasks_failed || ok + failed + gone != array->ntasks ||
        lowest != array->failed_rank)
        fail(w, "its tasks are not as it has counted", array->id);
    if ((array->state == JOB_CANCELLED) != (ok + failed == 0))
        fail(w, "is cancelled, or not, against what its tasks are", array->id);
    if ((array->state == JOB_DONE && array->reason == REASON_EXITED) != (ok == array->ntasks))
        fail(w, "has ended well, or not, against what its tasks are", array->id);
}

/* All is released and ends; nobody is left behind. */
static void finish(struct walk *w)
{
    const struct core_job *job;

    w->slow = false;
    while (w->nwaiting > 0 && w->fault[0] == '\0')
        hear(w);
    for (int i = 0; i < HOSTS; i++)
        if (!w->up[i])
            host_up(w, i);
    w->now_ms += 1000000; /* no lease is left */
    step(w, (struct event){.type = EVENT_TICK, .host = -1});
    for (uint64_t id = 1; id < IDS; id++)
        if ((job = core_job(w->core, id)) && job->state == JOB_HELD)
            step(w, (struct event){.type = EVENT_RELEASE, .host = -1, .job = id, .u.by = {.admin = true}});
    for (int i = 0; i < 2 * IDS; i++)
        end_one(w);
    for (uint64_t id = 1; id < IDS && w->fault[0] == '\0'; id++) {
        if ((job = core_job(w->core, id)) && job->state != JOB_DONE && job->state != JOB_CANCELLED)
            fail(w, "never ends", id);
        if (w->rows[id].there && w->rows[id].job.ntasks > 0)
            judge_array(w, &w->rows[id].job);
    }
}

bool arrays_tests(uint64_t walks, int number)
{
    uint64_t tasks = 0;
    struct row *rows = mem_array(IDS, sizeof(*rows));
    struct walk w = {.fault = ""};

    for (uint64_t seed = 1; seed <= walks && w.fault[0] == '\0'; seed++) {
        w = (struct walk){.now_ms = 1000, .random = seed, .rows = rows, .tasks = &tasks};
        for (int i = 0; i < IDS; i++)
            rows[i].there = false;
        core_options_default(&w.options);
        w.options.levels = 1 + (int)(seed % 2);
        w.options.allocator = ALLOCATOR_V1;
        w.options.user_running = seed % 5 == 0 ? 3 : 0;
        make_core(&w);
        for (int i = 0; i < HOSTS; i++)
            host_up(&w, i);
        for (int i = 0; i < STEPS && w.fault[0] == '\0'; i++)
            disturb(&w);
        if (w.fault[0] == '\0')
            finish(&w);
        core_destroy(w.core);
        if (w.fault[0] != '\0')
            printf("# seed %llu: %s\n", (unsigned long long)seed, w.fault);
    }
    free(rows);
    printf("%s %d - walks with arrays: %llu tasks\n", w.fault[0] == '\0' ? "ok" : "not ok", number,
           (unsigned long long)tasks);
    return w.fault[0] == '\0';
}
