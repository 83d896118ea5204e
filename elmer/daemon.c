/* daemon.c - the dispatcher.
 *
 * An event comes in (daemon_event) -> core_step() -> its actions are carried out in their order: ORDER and END go out
 * at once, PERSIST puts the job's row to the store, and what has to be true after a crash before anybody acts on it
 * (ANSWER OPEN LAUNCH TAKEN, and what the shell adds) waits in the deferred list until everything put before it is on
 * disk. on_commit() then goes on with them, in order. A step is never entered again: an event that arises while actions
 * are carried out waits until they are done. The store cannot be written: submissions that wait are refused and undone
 * (nothing of them stays in the store); everything else waits; orders and ends go on. New submissions
 * are refused until it works again. */
#include "config.h"

#include "elmer/daemon.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "elmer/membership/certificates.h"
#include "elmer/hosts/hosts.h"
#include "elmer/membership/join.h"
#include "elmer/engine/commit.h"
#include "elmer/launch/launch.h"
#include "elmer/notify.h"
#include "elmer/engine/recover.h"
#include "elmer/membership/renewals.h"
#include "elmer/requests/requests.h"
#include "elmer/requests/users.h"
#include "lib/net/tls.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

enum { TRIM_MS = 60000, BEAT_MS = 1000 };

struct pending_event {
    struct pending_event *next;
    struct event event;
    char *text;
};

int64_t daemon_now_ms(void)
{
    return mono_ms(mono_now());
}

/* ---- persist ---- */

static void note_times(struct job *job, const struct core_job *state)
{
    int64_t now = wall_now().ms;
    if (state->state == JOB_QUEUED)
        job->started_ms = -1; /* of an earlier attempt */
    bool ended = state->state == JOB_DONE || state->state == JOB_CANCELLED;
    if (job->started_ms < 0 && (state->state == JOB_RUNNING || state->exits > 0))
        job->started_ms = now;
    if (job->ended_ms < 0 && ended)
        job->ended_ms = now > job->started_ms ? now : job->started_ms; /* the clock may have been set back */
}

static void log_change(const struct job *job, const struct core_job *state)
{
    const char *reason = state->state == JOB_ENDING || state->state == JOB_CANCELLED ? reason_name(state->reason) : "";
    if (state->state == job->logged)
        return;
    /* a job that goes well passes through these two in milliseconds, and each line costs as much as a commit */
    bool passing = state->state == JOB_STARTING || (state->state == JOB_ENDING && state->reason == REASON_EXITED);
    (passing ? log_debug : log_info)("job=%" PRIu64 " user=%s %s%s%s", job->id, job->user, job_state_name(state->state),
                                     *reason ? ": " : "", reason);
    if (state->state == JOB_QUEUED && state->attempt)
        log_notice("job=%" PRIu64 " user=%s goes back into the queue after attempt %" PRIu32 ": %s", job->id, job->user,
                   state->attempt, state->text);
    if (state->state == JOB_STARTING && state->requeue && !state->lease_ms)
        log_notice("job=%" PRIu64 " user=%s cannot be requeued in this attempt: the rsd of one of its hosts is too old "
                   "to hold a lease; upgrade it",
                   job->id, job->user);
}

uint64_t daemon_persist(struct daemon *d, struct job *job)
{
    const struct core_job *state = core_job(d->core, job->id);
    assert(state);
    note_times(job, state);
    log_change(job, state);
    job->logged = state->state;
    struct record *record = job_record(d->core, job, state, !job->stored);
    job->put = d->last_put = store_put(d->store, record);
    if (!job->stored)
        job->first_put = job->put;
    job->stored = true;
    return job->put;
}

bool daemon_job_accepted(const struct daemon *d, const struct job *job)
{
    return job->stored && store_committed(d->store) >= job->first_put;
}

bool daemon_job_settled(const struct daemon *d, const struct job *job)
{
    return job->settled || (job->ended && store_committed(d->store) >= job->put);
}

struct record *daemon_record(struct daemon *d, struct job *job)
{
    struct record *record = job_record(d->core, job, core_job(d->core, job->id), false);
    if (record_ended(record) && !daemon_job_settled(d, job)) {
        record->state = JOB_ENDING; /* a final state never changes, so it is not shown before it is on disk */
        record->ended_ms = -1;
    }
    return record;
}

static void persist(struct daemon *d, uint64_t id)
{
    struct job *job = jobs_find(&d->jobs, id);
    const struct core_job *state = core_job(d->core, id);
    if (!job || !state) {
        log_error("job=%" PRIu64 " is to be written, but is not known: a bug", id);
        return;
    }
    daemon_persist(d, job);
    if (state->state != JOB_STARTING && state->state != JOB_RUNNING)
        launch_end(d, job);
    if (job->ended || (state->state != JOB_DONE && state->state != JOB_CANCELLED))
        return;
    job->ended = true;
    struct deferred wait = {.kind = WAIT_SETTLED, .job = id};
    later_put(d, &wait);
}

static void persist_host(struct daemon *d, int host)
{
    const struct core_host *state = core_host(d->core, host);
    struct host_row row = {.row = state->row};
    snprintf(row.name, sizeof(row.name), "%s", state->name);
    d->last_put = store_put_host(d->store, &row);
}

/* ---- actions ---- */

static void send_order(struct daemon *d, const struct action *action)
{
    struct arena memory = {0};
    struct wire_message message = {.type = WIRE_order};
    struct wire_order_entry *entries = arena_array(&memory, (size_t)action->nentries, sizeof(*entries));
    for (int i = 0; i < action->nentries; i++) {
        const struct order_entry *from = &action->entries[i];
        uint64_t *cpus = arena_array(&memory, (size_t)from->ncpus, sizeof(*cpus));
        for (int j = 0; j < from->ncpus; j++)
            cpus[j] = (uint64_t)from->cpus[j];
        entries[i] = (struct wire_order_entry){.job = from->job,
                                               .attempt = from->attempt,
                                               .level = (uint64_t)from->level,
                                               .lowest = from->lowest,
                                               .cpus = {cpus, (size_t)from->ncpus}};
    }
    message.u.order.generation = action->generation;
    message.u.order.entries.items = entries;
    message.u.order.entries.count = (size_t)action->nentries;
    hosts_send(d->hosts, action->host, &message);
    arena_fini(&memory);
}

static void send_end(struct daemon *d, const struct action *action)
{
    struct wire_message message = {
        .type = WIRE_end,
        .u.end = {.job = action->job, .attempt = action->attempt, .grace_ms = (uint64_t)d->settings->kill_grace_ms}};
    hosts_send(d->hosts, action->host, &message);
}

static void wait_open(struct daemon *d, const struct action *action)
{
    struct deferred wait = {.kind = WAIT_OPEN,
                            .job = action->job,
                            .attempt = action->attempt,
                            .host = action->host,
                            .generation = action->generation,
                            .lease_ms = action->lease_ms};
    wait.cpus = mem_array((size_t)action->ncpus, sizeof(uint64_t));
    wait.ncpus = (size_t)action->ncpus;
    for (int i = 0; i < action->ncpus; i++)
        wait.cpus[i] = (uint64_t)action->cpus[i];
    later_put(d, &wait);
    free(wait.cpus);
}

static void carry_out(struct daemon *d, const struct action *action)
{
    struct deferred wait = {.request = action->request,
                            .answer = action->answer,
                            .job = action->job,
                            .attempt = action->attempt,
                            .host = action->host,
                            .rank = action->rank};
    switch (action->type) {
    case ACTION_ORDER:
        send_order(d, action);
        break;
    case ACTION_END:
        send_end(d, action);
        break;
    case ACTION_PERSIST:
        persist(d, action->job);
        break;
    case ACTION_PERSIST_HOST:
        persist_host(d, action->host);
        break;
    case ACTION_TIMER:
        deadline_set(&d->deadlines, &d->tick, action->at_ms);
        break;
    case ACTION_OPEN:
        wait_open(d, action);
        break;
    case ACTION_ANSWER:
        wait.kind = WAIT_ANSWER;
        later_put(d, &wait);
        break;
    case ACTION_LAUNCH:
        wait.kind = WAIT_LAUNCH;
        later_put(d, &wait);
        break;
    case ACTION_TAKEN:
        wait.kind = WAIT_TAKEN;
        later_put(d, &wait);
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

static int step(struct daemon *d, struct event *event)
{
    struct actions actions;
    int64_t begin_ns = mono_now().ns;
    actions_init(&actions);
    event->now_ms = daemon_now_ms();
    int code = core_step(d->core, event, &actions);
    int64_t decided_ns = mono_now().ns;
    if (code)
        log_error("an event (%d) could not be handled: %s", (int)event->type, strerror(-code));
    d->stepping = true;
    for (size_t i = 0; i < actions.count; i++)
        carry_out(d, &actions.items[i]);
    d->stepping = false;
    trace(event, begin_ns, decided_ns);
    actions_fini(&actions);
    return code;
}

void daemon_run_events(struct daemon *d)
{
    for (struct pending_event *next; !d->stepping && (next = d->events);) {
        d->events = next->next;
        if (!d->events)
            d->last_event = &d->events;
        step(d, &next->event);
        free(next->text);
        free(next);
    }
}

static bool has_text(enum event_type type)
{
    return type == EVENT_OPEN_FAILED || type == EVENT_LAUNCH_FAILED || type == EVENT_ABORT;
}

int daemon_event(struct daemon *d, struct event *event)
{
    if (!d->stepping) {
        int code = step(d, event);
        daemon_run_events(d);
        return code;
    }
    assert(event->type != EVENT_SUBMIT && event->type != EVENT_HOST_UP && event->type != EVENT_REPORT);
    struct pending_event *pending = mem_zalloc(sizeof(*pending));
    pending->event = *event;
    if (has_text(event->type) && event->u.failed.text)
        pending->event.u.failed.text = pending->text = mem_strdup(event->u.failed.text);
    *d->last_event = pending;
    d->last_event = &pending->next;
    return 0;
}

static void on_tick(struct deadline *deadline)
{
    struct daemon *d = (struct daemon *)((char *)deadline - offsetof(struct daemon, tick));
    struct event event = {.type = EVENT_TICK};
    daemon_event(d, &event);
}

/* ---- hosts about jobs ---- */

static void on_opened(struct daemon *d, int host, const struct wire_message *m)
{
    struct event event = {
        .type = EVENT_OPENED, .host = host, .job = m->u.opened.job, .attempt = (uint32_t)m->u.opened.attempt};
    daemon_event(d, &event);
}

static void on_failed(struct daemon *d, int host, enum event_type type, uint64_t job, uint64_t attempt,
                      enum reason reason, const char *text)
{
    char *full = mem_format("%s: %.900s", core_host(d->core, host)->name, text);
    struct event event = {.type = type, .host = host, .job = job, .attempt = (uint32_t)attempt};
    event.u.failed.reason = reason;
    event.u.failed.text = full;
    daemon_event(d, &event);
    free(full);
}

/* The end that this host was told is not on disk, and another host, which is not linked yet, knows why: until then this
 * one must not forget that it has had the job, or it would be lost when its rsd is restarted. It is told END again. */
static bool awaits_ends(const struct daemon *d, uint64_t id, uint32_t attempt)
{
    const struct core_job *state = core_job(d->core, id);
    return state && state->attempt == attempt && (state->state == JOB_STARTING || state->state == JOB_RUNNING);
}

/* The usage is worth an event of its own: the core may have nothing to write yet. */
static void on_empty(struct daemon *d, int host, const struct wire_empty *empty)
{
    struct job *job = jobs_find(&d->jobs, empty->job);
    const struct core_job *state = core_job(d->core, empty->job);
    bool known = job && state && state->attempt == empty->attempt && empty->cpu_seconds >= 0;
    if (known)
        job_set_usage(job, core_host(d->core, host)->name, (uint32_t)empty->attempt, empty->cpu_seconds,
                      empty->memory_peak_bytes);
    launch_emptied(d, empty->job, empty->attempt);
    struct event event = {.type = EVENT_EMPTY, .host = host, .job = empty->job, .attempt = (uint32_t)empty->attempt};
    uint64_t before = job ? job->put : 0;
    if (daemon_event(d, &event))
        return; /* it comes again */
    if (known && job->put == before)
        daemon_persist(d, job);
    if (!awaits_ends(d, empty->job, (uint32_t)empty->attempt))
        daemon_later(d, LATER_FORGET, 0, host, empty->job, (uint32_t)empty->attempt);
}

static void on_job(struct daemon *d, int host, struct wire_message *m)
{
    switch ((int)m->type) {
    case WIRE_opened:
        on_opened(d, host, m);
        break;
    case WIRE_open_failed:
        on_failed(d, host, EVENT_OPEN_FAILED, m->u.open_failed.job, m->u.open_failed.attempt, REASON_START_FAILED,
                  m->u.open_failed.text);
        break;
    case WIRE_lost:
        on_failed(d, host, EVENT_ABORT, m->u.lost.job, m->u.lost.attempt, REASON_LOST, m->u.lost.text);
        break;
    case WIRE_empty:
        on_empty(d, host, &m->u.empty);
        break;
    default:
        launch_message(d, host, m);
        break;
    }
}

static void on_relay(struct daemon *d, int host, bool queue_host, struct wire_message *message)
{
    clients_relay(d->clients, host, queue_host, message);
}

static void on_certificate(struct daemon *d, struct peer *peer, int host, struct wire_message *message)
{
    joins_begin(d->joins, peer, host, message);
}

static int judge(struct daemon *d, const struct tls_peer *peer, struct err *err)
{
    return certificates_judge(d->certificates, peer->name, peer->serial, err);
}

static void on_peer_gone(struct daemon *d, struct peer *peer)
{
    joins_peer_gone(d->joins, peer);
}

static void on_cut(struct daemon *d, int host)
{
    clients_host_cut(d->clients, host);
}

/* ---- begin, tidy, end ---- */

void daemon_tidy_soon(struct daemon *d)
{
    if (!d->tidy.slot && !d->stopping)
        deadline_set(&d->deadlines, &d->tidy, daemon_now_ms());
}

static void on_tidy(struct deadline *deadline)
{
    struct daemon *d = (struct daemon *)((char *)deadline - offsetof(struct daemon, tidy));
    launch_sweep(d);
    for (struct job *job;
         (job = jobs_oldest(&d->jobs, JOBS_ENDED_KEPT)) && daemon_job_settled(d, job) && !job->waiting;) {
        core_forget(d->core, job->id);
        jobs_drop(&d->jobs, job);
    }
}

static void on_beat(struct deadline *deadline)
{
    struct daemon *d = (struct daemon *)((char *)deadline - offsetof(struct daemon, beat));
    deadline_set(&d->deadlines, &d->beat, daemon_now_ms() + BEAT_MS);
}

/* What hosts have said in that time is still to be read, and what they should have been asked was not. */
static void on_stalled(struct deadlines *deadlines, int64_t ms)
{
    struct daemon *d = (struct daemon *)((char *)deadlines - offsetof(struct daemon, deadlines));
    struct event event = {.type = EVENT_TICK, .u.stalled_ms = ms};
    if (d->stopping || !d->hosts)
        return;
    log_warning("elmer did not run for %" PRId64 ".%" PRId64 " s: nobody's silence is counted for that time", ms / 1000,
                ms % 1000 / 100);
    hosts_stalled(d->hosts, ms);
    daemon_event(d, &event);
}

/* Every minute: the limits of the history. */
static void on_trim(struct deadline *deadline)
{
    struct daemon *d = (struct daemon *)((char *)deadline - offsetof(struct daemon, trim));
    struct store_limits limits = {d->settings->history_jobs, d->settings->history_age_ms};
    store_trim(d->store, &limits);
    deadline_set(&d->deadlines, &d->trim, daemon_now_ms() + TRIM_MS);
}

static void describe(char *text, size_t size, void *data)
{
    struct daemon *d = data;
    snprintf(text, size, "%zu of %zu hosts up, %zu jobs%s", hosts_count_linked(d->hosts), d->settings->nhosts,
             d->jobs.by_id.count - d->jobs.nended, d->store_failure ? ", THE STORE CANNOT BE WRITTEN" : "");
}

static void stop(struct daemon *d)
{
    if (d->stopping)
        return;
    d->stopping = true;
    notify_stopping(d->notify);
    clients_close(d->clients);
    hosts_close(d->hosts);
    users_destroy(d->users);
    renewals_close(d->renewals);
    joins_close(d->joins);
    store_close(d->store); /* writes what waits */
    notify_destroy(d->notify);
    deadlines_fini(&d->deadlines);
    uv_close((uv_handle_t *)&d->terminate, NULL);
    uv_close((uv_handle_t *)&d->interrupt, NULL);
}

static void on_signal(uv_signal_t *signal, int number)
{
    log_notice("ends after %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    stop(signal->data);
}

static void on_damage(const char *text, void *data)
{
    struct daemon *d = data;
    d->fatal_code = err_set(d->fatal, -EUCLEAN, "%s", text);
    stop(d);
}

static int make_core(struct daemon *d, struct err *err)
{
    struct core_options options = d->settings->core;
    if (!options.seed && getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
        options.seed = (uint64_t)mono_now().ns;
    d->core = core_create(&options);
    for (size_t i = 0; d->core && i < d->settings->nhosts; i++)
        if (core_add_host(d->core, d->settings->hosts[i].name) != (int)i)
            return err_set(err, -EINVAL, "host %s cannot be added", d->settings->hosts[i].name);
    return d->core ? 0 : err_set(err, -EINVAL, "the core refuses its options");
}

static int open_all(struct daemon *d, struct err *err)
{
    static const struct store_callbacks store = {later_commit, later_store_failure, on_damage};
    static const struct hosts_callbacks hosts = {
        .on_up = launch_host_up,
        .on_cut = on_cut,
        .on_job = on_job,
        .on_relay = on_relay,
        .on_certificate = on_certificate,
        .on_peer_gone = on_peer_gone,
        .judge = judge,
    };
    static const struct clients_callbacks clients = {requests_begin, requests_client_gone};
    int code = make_core(d, err);
    if (!code)
        code = store_open(d->loop, d->settings->store, &store, d, &d->store, err);
    if (!code)
        code = recover(d, err);
    if (!code)
        code = certificates_create(d, &d->certificates, err);
    if (code)
        return code;
    d->requests = requests_create(d);
    d->users = users_create(d->loop, d->settings->admin_group);
    d->joins = joins_create(d);
    d->renewals = renewals_create(d); /* before hosts.c reads what it may complete */
    code = hosts_create(d, &hosts, &d->hosts, err);
    if (!code) {
        hosts_await(d->hosts);
        on_tick(&d->tick); /* arms the timers of what was restored */
    }
    return code ? code : clients_create(d, &clients, &d->clients, err);
}

static void free_all(struct daemon *d)
{
    later_fini(d);
    for (struct pending_event *event; (event = d->events);) {
        d->events = event->next;
        free(event->text);
        free(event);
    }
    size_t cursor = 0;
    for (struct job *job; (job = map_next(&d->jobs.by_id, &cursor));)
        launch_end(d, job);
    launch_sweep(d);
    requests_destroy(d->requests);
    clients_destroy(d->clients);
    hosts_destroy(d->hosts);
    joins_destroy(d->joins);
    renewals_destroy(d->renewals);
    certificates_destroy(d->certificates);
    jobs_fini(&d->jobs);
    core_destroy(d->core);
    free(d->store_failure);
}

int daemon_run(const struct settings *settings, struct err *err)
{
    uv_loop_t loop;
    struct daemon d = {.loop = &loop, .settings = settings, .fatal = err};
    d.last_event = &d.events;
    d.last_deferred = &d.deferred;
    d.tick.fire = on_tick;
    d.tidy.fire = on_tidy;
    d.trim.fire = on_trim;
    d.beat.fire = on_beat;
    int code = uv_loop_init(&loop);
    if (code)
        return err_set(err, code, "no event loop: %s", uv_strerror(code));
    jobs_init(&d.jobs);
    deadlines_init(&d.deadlines, &loop);
    uv_signal_init(&loop, &d.terminate);
    uv_signal_init(&loop, &d.interrupt);
    d.terminate.data = d.interrupt.data = &d;
    code = open_all(&d, err);
    if (code) {
        stop(&d);
    } else {
        uv_signal_start(&d.terminate, on_signal, SIGTERM);
        uv_signal_start(&d.interrupt, on_signal, SIGINT);
        d.notify = notify_create(&d.deadlines, describe, &d);
        notify_ready(d.notify);
        store_check(d.store);
        on_trim(&d.trim);
        d.deadlines.stalled = on_stalled; /* not for the start, which may take long */
        on_beat(&d.beat);
        log_notice("ready: %zu hosts, %zu jobs, allocator %s, %d levels", settings->nhosts, d.jobs.by_id.count,
                   core_allocator_name(settings->core.allocator), settings->core.levels);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    free_all(&d);
    if (uv_loop_close(&loop))
        log_error("handles were left open: a bug");
    return code ? code : d.fatal_code;
}
