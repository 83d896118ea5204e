/* judge_hosts.c - what hosts and administrators have said, as the judge remembers it. */
#include "tests/sim/judge.h"

#include <string.h>

static void hear_report(struct world *world, const struct event *event)
{
    struct seen_host *host = &world->seen_hosts[event->host];
    const struct core_report *report = &event->u.report;

    if (!host->up || report->ncpus != host->ncpus || report->begin_ms >= report->end_ms ||
        report->end_ms > event->now_ms || (host->reported && report->end_ms <= host->report_end_ms))
        return;
    host->reported = true;
    host->report_begin_ms = report->begin_ms;
    host->report_end_ms = report->end_ms;
    for (int i = 0; i < report->ncpus; i++) {
        host->busy[i] = report->busy[i];
        host->foreign[i] = report->busy[i] - report->jobs[i];
    }
}

bool judge_belongs(struct world *world, uint64_t job, uint32_t attempt, int host)
{
    const struct seen_job *seen = judge_seen(world, job);

    if (!seen || seen->attempt != attempt || !judge_has_cluster(seen->state))
        return false;
    for (uint32_t i = 0; i < seen->nprocs; i++)
        if (seen->processors[i].host == host)
            return true;
    return false;
}

static void add_dirty(struct seen_host *host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < host->ndirty; i++)
        if (host->dirty[i].job == job && host->dirty[i].attempt == attempt)
            return;
    if (host->ndirty < SIM_GROUPS)
        host->dirty[host->ndirty++] = (struct core_holding){.job = job, .attempt = attempt};
}

static void hear_up(struct world *world, const struct event *event)
{
    struct seen_host *host = &world->seen_hosts[event->host];

    host->up = true;
    host->silent = host->reported = host->awaited = false;
    host->closed = event->u.up.closed;
    host->ncpus = event->u.up.ncpus;
    host->memory_bytes = event->u.up.memory_bytes;
    memcpy(host->cpus, event->u.up.cpus, (size_t)host->ncpus * sizeof(int));
    host->ndirty = 0;
    for (int i = 0; i < event->u.up.nholdings; i++)
        if (!judge_belongs(world, event->u.up.holdings[i].job, event->u.up.holdings[i].attempt, event->host))
            add_dirty(host, event->u.up.holdings[i].job, event->u.up.holdings[i].attempt);
}

static void hear_opened(struct world *world, const struct event *event)
{
    struct seen_host *host = &world->seen_hosts[event->host];

    if (!host->up)
        return;
    if (judge_belongs(world, event->job, event->attempt, event->host))
        judge_seen(world, event->job)->opened |= 1u << event->host;
    else
        add_dirty(host, event->job, event->attempt);
}

static void hear_gone(struct world *world, const struct event *event)
{
    if (world->seen_hosts[event->host].up && judge_belongs(world, event->job, event->attempt, event->host))
        judge_seen(world, event->job)->gone |= 1u << event->host;
}

static void hear_empty(struct seen_host *host, const struct event *event)
{
    for (int i = 0; i < host->ndirty; i++)
        if (host->dirty[i].job == event->job && host->dirty[i].attempt == event->attempt)
            host->dirty[i--] = host->dirty[--host->ndirty];
}

void judge_before(struct world *world, const struct event *event)
{
    struct seen_host *host = &world->seen_hosts[event->host >= 0 ? event->host : 0];

    switch ((int)event->type) {
    case EVENT_REPORT:
        hear_report(world, event);
        break;
    case EVENT_HOST_UP:
        hear_up(world, event);
        break;
    case EVENT_HOST_SILENT:
        host->silent = host->up;
        host->reported = false;
        break;
    case EVENT_HOST_HEARD:
        host->silent = false;
        break;
    case EVENT_HOST_DOWN:
        host->up = host->silent = host->reported = host->awaited = host->closed = false;
        host->ndirty = 0;
        break;
    case EVENT_DRAIN:
        host->drained = true;
        break;
    case EVENT_UNDRAIN:
        host->drained = false;
        break;
    case EVENT_SET:
        judge_setting(world, event->u.set.setting, event->u.set.value);
        break;
    case EVENT_CONFIGURE:
        judge_configuration(world, &event->u.configure);
        break;
    case EVENT_HOST_ADD:
        host->retired = false;
        break;
    case EVENT_HOST_RETIRE:
        host->retired = true;
        break;
    case EVENT_GATHER:
        world->gather_from_ms = world->now_ms;
        break;
    case EVENT_OPENED:
        hear_opened(world, event);
        break;
    case EVENT_OPEN_FAILED:
        hear_gone(world, event);
        break;
    case EVENT_EMPTY:
        hear_gone(world, event);
        hear_empty(host, event);
        break;
    default:
        break;
    }
}
