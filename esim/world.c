/* world.c - events in the order of virtual time: arrivals, ends and phases of jobs, reports of hosts. What the core
 * wants done is done at the same moment, and what hosts would answer is its next event. */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esim/world_internal.h"
#include "lib/memory/mem.h"

enum {
    REFUSED_MAX = 1000000, /* and no other job: an endless workload, and none of it has room */
    PHASES_MAX = 1000000000,
    IDLE_REPORTS = 1000, /* one after the other from a machine on which nothing runs: what waits has no place there */
    QUEUED = 100         /* so many wait in the core, where it does not look at those behind them */
};

/* ---- the core ---- */

static void push(struct world *w, const struct action *action, enum event_type type)
{
    struct pending *p = &w->pending;

    if (p->first > 0 && p->first == p->count)
        p->first = p->count = 0;
    p->items = mem_grow(p->items, &p->capacity, p->count + 1, sizeof(*p->items));
    p->items[p->count++] =
        (struct follows){.type = type, .host = action->host, .attempt = action->attempt, .job = action->job};
}

static void start(struct world *w, uint64_t id)
{
    const struct core_job *info = core_job(w->core, id);
    struct sim_job *job = w->jobs[id];

    job->start_ms = w->now_ms - OFFSET_MS;
    job->place = world_place(info->processors, info->nprocs);
    w->nwaiting--;
    w->nrunning++;
    w->quiet_reports = 0;
    load_start(w->load, job, info, w->now_ms);
    if (id == w->explain.id) {
        char text[200];
        snprintf(text, sizeof(text), "starts on %u processor%s, the first is %s:%d, at level %d", info->nprocs,
                 info->nprocs == 1 ? "" : "s", core_host(w->core, info->processors[0].host)->name,
                 info->processors[0].cpu, info->level);
        explain_end(&w->explain, world_now_ms(w), text);
    }
}

static void do_action(struct world *w, const struct action *action)
{
    switch (action->type) {
    case ACTION_OPEN:
        push(w, action, EVENT_OPENED);
        break;
    case ACTION_END:
        push(w, action, EVENT_EMPTY);
        break;
    case ACTION_LAUNCH:
        start(w, action->job);
        push(w, action, EVENT_LAUNCHED);
        break;
    case ACTION_ORDER:
        w->ordered_ms[action->host] = w->now_ms;
        hosts_has_news(w, action->host);
        break;
    case ACTION_ANSWER:
    case ACTION_PERSIST:
    case ACTION_PERSIST_HOST:
    case ACTION_HOST_GONE:
    case ACTION_PERSIST_SETTING:
    case ACTION_ACKNOWLEDGE:
    case ACTION_TIMER: /* nothing is lost, so nothing is sent again */
    case ACTION_TYPE_COUNT:
        break;
    }
}

static void keep(struct world *w, uint64_t id)
{
    w->jobs = mem_grow(w->jobs, &w->jobs_capacity, (size_t)id + 1, sizeof(*w->jobs));
    while (w->njobs <= id)
        w->jobs[w->njobs++] = NULL;
    w->jobs[id] = mem_copy(&w->next, 1, sizeof(w->next));
    w->jobs[id]->id = id;
    if (w->source->has_after)
        waits_add(&w->waits, w->jobs[id]);
    if (w->explain.number == w->next.number && w->next.number > 0) {
        w->explain.id = id;
        w->explain.seen = true;
        explain_say(&w->explain, world_now_ms(w), "is submitted");
    }
    if (load_endless(w->load, &w->next))
        snprintf(w->fault, sizeof(w->fault), "job %llu has more than 10^7 periods: say a longer --period, or none",
                 (unsigned long long)w->next.number);
    w->nwaiting++;
}

/* Those that come with it. */
static bool next_task(struct world *w, uint32_t *left)
{
    return *left > 1 && --*left > 0 && w->source->next(w->source, &w->next);
}

static void accept(struct world *w, uint64_t id)
{
    uint32_t left = w->next.ntasks;

    if (left > 0)
        waits_add_array(&w->waits, &w->next, id++);
    do
        keep(w, id++);
    while (next_task(w, &left));
}

enum answer world_pass(struct world *w, const struct event *event, uint64_t *job)
{
    struct event follows = {.type = event->type};
    enum answer answer = ANSWER_OK;
    bool more = true;

    while (more) {
        int result;
        actions_clear(&w->actions);
        result = core_step(w->core, event, &w->actions);
        assert(result == 0);
        for (size_t i = 0; i < w->actions.count; i++) {
            if (w->actions.items[i].type == ACTION_ANSWER) {
                answer = w->actions.items[i].answer;
                *job = w->actions.items[i].job;
                if (answer == ANSWER_OK &&
                    event->type == EVENT_SUBMIT) /* it may be launched by an event that follows */
                    accept(w, *job);
            }
            do_action(w, &w->actions.items[i]);
        }
        more = w->pending.first < w->pending.count;
        if (more) {
            const struct follows *next = &w->pending.items[w->pending.first++];
            follows.type = next->type;
            follows.now_ms = w->now_ms;
            follows.host = next->host;
            follows.attempt = next->attempt;
            follows.job = next->job;
            event = &follows;
        }
    }
    return answer;
}

/* ---- what happens ---- */

/* Those of its hosts that the machine has, which may be smaller than the one that the job came from; the caller's. Only
 * jobs of a history have some, and it does not say which node of a cube a host was: there a job may have all. */
static int *allowed(const struct world *w, int *count)
{
    const struct sim_job *job = &w->next;
    bool known = job->hosts && w->settings.core.topology != TOPOLOGY_CUBE;
    int *hosts = known ? mem_array((size_t)job->nhosts, sizeof(*hosts)) : NULL;

    *count = 0;
    for (int i = 0; hosts && i < job->nhosts; i++)
        if (job->hosts[i] < w->settings.nhosts)
            hosts[(*count)++] = job->hosts[i];
    return hosts;
}

/* Others may follow it. */
static void over(struct world *w, const struct sim_job *job, bool has_run)
{
    if (w->source->over)
        w->has_next = w->source->over(w->source, job, w->now_ms - OFFSET_MS, has_run, &w->next, w->has_next);
}

static void refuse(struct world *w)
{
    uint32_t left = w->next.ntasks;

    do {
        w->nrefused++;
        if (w->explain.number == w->next.number && w->next.number > 0) {
            w->explain.seen = true;
            explain_say(&w->explain, world_now_ms(w), "is refused: the machine is too small for it");
        }
    } while (next_task(w, &left));
}

/* Jobs of nobody are no user's, so no limit counts two of them together. The core keeps each user that it has seen, so
 * the numbers, which no trace has, are used again. */
static uint32_t nobody(struct world *w)
{
    return w->nnobodies > 0 ? w->nobodies[--w->nnobodies] : UINT32_MAX - w->all_nobodies++;
}

static void nobody_goes(struct world *w, uint32_t uid)
{
    w->nobodies = mem_grow(w->nobodies, &w->nobodies_capacity, w->nnobodies + 1, sizeof(*w->nobodies));
    w->nobodies[w->nnobodies++] = uid;
}

/* The next job, to the core. */
static bool submit(struct world *w)
{
    struct event event = {.type = EVENT_SUBMIT, .now_ms = w->now_ms, .host = -1, .request = 1};
    uint64_t id = 0;
    int nhosts, *hosts = allowed(w, &nhosts);
    bool good = !hosts || nhosts > 0;
    struct core_after *waits;

    event.u.submit.uid = w->next.nobody ? nobody(w) : w->next.uid;
    event.u.submit.nprocs = w->next.nprocs;
    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = nhosts;
    event.u.submit.after = waits = waits_of(&w->waits, &w->next, &event.u.submit.nafter);
    event.u.submit.memory_bytes = w->settings.memory_bytes > 0 ? w->next.memory_bytes : 0;
    event.u.submit.per_host = w->next.per_host;
    event.u.submit.ntasks = w->next.ntasks;
    event.u.submit.task_limit = w->next.task_limit;
    event.u.submit.mesh_rows = w->settings.core.topology == TOPOLOGY_CUBE ? w->next.mesh_rows : 0;
    good = good && world_pass(w, &event, &id) == ANSWER_OK;
    if (!good && w->next.nobody)
        nobody_goes(w, event.u.submit.uid);
    if (!good)
        refuse(w);
    free(hosts);
    free(waits);
    return good;
}

/* Of a job that may have any hosts, on a machine that is no cube. */
static bool will_be_refused(const struct world *w)
{
    const struct core_demand demand = {.memory_bytes = w->settings.memory_bytes > 0 ? w->next.memory_bytes : 0,
                                       .per_host = w->next.per_host};
    struct core_reach reach;

    core_reach(w->core, NULL, 0, 0, &demand, &reach);
    return w->next.nprocs > reach.cpus;
}

/* One that waits in the core takes four times the memory of one here. Of jobs of which none may pass another it looks
 * at the first of those that wait only, and at none behind one that has no place (core/queue.c). Where jobs follow
 * others, those that are refused are so at once: their followers wait no longer. */
static bool stays_behind(const struct world *w)
{
    const bool follow = w->source->over != NULL;
    const bool none_passes = !w->source->has_after && w->settings.core.user_running == 0 &&
                             !(follow && w->settings.core.topology == TOPOLOGY_CUBE);

    return none_passes && w->settings.explain == 0 && !w->settings.every_job && (w->behind || w->nwaiting >= QUEUED) &&
           !(follow && will_be_refused(w));
}

static void put_behind(struct world *w)
{
    struct behind *behind = mem_zalloc(sizeof(*behind));

    behind->job = w->next;
    *w->last_behind = behind;
    w->last_behind = &behind->next;
    w->nbehind++;
}

/* Those for which there is a place in the core now. */
static void fill(struct world *w)
{
    while (w->behind && w->nwaiting < QUEUED) {
        struct behind *first = w->behind;
        struct sim_job next = w->next;

        w->behind = first->next;
        if (!w->behind)
            w->last_behind = &w->behind;
        w->nbehind--;
        w->next = first->job;
        if (!submit(w))
            assert(!w->source->over);
        w->next = next;
        free(first);
    }
}

static void arrive(struct world *w)
{
    struct sim_job job;
    bool good = true;

    if (w->settings.saturated)
        w->next.submit_ms = w->now_ms - OFFSET_MS;
    job = w->next;
    if (!w->measured && !job.unmeasured) {
        w->measured = true;
        w->first_s = (double)world_now_ms(w) / 1000;
        w->first_used_s = world_used_ms(w) / 1000;
    }
    if (stays_behind(w))
        put_behind(w);
    else
        good = submit(w);
    w->has_next = w->source->next(w->source, &w->next);
    if (!good)
        over(w, &job, false);
    explain_wait(&w->explain, w->core, world_now_ms(w));
}

static void end(struct world *w, uint64_t id)
{
    const struct core_job *info = core_job(w->core, id);
    struct event event = {.type = EVENT_EXITED, .now_ms = w->now_ms, .job = id, .attempt = info->attempt};
    struct sim_job *job = w->jobs[id];
    uint64_t none = 0, array = 0;
    int64_t level_ms[CORE_MAX_LEVELS];

    event.host = info->processors[0].host;
    explain_ended(&w->explain, world_now_ms(w), job);
    job->end_ms = w->now_ms - OFFSET_MS;
    memcpy(level_ms, info->level_ms, sizeof(level_ms));
    level_ms[info->level] += w->now_ms - info->level_until_ms;
    job->level_ms = level_ms;
    if (job->nobody)
        nobody_goes(w, info->uid);
    load_end(w->load, id, w->now_ms);
    w->nrunning--;
    world_pass(w, &event, &none);
    core_forget(w->core, id);
    w->jobs[id] = NULL;
    if (w->source->has_after)
        array = waits_remove(&w->waits, job);
    if (array != 0)
        core_forget(w->core, array);
    w->nended++;
    over(w, job, true);
    w->ended(job, w->data);
    free(job);
    explain_wait(&w->explain, w->core, world_now_ms(w));
}

/* The next thing that happens; false: nothing will. */
static bool happen(struct world *w)
{
    bool wants = w->has_next && (!w->settings.saturated || w->nwaiting == 0);
    int64_t arrival = !wants ? INT64_MAX : w->settings.saturated ? w->now_ms : w->next.submit_ms + OFFSET_MS;
    int64_t load_ms = load_next(w->load), change_ms = hosts_next_change(w), report_ms, event_ms;
    uint64_t id;

    if (arrival == INT64_MAX && load_ms == INT64_MAX && w->nwaiting == 0)
        return false;
    report_ms = hosts_next_report(w, arrival);
    if (load_ms == INT64_MAX && arrival == INT64_MAX && change_ms == INT64_MAX &&
        (report_ms == INT64_MAX || w->idle_reports >= IDLE_REPORTS))
        return false; /* those that wait have no place, and nobody will leave */
    w->idle_reports = load_ms == INT64_MAX && report_ms <= arrival ? w->idle_reports + 1 : 0;
    event_ms = load_ms < INT64_MAX ? load_ms - 1 : load_ms;
    event_ms = arrival < event_ms ? arrival : event_ms;
    event_ms = change_ms < event_ms ? change_ms : event_ms;
    if (load_ms <= arrival && load_ms <= report_ms && load_ms <= change_ms) {
        w->quiet_reports = 0;
        w->now_ms = load_ms > w->now_ms ? load_ms : w->now_ms;
        id = load_pass(w->load, w->now_ms);
        if (id == 0 && ++w->nphases > PHASES_MAX)
            snprintf(w->fault, sizeof(w->fault),
                     "jobs change more than 10^9 times between computing and waiting: say "
                     "a longer --period, or fewer jobs");
        if (id != 0)
            end(w, id);
    } else if (report_ms <= arrival && report_ms <= change_ms) {
        w->now_ms = hosts_telling_report(w, report_ms, event_ms);
        w->quiet_reports++;
        hosts_report(w);
    } else if (change_ms <= arrival) {
        w->quiet_reports = 0;
        w->now_ms = change_ms > w->now_ms ? change_ms : w->now_ms;
        hosts_change(w);
    } else {
        w->quiet_reports = 0;
        w->now_ms = arrival > w->now_ms ? arrival : w->now_ms;
        arrive(w);
    }
    fill(w);
    return true;
}

bool world_run(struct world *w, uint64_t jobs)
{
    while (w->nended < jobs)
        if (w->fault[0] != '\0' || (w->nended + w->nrunning == 0 && w->nrefused >= REFUSED_MAX) ||
            w->now_ms > WORLD_TIME_MAX_MS || !happen(w))
            return false;
    return true;
}

/* ---- life ---- */

struct world *world_create(const struct world_settings *settings, struct source *source, world_ended *ended, void *data)
{
    struct core_options options = settings->core;
    struct core *core;
    struct world *w;

    options.fresh_ms = INT64_MAX / 4; /* no host is silent, so what it said last is true: says_nothing_new() */
    core = core_create(&options);
    if (!core)
        return NULL;
    w = mem_zalloc(sizeof(*w));
    w->settings = *settings;
    w->explain = (struct explain){.told = settings->told, .number = settings->explain};
    w->core = core;
    w->source = source;
    w->ended = ended;
    w->data = data;
    w->reports = settings->report_ms > 0;
    actions_init(&w->actions);
    w->last_behind = &w->behind;
    hosts_create(w);
    w->load = load_create(settings);
    w->now_ms = OFFSET_MS;
    if (w->reports)
        hosts_report(w);
    w->has_next = source->next(source, &w->next);
    return w;
}

void world_tell_no_more(struct world *w)
{
    explain_end(&w->explain, world_now_ms(w), "still waits when the simulation ends");
    w->explain.number = 0;
}

void world_destroy(struct world *w)
{
    if (!w)
        return;
    world_tell_no_more(w);
    for (size_t i = 0; i < w->njobs; i++)
        free(w->jobs[i]);
    free(w->jobs);
    for (struct behind *behind; (behind = w->behind); free(behind))
        w->behind = behind->next;
    hosts_destroy(w);
    waits_fini(&w->waits);
    free(w->pending.items);
    free(w->nobodies);
    actions_fini(&w->actions);
    load_destroy(w->load);
    core_destroy(w->core);
    free(w);
}

int64_t world_now_ms(const struct world *w)
{
    return w->now_ms - OFFSET_MS;
}

double world_used_ms(const struct world *w)
{
    return load_used_ms(w->load, w->now_ms);
}

double world_first_s(const struct world *w)
{
    return w->first_s;
}

double world_first_used_s(const struct world *w)
{
    return w->first_used_s;
}

const char *world_fault(const struct world *w)
{
    return w->fault[0] != '\0' ? w->fault : NULL;
}

uint64_t world_refused(const struct world *w)
{
    return w->nrefused;
}

bool world_explained(const struct world *w)
{
    return w->explain.seen || w->settings.explain == 0;
}

uint64_t world_waiting(const struct world *w)
{
    return w->nwaiting + w->nbehind;
}
