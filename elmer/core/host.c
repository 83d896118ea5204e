/* host.c - workstations: up and down, what they hold, what they have confirmed.
 *
 * Each change of a host's list of jobs owes it an order with the next generation. What is not confirmed (the order,
 * OPEN, END) is owed again when the host's turn in core->waiting comes, resend_ms after something was sent to it; since
 * all of that is idempotent, resending a thing that was sent a moment ago does no harm, and one time per host is
 * enough.
 */
#include "elmer/core/internal.h"
#include "elmer/core/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/moves.h"

#define PART(node)    LIST_ITEM(node, struct part, on_host)
#define WAITING(node) LIST_ITEM(node, struct host, in_waiting)

/* ---- hosts ---- */

int core_host_count(const struct core *core)
{
    return core->nhosts;
}

const struct core_host *core_host(const struct core *core, int host)
{
    return host >= 0 && host < core->nhosts ? &core->hosts[host]->info : NULL;
}

void host_destroy(struct host *host)
{
    if (!host)
        return;
    free(host->name);
    free(host->cpus);
    free(host->processors);
    free(host->table);
    free(host->leftovers);
    free(host);
}

/* A host that is cut or silent comes back mostly within a second: who needs it keeps his turn until it is given up. */
uint64_t host_supply(const struct host *host)
{
    if (host->info.drained || host->info.closed || host->info.retired)
        return 0;
    if (core_host_up(&host->info))
        return (uint64_t)host->info.ncpus;
    return host->info.state == CORE_HOST_AWAITED && host->expected_cpus > 0 ? (uint64_t)host->expected_cpus : 0;
}

bool host_usable(const struct host *host)
{
    return host->info.state == CORE_HOST_UP && !host->info.drained && !host->info.closed && !host->info.retired;
}

bool host_allocatable(const struct host *host)
{
    return host_usable(host) && host->info.leftovers == 0;
}

int host_gather(struct core *core, const int *allowed, int nallowed)
{
    int count = 0;

    if (!allowed && core->nview >= 0)
        return core->nview;
    for (int i = 0; i < (allowed ? nallowed : core->nhosts); i++) {
        struct host *host = core->hosts[allowed ? allowed[i] : i];
        if (host_allocatable(host) && host->seen.ncpus > 0)
            core->view[count++] = &host->seen;
    }
    core->nview = allowed ? -1 : count;
    return count;
}

/* ---- its state ---- */

static const struct moves_row states[CORE_HOST_STATE_COUNT] = {
    [CORE_HOST_DOWN] = {"down", MOVE_TO(CORE_HOST_AWAITED) | MOVE_TO(CORE_HOST_UP)},
    [CORE_HOST_AWAITED] = {"awaited", MOVE_TO(CORE_HOST_UP) | MOVE_TO(CORE_HOST_DOWN)},
    [CORE_HOST_UP] = {"up", MOVE_TO(CORE_HOST_UP) | MOVE_TO(CORE_HOST_SILENT) | MOVE_TO(CORE_HOST_DOWN)},
    [CORE_HOST_SILENT] = {"silent", MOVE_TO(CORE_HOST_UP) | MOVE_TO(CORE_HOST_DOWN)},
};

static void move(struct host *host, enum core_host_state state)
{
    MOVES_CHECK("host", states, host->info.state, state);
    host->info.state = state;
}

/* ---- what is counted and stored of it ---- */

/* One that had nothing for new jobs is not waited for. */
static bool delays_allocations(const struct host *host)
{
    return host->info.state == CORE_HOST_AWAITED && !host->info.drained && !host->info.retired &&
           host->expected_cpus != 0;
}

static uint64_t known(const struct host *host)
{
    return host->info.retired ? 0 : (uint64_t)(host->info.known ? host->info.ncpus : host->configured_cpus);
}

static int unknown(const struct host *host)
{
    return !host->info.retired && !host->info.known && host->configured_cpus == 0;
}

void host_take_out(struct core *core, const struct host *host)
{
    core->supply_cpus -= host_supply(host);
    core->nawaited -= delays_allocations(host);
    core->known_cpus -= known(host);
    core->unknown_hosts -= unknown(host);
}

void host_put_in(struct core *core, struct host *host)
{
    struct core_host_row row = {.drained = host->info.drained,
                                .up = host->info.state != CORE_HOST_DOWN,
                                .joined = host->info.joined && !host->info.retired};

    topology_changed_supply(core);
    core->supply_cpus += host_supply(host);
    core->nawaited += delays_allocations(host);
    core->known_cpus += known(host);
    core->unknown_hosts += unknown(host);
    core->nview = -1;
    if (row.up && !host->info.closed)
        row.ncpus = core_host_up(&host->info) ? host->info.ncpus : host->expected_cpus > 0 ? host->expected_cpus : 0;
    if (row.up == host->info.row.up && row.drained == host->info.row.drained && row.joined == host->info.row.joined &&
        row.ncpus == host->info.row.ncpus)
        return;
    host->info.row = row;
    emit_owe_row(core, host);
}

bool host_gathering(const struct core *core)
{
    return core->nawaited > 0 && core->now_ms < core->gather_until_ms;
}

static void await(struct core *core, struct host *host, int expected_cpus)
{
    host_take_out(core, host);
    move(host, CORE_HOST_AWAITED);
    host->expected_cpus = expected_cpus;
    host_put_in(core, host);
    if (core->gather_until_ms == 0)
        core->gather_until_ms = core->now_ms + core->options.gather_ms;
}

void host_await(struct core *core, struct host *host)
{
    if (host->info.state == CORE_HOST_DOWN)
        await(core, host, -1);
}

int core_restore_host(struct core *core, int index, const struct core_host_row *saved, int64_t now_ms)
{
    struct host *host;

    if (index < 0 || index >= core->nhosts || now_ms < core->now_ms || saved->ncpus < 0 || saved->ncpus > CORE_MAX_CPUS)
        return -EINVAL;
    host = core->hosts[index];
    if (host->info.known || host->info.state != CORE_HOST_DOWN)
        return -EINVAL;
    core->now_ms = now_ms;
    host->info.row = *saved;
    host->info.drained = saved->drained; /* nothing of it is counted yet */
    host->info.joined = saved->joined;
    if (saved->up)
        await(core, host, saved->ncpus);
    return 0;
}

/* ---- what is owed ---- */

void host_owe(struct core *core, struct host *host)
{
    if (!node_linked(&host->in_work))
        list_append(&core->work, &host->in_work);
}

void host_owe_order(struct core *core, struct host *host)
{
    host->order = true;
    host_owe(core, host);
}

/* Of a silent host it is only noted, for the time when it is heard again. */
static void owe_unconfirmed(struct core *core, struct host *host)
{
    bool any = false;

    if (!core_host_up(&host->info))
        return;
    if (host->info.applied < host->info.generation)
        any = host->order_again = true;
    LIST_FOR_EACH (node, &host->parts)
        if (PART(node)->state == PART_OPENING || PART(node)->state == PART_ENDING)
            any = PART(node)->send = true;
    for (int i = 0; i < host->info.leftovers; i++)
        any = host->leftovers[i].send = true;
    if (any)
        host_owe(core, host);
}

void host_check_confirmed(struct core *core)
{
    struct node *node;

    while ((node = list_first(&core->waiting)) && WAITING(node)->check_ms <= core->now_ms) {
        list_remove(node);
        owe_unconfirmed(core, WAITING(node));
    }
}

int host_ordered(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];

    if (core_host_up(&host->info) && event->u.generation <= host->info.generation &&
        event->u.generation > host->info.applied)
        host->info.applied = event->u.generation;
    return 0;
}

/* ---- leftovers ---- */

static void make_leftovers(struct host *host, int n)
{
    host->leftovers = mem_grow(host->leftovers, &host->leftovers_capacity, (size_t)n, sizeof(*host->leftovers));
}

void host_add_leftover(struct core *core, struct host *host, uint64_t job, uint32_t attempt)
{
    struct leftover *leftover = NULL;

    for (int i = 0; i < host->info.leftovers; i++)
        if (host->leftovers[i].what.job == job && host->leftovers[i].what.attempt == attempt)
            leftover = &host->leftovers[i];
    if (!leftover) {
        if (host->info.leftovers >= CORE_MAX_LEFTOVERS)
            return; /* it has said this of too many */
        make_leftovers(host, host->info.leftovers + 1);
        leftover = &host->leftovers[host->info.leftovers++];
        leftover->what = (struct core_holding){.job = job, .attempt = attempt};
        core->nview = -1;
        configure_watch(core, host);
    }
    leftover->send = true;
    host_owe(core, host);
}

void host_drop_leftover(struct core *core, struct host *host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < host->info.leftovers; i++) {
        if (host->leftovers[i].what.job != job || host->leftovers[i].what.attempt != attempt)
            continue;
        host->leftovers[i] = host->leftovers[--host->info.leftovers];
        core->nview = -1;
        if (host->info.leftovers == 0)
            queue_changed_space(core, UINT32_MAX);
        return;
    }
}

/* ---- up ---- */

void host_make_slots(struct host *host, int nslots)
{
    size_t n = (size_t)nslots, old = (size_t)host->nslots, rows = CORE_MAX_LEVELS;

    if (nslots <= host->nslots)
        return;
    host->info.cpus = host->seen.cpus = host->cpus = mem_exactly(host->cpus, old, n, sizeof(*host->cpus));
    host->seen.processors = host->processors = mem_exactly(host->processors, old, n, sizeof(*host->processors));
    host->table = mem_exactly(host->table, rows * old, rows * n, sizeof(struct job *));
    host->nslots = nslots;
}

static void set_cpus(struct core *core, struct host *host, const int *cpus, int ncpus, bool closed)
{
    host_take_out(core, host);
    for (int i = 0; i < host->nslots; i++)
        host->processors[i].present = false;
    memset(host->seen.at_level, 0, sizeof(host->seen.at_level));
    for (int i = 0; i < ncpus; i++) {
        host->cpus[i] = cpus[i];
        host->processors[cpus[i]].present = true;
        host->seen.at_level[host->processors[cpus[i]].next_level]++;
    }
    host->info.ncpus = host->seen.ncpus = ncpus;
    host->info.known = true;
    move(host, CORE_HOST_UP);
    host->info.closed = closed;
    host_put_in(core, host);
}

static bool cpus_valid(const int *cpus, int ncpus)
{
    if (ncpus < 1 || ncpus > CORE_MAX_CPUS || !cpus)
        return false;
    for (int i = 0; i < ncpus; i++)
        if (cpus[i] < 0 || cpus[i] >= CORE_MAX_CPUS || (i > 0 && cpus[i] <= cpus[i - 1]))
            return false;
    return true;
}

int host_up(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];
    const int *cpus = event->u.up.cpus;
    int ncpus = core->options.topology == TOPOLOGY_CUBE && event->u.up.ncpus > 0 ? 1 : event->u.up.ncpus;

    if (!cpus_valid(cpus, event->u.up.ncpus) || event->u.up.memory_bytes > MEMORY_MAX_BYTES ||
        event->u.up.nholdings < 0 || event->u.up.generation > UINT64_MAX / 2)
        return -EINVAL;
    if (host->info.state == CORE_HOST_AWAITED)
        life_host_linked(core, host);
    host_make_slots(host, cpus[ncpus - 1] + 1);
    make_leftovers(host, event->u.up.nholdings);
    host->seen.memory_bytes = event->u.up.memory_bytes;
    set_cpus(core, host, cpus, ncpus, event->u.up.closed);
    host->told_cpus = event->u.up.ncpus;
    if (event->u.up.generation > host->info.generation)
        host->info.generation = event->u.up.generation;
    host->info.applied = event->u.up.generation;
    host->seen.reported = false;
    host->info.no_lease = event->u.up.no_lease;
    host->info.offers = event->u.up.offers;
    host_reconcile(core, host, event);
    host_owe_order(core, host);
    configure_watch(core, host);
    notice_look(core, host);
    queue_changed_supply(core);
    return 0;
}

/* ---- silent, down, drain, report ---- */

int host_silent(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];

    if (!core_host_up(&host->info))
        return 0;
    if (host->info.state == CORE_HOST_UP)
        move(host, CORE_HOST_SILENT);
    core->nview = -1;
    host->seen.reported = false;
    return 0;
}

int host_heard(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];

    if (host->info.state != CORE_HOST_SILENT)
        return 0;
    move(host, CORE_HOST_UP);
    core->nview = -1;
    host_owe(core, host); /* all that was marked meanwhile */
    notice_look(core, host);
    queue_changed_space(core, UINT32_MAX);
    return 0;
}

static int64_t silence_of(const struct core *core, const struct event *event)
{
    int64_t silence_ms = event->u.down.silence_ms;

    return silence_ms < 0 ? 0 : silence_ms > core->now_ms ? core->now_ms : silence_ms;
}

int host_down(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];

    if (host->info.state == CORE_HOST_DOWN)
        return 0;
    host_take_out(core, host);
    move(host, CORE_HOST_DOWN);
    host->info.closed = host->seen.reported = false;
    host_put_in(core, host);
    host->info.leftovers = 0;
    host->contact_ms = core->now_ms - silence_of(core, event);
    lease_host_down(core, host);
    LIST_FOR_EACH_SAFE (node, &host->parts) {
        struct part *part = PART(node);
        if (part->job->info.state == JOB_ENDING)
            life_part_lost(core, part);
        else
            life_end(core, part->job, REASON_HOST_LOST,
                     host_lost_text(host, event->u.down.what ? event->u.down.what : "is down"));
    }
    queue_changed_supply(core);
    return 0;
}

int host_drain(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];

    host_take_out(core, host);
    host->info.drained = event->type == EVENT_DRAIN;
    host_put_in(core, host);
    queue_changed_supply(core);
    core->reply.answered = true;
    core->reply.answer = ANSWER_OK;
    return 0;
}

int host_report(struct core *core, const struct event *event)
{
    struct host *host = core->hosts[event->host];
    const struct core_report *report = &event->u.report;
    uint32_t before, after;

    if (!core_host_up(&host->info) || report->ncpus != host->told_cpus || report->begin_ms >= report->end_ms ||
        report->end_ms > core->now_ms || (host->seen.reported && report->end_ms <= host->seen.report_end_ms))
        return 0;
    before = alloc_count_host(core, host);
    host->seen.reported = true;
    host->seen.report_begin_ms = report->begin_ms;
    host->seen.report_end_ms = report->end_ms;
    for (int i = 0; i < host->info.ncpus; i++) {
        struct alloc_processor *processor = &host->processors[host->cpus[i]];
        processor->busy = report->busy[i];
        processor->foreign = report->busy[i] - report->jobs[i];
    }
    after = alloc_count_host(core, host);
    if (after > before)
        queue_changed_space(core, after - before);
    return 0;
}
