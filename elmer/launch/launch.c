/* launch.c - a job's processes, from the moment when all its hosts have opened.
 *
 * Plain: COMMAND (start sent: one process on the first host, or one on each processor) -> all started -> LAUNCHED,
 * EVENT_LAUNCHED -> their exits are handed to the core. PVM: MASTER (master pvmd on the first host; its first line is
 * its socket) -> AGENT (started) -> SLAVES (the agent asks for a daemon on each of the other hosts: started there, the
 * first line is the answer) -> pvm_ready -> COMMAND -> LAUNCHED -> the last exit: FINISHING (the agent is told to drain
 * the tasks' output) -> agent and master have exited, or 2 s -> the core gets that exit. Failures: what cannot be
 * started ends the job with EVENT_LAUNCH_FAILED; an agent or a daemon that exits on the way, a job whose supervisor is
 * lost, with EVENT_ABORT; a daemon that dies by a signal also when the command has followed it already. One that ends
 * by itself while the command runs may have been halted by it, as programs do as their last act (pvm_halt): HALTED, and
 * only if the command has not ended within HALT_MS it is a failure; if it has, FINISHING gives the death of a daemon
 * VERDICT_MS to be told, because its sockets are closed, and noticed, before. Time: start_timeout of the core bounds
 * everything before LAUNCHED, FINISH_MS the finish. A host that links again is sent again what it has not confirmed;
 * starts are idempotent by (job, attempt, process).
 *
 * Numbers of processes: ranks 0..nprocs-1, then the master, the agent, and for the i-th host of the job (i > 0) its
 * pvmd. Invariants: a launch belongs to one attempt; OVER begins nothing and sends nothing but acknowledgements. A
 * launch that has been ended is freed in a later turn of the loop, because the event that ended it may have come from
 * within its own functions. */
#include "config.h"

#include "elmer/launch/internal.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/launch/environment.h"
#include "elmer/launch/paths.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"

enum { FINISH_MS = 2000, HALT_MS = 1000, VERDICT_MS = 200 };

static const struct moves_row states[LAUNCH_STATE_COUNT] = {
    [LAUNCH_MASTER] = {"master", MOVE_TO(LAUNCH_AGENT) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_AGENT] = {"agent", MOVE_TO(LAUNCH_SLAVES) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_SLAVES] = {"slaves", MOVE_TO(LAUNCH_COMMAND) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_COMMAND] = {"command", MOVE_TO(LAUNCH_LAUNCHED) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_LAUNCHED] = {"launched", MOVE_TO(LAUNCH_FINISHING) | MOVE_TO(LAUNCH_HALTED) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_HALTED] = {"halted", MOVE_TO(LAUNCH_FINISHING) | MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_FINISHING] = {"finishing", MOVE_TO(LAUNCH_OVER)},
    [LAUNCH_OVER] = {"over", 0},
};

void launch_move(struct launch *l, enum launch_state state)
{
    MOVES_CHECK("launch", states, l->state, state);
    log_debug("job=%" PRIu64 " launch %s -> %s", l->job->id, states[l->state].name, states[state].name);
    l->state = state;
}

/* The job's host of that index, -1: not one of its hosts. */
int launch_place(const struct launch *l, int host)
{
    for (int i = 0; i < l->nhosts; i++)
        if (l->hosts[i] == host)
            return i;
    return -1;
}

const char *launch_host(const struct launch *l, int place)
{
    return engine_host_name(l->launches->room.engine, l->hosts[place]);
}

/* Only the host where a process is may speak about it. */
static bool is_at(const struct launch *l, uint64_t process, int host)
{
    if (process < l->nprocs)
        return process < l->ranks && l->processors[process].host == host;
    if (process == pvm_master(l) || process == pvm_agent(l))
        return host == l->hosts[0];
    int place = launch_place(l, host);
    return place > 0 && process == pvm_slave(l, place);
}

/* ---- failing ---- */

void launch_fail(struct launch *l, enum event_type type, enum reason reason, const char *format, ...)
{
    char text[1000];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    struct event event = {.type = type, .job = l->job->id, .attempt = l->attempt, .host = -1};
    event.u.failed.reason = reason;
    event.u.failed.text = text;
    log_notice("job=%" PRIu64 " cannot go on: %s", l->job->id, text);
    if (l->state != LAUNCH_OVER)
        launch_move(l, LAUNCH_OVER);
    engine_event(l->launches->room.engine, &event);
}

/* ---- starting processes ---- */

static void cpus_of(const struct launch *l, int place, struct arena *memory, struct wire_uints *cpus)
{
    cpus->items = arena_array(memory, l->nprocs, sizeof(uint64_t));
    for (uint32_t i = 0; i < l->nprocs; i++)
        if (l->processors[i].host == l->hosts[place])
            cpus->items[cpus->count++] = (uint64_t)l->processors[i].cpu;
}

void launch_start(struct launch *l, const struct process *p, struct arena *memory)
{
    const struct wire_submit *submit = job_submit(l->job);
    struct environment_facts facts = {.submit = submit,
                                      .job = l->job->id,
                                      .rank = p->rank,
                                      .ranks = l->names,
                                      .tmpdir = l->tmpdir,
                                      .pvmsock = p->pvmsock};
    struct wire_message message = {.type = WIRE_start};
    struct wire_start *s = &message.u.start;
    s->job = l->job->id;
    s->attempt = l->attempt;
    s->process = p->number;
    s->role = p->role;
    s->argv = p->argv;
    s->environment = environment_build(&facts, memory);
    s->dir = submit->dir;
    s->output = p->output;
    s->errors = p->errors;
    s->capture = p->capture;
    s->umask = submit->umask;
    if (!strcmp(p->role, "command") && submit->each) {
        uint64_t *cpu = arena_alloc(memory, sizeof(*cpu));
        *cpu = (uint64_t)l->processors[p->rank].cpu;
        s->cpus = (struct wire_uints){cpu, 1};
    } else {
        cpus_of(l, p->place, memory, &s->cpus);
    }
    hosts_send(l->launches->hosts, l->hosts[p->place], &message); /* no link: again in launch_host_up() */
}

bool launch_files(struct launch *l, uint32_t rank, struct arena *memory, const char **output, const char **errors)
{
    const struct wire_submit *submit = job_submit(l->job);
    const char *pattern = *submit->output ? submit->output : submit->each ? PATH_DEFAULT_EACH : PATH_DEFAULT;
    *output = path_expand(memory, pattern, l->job->id, l->job->user, submit->name, rank);
    *errors =
        *submit->errors ? path_expand(memory, submit->errors, l->job->id, l->job->user, submit->name, rank) : *output;
    if (*output && *errors)
        return true;
    launch_fail(l, EVENT_LAUNCH_FAILED, REASON_START_FAILED,
                "the name of its output file is too long: give a shorter one with -o and -e");
    return false;
}

static void start_rank(struct launch *l, uint32_t rank)
{
    struct arena memory = {0};
    struct process p = {
        .number = rank, .rank = rank, .role = "command", .argv = job_submit(l->job)->command, .pvmsock = l->pvmsock};
    p.place = launch_place(l, l->processors[rank].host);
    if (launch_files(l, rank, &memory, &p.output, &p.errors))
        launch_start(l, &p, &memory);
    arena_fini(&memory);
}

static void start_commands(struct launch *l, int only_place)
{
    for (uint32_t rank = 0; rank < l->ranks && l->state == LAUNCH_COMMAND; rank++)
        if (!l->started[rank] && (only_place < 0 || l->processors[rank].host == l->hosts[only_place]))
            start_rank(l, rank);
}

/* ---- the normal way ---- */

static void launched(struct launch *l)
{
    struct event event = {.type = EVENT_LAUNCHED, .job = l->job->id, .attempt = l->attempt, .host = -1};
    launch_move(l, LAUNCH_LAUNCHED);
    engine_event(l->launches->room.engine, &event);
}

static void command(struct launch *l)
{
    launch_move(l, LAUNCH_COMMAND);
    start_commands(l, -1);
}

static void on_started_rank(struct launch *l, uint32_t rank)
{
    if (l->started[rank])
        return;
    l->started[rank] = true;
    if (++l->nstarted == l->ranks && l->state == LAUNCH_COMMAND)
        launched(l);
}

static void on_started(struct launch *l, const struct wire_started *started)
{
    if (started->process < l->ranks)
        on_started_rank(l, (uint32_t)started->process);
    else if (started->process == pvm_agent(l) && l->state == LAUNCH_AGENT)
        launch_move(l, LAUNCH_SLAVES);
}

static void on_start_failed(struct launch *l, int host, const struct wire_start_failed *failed)
{
    int place = launch_place(l, host);
    for (int i = 1; i < l->nhosts && l->state == LAUNCH_SLAVES; i++)
        if (failed->process == pvm_slave(l, i) && l->slaves[i].asked && !l->slaves[i].answered) {
            l->slaves[i].answered = true;
            launch_fail(l, EVENT_LAUNCH_FAILED, REASON_PVM_FAILED, "%s: its PVM daemon could not be started: %s",
                        launch_host(l, i), failed->text);
            return;
        }
    if (failed->process < l->ranks && l->state == LAUNCH_COMMAND)
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_START_FAILED, "%s: %s", launch_host(l, place), failed->text);
    else if ((failed->process == pvm_master(l) && l->state == LAUNCH_MASTER) ||
             (failed->process == pvm_agent(l) && l->state == LAUNCH_AGENT))
        launch_fail(l, EVENT_LAUNCH_FAILED, REASON_PVM_FAILED, "%s: its virtual machine could not be started: %s",
                    launch_host(l, place), failed->text);
}

static void on_line(struct launch *l, const struct wire_line *line)
{
    if (line->process == pvm_master(l) && l->state == LAUNCH_MASTER) {
        if (*line->line != '/') {
            char text[300];
            launch_fail(l, EVENT_LAUNCH_FAILED, REASON_PVM_FAILED,
                        "%s: its PVM daemon said \"%s\" instead of the name of its socket", launch_host(l, 0),
                        str_printable(text, sizeof(text), line->line, strlen(line->line)));
            return;
        }
        l->pvmsock = arena_strdup(&l->memory, line->line);
        launch_move(l, LAUNCH_AGENT);
        pvm_start_agent(l);
        return;
    }
    for (int i = 1; i < l->nhosts; i++)
        if (line->process == pvm_slave(l, i) && l->slaves[i].asked && !l->slaves[i].answered) {
            l->slaves[i].answered = true;
            pvm_spawned(l, l->slaves[i].request, line->line);
        }
}

/* ---- exits ---- */

static void taken(struct launches *launches, int host, const struct wire_exited *exited)
{
    struct wire_message message = {
        .type = WIRE_taken, .u.taken = {.job = exited->job, .attempt = exited->attempt, .process = exited->process}};
    hosts_send(launches->hosts, host, &message);
}

static void finish(struct launch *l)
{
    struct event event = l->last_exit;
    deadline_clear(l->launches->room.deadlines, &l->deadline);
    launch_move(l, LAUNCH_OVER);
    engine_event(l->launches->room.engine, &event);
}

static void on_deadline(struct deadline *deadline)
{
    struct launch *l = CONTAINER_OF(deadline, struct launch, deadline);
    if (l->state == LAUNCH_HALTED) {
        launch_fail(l, EVENT_ABORT, REASON_PVM_FAILED, "%s, and without it the job's virtual machine is gone",
                    l->halted);
        return;
    }
    if (!l->agent_gone)
        log_info("job=%" PRIu64 " its agent has not ended in time", l->job->id);
    finish(l);
}

static void begin_finish(struct launch *l, const struct event *last)
{
    struct wire_message message = {.type = WIRE_pvm_finish, .u.pvm_finish = {.job = l->job->id, .attempt = l->attempt}};
    l->last_exit = *last;
    launch_move(l, LAUNCH_FINISHING);
    deadline_set(l->launches->room.deadlines, &l->deadline, engine_now_ms() + FINISH_MS);
    hosts_send(l->launches->hosts, l->hosts[0], &message);
}

/* A helper and then the command have ended: of a daemon's death, which takes longer to be told than its sockets take to
 * be closed? */
static void await_verdict(struct launch *l, const struct event *last)
{
    l->last_exit = *last;
    launch_move(l, LAUNCH_FINISHING);
    deadline_set(l->launches->room.deadlines, &l->deadline, engine_now_ms() + VERDICT_MS);
}

static struct event exit_event(int host, const struct wire_exited *exited)
{
    struct event event = {.type = EVENT_EXITED, .job = exited->job, .attempt = (uint32_t)exited->attempt, .host = host};
    event.u.exited.rank = (uint32_t)exited->process;
    event.u.exited.signal = exited->signal > 0 ? (int)exited->signal : 0;
    event.u.exited.exit_status = event.u.exited.signal ? -1 : (int)exited->exit_status;
    return event;
}

static void on_rank_exited(struct launch *l, int host, const struct wire_exited *exited)
{
    uint32_t rank = (uint32_t)exited->process;
    struct event event = exit_event(host, exited);
    on_started_rank(l, rank); /* the report of its start was lost */
    if (l->state == LAUNCH_FINISHING && l->last_exit.u.exited.rank == rank)
        return; /* said again: it has its turn */
    if (!l->exited[rank]) {
        l->exited[rank] = true;
        l->nexited++;
    }
    bool last = job_submit(l->job)->pvm && l->nexited == l->ranks;
    if (last && l->state == LAUNCH_LAUNCHED)
        begin_finish(l, &event);
    else if (last && l->state == LAUNCH_HALTED && !(l->agent_gone && l->master_gone))
        await_verdict(l, &event);
    else
        engine_event(l->launches->room.engine, &event);
}

static bool stops(int64_t signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static const char *how(const struct wire_exited *exited, char *text, size_t size)
{
    if (stops(exited->signal))
        snprintf(text, size, "was stopped by signal %d", (int)exited->signal);
    else if (exited->signal > 0)
        snprintf(text, size, "ended by signal %d", (int)exited->signal);
    else
        snprintf(text, size, "ended with status %d", (int)exited->exit_status);
    return text;
}

static void on_helper_exited(struct launch *l, int host, const struct wire_exited *exited)
{
    char text[60];
    bool agent = exited->process == pvm_agent(l);
    int place = launch_place(l, host);
    l->agent_gone |= agent;
    l->master_gone |= exited->process == pvm_master(l);
    if (l->state == LAUNCH_FINISHING && (agent || exited->signal <= 0)) {
        if (l->agent_gone && l->master_gone)
            finish(l);
        else if (agent) /* its output is there; how the master ends says whether the command ended of that */
            deadline_set(l->launches->room.deadlines, &l->deadline, engine_now_ms() + VERDICT_MS);
    } else if (l->state == LAUNCH_LAUNCHED && exited->signal <= 0) {
        snprintf(l->halted, sizeof(l->halted), "%s: %s %s", launch_host(l, place),
                 agent ? "the agent of its virtual machine" : "its PVM daemon", how(exited, text, sizeof(text)));
        launch_move(l, LAUNCH_HALTED);
        deadline_set(l->launches->room.deadlines, &l->deadline, engine_now_ms() + HALT_MS);
    } else if (l->state != LAUNCH_OVER && (l->state != LAUNCH_HALTED || exited->signal > 0)) {
        launch_fail(l, EVENT_ABORT, REASON_PVM_FAILED, "%s: %s %s, and without it the job's virtual machine is gone%s",
                    launch_host(l, place), agent ? "the agent of its virtual machine" : "its PVM daemon",
                    how(exited, text, sizeof(text)),
                    l->state == LAUNCH_MASTER ? "; does the host know its own name and address?" : "");
    }
}

/* Of a job that has no launch (any more): only the core can say whether it matters. */
static void on_exited_without(struct launches *launches, int host, const struct wire_exited *exited)
{
    struct event event = exit_event(host, exited);
    if (strcmp(exited->role, "command"))
        taken(launches, host, exited);
    else
        engine_event(launches->room.engine, &event);
}

static void on_exited(struct launch *l, int host, const struct wire_exited *exited)
{
    if (exited->process < l->ranks) {
        on_rank_exited(l, host, exited);
        return;
    }
    taken(l->launches, host, exited);
    on_helper_exited(l, host, exited);
}

static void on_pvm(struct launch *l, int host, struct wire_message *message)
{
    if (host != l->hosts[0] || !job_submit(l->job)->pvm)
        return; /* the agent lives on the first host */
    if (message->type == WIRE_pvm_spawn)
        pvm_spawn(l, &message->u.pvm_spawn);
    else if (message->type == WIRE_pvm_ready && l->state == LAUNCH_SLAVES)
        command(l);
    else if (message->type == WIRE_pvm_failed && l->state != LAUNCH_OVER && l->state != LAUNCH_FINISHING)
        launch_fail(l, l->state < LAUNCH_LAUNCHED ? EVENT_LAUNCH_FAILED : EVENT_ABORT, REASON_PVM_FAILED,
                    "its virtual machine failed: %s", message->u.pvm_failed.reason);
}

/* The host has nothing of the attempt any more: an exit that is still kept goes to the core before that does. After a
 * restart: the END that was sent before the exit was on disk has reached the host. */
static void on_empty(struct launches *launches, const struct wire_empty *empty)
{
    struct launch *l = map_get(&launches->by_job, empty->job);
    if (l && l->attempt == empty->attempt && l->state == LAUNCH_FINISHING)
        finish(l);
}

/* ---- dispatch ---- */

/* Whose message it is; NULL: of no launch that is, or not from where it could come. */
static struct launch *launch_of(struct launches *launches, int host, const struct wire_message *m)
{
    uint64_t id = 0, attempt = 0, process = UINT64_MAX;
#define OF(type)                                                                                                       \
    case WIRE_##type:                                                                                                  \
        id = m->u.type.job;                                                                                            \
        attempt = m->u.type.attempt;                                                                                   \
        break;
#define OF_PROCESS(type)                                                                                               \
    case WIRE_##type:                                                                                                  \
        id = m->u.type.job;                                                                                            \
        attempt = m->u.type.attempt;                                                                                   \
        process = m->u.type.process;                                                                                   \
        break;
    switch ((int)m->type) {
        OF_PROCESS(started)
        OF_PROCESS(start_failed)
        OF_PROCESS(line) OF_PROCESS(exited) OF(pvm_spawn) OF(pvm_ready) OF(pvm_failed) default : break;
    }
    struct launch *l = map_get(&launches->by_job, id);
    if (!l || l->attempt != attempt)
        return NULL;
    return process == UINT64_MAX || is_at(l, process, host) ? l : NULL;
}

void launches_message(struct launches *launches, int host, struct wire_message *message)
{
    struct launch *l = launch_of(launches, host, message);
    if (message->type == WIRE_empty) {
        on_empty(launches, &message->u.empty);
        return;
    }
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
    default:
        on_pvm(l, host, message);
        break;
    }
}

static void send_again(struct launch *l, int place)
{
    switch (l->state) {
    case LAUNCH_MASTER:
        if (place == 0)
            pvm_start_master(l);
        break;
    case LAUNCH_AGENT:
        if (place == 0)
            pvm_start_agent(l);
        break;
    case LAUNCH_SLAVES:
        if (place > 0 && l->slaves[place].asked && !l->slaves[place].answered)
            pvm_start_slave(l, place);
        break;
    case LAUNCH_COMMAND:
        start_commands(l, place);
        break;
    case LAUNCH_LAUNCHED:
    case LAUNCH_HALTED:
    case LAUNCH_FINISHING: /* two seconds: the deadline does it */
    case LAUNCH_OVER:
    case LAUNCH_STATE_COUNT:
        break;
    }
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
    l->ranks = state->each ? state->nprocs : 1;
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
    l->slaves = arena_array(&l->memory, (size_t)l->nhosts, sizeof(*l->slaves));
    l->started = arena_array(&l->memory, l->ranks, sizeof(bool));
    l->exited = arena_array(&l->memory, l->ranks, sizeof(bool));
}

static struct launch *create(struct launches *launches, struct job *job, const struct core_job *state,
                             enum launch_state first)
{
    struct launch *l = mem_zalloc(sizeof(*l));
    *l = (struct launch){
        .launches = launches, .job = job, .attempt = state->attempt, .state = first, .deadline.fire = on_deadline};
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
    if (l->state == LAUNCH_FINISHING)
        finish(l); /* the status is worth having, whatever ends the job now */
    if (l->state != LAUNCH_OVER)
        launch_move(l, LAUNCH_OVER);
    deadline_clear(launches->room.deadlines, &l->deadline);
    map_remove(&launches->by_job, l->job->id);
    l->next_dead = launches->dead;
    launches->dead = l;
    if (!launches->sweep.slot)
        deadline_set(launches->room.deadlines, &launches->sweep, engine_now_ms());
}

/* The job is ending or has ended: nothing more is started, nothing waited for. */
static void on_end(struct job *job, void *data)
{
    struct launches *launches = data;
    struct launch *l = map_get(&launches->by_job, job->id);
    if (l)
        end(l);
}

static void on_begin(struct job *job, void *data)
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
    bool pvm = job_submit(job)->pvm;
    struct launch *l = create(launches, job, state, pvm ? LAUNCH_MASTER : LAUNCH_COMMAND);
    note_exited(l, state);
    if (!pvm)
        start_commands(l, -1);
    else if (pvm_everywhere(l))
        pvm_start_master(l);
}

/* A job that was running when elmer was restarted. */
static void restore(struct launches *launches, struct job *job, const struct core_job *state)
{
    struct launch *l = create(launches, job, state, LAUNCH_LAUNCHED);
    note_exited(l, state);
    memset(l->started, true, l->ranks * sizeof(bool));
    l->nstarted = l->ranks;
}

struct launches *launches_create(const struct room *room, const struct launch_settings *settings, struct hosts *hosts)
{
    static const struct engine_launch callbacks = {on_begin, on_end};
    struct launches *launches = mem_zalloc(sizeof(*launches));
    *launches = (struct launches){.room = *room, .settings = settings, .hosts = hosts, .sweep.fire = on_sweep};
    engine_connect_launch(room->engine, &callbacks, launches);
    struct core *core = engine_core(room->engine);
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
