/* weights.c - what jobs weigh against the rest of the host, where the controller cpu is there.
 *
 * Somebody who logs in, or types ekill, is in SCHED_OTHER, and so is the lowest job on each processor, however many
 * processes and sessions it has. Beside a job in real time both live on what the kernel keeps from that, 50 ms of a
 * second. So a job that shares as the lowest weighs 1, and of these 50 ms nearly all are for whoever logs in; when
 * nobody wants to run, the job gets what the first leaves as before. A job that shares with nobody weighs 100, as
 * everybody does, so that it keeps its half of a processor beside a user who compiles there.
 *
 * The kernel deals the weight of a group to the processors by what its children weigh there: as long as a lonely job is
 * on the host, the weight of all jobs together (the slice) stays 100, and what the jobs weigh makes the cut. When all
 * jobs share, the slice weighs 1 too. systemd sets it back when units are reloaded; so each sweep says it again. Both
 * are files, and nothing here waits for D-Bus.
 */
#include "config.h"

#include "rsd/root/controllers.h"
#include "rsd/root/internal.h"

enum { ORDINARY = 100, LEAST = 1 };

static bool counts(const struct root_job *job)
{
    return job->ranked && job->state < JOB_CLOSING;
}

/* It needs little, and all others wait for its end. */
static bool is_dying(const struct root_job *job)
{
    return job->state == JOB_KILLING;
}

/* In mode idle the first job is in SCHED_OTHER itself. */
static bool all_share(const struct root *root)
{
    bool any = false;
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        if (counts(job) && ((job->lowest && job->level == 0) || is_dying(job)))
            return false;
        any |= counts(job);
    }
    return any && root->mode == ORDER_MODE_RT;
}

static void weigh_slice(struct root *root, unsigned weight, bool again)
{
    if (weight == root->weight && (!again || weight == ORDINARY))
        return;
    if (place_weigh(root, weight) == 0)
        root->weight = weight;
}

void weights_apply(struct root *root, bool again)
{
    if (!(root->controllers & CONTROLLER_CPU))
        return;
    for (size_t i = 0; i < root->job_count; i++) {
        struct root_job *job = root->jobs[i];
        unsigned weight = is_dying(job) ? ORDINARY : order_weight(root->mode, job->level, job->lowest);
        if (counts(job) && weight != job->weight && group_weigh(&job->group, weight) == 0)
            job->weight = weight;
    }
    weigh_slice(root, all_share(root) ? LEAST : ORDINARY, again);
}

void weights_give_back(struct root *root)
{
    if (root->weight != ORDINARY)
        weigh_slice(root, ORDINARY, false);
}
