/* engine.c - events, steps, and what a step asks for. The life of it is in engine.h; what waits for the store is in
 * commit.c. */
#include "config.h"

#include "elmer/engine/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/clock.h"
#include "lib/base/container.h"
#include "lib/base/log.h"

enum { TRIM_MS = 60000 };

struct pending_event {
    struct pending_event *next;
    struct event event;
    char *text;
    struct decision *decision;
};

int64_t engine_now_ms(void)
{
    return mono_ms(mono_now());
}

/* ---- actions ---- */

static void on_answer(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    engine->requests.answered(wait->number, wait->answer, wait->job, engine->requests_data);
}

/* Else that attempt has been ended meanwhile, and while the store failed the next one may have been placed. */
static bool is_starting(const struct engine *engine, const struct engine_wait *wait)
{
    const struct core_job *state = core_job(engine->core, wait->job);
    return state && state->attempt == wait->attempt && state->state == JOB_STARTING;
}

static void on_open(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    const struct engine_job *job = jobs_find(&engine->jobs, wait->job);
    if (job && is_starting(engine, wait))
        engine->hosts.open(wait->host, job, core_job(engine->core, wait->job), wait->number, engine->hosts_data);
}

static void on_launch(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    struct engine_job *job = jobs_find(&engine->jobs, wait->job);
    if (job && is_starting(engine, wait))
        engine->launch.begin(job, engine->launch_data);
}

static void on_acknowledge(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    engine->hosts.acknowledge(wait->host, wait->job, wait->attempt, wait->rank, engine->hosts_data);
}

static void on_end(const struct engine_wait *wait)
{
    struct engine *engine = wait->owner;
    struct action action = {.type = ACTION_END, .host = wait->host, .job = wait->job, .attempt = wait->attempt};
    engine->hosts.end(&action, engine->hosts_data);
}

/* That its last process has exited is kept by the host until it is on disk, and who kills a job is told nothing before
 * that, and does not want to wait for it behind jobs that spin. Each other reason is known here only: were a process
 * ended for it, and elmer killed before the commit, the end of the process would be the result of the job. */
static bool ends_for_our_reason(const struct engine *engine, const struct action *action)
{
    const struct core_job *job = core_job(engine->core, action->job);
    return job && job->attempt == action->attempt && job->state == JOB_ENDING && job->reason != REASON_EXITED &&
           job->reason != REASON_KILLED;
}

static void after_commit(struct engine *engine, const struct action *action, void (*run)(const struct engine_wait *),
                         enum engine_urgency urgency)
{
    struct engine_wait wait = {.run = run,
                               .owner = engine,
                               .urgency = urgency,
                               .unless_failing = run == on_end,
                               .number = action->type == ACTION_OPEN ? action->generation : action->request,
                               .answer = action->answer,
                               .job = action->job,
                               .attempt = action->attempt,
                               .host = action->host,
                               .rank = action->rank};
    if (!commit_is_asked_again(engine, &wait))
        engine_after_commit(engine, &wait);
}

static void carry_out(struct engine *engine, const struct action *action)
{
    switch (action->type) {
    case ACTION_ORDER:
        engine->hosts.order(action, engine->hosts_data);
        break;
    case ACTION_END:
        if (ends_for_our_reason(engine, action) && !engine->store_failure)
            after_commit(engine, action, on_end, ENGINE_WORK);
        else
            engine->hosts.end(action, engine->hosts_data);
        break;
    case ACTION_PERSIST:
        engine_persist_job(engine, action->job);
        break;
    case ACTION_PERSIST_HOST:
        engine_persist_host(engine, action->host);
        break;
    case ACTION_PERSIST_SETTING:
        engine_persist_setting(engine, action->setting);
        break;
    case ACTION_HOST_GONE:
        engine->hosts.gone(action->host, engine->hosts_data);
        break;
    case ACTION_TIMER:
        deadline_set(engine->deadlines, &engine->tick, action->at_ms);
        break;
    case ACTION_OPEN:
        after_commit(engine, action, on_open, ENGINE_WORK);
        break;
    case ACTION_ANSWER:
        if (action->answer == ANSWER_OK && engine->decision)
            decide_taken(engine);
        after_commit(engine, action, on_answer, ENGINE_ANSWER);
        break;
    case ACTION_LAUNCH:
        after_commit(engine, action, on_launch, ENGINE_WORK);
        break;
    case ACTION_ACKNOWLEDGE:
        after_commit(engine, action, on_acknowledge, ENGINE_LINGER);
        break;
    case ACTION_TYPE_COUNT:
        break;
    }
}

/* ---- events ---- */

/* For bench/overhead.py and bench/scale.py, with ELMER_LOG=debug. */
static void trace(const struct event *event, int64_t begin_ns, int64_t decided_ns)
{
    static const char *const names[EVENT_TYPE_COUNT] = {
        [EVENT_SUBMIT] = "submit", [EVENT_OPENED] = "opened", [EVENT_EMPTY] = "empty", [EVENT_ORDERED] = "ordered"};
    if (names[event->type])
        log_debug("at %" PRId64 " us: %s job=%" PRIu64 " host=%d, decided in %" PRId64 " us, done in %" PRId64 " us",
                  begin_ns / 1000, names[event->type], event->job, event->host, (decided_ns - begin_ns) / 1000,
                  (mono_now().ns - begin_ns) / 1000);
}

/* The rows of a step belong together: jobs that change places must not have the same one after a crash. */
static bool many_rows(const struct actions *actions)
{
    unsigned rows = 0;
    for (size_t i = 0; i < actions->count && rows < 2; i++)
        rows += actions->items[i].type == ACTION_PERSIST;
    return rows > 1;
}

static void step(struct engine *engine, struct event *event, const struct decision *decision)
{
    struct actions actions;
    int64_t begin_ns = mono_now().ns;
    assert(!engine->stepping); /* a step is never entered again */
    actions_init(&actions);
    event->now_ms = engine_now_ms();
    if (event->type == EVENT_TICK) {
        int64_t stalled_ms = commit_stalled_ms(engine);
        event->u.stalled_ms = event->u.stalled_ms > stalled_ms ? event->u.stalled_ms : stalled_ms;
    }
    if (event->type == EVENT_HOST_ADD)
        event->u.add.drained = decide_meet(engine, event->u.add.name);
    int result = core_step(engine->core, event, &actions);
    int64_t decided_ns = mono_now().ns;
    assert(result == 0);
    bool hold = decision || many_rows(&actions) ||
                (event->type == EVENT_SUBMIT && event->u.submit.notice); /* the row of the other job, too: persist.c */
    engine->stepping = true;
    engine->decision = decision;
    if (hold)
        store_hold(engine->store, true);
    for (size_t i = 0; i < actions.count; i++)
        carry_out(engine, &actions.items[i]);
    if (hold)
        store_hold(engine->store, false);
    engine->stepping = false;
    engine->decision = NULL;
    trace(event, begin_ns, decided_ns);
    actions_fini(&actions);
}

void engine_run_events(struct engine *engine)
{
    for (struct pending_event *next; !engine->stepping && (next = engine->events);) {
        engine->events = next->next;
        if (!engine->events)
            engine->last_event = &engine->events;
        step(engine, &next->event, next->decision);
        free(next->text);
        free(next->decision);
        free(next);
    }
}

/* Where it points to its text; NULL: it has none. */
static const char **text_of(struct event *event)
{
    if (event->type == EVENT_OPEN_FAILED || event->type == EVENT_LAUNCH_FAILED || event->type == EVENT_ABORT)
        return &event->u.failed.text;
    return event->type == EVENT_HOST_DOWN ? &event->u.down.what : NULL;
}

void engine_event(struct engine *engine, struct event *event)
{
    engine_decide(engine, event, NULL);
}

void engine_decide(struct engine *engine, struct event *event, const struct decision *decision)
{
    if (!engine->stepping) {
        step(engine, event, decision);
        engine_run_events(engine);
        return;
    }
    assert(event->type != EVENT_SUBMIT && event->type != EVENT_HOST_UP && event->type != EVENT_REPORT &&
           event->type != EVENT_HOST_ADD);
    struct pending_event *pending = mem_zalloc(sizeof(*pending));
    pending->event = *event;
    const char **text = text_of(&pending->event);
    if (text && *text)
        *text = pending->text = mem_strdup(*text);
    pending->decision = decision ? mem_copy(decision, 1, sizeof(*decision)) : NULL;
    *engine->last_event = pending;
    engine->last_event = &pending->next;
}

const struct engine_job *engine_submit(struct engine *engine, struct event *event, const char *user,
                                       struct wire_message *submission)
{
    uint64_t id = core_next_id(engine->core);
    struct engine_job *job = jobs_add(&engine->jobs, id, event->u.submit.uid, user, submission);
    job->submitted_ms = wall_now().ms;
    engine_event(engine, event);
    if (core_job(engine->core, id))
        return job;
    jobs_remove(&engine->jobs, job);
    return NULL;
}

/* The end that this host was told is not on disk, and another host, which is not linked yet, knows why: until then this
 * one must not forget that it has had the job, or it would be lost when its rsd is restarted. */
static bool awaits_ends(const struct engine *engine, uint64_t id, uint32_t attempt)
{
    const struct core_job *state = core_job(engine->core, id);
    return state && state->attempt == attempt && (state->state == JOB_STARTING || state->state == JOB_RUNNING);
}

/* The usage is worth a write of its own: the core may have nothing to write yet. */
bool engine_emptied(struct engine *engine, int host, uint64_t id, uint32_t attempt, double cpu_seconds,
                    int64_t memory_peak_bytes)
{
    struct engine_job *job = jobs_find(&engine->jobs, id);
    const struct core_job *state = core_job(engine->core, id);
    bool known =
        job && state && state->attempt == attempt && usage_judge(engine, host, state, &cpu_seconds, &memory_peak_bytes);
    if (known)
        job_set_usage(job, engine_host_name(engine, host), attempt, cpu_seconds, memory_peak_bytes);
    struct event event = {.type = EVENT_EMPTY, .host = host, .job = id, .attempt = attempt};
    uint64_t before = job ? job->put : 0;
    engine_event(engine, &event);
    if (known && job->put == before)
        engine_persist(engine, job);
    return !awaits_ends(engine, id, attempt);
}

static void on_tick(struct deadline *deadline)
{
    struct event event = {.type = EVENT_TICK};
    engine_event(CONTAINER_OF(deadline, struct engine, tick), &event);
}

/* ---- tidying ---- */

void engine_tidy_soon(struct engine *engine)
{
    if (!engine->tidy.slot && !engine->closed)
        deadline_set(engine->deadlines, &engine->tidy, engine_now_ms());
}

static void on_tidy(struct deadline *deadline)
{
    struct engine *engine = CONTAINER_OF(deadline, struct engine, tidy);
    for (struct engine_job *job;
         (job = jobs_oldest(&engine->jobs, JOBS_ENDED_KEPT)) && engine_job_settled(engine, job) && !job->watchers;) {
        core_forget(engine->core, job->id);
        jobs_drop(&engine->jobs, job);
    }
}

void engine_limit_history(struct engine *engine, int64_t jobs, int64_t age_ms)
{
    engine->limits = store_limits_of(jobs, age_ms);
}

/* Every minute: the limits of the history. */
static void on_trim(struct deadline *deadline)
{
    struct engine *engine = CONTAINER_OF(deadline, struct engine, trim);
    store_trim(engine->store, &engine->limits);
    deadline_set(engine->deadlines, &engine->trim, engine_now_ms() + TRIM_MS);
}

/* ---- queries ---- */

const struct core *engine_core(const struct engine *engine)
{
    return engine->core;
}

const struct jobs *engine_jobs(const struct engine *engine)
{
    return &engine->jobs;
}

struct store *engine_store(struct engine *engine)
{
    return engine->store;
}

const char *engine_host_name(const struct engine *engine, int host)
{
    return core_host(engine->core, host)->name;
}

int engine_host_count(const struct engine *engine)
{
    return core_host_count(engine->core);
}

const char *engine_store_failure(const struct engine *engine)
{
    return engine->store_failure;
}

const struct engine_job *engine_job(const struct engine *engine, uint64_t id)
{
    return jobs_find(&engine->jobs, id);
}

bool engine_job_accepted(const struct engine *engine, const struct engine_job *job)
{
    return job->stored && store_committed(engine->store) >= job->first_put;
}

bool engine_job_settled(const struct engine *engine, const struct engine_job *job)
{
    return job->settled || (job->ended && store_committed(engine->store) >= job->put);
}

void engine_watch(struct engine *engine, uint64_t id)
{
    struct engine_job *job = jobs_find(&engine->jobs, id);
    assert(job);
    job->watchers++;
    if (job->ended)
        store_want(engine->store, job->put);
}

void engine_unwatch(struct engine *engine, uint64_t id)
{
    struct engine_job *job = jobs_find(&engine->jobs, id);
    assert(job && job->watchers > 0);
    job->watchers--;
    if (!job->watchers && jobs_oldest(&engine->jobs, JOBS_ENDED_KEPT))
        engine_tidy_soon(engine);
}

/* ---- begin and end ---- */

void engine_connect_hosts(struct engine *engine, const struct engine_hosts *hosts, void *data)
{
    engine->hosts = *hosts;
    engine->hosts_data = data;
}

void engine_connect_launch(struct engine *engine, const struct engine_launch *launch, void *data)
{
    engine->launch = *launch;
    engine->launch_data = data;
}

void engine_connect_requests(struct engine *engine, const struct engine_requests *requests, void *data)
{
    engine->requests = *requests;
    engine->requests_data = data;
}

static void on_damage(const char *text, void *data)
{
    struct engine *engine = data;
    engine->damaged(text, engine->damaged_data);
}

static int make_core(struct engine *engine, const struct engine_settings *settings, struct err *err)
{
    struct core_options options = settings->core;
    if (!options.seed && getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
        options.seed = (uint64_t)mono_now().ns;
    engine->core = core_create(&options);
    if (!engine->core)
        return err_set(err, -EINVAL, "the core refuses its options");
    const char *name;
    for (int i = 0, ncpus = 0; (name = settings->host(i, &ncpus, settings->data)); i++) {
        if (core_add_host(engine->core, name) != i)
            return err_set(err, -EINVAL, "host %s cannot be added", name);
        if (ncpus)
            core_expect_cpus(engine->core, i, ncpus);
    }
    return 0;
}

int engine_create(uv_loop_t *loop, struct deadlines *deadlines, const struct engine_settings *settings,
                  void (*damaged)(const char *text, void *data), void *data, struct engine **out, struct err *err)
{
    static const struct store_callbacks callbacks = {commit_done, commit_failed, on_damage};
    struct engine *engine = mem_zalloc(sizeof(*engine));
    *engine = (struct engine){.deadlines = deadlines,
                              .limits = store_limits_of(settings->history_jobs, settings->history_age_ms),
                              .damaged = damaged,
                              .damaged_data = data,
                              .tick.fire = on_tick,
                              .tidy.fire = on_tidy,
                              .trim.fire = on_trim};
    engine->last_event = &engine->events;
    engine->last_waiting = &engine->waiting;
    jobs_init(&engine->jobs);
    *out = engine;
    int result = make_core(engine, settings, err);
    if (!result)
        result = store_open(loop, settings->store, &callbacks, engine, &engine->store, err);
    return result ? result : recover(engine, err);
}

void engine_begin(struct engine *engine)
{
    assert(engine->hosts.order && engine->launch.begin && engine->requests.answered); /* all are connected */
    on_tick(&engine->tick); /* arms the timers of what was taken back */
    store_check(engine->store);
    on_trim(&engine->trim);
}

void engine_close(struct engine *engine)
{
    if (!engine)
        return;
    engine->closed = true;
    deadline_clear(engine->deadlines, &engine->tick);
    deadline_clear(engine->deadlines, &engine->tidy);
    deadline_clear(engine->deadlines, &engine->trim);
    size_t cursor = 0;
    for (struct engine_job *job; (job = map_next(&engine->jobs.by_id, &cursor));)
        limits_clear(engine, job);
    if (engine->store)
        store_close(engine->store); /* writes what waits */
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    commit_fini(engine);
    for (struct pending_event *event; (event = engine->events);) {
        engine->events = event->next;
        free(event->text);
        free(event->decision);
        free(event);
    }
    jobs_fini(&engine->jobs);
    core_destroy(engine->core);
    free(engine->store_failure);
    free(engine->drains);
    free(engine->past);
    free(engine);
}
