/* world.c - time, links, and the shell's part: actions become messages, messages become events. */
#include "tests/sim/world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_LAUNCHED_MS = 2000 };

/* ---- chance ---- */

uint32_t world_random(struct world *world, uint32_t n)
{
    uint64_t z = world->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(((z ^ (z >> 31)) >> 32) % n);
}

bool world_chance(struct world *world, int per_mille)
{
    return per_mille > 0 && (int)world_random(world, 1000) < per_mille;
}

/* ---- errors and the trace ---- */

void world_fail(struct world *world, const char *format, ...)
{
    va_list arguments;

    if (world->error[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(world->error, sizeof(world->error), format, arguments);
    va_end(arguments);
}

bool world_failed(const struct world *world)
{
    return world->error[0] != '\0';
}

static void trace(struct world *world, uint64_t value)
{
    for (int i = 0; i < 8; i++, value >>= 8)
        world->hash = (world->hash ^ (value & 0xff)) * 0x100000001b3u;
}

static void trace_event(struct world *world, const struct event *event)
{
    trace(world, (uint64_t)event->type);
    trace(world, (uint64_t)event->now_ms);
    trace(world, event->job);
    trace(world, (uint64_t)event->host);
}

static void trace_action(struct world *world, const struct action *action)
{
    trace(world, (uint64_t)action->type << 32 | (uint64_t)action->answer);
    trace(world, action->job);
    trace(world, (uint64_t)action->host);
    trace(world, action->generation ^ (uint64_t)action->at_ms);
    for (int i = 0; i < action->nentries; i++) {
        trace(world, action->entries[i].job);
        trace(world, (uint64_t)action->entries[i].level * 2 + action->entries[i].lowest);
    }
    for (int i = 0; i < action->ncpus; i++)
        trace(world, (uint64_t)action->cpus[i]);
}

/* ---- messages ---- */

static bool sooner(const struct message *a, const struct message *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->sequence < b->sequence;
}

void world_post(struct world *world, struct message *message, int64_t at_ms)
{
    int at;

    if (world->nheap == world->heap_capacity) {
        world->heap_capacity = world->heap_capacity == 0 ? 256 : 2 * world->heap_capacity;
        world->heap = realloc(world->heap, (size_t)world->heap_capacity * sizeof(*world->heap));
        if (world->heap == NULL)
            abort();
    }
    message->at_ms = at_ms;
    message->sequence = world->sequence++;
    for (at = world->nheap++; at > 0 && sooner(message, &world->heap[(at - 1) / 2]); at = (at - 1) / 2)
        world->heap[at] = world->heap[(at - 1) / 2];
    world->heap[at] = *message;
}

static struct message take_message(struct world *world)
{
    struct message first = world->heap[0], last = world->heap[--world->nheap];
    int at = 0, child;

    for (; (child = 2 * at + 1) < world->nheap; at = child) {
        if (child + 1 < world->nheap && sooner(&world->heap[child + 1], &world->heap[child]))
            child++;
        if (!sooner(&world->heap[child], &last))
            break;
        world->heap[at] = world->heap[child];
    }
    world->heap[at] = last;
    return first;
}

static struct sim_order *copy_order(const struct sim_order *order)
{
    struct sim_order *copy = malloc(sizeof(*copy));

    if (copy == NULL)
        abort();
    copy->generation = order->generation;
    copy->n = order->n;
    memcpy(copy->entries, order->entries, (size_t)order->n * sizeof(order->entries[0]));
    return copy;
}

static int64_t delay(struct world *world)
{
    int64_t late = world_chance(world, world->faults.late) ? (int64_t)world_random(world, 8000) : 0;

    return 1 + late + (int64_t)world_random(world, (uint32_t)world->faults.delay_ms);
}

void world_send(struct world *world, struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct message twin = *message;
    bool stored = message->kind == TO_HOST_OPEN || message->kind == TO_HOST_TAKEN; /* what they say must be on disk */
    int64_t from_ms = stored && world->commit_ms > world->now_ms ? world->commit_ms : world->now_ms;

    message->epoch = twin.epoch = message->kind <= TO_HOST_CONTACT ? host->ear : host->epoch;
    if (!host->connected || world_chance(world, world->faults.lost)) {
        world->coverage->lost += host->connected;
        free(message->order);
        return;
    }
    if (world_chance(world, world->faults.doubled)) {
        world->coverage->doubled++;
        if (message->order != NULL)
            twin.order = copy_order(message->order);
        world_post(world, &twin, from_ms + delay(world));
    }
    world_post(world, message, from_ms + delay(world));
}

/* ---- the shell ---- */

static void send_order(struct world *world, const struct action *action)
{
    struct sim_order order = {.generation = action->generation, .n = action->nentries};
    struct message message = {.kind = TO_HOST_ORDER, .host = action->host};

    if (order.n > SIM_ENTRIES) {
        world_fail(world, "an order of %d entries", order.n);
        return;
    }
    for (int i = 0; i < order.n; i++) {
        const struct order_entry *from = &action->entries[i];
        order.entries[i] = (struct sim_entry){
            .job = from->job, .attempt = from->attempt, .level = from->level, .lowest = from->lowest};
        for (int k = 0; k < from->ncpus; k++)
            order.entries[i].cpus |= 1u << from->cpus[k];
    }
    message.order = copy_order(&order);
    world_send(world, &message);
}

static void *copy_of(const void *from, size_t size)
{
    void *copy = from != NULL ? malloc(size + 1) : NULL;

    if (from != NULL && copy == NULL)
        abort();
    return from != NULL ? memcpy(copy, from, size) : NULL;
}

static void free_row(struct sim_row *row)
{
    if (row == NULL)
        return;
    free((void *)(uintptr_t)row->job.processors);
    free((void *)(uintptr_t)row->job.exited);
    free((void *)(uintptr_t)row->job.hosts);
    free((void *)(uintptr_t)row->job.lost);
    free(row);
}

/* One writer: rows are on disk in the order in which they were put. */
static void put(struct world *world, struct message *message)
{
    int64_t done_ms = world->now_ms;

    if (world->faults.disk_ms > 0)
        done_ms += (int64_t)world_random(world, (uint32_t)world->faults.disk_ms);
    if (done_ms > world->commit_ms)
        world->commit_ms = done_ms;
    world_post(world, message, world->commit_ms);
}

static void persist(struct world *world, uint64_t id)
{
    const struct core_job *job = core_job(world->core, id);
    struct message message = {.kind = SHELL_COMMITTED, .host = -1, .row = calloc(1, sizeof(struct sim_row))};

    if (message.row == NULL || job == NULL)
        abort();
    message.row->job = *job;
    message.row->job.text = NULL;
    message.row->job.processors = copy_of(job->processors, job->nprocs * sizeof(*job->processors));
    message.row->job.exited = copy_of(job->exited, ((job->each ? job->nprocs : 1) + 7) / 8);
    message.row->job.hosts = copy_of(job->hosts, (size_t)job->nhosts * sizeof(int));
    message.row->job.lost = copy_of(job->lost, (size_t)job->nlost * sizeof(int));
    put(world, &message);
}

static void persist_host(struct world *world, int host)
{
    struct message message = {.kind = SHELL_COMMITTED, .host = host, .host_row = core_host(world->core, host)->row};

    put(world, &message);
}

static void persist_setting(struct world *world, enum core_setting setting)
{
    struct message message = {.kind = SHELL_COMMITTED, .host = -1, .setting = setting};

    message.value = core_setting_stored(world->core, setting);
    put(world, &message);
}

static void commit(struct world *world, struct message *message)
{
    uint64_t id;

    if (message->row == NULL && message->host < 0) {
        world->settings[message->setting] = message->value;
        return;
    }
    if (message->row == NULL) {
        world->host_rows[message->host] = message->host_row;
        return;
    }
    id = message->row->job.id;
    if (id >= SIM_IDS) {
        world_fail(world, "too many jobs");
        return;
    }
    judge_committed(world, &message->row->job);
    free_row(world->rows[id]);
    world->rows[id] = NULL;
    if (world->ended[id])
        return;
    world->rows[id] = message->row;
    message->row = NULL;
}

static void act(struct world *world, const struct action *action)
{
    struct message message = {.host = action->host,
                              .job = action->job,
                              .attempt = action->attempt,
                              .generation = action->generation,
                              .rank = action->rank,
                              .lease_ms = action->lease_ms};

    switch (action->type) {
    case ACTION_ANSWER:
        world->answer = action->answer;
        world->answer_job = action->job;
        world->coverage->answers[action->answer]++;
        break;
    case ACTION_PERSIST:
        persist(world, action->job);
        break;
    case ACTION_PERSIST_HOST:
        persist_host(world, action->host);
        break;
    case ACTION_PERSIST_SETTING:
        persist_setting(world, action->setting);
        break;
    case ACTION_ORDER:
        send_order(world, action);
        break;
    case ACTION_OPEN:
        message.kind = TO_HOST_OPEN;
        world_send(world, &message);
        break;
    case ACTION_LAUNCH:
        message.kind = SHELL_START;
        if (!world_chance(world, world->faults.never_launched))
            world_post(world, &message,
                       (world->commit_ms > world->now_ms ? world->commit_ms : world->now_ms) + delay(world));
        break;
    case ACTION_END:
        message.kind = TO_HOST_END;
        world_send(world, &message);
        break;
    case ACTION_TAKEN:
        message.kind = TO_HOST_TAKEN;
        world_send(world, &message);
        break;
    case ACTION_TIMER:
        world->timer_ms = action->at_ms;
        message.kind = SHELL_TICK;
        world_post(world, &message, action->at_ms);
        break;
    case ACTION_TYPE_COUNT:
        world_fail(world, "no such action");
        break;
    }
}

static void count_event(struct world *world, const struct event *event)
{
    const struct seen_job *seen = judge_find(world, event->job);

    world->coverage->steps++;
    world->coverage->events[event->type]++;
    if (event->job != 0)
        world->coverage->pairs[event->type][seen != NULL ? (int)seen->state : SIM_STATES - 1]++;
}

void world_step(struct world *world, struct event *event)
{
    char text[400];
    int result;

    if (world_failed(world))
        return;
    event->now_ms = world->now_ms;
    if (event->type <= EVENT_UNDRAIN)
        event->request = ++world->requests;
    count_event(world, event);
    trace_event(world, event);
    if (world->on_event != NULL)
        world->on_event(world, event);
    judge_before(world, event);
    result = core_step(world->core, event, &world->actions);
    if (result != 0)
        world_fail(world, "core_step() returned %d", result);
    else if (core_check(world->core, text, sizeof(text)) != 0)
        world_fail(world, "%s", text);
    for (size_t i = 0; i < world->actions.count && !world_failed(world); i++) {
        const struct action *action = &world->actions.items[i];
        world->coverage->actions[action->type]++;
        trace_action(world, action);
        if (world->on_action != NULL)
            world->on_action(world, action);
        judge_action(world, action);
        act(world, action);
    }
    if (!world_failed(world))
        judge_after(world, event);
    actions_clear(&world->actions);
}

/* ---- deliveries ---- */

static void start_processes(struct world *world, const struct message *message)
{
    const struct core_job *job = core_job(world->core, message->job);
    struct message launched = *message;
    struct event failed = {.type = EVENT_LAUNCH_FAILED, .job = message->job, .attempt = message->attempt, .host = -1};

    if (job == NULL || job->attempt != message->attempt || job->state != JOB_STARTING)
        return;
    if (!world_chance(world, world->faults.launch_fails) && model_start(world, job)) {
        launched.kind = SHELL_LAUNCHED;
        world_post(world, &launched,
                   world->now_ms + delay(world) +
                       (world_chance(world, world->faults.late_launched) ? LATE_LAUNCHED_MS : 0));
        return;
    }
    failed.u.failed.reason = REASON_START_FAILED;
    failed.u.failed.text = "no such command";
    world_step(world, &failed);
}

static void step_report(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_REPORT, .host = message->host};

    event.u.report = (struct core_report){.begin_ms = message->begin_ms,
                                          .end_ms = message->end_ms,
                                          .busy = message->busy,
                                          .jobs = message->jobs,
                                          .ncpus = message->ncpus};
    world_step(world, &event);
}

static void step_message(struct world *world, const struct message *message, enum event_type type)
{
    struct event event = {.type = type, .job = message->job, .attempt = message->attempt, .host = message->host};

    if (type == EVENT_ORDERED)
        event.u.generation = message->generation;
    if (type == EVENT_OPEN_FAILED) {
        event.u.failed.reason = REASON_START_FAILED;
        event.u.failed.text = "no group";
    }
    if (type == EVENT_EXITED) {
        event.u.exited.rank = message->rank;
        event.u.exited.exit_status = message->status;
        event.u.exited.signal = message->signal;
    }
    world_step(world, &event);
}

static void give_up(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_HOST_DOWN, .host = message->host};

    event.u.down.silence_ms = world->now_ms - world->hosts[message->host].heard_ms;
    if (!world->hosts[message->host].connected && world->hosts[message->host].epoch == message->epoch)
        world_step(world, &event);
}

static void heard_again(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_HOST_HEARD, .host = message->host};

    if (world->hosts[message->host].connected && world->hosts[message->host].epoch == message->epoch)
        world_step(world, &event);
}

static void lost(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_ABORT, .job = message->job, .attempt = message->attempt, .host = message->host};

    event.u.failed.reason = REASON_LOST;
    event.u.failed.text = "its lease ran out";
    world_step(world, &event);
}

/* The answer goes to a host that is up only, after it is noted that the host was heard. */
static void answer_contact(struct world *world, const struct message *message)
{
    struct message answer = *message;

    answer.kind = TO_HOST_CONTACT;
    if (core_host_up(core_host(world->core, message->host)))
        world_send(world, &answer);
}

static void idle_report(struct world *world, struct message *message)
{
    double nothing[SIM_CPUS] = {0};

    world_report(world, message->host, nothing, nothing, 2000);
    world_post(world, message, world->now_ms + 2000);
}

static void deliver(struct world *world, struct message *message)
{
    struct sim_host *host = message->host >= 0 ? &world->hosts[message->host] : NULL;

    if (message->kind <= TO_HOST_CONTACT && (!host->powered || host->ear != message->epoch))
        return;
    if (message->kind > TO_HOST_CONTACT && message->kind <= TO_CORE_REPORT) {
        if (!host->connected || host->epoch != message->epoch)
            return;
        host->heard_ms = world->now_ms;
    }
    switch (message->kind) {
    case TO_HOST_ORDER:
    case TO_HOST_OPEN:
    case TO_HOST_END:
    case TO_HOST_TAKEN:
    case TO_HOST_CONTACT:
    case HOST_PROCESS_ENDS:
    case HOST_EXIT_AGAIN:
    case HOST_GROUP_GONE:
    case HOST_CONTACT:
    case HOST_LEASE:
        model_deliver(world, message);
        break;
    case TO_CORE_LOST:
        lost(world, message);
        break;
    case TO_CORE_CONTACT:
        answer_contact(world, message);
        break;
    case TO_CORE_ORDERED:
        step_message(world, message, EVENT_ORDERED);
        break;
    case TO_CORE_OPENED:
        step_message(world, message, EVENT_OPENED);
        break;
    case TO_CORE_OPEN_FAILED:
        step_message(world, message, EVENT_OPEN_FAILED);
        break;
    case TO_CORE_EXITED:
        step_message(world, message, EVENT_EXITED);
        break;
    case TO_CORE_EMPTY:
        step_message(world, message, EVENT_EMPTY);
        break;
    case TO_CORE_REPORT:
        step_report(world, message);
        break;
    case SHELL_START:
        start_processes(world, message);
        break;
    case SHELL_LAUNCHED:
        step_message(world, message, EVENT_LAUNCHED);
        break;
    case SHELL_TICK:
        if (world->timer_ms == message->at_ms) {
            world->timer_ms = -1;
            step_message(world, message, EVENT_TICK);
        }
        break;
    case SHELL_GIVE_UP:
        give_up(world, message);
        break;
    case SHELL_HEARD:
        heard_again(world, message);
        break;
    case SHELL_COMMITTED:
        commit(world, message);
        break;
    case HOST_IDLE_REPORT:
        idle_report(world, message);
        break;
    }
}

void world_run_until(struct world *world, int64_t at_ms)
{
    while (world->nheap > 0 && world->heap[0].at_ms <= at_ms && !world_failed(world)) {
        struct message message = take_message(world);
        if (message.at_ms > world->now_ms)
            world->now_ms = message.at_ms;
        deliver(world, &message);
        free(message.order);
        free_row(message.row);
    }
    if (at_ms > world->now_ms)
        world->now_ms = at_ms;
}

/* ---- what happens to hosts ---- */

void world_connect(struct world *world, int index)
{
    struct sim_host *host = &world->hosts[index];
    struct core_holding holdings[SIM_GROUPS];
    struct event event = {.type = EVENT_HOST_UP, .host = index};
    struct message contact = {.kind = TO_CORE_CONTACT, .host = index};

    if (!host->powered)
        host->boot++;
    host->powered = true;
    host->connected = true;
    host->heard_ms = world->now_ms;
    host->nopens = 0; /* what came over another link is not obeyed any more */
    host->ear = ++host->epoch;
    for (int i = 0; i < host->ngroups; i++)
        holdings[i] = (struct core_holding){.job = host->groups[i].job, .attempt = host->groups[i].attempt};
    event.u.up.cpus = host->cpus;
    event.u.up.ncpus = host->ncpus;
    event.u.up.generation = host->order.generation;
    event.u.up.holdings = holdings;
    event.u.up.nholdings = host->ngroups;
    event.u.up.rebooted = host->known_boot != 0 && host->known_boot != host->boot;
    event.u.up.closed = host->misfit;
    event.u.up.no_lease = host->old;
    world->coverage->reboots += event.u.up.rebooted;
    host->known_boot = host->boot;
    world_step(world, &event);
    contact.said_ms = world->now_ms;
    world_send(world, &contact);
}

void world_cut(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = SHELL_GIVE_UP, .host = index};
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};
    bool noticed = host->connected && !world_chance(world, 300); /* else it is back before anybody sees */

    host->connected = false;
    host->nopens = 0;
    message.epoch = host->ear = ++host->epoch;
    if (noticed || give_up_after_ms >= 0)
        world_step(world, &silent);
    if (give_up_after_ms >= 0)
        world_post(world, &message, world->now_ms + give_up_after_ms);
}

void world_cut_half(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = SHELL_GIVE_UP, .host = index};
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};

    host->connected = false; /* its ear stays */
    message.epoch = ++host->epoch;
    world->coverage->half_open++;
    world_step(world, &silent);
    world_post(world, &message, world->now_ms + give_up_after_ms);
}

void world_suspect(struct world *world, int index, int64_t heard_after_ms)
{
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};
    struct message heard = {.kind = SHELL_HEARD, .host = index, .epoch = world->hosts[index].epoch};

    world_step(world, &silent);
    world_post(world, &heard, world->now_ms + heard_after_ms);
}

/* Groups run on under their supervisors; what it had not yet done is forgotten. */
void world_restart_rsd(struct world *world, int index)
{
    world_cut(world, index, -1);
    world->hosts[index].nended = 0;
    world->coverage->rsd_restarts++;
    world_connect(world, index);
}

void world_power_off(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];

    world_cut(world, index, give_up_after_ms);
    host->powered = false;
    host->ngroups = host->nended = 0;
    host->contact_ms = INT32_MIN; /* never */
    memset(&host->order, 0, sizeof(host->order));
}

void world_report(struct world *world, int index, const double *busy, const double *jobs, int64_t interval_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = TO_CORE_REPORT, .host = index, .ncpus = host->ncpus};

    message.begin_ms = world->now_ms - interval_ms;
    message.end_ms = world->now_ms;
    for (int i = 0; i < host->ncpus; i++) {
        message.busy[i] = busy[i];
        message.jobs[i] = jobs[i];
    }
    world_send(world, &message);
}

void world_start_idle_reports(struct world *world)
{
    for (int h = 0; h < world->nhosts; h++) {
        struct message message = {.kind = HOST_IDLE_REPORT, .host = h};
        world_post(world, &message, world->now_ms + 1 + h);
    }
}

void world_end_process(struct world *world, uint64_t job, uint32_t rank, int status, int signal)
{
    const struct core_job *info = core_job(world->core, job);
    struct message message = {.kind = HOST_PROCESS_ENDS, .job = job, .rank = rank, .status = status, .signal = signal};

    if (info == NULL || info->processors == NULL || rank >= info->nprocs)
        return;
    message.attempt = info->attempt;
    message.host = info->processors[rank].host;
    world_post(world, &message, world->now_ms);
}

/* ---- the core ends and begins again from what was persisted ---- */

static int by_allocation(const void *a, const void *b)
{
    const struct core_job *const *x = a, *const *y = b;

    return ((*x)->allocation > (*y)->allocation) - ((*x)->allocation < (*y)->allocation);
}

static struct core *restored_core(struct world *world)
{
    struct core *core = core_create(&world->configured);
    const struct core_job *jobs[SEEN_JOBS] = {NULL};
    int n = 0;

    for (int i = 0; i < SETTING_COUNT && core != NULL; i++)
        if (core_restore_setting(core, (enum core_setting)i, world->settings[i]) != 0)
            world_fail(world, "restart: core_restore_setting() failed");
    for (int h = 0; h < world->nhosts && core != NULL; h++)
        if (core_add_host(core, world->hosts[h].name) != h)
            world_fail(world, "restart: core_add_host() failed");
        else if (core_restore_host(core, h, &world->host_rows[h], world->now_ms) != 0)
            world_fail(world, "restart: core_restore_host() failed");
    for (int id = 0; id < SIM_IDS && n < SEEN_JOBS; id++)
        if (world->rows[id] != NULL)
            jobs[n++] = &world->rows[id]->job;
    if (n > 1)
        qsort(jobs, (size_t)n, sizeof(jobs[0]), by_allocation);
    for (int i = 0; i < n; i++)
        if (core_restore_job(core, jobs[i], world->now_ms) != 0)
            world_fail(world, "restart: job %llu is not restored", (unsigned long long)jobs[i]->id);
    if (core != NULL)
        core_set_next(core, core_next_id(world->core), 0);
    return core;
}

/* What was only in its memory is gone: rows not yet on disk, what waited for them, timers. */
static void forget_shell(struct world *world)
{
    struct message *old = world->heap;
    int n = world->nheap;

    world->heap = NULL;
    world->nheap = world->heap_capacity = 0;
    for (int i = 0; i < n; i++) {
        if (old[i].kind < SHELL_START || old[i].kind > SHELL_COMMITTED) {
            world_post(world, &old[i], old[i].at_ms);
            continue;
        }
        world->coverage->undone += old[i].kind == SHELL_COMMITTED;
        free_row(old[i].row);
    }
    free(old);
    world->commit_ms = world->now_ms;
}

void world_restart_core(struct world *world)
{
    struct core *core;
    struct event tick = {.type = EVENT_TICK, .host = -1};

    forget_shell(world);
    core = restored_core(world);
    if (core == NULL)
        abort();
    core_destroy(world->core);
    world->core = core;
    world->timer_ms = -1;
    world->coverage->restarts++;
    judge_restart(world);
    world_step(world, &tick);
    for (int h = 0; h < world->nhosts; h++) {
        world->hosts[h].heard_ms = world->now_ms;
        if (world_chance(world, 500))
            world->hosts[h].known_boot = 0;
        world_cut(world, h, 1000 + (int64_t)world_random(world, 4000));
    }
}

/* ---- beginning and end ---- */

int world_init(struct world *world, const struct core_options *options, uint64_t seed, struct sim_coverage *coverage)
{
    memset(world, 0, sizeof(*world));
    world->options = world->configured = *options;
    for (int i = 0; i < SETTING_COUNT; i++)
        world->settings[i] = SETTING_UNSET;
    world->random = seed;
    world->coverage = coverage;
    world->faults.delay_ms = 1;
    world->timer_ms = world->restarted_ms = -1;
    world->hash = 0xcbf29ce484222325u;
    world->core = core_create(options);
    actions_init(&world->actions);
    return world->core != NULL ? 0 : -1;
}

void world_add_host(struct world *world, const char *name, int ncpus, int first_cpu)
{
    struct sim_host *host = &world->hosts[world->nhosts];

    assert(world->nhosts < SIM_HOSTS && ncpus <= SIM_CPUS && first_cpu + ncpus <= 32);
    snprintf(host->name, sizeof(host->name), "%s", name);
    host->ncpus = ncpus;
    for (int i = 0; i < ncpus; i++)
        host->cpus[i] = first_cpu + i;
    if (core_add_host(world->core, name) != world->nhosts)
        world_fail(world, "core_add_host(%s) failed", name);
    model_init(world, world->nhosts++);
}

void world_fini(struct world *world)
{
    for (int i = 0; i < world->nheap; i++) {
        free(world->heap[i].order);
        free_row(world->heap[i].row);
    }
    for (int id = 0; id < SIM_IDS; id++)
        free_row(world->rows[id]);
    free(world->heap);
    actions_fini(&world->actions);
    core_destroy(world->core);
}
