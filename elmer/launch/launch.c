/* launch.c - a job's processes, from the moment when all its hosts have opened.
 *
 * Normal: PREPARING (its launcher begins: some start the command at once, others start helpers first) -> COMMAND (start
 * sent for each rank) -> all started -> LAUNCHED, EVENT_LAUNCHED -> their exits are handed to the core; the last one is
 * HELD if the launcher wants to finish before. Failures: what cannot be started ends the job with EVENT_LAUNCH_FAILED,
 * helpers that fail end it as their launcher says. Time: start_timeout of the core bounds everything before LAUNCHED,
 * the launcher's own word how long an exit is HELD. A host that links again is sent again what it has not confirmed;
 * starts are idempotent by (job, attempt, process).
 *
 * Invariants: a launch belongs to one attempt; OVER begins nothing and sends nothing but answers to helpers. A launch
 * that has been ended is freed in a later turn of the loop, because the event that ended it may have come from within
 * its own functions. What a launcher is: launcher.h. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/launch/launcher.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/wire/table.h"

static const struct moves_row states[LAUNCH_STATE_COUNT] = {
    [LAUNCH_PREPARING] = {"preparing", MOVE_TO(LAUNCH_COMMAND) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_COMMAND] = {"command", MOVE_TO(LAUNCH_LAUNCHED) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_LAUNCHED] = {"launched", MOVE_TO(LAUNCH_HELD) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_HELD] = {"held", MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_OVER] = {"over", 0},
};

static void move(struct launch *l, enum launch_state state)
{
    MOVES_CHECK("launch", states, l->state, state);
    log_debug("job=%" PRIu64 " launch %s: %s -> %s", l->job->id, l->launcher->name, states[l->state].name,
              states[state].name);
    l->state = state;
}

/* Nothing more is begun, nothing waited for. */
static void over(struct launch *l)
{
    move(l, LAUNCH_OVER);
    deadline_clear(l->launches->room.deadlines, &l->deadline);
    if (l->launcher->over)
        l->launcher->over(l);
}

int launch_place(const struct launch *l, int host)
{
    for (int i = 0; i < l->nhosts; i++)
        if (l->hosts[i] == host)
            return i;
    return -1;
}

const char *launch_host(const struct launch *l, int place)
{
    assert(place >= 0 && place < l->nhosts);
    return engine_host_name(l->launches->room.engine, l->hosts[place]);
}

void launch_send(struct launch *l, int place, const struct wire_message *message)
{
    assert(place >= 0 && place < l->nhosts);
    hosts_send(l->launches->hosts, l->hosts[place], message);
}

/* Only the host where a process is may speak about it. */
static bool is_at(const struct launch *l, uint64_t process, int host)
{
    if (process < l->ranks)
        return l->processors[process].host == host;
    if (process < l->nprocs || !l->launcher->place)
        return false;
    int place = l->launcher->place(l, process - l->nprocs);
    return place >= 0 && l->hosts[place] == host;
}

/* ---- what launchers call ---- */

void launch_fail(struct launch *l, enum event_type type, enum reason reason, const char *format, ...)
{
    char said[1000], text[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(said, sizeof(said), format, list);
    va_end(list);
    str_printable(text, sizeof(text), said, strlen(said)); /* most of it comes from a host */
    struct event event = {.type = type, .job = l->job->id, .attempt = l->attempt, .host = -1};
    event.u.failed.reason = reason;
    event.u.failed.text = text;
    log_notice("job=%" PRIu64 " cannot go on: %s", l->job->id, text);
    if (l->state != LAUNCH_OVER)
        over(l);
    engine_event(l->launches->room.engine, &event);
}

/* In COMMAND, those that have not been confirmed. */
static void start_ranks(struct launch *l, int only_place)
{
    for (uint32_t rank = 0; rank < l->ranks && l->state == LAUNCH_COMMAND; rank++)
        if (!l->started[rank] && (only_place < 0 || l->processors[rank].host == l->hosts[only_place]))
            launch_rank(l, rank);
}

void launch_command(struct launch *l)
{
    move(l, LAUNCH_COMMAND);
    start_ranks(l, -1);
}

void launch_wait(struct launch *l, int64_t ms)
{
    assert(l->launcher->time && l->state != LAUNCH_OVER);
    deadline_set(l->launches->room.deadlines, &l->deadline, engine_now_ms() + ms);
}

void launch_release(struct launch *l)
{
    struct event event = l->last_exit;
    assert(l->state == LAUNCH_HELD);
    over(l);
    engine_event(l->launches->room.engine, &event);
}

static void on_deadline(struct deadline *deadline)
{
    struct launch *l = CONTAINER_OF(deadline, struct launch, deadline);
    assert(l->launcher->time && l->state != LAUNCH_OVER);
    l->launcher->time(l);
}

/* ---- what hosts say of processes ---- */

static void on_rank_started(struct launch *l, uint32_t rank)
{
    assert(rank < l->ranks && l->nstarted <= l->ranks);
    if (l->started[rank])
        return;
    l->started[rank] = true;
    if (++l->nstarted < l->ranks || l->state != LAUNCH_COMMAND)
        return;
    struct event event = {.type = EVENT_LAUNCHED, .job = l->job->id, .attempt = l->attempt, .host = -1};
    move(l, LAUNCH_LAUNCHED);
    engine_event(l->launches->room.engine, &event);
}

static void on_started(struct launch *l, const struct wire_started *started)
{
    if (started->process < l->ranks)
        on_rank_started(l, (uint32_t)started->process);
    else if (l->launcher->started && l->state != LAUNCH_OVER)
        l->launcher->started(l, started->process - l->nprocs);
}

static void on_start_failed(struct launch *l, int host, const struct wire_start_failed *failed)
{
    if (failed->process >= l->ranks) {
        if (l->launcher->start_failed && l->state != LAUNCH_OVER)
            l->launcher->start_failed(l, failed->process - l->nprocs, failed->text);
    } else if (l->state == LAUNCH_COMMAND) {
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_START_FAILED, "%s: %s", launch_host(l, launch_place(l, host)),
                    failed->text);
    }
}

static void on_line(struct launch *l, const struct wire_line *line)
{
    if (line->process == 0 && *job_submit(l->job)->terminal)
        couriers_terminal_line(l, line->line);
    else if (line->process >= l->nprocs && l->launcher->line)
        l->launcher->line(l, line->process - l->nprocs, line->line);
}

static void acknowledge(const struct engine_wait *wait)
{
    const struct launches *launches = wait->owner;
    hosts_acknowledge(launches->hosts, wait->host, wait->job, wait->attempt, wait->rank);
}

static struct event exit_event(int host, const struct wire_exited *exited)
{
    struct event event = {.type = EVENT_EXITED, .job = exited->job, .attempt = (uint32_t)exited->attempt, .host = host};
    event.u.exited.rank = (uint32_t)exited->process;
    event.u.exited.signal = exited->signal > 0 ? (int)exited->signal : 0;
    event.u.exited.exit_status = event.u.exited.signal ? -1 : (int)exited->exit_status;
    return event;
}

/* The last rank has exited: does its launcher hold that? */
static bool hold(struct launch *l, const struct event *event)
{
    if (l->nexited < l->ranks || l->state != LAUNCH_LAUNCHED || !l->launcher->last_exit)
        return false;
    int64_t ms = l->launcher->last_exit(l);
    if (ms <= 0)
        return false;
    assert(l->nexited == l->ranks);
    l->last_exit = *event;
    move(l, LAUNCH_HELD);
    launch_wait(l, ms);
    return true;
}

static void on_rank_exited(struct launch *l, int host, const struct wire_exited *exited)
{
    uint32_t rank = (uint32_t)exited->process;
    struct event event = exit_event(host, exited);
    on_rank_started(l, rank); /* the report of its start was lost */
    if (l->state == LAUNCH_HELD && l->last_exit.u.exited.rank == rank)
        return; /* said again: it has its turn */
    if (!l->exited[rank]) {
        l->exited[rank] = true;
        l->nexited++;
    }
    if (rank == 0)
        couriers_terminal_exited(l);
    if (!hold(l, &event))
        engine_event(l->launches->room.engine, &event);
}

static void on_exited(struct launch *l, int host, const struct wire_exited *exited)
{
    if (exited->process < l->ranks) {
        on_rank_exited(l, host, exited);
        return;
    }
    /* Not acknowledged: what follows from it may take a while, and is not on disk then. The host says it again when it
     * links again, and forgets it with the job. */
    if (l->launcher->exited && l->state != LAUNCH_OVER)
        l->launcher->exited(l, exited->process - l->nprocs, exited);
}

/* Of a job without a launch: only the core knows whether it matters. A helper's does not, once it is on disk why there
 * is none. After a restart a job that is starting has one soon, which asks for that helper, and hears of it then. */
static void on_exited_without(struct launches *launches, int host, const struct wire_exited *exited)
{
    const struct core_job *state = core_job(engine_core(launches->room.engine), exited->job);
    struct event event = exit_event(host, exited);
    struct engine_wait taken = {.run = acknowledge,
                                .owner = launches,
                                .urgency = ENGINE_LINGER,
                                .job = exited->job,
                                .attempt = (uint32_t)exited->attempt,
                                .rank = (uint32_t)exited->process,
                                .host = host};
    if (strcmp(exited->role, role_name(ROLE_COMMAND)) == 0)
        engine_event(launches->room.engine, &event);
    else if (!state || state->attempt != exited->attempt || state->state != JOB_STARTING)
        engine_after_commit(launches->room.engine, &taken);
}

/* ---- dispatch ---- */

/* Whose message it is; NULL: of no launch that is, or not from where it could come. */
static struct launch *launch_of(struct launches *launches, int host, const struct wire_message *message)
{
    uint64_t id, attempt, process;
    if (!wire_table_uint(message, "job", &id) || !wire_table_uint(message, "attempt", &attempt))
        return NULL;
    struct launch *l = map_get(&launches->by_job, id);
    if (!l || l->attempt != attempt)
        return NULL;
    if (wire_table_uint(message, "process", &process))
        return is_at(l, process, host) ? l : NULL;
    return launch_place(l, host) >= 0 ? l : NULL;
}

void launches_message(struct launches *launches, int host, struct wire_message *message)
{
    struct launch *l = launch_of(launches, host, message);
    if (couriers_message(launches, host, message))
        return;
    if (!l) {
        if (message->type == WIRE_exited)
            on_exited_without(launches, host, &message->u.exited);
        return;
    }
    switch ((int)message->type) {
    case WIRE_started:
        on_started(l, &message->u.started);
        break;
    case WIRE_start_failed:
        on_start_failed(l, host, &message->u.start_failed);
        break;
    case WIRE_line:
        on_line(l, &message->u.line);
        break;
    case WIRE_exited:
        on_exited(l, host, &message->u.exited);
        break;
    case WIRE_empty: /* An exit that is still held goes to the core before that does. After a restart: the END that was
                      * sent before the exit was on disk has reached the host. */
        if (l->state == LAUNCH_HELD)
            launch_release(l);
        break;
    default:
        if (l->launcher->message)
            l->launcher->message(l, launch_place(l, host), message);
        break;
    }
}

static void send_again(struct launch *l, int place)
{
    start_ranks(l, place);
    couriers_host_up(l, place);
    if (l->launcher->host_up && l->state != LAUNCH_OVER)
        l->launcher->host_up(l, place);
}

void launches_host_up(struct launches *launches, int host)
{
    size_t cursor = 0, count = 0;
    struct launch **there =
        mem_array(launches->by_job.count, sizeof(struct launch *)); /* sending may end one of them */
    for (struct launch *l; (l = map_next(&launches->by_job, &cursor));)
        if (launch_place(l, host) >= 0)
            there[count++] = l;
    for (size_t i = 0; i < count; i++)
        send_again(there[i], launch_place(there[i], host));
    free(there);
}

/* ---- begin and end ---- */

static void copy_cluster(struct launch *l, const struct core_job *state)
{
    l->nprocs = state->nprocs;
    l->mesh_rows = state->mesh_rows;
    l->index = job_index(l->job);
    l->ranks = state->each ? state->nprocs : 1; /* so many exits the core waits for */
    l->processors = arena_array(&l->memory, l->nprocs, sizeof(*l->processors));
    memcpy(l->processors, state->processors, l->nprocs * sizeof(*l->processors));
    l->names = arena_array(&l->memory, l->nprocs, sizeof(*l->names));
    l->hosts = arena_array(&l->memory, l->nprocs, sizeof(*l->hosts));
    for (uint32_t i = 0; i < l->nprocs; i++) {
        int host = l->processors[i].host;
        l->names[i] = engine_host_name(l->launches->room.engine, host);
        if (!l->nhosts || l->hosts[l->nhosts - 1] != host)
            l->hosts[l->nhosts++] = host;
    }
    l->started = arena_array(&l->memory, l->ranks, sizeof(bool));
    l->exited = arena_array(&l->memory, l->ranks, sizeof(bool));
}

static struct launch *create(struct launches *launches, const struct engine_job *job, const struct core_job *state,
                             enum launch_state first)
{
    assert(state->processors && state->nprocs > 0 && state->attempt > 0 && !map_get(&launches->by_job, job->id));
    struct launch *l = mem_zalloc(sizeof(*l));
    *l = (struct launch){.launches = launches,
                         .launcher = launcher_by_kind(launcher_of(job_submit(job))),
                         .job = job,
                         .attempt = state->attempt,
                         .state = first,
                         .deadline.fire = on_deadline};
    l->own = arena_alloc(&l->memory, l->launcher->own_size);
    copy_cluster(l, state);
    l->tmpdir =
        arena_format(&l->memory, "%s/%" PRIu64 ".%" PRIu32, launches->settings->jobs_dir, job->id, state->attempt);
    map_put(&launches->by_job, job->id, l);
    return l;
}

/* Known from before a restart: not to be started again. */
static void note_exited(struct launch *l, const struct core_job *state)
{
    for (uint32_t rank = 0; rank < l->ranks; rank++) {
        if (!state->exited || !(state->exited[rank / 8] & (1u << (rank % 8))))
            continue;
        l->started[rank] = l->exited[rank] = true;
        l->nstarted++;
        l->nexited++;
    }
}

static void sweep(struct launches *launches)
{
    for (struct launch *l; (l = launches->dead);) {
        launches->dead = l->next_dead;
        arena_fini(&l->memory);
        free(l);
    }
}

static void on_sweep(struct deadline *deadline)
{
    sweep(CONTAINER_OF(deadline, struct launches, sweep));
}

static void end(struct launch *l)
{
    struct launches *launches = l->launches;
    if (l->state == LAUNCH_HELD)
        launch_release(l); /* the status is worth having, whatever ends the job now */
    if (l->state != LAUNCH_OVER)
        over(l);
    couriers_end(l);
    assert(l->state == LAUNCH_OVER && map_get(&launches->by_job, l->job->id) == l);
    map_remove(&launches->by_job, l->job->id);
    l->next_dead = launches->dead;
    launches->dead = l;
    if (!launches->sweep.slot)
        deadline_set(launches->room.deadlines, &launches->sweep, engine_now_ms());
}

/* The job is ending or has ended. */
static void on_end(const struct engine_job *job, void *data)
{
    struct launches *launches = data;
    struct launch *l = map_get(&launches->by_job, job->id);
    if (l)
        end(l);
}

/* Whether the job's hosts have what its launcher needs; false: the launch has failed. */
static bool may_run(struct launch *l)
{
    enum launcher_kind kind = launcher_of(job_submit(l->job));
    for (int i = 0; launcher_needs(kind) && i < l->nhosts; i++) {
        if (launchers_have(hosts_facts(l->launches->hosts, l->hosts[i]).launchers, kind))
            continue;
        launch_fail(l, EVENT_LAUNCH_FAILED, l->launcher->failed,
                    "host %s has no %s: install it there, or leave the host out with --hosts", launch_host(l, i),
                    launcher_needs(kind));
        return false;
    }
    return true;
}

static void on_begin(const struct engine_job *job, void *data)
{
    struct launches *launches = data;
    const struct core_job *state = core_job(engine_core(launches->room.engine), job->id);
    struct launch *old = map_get(&launches->by_job, job->id);
    if (!state || state->state != JOB_STARTING || !state->processors)
        return;
    if (old && old->attempt == state->attempt)
        return;
    if (old)
        end(old);
    struct launch *l = create(launches, job, state, LAUNCH_PREPARING);
    note_exited(l, state);
    if (may_run(l))
        l->launcher->begin(l);
}

/* A job that was running when elmer was restarted. */
static void restore(struct launches *launches, const struct engine_job *job, const struct core_job *state)
{
    assert(job && state->state == JOB_RUNNING);
    struct launch *l = create(launches, job, state, LAUNCH_LAUNCHED);
    note_exited(l, state);
    memset(l->started, true, l->ranks * sizeof(bool));
    l->nstarted = l->ranks;
    if (l->launcher->resume)
        l->launcher->resume(l);
}

struct launches *launches_create(const struct room *room, const struct launch_settings *settings, struct hosts *hosts)
{
    static const struct engine_launch callbacks = {on_begin, on_end};
    struct launches *launches = mem_zalloc(sizeof(*launches));
    *launches = (struct launches){.room = *room, .settings = settings, .hosts = hosts, .sweep.fire = on_sweep};
    engine_connect_launch(room->engine, &callbacks, launches);
    const struct core *core = engine_core(room->engine);
    const struct core_job *state;
    for (uint64_t cursor = 0; (state = core_next_job(core, &cursor));)
        if (state->state == JOB_RUNNING)
            restore(launches, engine_job(room->engine, state->id), state);
    return launches;
}

void launches_destroy(struct launches *launches)
{
    if (!launches)
        return;
    size_t cursor = 0;
    for (struct launch *l; (l = map_next(&launches->by_job, &cursor));) {
        l->next_dead = launches->dead;
        launches->dead = l;
    }
    sweep(launches);
    map_fini(&launches->by_job);
    free(launches);
}
