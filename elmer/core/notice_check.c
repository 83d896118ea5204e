/* notice_check.c - check.c, of notices: a host that may start one does. */
#include "elmer/core/internal.h"

static const char *check_host(const struct host *host)
{
    int there = 0, ready = 0;

    LIST_FOR_EACH (node, &host->parts)
        there += LIST_ITEM(node, const struct part, on_host)->job->info.notice;
    LIST_FOR_EACH (node, &host->notices) {
        const struct job *job = LIST_ITEM(node, const struct job, in_notices);
        if (!job->info.notice || job->info.state != JOB_QUEUED || !check_after_met(job) || job->info.nlost > 0 ||
            job->hosts[0] != host->index)
            return "one that may not start is about to, or on another host";
        ready++;
    }
    if (there > CORE_NOTICES_AT_ONCE)
        return "a host runs too many at once";
    if (there == 0 && ready > 0 && (host->info.retired || host_usable(host)))
        return "one waits on a host that has none";
    return NULL;
}

const char *check_notices(const struct core *core)
{
    const char *fault = NULL;

    for (int h = 0; h < core->nhosts && !fault; h++)
        fault = check_host(core->hosts[h]);
    for (size_t i = 0; i < core->nindex && !fault; i++) {
        const struct job *job = core->index[i].job;
        bool ready = job && job->info.notice && job->info.state == JOB_QUEUED && check_after_met(job) &&
                     job->info.nlost == 0 && !node_linked(&job->in_doomed);
        if (job && ready != node_linked(&job->in_notices))
            fault = "one is ready, and no host knows it, or the other way round";
    }
    return fault;
}
