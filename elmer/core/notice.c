/* notice.c - notices: jobs that tell about another one, or have read what one has left, and take no processor.
 *
 * A notice may wait for another job as any job may (after.c). It is in no queue and in no table: nobody waits because
 * of it, and it waits for nobody's processors. It names one host, and starts there when that host is up, drained or
 * not: a few at a time, and fewer of one user, so that one whose notices hang leaves room for those of others. (Behind
 * thousands of his they are found a few hundred further with each notice that ends.) Everything else about it is as of
 * any job: it is opened, launched, ended and lost, it has attempts and leases (life.c, lease.c). Its processor is a CPU
 * of its host on which few jobs are; in an order it stands below all of them (emit.c). When its host is no host of the
 * cluster any more it is cancelled and says so.
 *
 * Invariant: host->notices has those that are QUEUED, wait for nothing and have no claim, and are not about to be
 * cancelled.
 */
#include "elmer/core/internal.h"

#include <stdlib.h>

#define NOTICE(node) LIST_ITEM(node, struct job, in_notices)

/* Of those that are ready so many are looked at in a step, because some users may have all that they may have. */
enum { LOOKED_AT = 256 };

static bool is_ready(const struct job *job)
{
    return job->info.state == JOB_QUEUED && after_met(job) && job->info.nlost == 0;
}

struct host *notice_host(const struct core *core, const struct job *job)
{
    struct host *host = job->info.nhosts > 0 ? core->hosts[job->hosts[0]] : NULL;

    return host && !host->info.retired ? host : NULL;
}

char *notice_homeless_text(void)
{
    return job_copy_text("the host where it would have run is no host of the cluster any more");
}

/* Cancelled by after_cancel_doomed(), some in each step. */
static void give_up(struct core *core, struct job *job)
{
    list_remove(&job->in_notices);
    if (!node_linked(&job->in_doomed))
        list_append(&core->doomed, &job->in_doomed);
}

void notice_look(struct core *core, struct host *host)
{
    if (host && !list_empty(&host->notices) && !node_linked(&host->in_noticing))
        list_append(&core->noticing, &host->in_noticing);
}

void notice_leave(struct job *job)
{
    list_remove(&job->in_notices);
}

void notice_changed(struct core *core, struct job *job)
{
    struct host *host = notice_host(core, job);

    if (!is_ready(job)) {
        list_remove(&job->in_notices);
    } else if (!host) {
        give_up(core, job);
    } else if (!node_linked(&job->in_notices) && !node_linked(&job->in_doomed)) {
        list_append(&host->notices, &job->in_notices);
        notice_look(core, host);
    }
}

/* Notices on the host now, of this user or of all. */
static int count_there(const struct host *host, const struct owner *user)
{
    int count = 0;

    LIST_FOR_EACH (node, &host->parts) {
        const struct job *job = LIST_ITEM(node, const struct part, on_host)->job;
        count += job->info.notice && (!user || job->user == user);
    }
    return count;
}

/* The one with the fewest jobs. */
static int choose_cpu(const struct host *host)
{
    int best = host->cpus[0];

    for (int i = 1; i < host->info.ncpus; i++)
        if (host->processors[host->cpus[i]].next_level < host->processors[best].next_level)
            best = host->cpus[i];
    return best;
}

static void start(struct core *core, struct host *host, struct job *job)
{
    const struct core_processor choice = {.host = host->index, .cpu = choose_cpu(host)};
    struct core_processor *processors = mem_copy(&choice, 1, sizeof(choice));
    struct part *parts;
    int nparts = alloc_make_parts(core, processors, 1, &parts);

    life_start(core, job, processors, parts, nparts, mem_array(1, 1));
}

/* Those of users who have as many as they may go to the end, so that others are seen. */
static void start_some(struct core *core, struct host *host)
{
    int room = CORE_NOTICES_AT_ONCE - count_there(host, NULL), looked = 0;
    struct node *node;

    while (room > 0 && looked++ < LOOKED_AT && (node = list_first(&host->notices))) {
        struct job *job = NOTICE(node);
        if (count_there(host, job->user) < CORE_NOTICES_OF_USER) {
            start(core, host, job); /* takes it from the list */
            room--;
        } else {
            list_remove(node);
            list_append(&host->notices, node);
        }
    }
}

void notice_run(struct core *core)
{
    struct node *node, *first;

    while ((node = list_first(&core->noticing))) {
        struct host *host = LIST_ITEM(node, struct host, in_noticing);
        list_remove(node);
        while (host->info.retired && (first = list_first(&host->notices)))
            give_up(core, NOTICE(first));
        if (host->info.state == CORE_HOST_UP && !host->info.closed && host->info.ncpus > 0)
            start_some(core, host);
    }
}
