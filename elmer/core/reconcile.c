/* reconcile.c - what a host holds when it comes up, against what it should hold. EVENT_HOST_UP is always such a
 * comparison: for a host that was down, for a reconnected one, and for one that the restarted core meets for the first
 * time. */
#include "elmer/core/internal.h"

#include <stdio.h>
#include <stdlib.h>

#define PART(node) LIST_ITEM(node, struct part, on_host)

static int compare_holdings(const void *a, const void *b) /* also of struct leftover, which begins with one */
{
    const struct core_holding *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
}

static bool cpus_present(const struct part *part)
{
    for (int i = 0; i < part->ncpus; i++)
        if (!part->host->processors[part->job->processors[part->first + i].cpu].present)
            return false;
    return true;
}

enum holds { HOLDS_IT, HOLDS_NOT, HOLDS_REBOOTED }; /* what a host that comes up has of a part */

char *host_lost_text(const struct host *host, const char *what)
{
    char text[300];

    snprintf(text, sizeof(text), "%.200s %s", host->name, what);
    return job_copy_text(text);
}

/* Every process that the job had there has exited, and that may have been known to us before a restart. */
static bool all_exited(const struct part *part)
{
    return part->job->restored && (uint32_t)part->first < job_ranks(part->job) && life_part_exited(part);
}

static void reconcile_live(struct core *core, struct part *part, enum holds holds)
{
    bool opening = part->state == PART_OPENING;

    if (opening && (holds == HOLDS_IT || !part->job->info.launched))
        part->send = true;
    else if (holds == HOLDS_REBOOTED)
        life_end(core, part->job, REASON_HOST_LOST, host_lost_text(part->host, "was started again"));
    else if (holds == HOLDS_NOT && !all_exited(part))
        life_end(core, part->job, REASON_LOST, host_lost_text(part->host, "no longer has the job"));
    else if (opening)
        life_part_opened(core, part);
    if (part->state != PART_ENDING && !cpus_present(part))
        life_end(core, part->job, REASON_LOST, host_lost_text(part->host, "no longer offers the job's processors"));
}

/* May end the job, and then part is gone. */
static void reconcile_part(struct core *core, struct part *part, enum holds holds)
{
    bool held = holds == HOLDS_IT;

    switch (part->state) {
    case PART_OPENING:
    case PART_OPEN:
        reconcile_live(core, part, holds);
        return;
    case PART_ENDING:
        if (held)
            life_part_end_again(core, part);
        else
            life_part_empty(core, part);
        return;
    case PART_EMPTY:
        if (held)
            life_part_end_again(core, part);
        return;
    }
}

/* Sorted and each once. Returns their number. */
static int copy_holdings(struct leftover *to, const struct core_holding *holdings, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        to[i] = (struct leftover){.what = holdings[i], .send = true};
    if (n > 0)
        qsort(to, (size_t)n, sizeof(*to), compare_holdings);
    for (int i = 0; i < n; i++)
        if (kept == 0 || compare_holdings(&to[kept - 1], &to[i]) != 0)
            to[kept++] = to[i];
    return kept;
}

static struct leftover *find_holding(const struct host *host, const struct job *job)
{
    struct core_holding key = {.job = job->info.id, .attempt = job->info.attempt};

    return host->info.leftovers == 0 ? NULL
                                     : bsearch(&key, host->leftovers, (size_t)host->info.leftovers,
                                               sizeof(struct leftover), compare_holdings);
}

static bool still_held(const struct host *host, const struct job *job)
{
    return find_holding(host, job) != NULL;
}

static enum holds what_holds(const struct leftover *found, bool rebooted)
{
    return found ? HOLDS_IT : rebooted ? HOLDS_REBOOTED : HOLDS_NOT;
}

/* Holdings become leftovers, and those that are rightly there are taken out again. */
void host_reconcile(struct core *core, struct host *host, const struct event *event)
{
    int kept = 0;

    host->info.leftovers = copy_holdings(host->leftovers, event->u.up.holdings, event->u.up.nholdings);
    lease_host_up(core, host, still_held);

    LIST_FOR_EACH_SAFE (node, &host->parts) {
        struct part *part = PART(node);
        struct leftover *found = find_holding(host, part->job);
        enum holds holds = what_holds(found, event->u.up.rebooted);
        if (found)
            found->send = false;
        reconcile_part(core, part, holds);
    }
    for (int i = 0; i < host->info.leftovers; i++)
        if (host->leftovers[i].send)
            host->leftovers[kept++] = host->leftovers[i];
    host->info.leftovers = kept;
    core->nview = -1;
}
