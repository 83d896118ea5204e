/* world_hosts.c - the hosts of a simulation: they come up, tell their load, and may be away for a time. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "esim/world_internal.h"
#include "lib/memory/mem.h"

static void hosts_up(struct world *w)
{
    int *cpus = mem_array((size_t)w->settings.ncpus, sizeof(*cpus));
    uint64_t none = 0;
    char name[20];

    for (int i = 0; i < w->settings.ncpus; i++)
        cpus[i] = i;
    for (int h = 0; h < w->settings.nhosts; h++) {
        snprintf(name, sizeof(name), "h%d", h);
        core_add_host(w->core, h < w->settings.nknown ? w->settings.names[h] : name);
    }
    for (int h = 0; h < w->settings.nhosts; h++) {
        struct event event = {.type = EVENT_HOST_UP, .now_ms = w->now_ms, .host = h};
        event.u.up.cpus = cpus;
        event.u.up.ncpus = world_cpus(&w->settings, h);
        event.u.up.memory_bytes = w->settings.memory_bytes;
        world_pass(w, &event, &none);
    }
    free(cpus);
}

/* ---- away for a time ---- */

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    return y->away - x->away; /* one time may begin where another one ends */
}

static void changes_create(struct world *w)
{
    const struct world_settings *s = &w->settings;

    w->away = mem_array((size_t)s->nhosts, sizeof(*w->away));
    w->changes = mem_array(2 * (size_t)s->naway, sizeof(*w->changes));
    for (int i = 0; i < s->naway; i++) {
        if (s->away[i].host >= s->nhosts) /* a smaller machine is tried */
            continue;
        w->changes[w->nchanges++] = (struct change){s->away[i].from_ms + OFFSET_MS, s->away[i].host, true};
        w->changes[w->nchanges++] = (struct change){s->away[i].until_ms + OFFSET_MS, s->away[i].host, false};
    }
    qsort(w->changes, w->nchanges, sizeof(*w->changes), by_time);
}

int64_t hosts_next_change(const struct world *w)
{
    return w->changed < w->nchanges ? w->changes[w->changed].ms : INT64_MAX;
}

static void tell_change(struct world *w, enum event_type type, int host)
{
    struct event event = {.type = type, .now_ms = w->now_ms, .host = host};
    uint64_t none = 0;

    if (type == EVENT_DRAIN || type == EVENT_UNDRAIN) {
        event.request = 1;
        event.u.by.admin = true;
    }
    world_pass(w, &event, &none);
}

static void tell_back(struct world *w, size_t from, size_t end, enum event_type type)
{
    for (size_t i = from; i < end; i++)
        if (!w->changes[i].away && w->away[w->changes[i].host] == 0)
            tell_change(w, type, w->changes[i].host);
}

/* What it has goes on: a job that was lost with it is there for the time that it had. Of hosts that come back together
 * the first must not be given to a job behind one that waits for all: those that are silent count for him, and take
 * nothing meanwhile, as after a restart of elmer. */
void hosts_change(struct world *w)
{
    const int64_t ms = w->changes[w->changed].ms;
    const size_t from = w->changed;
    size_t back = 0;

    for (; w->changed < w->nchanges && w->changes[w->changed].ms == ms; w->changed++) {
        const struct change *change = &w->changes[w->changed];
        int *away = &w->away[change->host], before = *away;

        *away += change->away ? 1 : -1;
        if (change->away && before == 0)
            tell_change(w, EVENT_DRAIN, change->host);
        back += *away == 0;
    }
    if (back > 1)
        tell_back(w, from, w->changed, EVENT_HOST_SILENT);
    tell_back(w, from, w->changed, EVENT_UNDRAIN);
    if (back > 1)
        tell_back(w, from, w->changed, EVENT_HOST_HEARD);
    explain_wait(&w->explain, w->core, world_now_ms(w));
}

/* ---- all of them ---- */

void hosts_create(struct world *w)
{
    w->told_ms = mem_array((size_t)w->settings.nhosts, sizeof(*w->told_ms));
    w->ordered_ms = mem_array((size_t)w->settings.nhosts, sizeof(*w->ordered_ms));
    w->tells = mem_array((size_t)w->settings.nhosts, sizeof(*w->tells));
    w->tellers = mem_array((size_t)w->settings.nhosts, sizeof(*w->tellers));
    for (int h = 0; h < w->settings.nhosts; h++) {
        w->told_ms[h] = -1;
        hosts_has_news(w, h);
    }
    changes_create(w);
    hosts_up(w);
}

void hosts_destroy(struct world *w)
{
    free(w->told_ms);
    free(w->ordered_ms);
    free(w->tells);
    free(w->tellers);
    free(w->changes);
    free(w->away);
}

/* ---- reports ---- */

/* It says what the last one did that the core has, which began when what ran there had settled: no verdict follows from
 * it that does not follow from that one. So of a machine of 1,000 hosts those report that have something to say. With
 * one level only what is not of jobs decides, and there is none of that. */
static bool says_nothing_new(const struct world *w, int host)
{
    int64_t changed_ms = load_changed(w->load, host);

    if (w->settings.every_report || w->told_ms[host] < 0)
        return false;
    changed_ms = w->ordered_ms[host] > changed_ms ? w->ordered_ms[host] : changed_ms;
    return w->settings.core.levels == 1 || w->told_ms[host] >= changed_ms + w->settings.core.settle_ms;
}

void hosts_has_news(struct world *w, int host)
{
    if (w->tells[host])
        return;
    w->tells[host] = true;
    w->tellers[w->ntellers++] = host;
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Those that have something to say, in their order; who has not will have when something changes. */
static void choose_tellers(struct world *w)
{
    int count, kept = 0;
    const int *changed = load_take_changed(w->load, &count);

    for (int i = 0; i < count; i++)
        hosts_has_news(w, changed[i]);
    for (int i = 0; i < w->ntellers; i++) {
        int host = w->tellers[i];
        w->tells[host] = !says_nothing_new(w, host);
        if (w->tells[host])
            w->tellers[kept++] = host;
    }
    w->ntellers = kept;
    qsort(w->tellers, (size_t)w->ntellers, sizeof(*w->tellers), by_number);
}

void hosts_report(struct world *w)
{
    double *busy = mem_array((size_t)w->settings.ncpus, sizeof(*busy));
    uint64_t none = 0;

    load_bring(w->load, w->now_ms);
    choose_tellers(w);
    for (int i = 0, count = w->ntellers; i < count; i++) { /* what follows may have news of others, for the next time */
        int h = w->tellers[i];
        struct event event = {.type = EVENT_REPORT, .now_ms = w->now_ms, .host = h};
        load_report(w->load, h, w->now_ms, busy);
        w->told_ms[h] = w->report_ms;
        event.u.report = (struct core_report){.begin_ms = w->report_ms,
                                              .end_ms = w->now_ms,
                                              .busy = busy,
                                              .jobs = busy,
                                              .ncpus = world_cpus(&w->settings, h)};
        world_pass(w, &event, &none);
    }
    load_drop(w->load, w->now_ms);
    w->report_ms = w->now_ms;
    free(busy);
    explain_wait(&w->explain, w->core, world_now_ms(w));
}

int64_t hosts_next_report(struct world *w, int64_t arrival_ms)
{
    int64_t interval = w->settings.report_ms;

    if (!w->reports)
        return INT64_MAX;
    if (w->nwaiting + w->nrunning == 0 && w->has_next && arrival_ms > w->report_ms + 2 * interval) {
        load_drop(w->load, arrival_ms - interval); /* nobody was there */
        w->report_ms = arrival_ms - interval;
        return arrival_ms;
    }
    return w->report_ms + interval;
}

/* The last report before the next event says all that those before it would: nobody is there whom they could admit, or
 * they have been the same for so long that they admit nobody. */
int64_t hosts_telling_report(struct world *w, int64_t report_ms, int64_t event_ms)
{
    int64_t interval = w->settings.report_ms, last;

    if (event_ms == INT64_MAX || (w->nwaiting > 0 && w->quiet_reports < w->settings.core.settle_ms / interval + 2))
        return report_ms;
    last = report_ms + (event_ms - report_ms) / interval * interval;
    if (last > report_ms) {
        load_drop(w->load, last - interval);
        w->report_ms = last - interval;
    }
    return last;
}
