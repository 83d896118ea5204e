/* emit.c - what a step owes becomes actions, in this order: rows to write, of settings, hosts and jobs; for each host
 * its order, then its OPENs and ENDs; launches; hosts that are gone; the answer to the sender of the event; the timer.
 */
#include "elmer/core/internal.h"

#include <assert.h>

#define PART(node) LIST_ITEM(node, struct part, on_host)

void emit_owe_persist(struct core *core, struct job *job)
{
    if (!node_linked(&job->in_persist))
        list_append(&core->persist, &job->in_persist);
}

void emit_owe_row(struct core *core, struct host *host)
{
    if (!node_linked(&host->in_rows))
        list_append(&core->rows, &host->in_rows);
}

void emit_owe_setting(struct core *core, enum core_setting setting)
{
    core->owed[setting] = true;
}

static struct action *push(struct actions *actions, enum action_type type, const struct job *job)
{
    struct action *action = actions_push(actions, type);

    action->job = job->info.id;
    action->attempt = job->info.attempt;
    return action;
}

static void emit_settings(struct core *core, struct actions *actions)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (!core->owed[i])
            continue;
        actions_push(actions, ACTION_PERSIST_SETTING)->setting = (enum core_setting)i;
        core->owed[i] = false;
    }
}

static void emit_rows(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->rows))) {
        actions_push(actions, ACTION_PERSIST_HOST)->host = LIST_ITEM(node, struct host, in_rows)->index;
        list_remove(node);
    }
}

static void emit_jobs(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->persist))) {
        push(actions, ACTION_PERSIST, LIST_ITEM(node, struct job, in_persist));
        list_remove(node);
    }
}

/* Where a notice stands in an order: below all jobs, and as one that shares, so that it weighs nothing beside them. */
static int lowest_level(const struct core *core)
{
    return core->levels_used > 1 ? core->levels_used - 1 : 1;
}

static void fill_entry(const struct core *core, const struct part *part, struct order_entry *entry, int *cpus)
{
    const struct job *job = part->job;

    entry->job = job->info.id;
    entry->attempt = job->info.attempt;
    entry->level = job->info.notice ? lowest_level(core) : job->info.level;
    entry->lowest = true;
    entry->cpus = cpus;
    entry->ncpus = part->ncpus;
    for (int i = 0; i < part->ncpus; i++) {
        cpus[i] = job->processors[part->first + i].cpu;
        if (!job->info.notice && part->host->processors[cpus[i]].next_level > job->info.level + 1)
            entry->lowest = false;
    }
}

static bool is_at(const struct part *part, int level, bool notice)
{
    return part->job->info.level == level && part->job->info.notice == notice;
}

static void emit_order(struct core *core, struct host *host, struct actions *actions)
{
    size_t nentries = 0, ncpus = 0;
    struct order_entry *entries;
    struct action *action;
    int *cpus, n = 0;

    LIST_FOR_EACH (node, &host->parts) {
        nentries++;
        ncpus += (size_t)PART(node)->ncpus;
    }
    entries = arena_array(&actions->memory, nentries, sizeof(*entries));
    cpus = arena_array(&actions->memory, ncpus, sizeof(*cpus));
    action = actions_push(actions, ACTION_ORDER);
    /* behind the last one notices, which have level 0 */
    for (int level = 0; (size_t)n < nentries && level <= core->levels_used; level++)
        LIST_FOR_EACH (node, &host->parts)
            if (is_at(PART(node), level % core->levels_used, level == core->levels_used)) {
                fill_entry(core, PART(node), &entries[n++], cpus);
                cpus += PART(node)->ncpus;
            }
    assert((size_t)n == nentries);
    if (host->order)
        host->info.generation++;
    host->order = host->order_again = false;
    action->host = host->index;
    action->generation = host->info.generation;
    action->entries = entries;
    action->nentries = n;
}

static void emit_open(struct part *part, struct actions *actions)
{
    int *cpus = arena_array(&actions->memory, (size_t)part->ncpus, sizeof(*cpus));
    struct action *action = push(actions, ACTION_OPEN, part->job);

    for (int i = 0; i < part->ncpus; i++)
        cpus[i] = part->job->processors[part->first + i].cpu;
    action->host = part->host->index;
    action->generation = part->host->info.generation;
    action->cpus = cpus;
    action->ncpus = part->ncpus;
    action->lease_ms = part->job->info.lease_ms;
}

static void emit_parts(struct host *host, struct actions *actions)
{
    LIST_FOR_EACH (node, &host->parts) {
        struct part *part = PART(node);
        if (!part->send)
            continue;
        if (part->state == PART_OPENING)
            emit_open(part, actions);
        else if (part->state == PART_ENDING)
            push(actions, ACTION_END, part->job)->host = host->index;
        part->send = false;
    }
    for (int i = 0; i < host->info.leftovers; i++) {
        struct leftover *leftover = &host->leftovers[i];
        struct action *action;
        if (!leftover->send)
            continue;
        action = actions_push(actions, ACTION_END);
        action->host = host->index;
        action->job = leftover->what.job;
        action->attempt = leftover->what.attempt;
        leftover->send = false;
    }
}

/* To a host that is not up, or silent, nothing is sent: its next EVENT_HOST_UP owes it all again. */
static void emit_hosts(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->work))) {
        struct host *host = LIST_ITEM(node, struct host, in_work);
        if (host->info.state == CORE_HOST_UP) {
            if (host->order || host->order_again)
                emit_order(core, host, actions);
            emit_parts(host, actions);
            if (!node_linked(&host->in_waiting)) {
                host->check_ms = core->now_ms + core->options.resend_ms;
                list_append(&core->waiting, &host->in_waiting);
            }
        }
        list_remove(node);
    }
}

static void emit_launches(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->launch))) {
        push(actions, ACTION_LAUNCH, LIST_ITEM(node, struct job, in_launch));
        list_remove(node);
    }
}

/* Some are retired now and then, and none of them for long. */
static void emit_gone(struct core *core, struct actions *actions)
{
    LIST_FOR_EACH_SAFE (node, &core->retiring) {
        struct host *host = LIST_ITEM(node, struct host, in_retiring);
        if (!core_host_gone(core, host->index))
            continue;
        actions_push(actions, ACTION_HOST_GONE)->host = host->index;
        list_remove(node);
    }
}

static void emit_reply(const struct core *core, const struct event *event, struct actions *actions)
{
    if (core->reply.acknowledge) {
        struct action *action = actions_push(actions, ACTION_ACKNOWLEDGE);
        action->host = event->host;
        action->job = event->job;
        action->attempt = event->attempt;
        action->rank = event->u.exited.rank;
    }
    if (core->reply.answered && event->request != 0) {
        struct action *action = actions_push(actions, ACTION_ANSWER);
        action->request = event->request;
        action->answer = core->reply.answer;
        action->job = core->reply.job;
        action->host = event->type == EVENT_DRAIN || event->type == EVENT_UNDRAIN ? event->host : -1;
    }
}

/* An earlier timer than needed stays armed: its tick does no harm, and most steps need no new one. */
static void emit_timer(struct core *core, struct actions *actions)
{
    struct node *waiting = list_first(&core->waiting), *starting = list_first(&core->starting);
    int64_t at_ms = INT64_MAX;

    if (waiting && LIST_ITEM(waiting, struct host, in_waiting)->check_ms < at_ms)
        at_ms = LIST_ITEM(waiting, struct host, in_waiting)->check_ms;
    if (starting && LIST_ITEM(starting, struct job, in_start)->deadline_ms < at_ms)
        at_ms = LIST_ITEM(starting, struct job, in_start)->deadline_ms;
    if (!list_empty(&core->doomed)) /* the others, when something else has had its turn */
        at_ms = core->now_ms;
    if (core->lease_check_ms < at_ms)
        at_ms = core->lease_check_ms;
    if (host_gathering(core) && core->gather_until_ms < at_ms)
        at_ms = core->gather_until_ms;
    if (at_ms >= core->timer_ms)
        return;
    core->timer_ms = at_ms;
    actions_push(actions, ACTION_TIMER)->at_ms = at_ms;
}

void emit_all(struct core *core, const struct event *event, struct actions *actions)
{
    emit_settings(core, actions);
    emit_rows(core, actions);
    emit_jobs(core, actions);
    emit_hosts(core, actions);
    emit_launches(core, actions);
    emit_gone(core, actions);
    emit_reply(core, event, actions);
    emit_timer(core, actions);
}
