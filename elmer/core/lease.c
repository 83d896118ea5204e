/* lease.c - lost hosts, and when the next attempt of a job may start.
 *
 * A job that was submitted with requeue goes back into the queue when a host of its cluster is lost. Behind a cut link
 * that host may still run the attempt, so each OPEN of such a job grants a lease: without contact for lease_ms the host
 * ends the attempt itself. A claim is a lost host that may still have it. It lasts until the lease and a margin for
 * clocks that run unevenly have passed since the last contact, or until the host comes back: without the attempt, or
 * when it has reported it empty. While a job has a claim it is not eligible. Invariants: only jobs that go again or
 * have gone back have claims; a claim without an end is that of a host that is up and has been told END.
 *
 * The lease is that of the attempt, not of the options, because a restart may have changed these. See C. Gray,
 * D. Cheriton, Leases: an efficient fault-tolerant mechanism for distributed file cache consistency, SOSP 1989.
 */
#include "elmer/core/internal.h"

#include <assert.h>
#include <stdlib.h>

#define LEASING(node) LIST_ITEM(node, struct job, in_leases)

int64_t core_lease_wait_ms(int64_t lease_ms)
{
    return lease_ms + lease_ms / 10 + 1000;
}

int64_t lease_for(const struct core *core, const struct job *job, const struct part *parts, int nparts)
{
    for (int i = 0; i < nparts; i++)
        if (parts[i].host->info.no_lease)
            return 0;
    return job->info.requeue ? core->options.lease_ms : 0;
}

int64_t lease_left_ms(const struct core *core, const struct job *job)
{
    int64_t until_ms = 0;

    for (int i = 0; i < job->info.nlost; i++)
        if (job->claims[i].until_ms > until_ms)
            until_ms = job->claims[i].until_ms;
    return until_ms == INT64_MAX ? -1 : until_ms > core->now_ms ? until_ms - core->now_ms : 0;
}

bool lease_allows(enum reason reason, bool limit_requeue)
{
    return reason == REASON_HOST_LOST || reason == REASON_LOST ||
           (limit_requeue && (reason == REASON_TIME_LIMIT || reason == REASON_CPU_LIMIT));
}

/* An attempt without a lease may run on where nobody sees it: no other follows. */
bool lease_goes_again(const struct job *job)
{
    return job->info.lease_ms > 0 && job->info.attempt < CORE_MAX_ATTEMPTS && job->info.state == JOB_ENDING &&
           lease_allows(job->info.reason, job->info.limit_requeue);
}

static struct claim *find(const struct job *job, const struct host *host)
{
    for (int i = 0; i < job->info.nlost; i++)
        if (job->claims[i].host == host)
            return &job->claims[i];
    return NULL;
}

static struct claim *add(struct job *job)
{
    size_t needed = (size_t)job->info.nlost + 1, of_lost = job->claims_capacity;

    assert(job->info.requeue);
    job->lost = mem_grow(job->lost, &of_lost, needed, sizeof(*job->lost));
    job->claims = mem_grow(job->claims, &job->claims_capacity, needed, sizeof(*job->claims));
    return &job->claims[job->info.nlost++];
}

static void set_end(struct core *core, struct claim *claim, int64_t until_ms)
{
    claim->until_ms = until_ms;
    if (until_ms < core->lease_check_ms)
        core->lease_check_ms = until_ms;
}

void lease_claim(struct core *core, struct job *job, struct host *host, int64_t until_ms)
{
    struct claim *claim = host ? find(job, host) : NULL;

    if (!claim) {
        claim = add(job);
        claim->host = host;
        emit_owe_persist(core, job);
    }
    set_end(core, claim, until_ms);
    if (!node_linked(&job->in_leases))
        list_append(&core->leases, &job->in_leases);
    if (job->info.notice && job->in_queue.in)
        notice_changed(core, job);
}

void lease_claim_lost(struct core *core, struct part *part)
{
    struct job *job = part->job;

    lease_claim(core, job, part->host, part->host->contact_ms + core_lease_wait_ms(job->info.lease_ms));
}

static void drop(struct core *core, struct job *job, struct claim *claim)
{
    *claim = job->claims[--job->info.nlost];
    emit_owe_persist(core, job);
    if (job->info.nlost > 0)
        return;
    list_remove(&job->in_leases);
    if (job->in_queue.in)
        queue_changed_job(core, job);
}

void lease_drop(struct core *core, struct job *job, const struct host *host)
{
    struct claim *claim = find(job, host);

    if (claim)
        drop(core, job, claim);
}

void lease_drop_all(struct job *job)
{
    job->info.nlost = 0;
    list_remove(&job->in_leases);
}

void lease_host_up(struct core *core, const struct host *host,
                   bool (*held)(const struct host *host, const struct job *job))
{
    LIST_FOR_EACH_SAFE (node, &core->leases) {
        struct claim *claim = find(LEASING(node), host);
        if (!claim)
            continue;
        if (held(host, LEASING(node)))
            claim->until_ms = INT64_MAX; /* END goes out; its EMPTY is what counts now */
        else
            drop(core, LEASING(node), claim);
    }
}

void lease_host_down(struct core *core, const struct host *host)
{
    LIST_FOR_EACH (node, &core->leases) {
        struct claim *claim = find(LEASING(node), host);
        if (claim)
            set_end(core, claim, host->contact_ms + core_lease_wait_ms(LEASING(node)->info.lease_ms));
    }
}

void lease_note_hosts(struct job *job)
{
    if (!job->info.requeue)
        return;
    free(job->last);
    job->last = mem_array((size_t)job->nparts + 1, sizeof(struct host *));
    for (int i = 0; i < job->nparts; i++)
        job->last[i] = job->parts[i].host;
}

/* A lost host of a restored job: of an attempt that another core has decided. */
bool lease_was_there(const struct job *job, const struct host *host)
{
    for (struct host **last = job->last; last && *last; last++)
        if (*last == host)
            return true;
    return find(job, host) != NULL;
}

/* Another host than those of the last attempt cannot have it, whatever it says. */
void lease_opened_past(struct core *core, struct job *job, struct host *host)
{
    if (!job->in_queue.in || !lease_was_there(job, host))
        return;
    lease_claim(core, job, host, INT64_MAX);
    queue_changed_job(core, job); /* it may have been the head */
}

void lease_check(struct core *core)
{
    if (core->lease_check_ms > core->now_ms)
        return;
    core->lease_check_ms = INT64_MAX;
    LIST_FOR_EACH_SAFE (node, &core->leases) {
        struct job *job = LEASING(node);
        for (int i = job->info.nlost - 1; i >= 0; i--) {
            int64_t until_ms = job->claims[i].until_ms;
            if (until_ms <= core->now_ms)
                drop(core, job, &job->claims[i]);
            else if (until_ms < core->lease_check_ms)
                core->lease_check_ms = until_ms;
        }
    }
}
