/* world.c - time, links, and the shell's part: actions become messages, messages become events. */
#include "tests/sim/judge.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        if (!world->heap)
            abort();
    }
    message->at_ms = at_ms;
    message->sequence = world->sequence++;
    for (at = world->nheap++; at > 0 && sooner(message, &world->heap[(at - 1) / 2]); at = (at - 1) / 2)
        world->heap[at] = world->heap[(at - 1) / 2];
    world->heap[at] = *message;
}

struct message world_take(struct world *world)
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

    if (!copy)
        abort();
    copy->generation = order->generation;
    copy->n = order->n;
    memcpy(copy->entries, order->entries, (size_t)order->n * sizeof(order->entries[0]));
    return copy;
}

int64_t world_delay(struct world *world)
{
    int64_t late = world_chance(world, world->faults.late) ? (int64_t)world_random(world, 8000) : 0;

    return 1 + late + (int64_t)world_random(world, (uint32_t)world->faults.delay_ms);
}

void world_send(struct world *world, struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct message twin = *message;
    bool late = world_waits_for_commit(world, message) && world->commit_ms > world->now_ms;
    int64_t from_ms = late ? world->commit_ms : world->now_ms;

    message->epoch = twin.epoch = message->kind <= TO_HOST_CONTACT ? host->ear : host->epoch;
    if (!host->connected || world_chance(world, world->faults.lost)) {
        world->coverage->lost += host->connected;
        free(message->order);
        return;
    }
    if (world_chance(world, world->faults.doubled)) {
        world->coverage->doubled++;
        if (message->order)
            twin.order = copy_order(message->order);
        world_post(world, &twin, from_ms + world_delay(world));
    }
    world_post(world, message, from_ms + world_delay(world));
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
    void *copy = from ? malloc(size + 1) : NULL;

    if (from && !copy)
        abort();
    return from ? memcpy(copy, from, size) : NULL;
}

void world_free_row(struct sim_row *row)
{
    if (!row)
        return;
    free((void *)(uintptr_t)row->job.processors);
    free((void *)(uintptr_t)row->job.exited);
    free((void *)(uintptr_t)row->job.hosts);
    free((void *)(uintptr_t)row->job.lost);
    free((void *)(uintptr_t)row->job.after);
    free(row);
}

/* One writer: rows are on disk in the order in which they were put. */
static void put(struct world *world, struct message *message)
{
    int64_t done_ms = world->now_ms;

    if (world->put_step == world->coverage->steps) /* rows of a step are committed together */
        done_ms = world->commit_ms;
    else if (world->faults.disk_ms > 0)
        done_ms += (int64_t)world_random(world, (uint32_t)world->faults.disk_ms);
    if (done_ms > world->commit_ms)
        world->commit_ms = done_ms;
    world->put_step = world->coverage->steps;
    world_post(world, message, world->commit_ms);
}

static void persist(struct world *world, uint64_t id)
{
    const struct core_job *job = core_job(world->core, id);
    struct message message = {.kind = SHELL_COMMITTED, .host = -1, .row = calloc(1, sizeof(struct sim_row))};

    if (!message.row || !job)
        abort();
    message.row->job = *job;
    message.row->job.text = NULL;
    message.row->job.processors = copy_of(job->processors, job->nprocs * sizeof(*job->processors));
    message.row->job.exited = copy_of(job->exited, ((job->each ? job->nprocs : 1) + 7) / 8);
    message.row->job.hosts = copy_of(job->hosts, (size_t)job->nhosts * sizeof(int));
    message.row->job.lost = copy_of(job->lost, (size_t)job->nlost * sizeof(int));
    message.row->job.after = copy_of(job->after, (size_t)job->nafter * sizeof(*job->after));
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

void world_commit(struct world *world, struct message *message)
{
    uint64_t id;

    if (!message->row && message->host < 0) {
        world->settings[message->setting] = message->value;
        return;
    }
    if (!message->row) {
        world->host_rows[message->host] = message->host_row;
        return;
    }
    id = message->row->job.id;
    if (id >= SIM_IDS) {
        world_fail(world, "too many jobs");
        return;
    }
    judge_committed(world, &message->row->job);
    judge_fate(&world->stored_fates[id], &message->row->job);
    world_free_row(world->rows[id]);
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
                       (world->commit_ms > world->now_ms ? world->commit_ms : world->now_ms) + world_delay(world));
        break;
    case ACTION_END:
        message.kind = TO_HOST_END;
        world_send(world, &message);
        break;
    case ACTION_ACKNOWLEDGE:
        message.kind = TO_HOST_TAKEN;
        world_send(world, &message);
        break;
    case ACTION_HOST_GONE: /* its link stays, which makes it harder */
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
        world->coverage->pairs[event->type][seen ? (int)seen->state : SIM_STATES - 1]++;
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
    if (world->on_event)
        world->on_event(world, event);
    judge_before(world, event);
    result = world_decide(world, event);
    if (result != 0)
        world_fail(world, "core_step() returned %d", result);
    else if (core_check(world->core, text, sizeof(text)) != 0)
        world_fail(world, "%s", text);
    for (size_t i = 0; i < world->actions.count && !world_failed(world); i++) {
        const struct action *action = &world->actions.items[i];
        world->coverage->actions[action->type]++;
        trace_action(world, action);
        if (world->on_action)
            world->on_action(world, action);
        judge_action(world, action);
        act(world, action);
    }
    if (!world_failed(world))
        judge_after(world, event);
    actions_clear(&world->actions);
}

/* ---- the core ends and begins again from what was persisted ---- */

/* Those that wait come last, in the order of ids. */
static int by_allocation(const void *a, const void *b)
{
    const struct core_job *x = *(const struct core_job *const *)a, *y = *(const struct core_job *const *)b;
    uint64_t first = judge_has_cluster(x->state) ? x->allocation : UINT64_MAX;
    uint64_t second = judge_has_cluster(y->state) ? y->allocation : UINT64_MAX;

    return first != second ? (first > second) - (first < second) : (x->id > y->id) - (x->id < y->id);
}

/* One that is none of the cluster keeps its place, as if it had a job. */
static bool restore_host(const struct world *world, struct core *core, int h)
{
    const char *name = world->hosts[h].name;
    const struct core_host_row *row = &world->host_rows[h];

    if (world->hosts[h].listed && core_add_host(core, name) != h)
        return false;
    if (world->hosts[h].listed || row->joined)
        return core_restore_host_row(core, name, row, world->now_ms) == h;
    return core_restore_host_row(core, name, row, world->now_ms) == -ENOENT &&
           core_restore_past_host(core, name, row->drained);
}

static struct core *restored_core(struct world *world)
{
    struct core *core = core_create(&world->configured);
    const struct core_job *jobs[SEEN_JOBS] = {NULL};
    int n = 0;

    for (int i = 0; i < SETTING_COUNT && core; i++)
        if (core_restore_setting(core, (enum core_setting)i, world->settings[i]) != 0)
            world_fail(world, "restart: core_restore_setting() failed");
    for (int h = 0; h < world->nhosts && core; h++)
        if (!restore_host(world, core, h))
            world_fail(world, "restart: host %d is not restored", h);
    for (int id = 0; id < SIM_IDS && n < SEEN_JOBS; id++)
        if (world->rows[id])
            jobs[n++] = world_with_ends(world, &world->rows[id]->job);
    if (n > 1)
        qsort(jobs, (size_t)n, sizeof(jobs[0]), by_allocation);
    for (int i = 0; i < n; i++)
        if (core_restore_job(core, jobs[i], world->now_ms) != 0)
            world_fail(world, "restart: job %llu is not restored", (unsigned long long)jobs[i]->id);
    if (core)
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
        world_free_row(old[i].row);
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
    if (!core)
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
    world->timer_ms = world->gather_from_ms = -1;
    world->hash = 0xcbf29ce484222325u;
    world->core = core_create(options);
    actions_init(&world->actions);
    return world->core ? 0 : -1;
}

void world_fini(struct world *world)
{
    for (int i = 0; i < world->nheap; i++) {
        free(world->heap[i].order);
        world_free_row(world->heap[i].row);
    }
    for (int id = 0; id < SIM_IDS; id++)
        world_free_row(world->rows[id]);
    free(world->heap);
    actions_fini(&world->actions);
    core_destroy(world->core);
}
