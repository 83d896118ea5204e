/* emit.c - what a step owes becomes actions, in this order: rows to write, of settings, hosts and jobs; for each host
 * its order, then its OPENs and ENDs; launches; the answer to the sender of the event; the timer.
 *
 * Decisions are made by then and must not be undone, so memory that runs out here only postpones: what is owed stays
 * marked, and a timer asks for another step. Room for what may not be postponed (the rows owed so far, that of the
 * event's own job, the answer, the timer) is reserved before the decision.
 */
#include "elmer/core/internal.h"

#include <assert.h>

#define PART(node) LIST_ITEM(node, struct part, on_host)

enum { TAIL = 3 }; /* TAKEN, ANSWER, TIMER */

void emit_owe_persist(struct core *core, struct job *job)
{
    if (node_linked(&job->in_persist))
        return;
    list_append(&core->persist, &job->in_persist);
    core->npersist++;
}

void emit_owe_row(struct core *core, struct host *host)
{
    if (node_linked(&host->in_rows))
        return;
    list_append(&core->rows, &host->in_rows);
    core->nrows++;
}

void emit_owe_setting(struct core *core, enum core_setting setting)
{
    core->owed[setting] = true;
}

/* An event that is answered changes one row of its own: a job's, a host's or that of a setting. */
int emit_reserve(struct core *core, struct actions *actions)
{
    return actions_reserve(actions, core->nrows + core->npersist + 1 + TAIL);
}

/* One action more that leaves room for the tail; NULL: memory. */
static struct action *push(struct actions *actions, enum action_type type, const struct job *job)
{
    struct action *action;

    if (actions_reserve(actions, 1 + TAIL) != 0)
        return NULL;
    action = actions_push(actions, type);
    if (job != NULL) {
        action->job = job->info.id;
        action->attempt = job->info.attempt;
    }
    return action;
}

static bool emit_settings(struct core *core, struct actions *actions)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct action *action;
        if (!core->owed[i])
            continue;
        action = push(actions, ACTION_PERSIST_SETTING, NULL);
        if (action == NULL)
            return false;
        action->setting = (enum core_setting)i;
        core->owed[i] = false;
    }
    return true;
}

static bool emit_rows(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->rows)) != NULL) {
        struct action *action = push(actions, ACTION_PERSIST_HOST, NULL);
        if (action == NULL)
            return false;
        action->host = LIST_ITEM(node, struct host, in_rows)->index;
        list_remove(node);
        core->nrows--;
    }
    return true;
}

static bool emit_jobs(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->persist)) != NULL) {
        if (push(actions, ACTION_PERSIST, LIST_ITEM(node, struct job, in_persist)) == NULL)
            return false;
        list_remove(node);
        core->npersist--;
    }
    return true;
}

static void fill_entry(const struct part *part, struct order_entry *entry, int *cpus)
{
    const struct job *job = part->job;

    entry->job = job->info.id;
    entry->attempt = job->info.attempt;
    entry->level = job->info.level;
    entry->lowest = true;
    entry->cpus = cpus;
    entry->ncpus = part->ncpus;
    for (int i = 0; i < part->ncpus; i++) {
        cpus[i] = job->processors[part->first + i].cpu;
        if (part->host->processors[cpus[i]].next_level > job->info.level + 1)
            entry->lowest = false;
    }
}

static bool emit_order(struct core *core, struct host *host, struct actions *actions)
{
    size_t nentries = 0, ncpus = 0;
    struct order_entry *entries;
    struct action *action;
    int *cpus, n = 0;

    LIST_FOR_EACH (node, &host->parts) {
        nentries++;
        ncpus += (size_t)PART(node)->ncpus;
    }
    entries = actions_alloc(actions, nentries * sizeof(*entries));
    cpus = actions_alloc(actions, ncpus * sizeof(*cpus));
    if (entries == NULL || cpus == NULL || (action = push(actions, ACTION_ORDER, NULL)) == NULL)
        return false;
    for (int level = 0; level < core->levels_used; level++)
        LIST_FOR_EACH (node, &host->parts)
            if (PART(node)->job->info.level == level) {
                fill_entry(PART(node), &entries[n++], cpus);
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
    return true;
}

static bool emit_open(struct part *part, struct actions *actions)
{
    int *cpus = actions_alloc(actions, (size_t)part->ncpus * sizeof(*cpus));
    struct action *action = cpus != NULL ? push(actions, ACTION_OPEN, part->job) : NULL;

    if (action == NULL)
        return false;
    for (int i = 0; i < part->ncpus; i++)
        cpus[i] = part->job->processors[part->first + i].cpu;
    action->host = part->host->index;
    action->generation = part->host->info.generation;
    action->cpus = cpus;
    action->ncpus = part->ncpus;
    action->lease_ms = part->job->info.lease_ms;
    return true;
}

static bool emit_end(struct part *part, struct actions *actions)
{
    struct action *action = push(actions, ACTION_END, part->job);

    if (action == NULL)
        return false;
    action->host = part->host->index;
    return true;
}

static bool emit_parts(struct host *host, struct actions *actions)
{
    LIST_FOR_EACH (node, &host->parts) {
        struct part *part = PART(node);
        if (!part->send)
            continue;
        if (part->state == PART_OPENING && !emit_open(part, actions))
            return false;
        if (part->state == PART_ENDING && !emit_end(part, actions))
            return false;
        part->send = false;
    }
    for (int i = 0; i < host->info.leftovers; i++) {
        struct leftover *leftover = &host->leftovers[i];
        struct action *action;
        if (!leftover->send)
            continue;
        action = push(actions, ACTION_END, NULL);
        if (action == NULL)
            return false;
        action->host = host->index;
        action->job = leftover->what.job;
        action->attempt = leftover->what.attempt;
        leftover->send = false;
    }
    return true;
}

/* To a host that is not up, or silent, nothing is sent: its next EVENT_HOST_UP owes it all again. */
static bool emit_hosts(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->work)) != NULL) {
        struct host *host = LIST_ITEM(node, struct host, in_work);
        if (host->info.state == CORE_HOST_UP) {
            if ((host->order || host->order_again) && !emit_order(core, host, actions))
                return false;
            if (!emit_parts(host, actions))
                return false;
            if (!node_linked(&host->in_waiting)) {
                host->check_ms = core->now_ms + core->options.resend_ms;
                list_append(&core->waiting, &host->in_waiting);
            }
        }
        list_remove(node);
    }
    return true;
}

static bool emit_launches(struct core *core, struct actions *actions)
{
    struct node *node;

    while ((node = list_first(&core->launch)) != NULL) {
        if (push(actions, ACTION_LAUNCH, LIST_ITEM(node, struct job, in_launch)) == NULL)
            return false;
        list_remove(node);
    }
    return true;
}

static void emit_reply(const struct core *core, const struct event *event, struct actions *actions)
{
    if (core->reply.taken) {
        struct action *action = actions_push(actions, ACTION_TAKEN);
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
static void emit_timer(struct core *core, struct actions *actions, bool all)
{
    struct node *waiting = list_first(&core->waiting), *starting = list_first(&core->starting);
    int64_t at_ms = all ? INT64_MAX : core->now_ms + core->options.resend_ms;

    if (waiting != NULL && LIST_ITEM(waiting, struct host, in_waiting)->check_ms < at_ms)
        at_ms = LIST_ITEM(waiting, struct host, in_waiting)->check_ms;
    if (starting != NULL && LIST_ITEM(starting, struct job, in_start)->deadline_ms < at_ms)
        at_ms = LIST_ITEM(starting, struct job, in_start)->deadline_ms;
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
    bool all = emit_settings(core, actions) && emit_rows(core, actions) && emit_jobs(core, actions) &&
               emit_hosts(core, actions) && emit_launches(core, actions);

    emit_reply(core, event, actions);
    emit_timer(core, actions, all);
}
