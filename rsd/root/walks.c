/* walks.c - the walks over the jobs' threads that orders, sweeps and ends ask for, within a budget.
 *
 * Whoever walks is ranked above all jobs, so what a walk costs is taken from the first. A user decides how many threads
 * there are, how often they change, and how often a later job of his comes and goes. So walks are done in slices, from
 * the top level down, as long as there is budget, and then they wait. Who pays is the job below: it is opened when the
 * walks that its order needs are done. Nobody waits behind what a job below has spent: the jobs at the top here have a
 * budget, and orders and scans of those below have one each, of which walks take first and scans for new tasks what
 * they leave. Nor behind a job at the top of other processors: of what they may cost all together each has a part of
 * its own, which it uses up first. Nothing wakes up before there is something to spend: waking up is charged too, and
 * once ate it all, so that a new task of the first job was without its rank for seconds. As long as no job here has run
 * for SHORT_MS, orders need no budget: hundreds of short jobs in a second are nobody's first job.
 *
 * A walk is repeated, SETTLE_MS after a change, until one has changed nothing and nobody has vanished: forks that were
 * under way are through by then (that of a large process takes longer: the next sweep finds it). A chain of processes
 * that fork and exit (seen: all the time) would so run away from us. A group that forks too fast is frozen for one
 * walk: when cgroup.events says frozen, no thread is in a fork, so that one meets all. It is frozen when that walk is
 * paid for, and does not wait for more budget: the first job would stand still meanwhile. Freezing interrupts system
 * calls (epoll_wait(2) returns EINTR), so it is not done to groups that behave. What is still missed (the fork of a
 * process that waits behind a higher job) is found by the sweeps that follow each order.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "rsd/root/internal.h"

enum {
    TURN_MS = 3, /* then the loop looks for what else there is */
    SETTLE_MS = 1,
    FREEZE_AFTER_PASSES = 12,
    FREEZE_AFTER_US = 15000, /* of large groups, after a third walk that was not clean */
    FROZEN_MS = 200,         /* a process in a system call that takes longer does not keep the others from going on */
    ORDER_LIMIT_MS = 10000,
    SWEEP_LIMIT_MS = 20,
    LEVELS = 16
};

static const struct {
    int64_t full_us, per_second_us, debt_us;
} allowances[PAYER_COUNT] = {
    /* Paid in a second, with the parts below: new tasks wait no longer, whatever one scan has cost. */
    [PAYER_TOP] = {2000, 3000, 3000},
    [PAYER_ORDERS] = {1000, 2000, 15000},
    [PAYER_SCANS] = {700, 1000, 10000},
};
/* Of all jobs at the top together. What one of them owes is not divided: where they are many a part is less than a
 * slice takes, and who has had one lives on what is left to all for as long as his part does not cover it. */
enum { TOP_PARTS_FULL_US = 1000, TOP_PARTS_PER_SECOND_US = 2000 };

void walks_init(struct root *root)
{
    int64_t now = mono_ms(mono_now());
    for (enum payer payer = 0; payer < PAYER_COUNT; payer++)
        budget_init(&root->paying[payer], allowances[payer].full_us, allowances[payer].per_second_us,
                    allowances[payer].debt_us, now);
}

void walks_init_job(struct root_job *job)
{
    budget_init(&job->top_part, TOP_PARTS_FULL_US, TOP_PARTS_PER_SECOND_US, TOP_PARTS_PER_SECOND_US, job->since_ms);
}

static bool has_level(const struct root_job *job)
{
    return job->ranked && (job->state == JOB_OPENING || job->state == JOB_OPEN || job->state == JOB_TERMINATING);
}

static const cpu_set_t *cpus_of(const struct root *root, const struct root_job *job)
{
    return job->ncpus > 0 ? &job->cpus : &root->cpus;
}

/* One that dies at its own rank is first, and takes from nobody above. */
static bool is_at_top(const struct root *root, const struct root_job *job)
{
    if (job->state == JOB_KILLING)
        return death_at_own_rank(root, job);
    return has_level(job) && job->level <= root->top_level;
}

static int64_t part_of(int64_t all_us, size_t parts)
{
    assert(parts > 0);
    return all_us > (int64_t)parts ? all_us / (int64_t)parts : 1;
}

void walks_fill(struct root *root, int64_t now)
{
    size_t at_top = 0;
    for (enum payer payer = 0; payer < PAYER_COUNT; payer++)
        budget_charge(&root->paying[payer], 0, now);
    root->top_level = UINT_MAX;
    for (size_t i = 0; i < root->job_count; i++) {
        if (has_level(root->jobs[i]) && root->jobs[i]->level < root->top_level)
            root->top_level = root->jobs[i]->level;
    }
    for (size_t i = 0; i < root->job_count; i++)
        at_top += is_at_top(root, root->jobs[i]);
    for (size_t i = 0; i < root->job_count; i++) {
        budget_charge(&root->jobs[i]->top_part, 0, now);
        if (is_at_top(root, root->jobs[i]))
            budget_resize(&root->jobs[i]->top_part, part_of(TOP_PARTS_FULL_US, at_top),
                          part_of(TOP_PARTS_PER_SECOND_US, at_top), TOP_PARTS_PER_SECOND_US);
    }
}

enum payer walks_payer(const struct root *root, const struct root_job *job, bool order)
{
    if (is_at_top(root, job))
        return PAYER_TOP;
    return order ? PAYER_ORDERS : PAYER_SCANS;
}

void walks_charge(struct root *root, struct root_job *job, enum payer payer, int64_t since_ns)
{
    const int64_t used_ns = budget_own_ns() - since_ns;
    const bool own = payer == PAYER_TOP && job->top_part.left_ns > 0;
    budget_charge(own ? &job->top_part : &root->paying[payer], used_ns, mono_ms(mono_now()));
    root->charged_ns[payer] += used_ns;
}

int64_t walks_paid_ms(const struct root *root, const struct root_job *job, bool order)
{
    const enum payer payer = walks_payer(root, job, order);
    const int64_t paid = budget_when(&root->paying[payer], 0);
    return payer == PAYER_TOP ? earlier(paid, budget_when(&job->top_part, 0)) : paid;
}

static enum payer payer_of(const struct root *root, const struct root_job *job)
{
    return walks_payer(root, job, job->walk.why == WALK_ORDER);
}

static int64_t paid_ms(const struct root *root, const struct root_job *job)
{
    return walks_paid_ms(root, job, job->walk.why == WALK_ORDER);
}

void walk_stop(struct root_job *job)
{
    struct walk *walk = &job->walk;
    sched_pass_end(&walk->pass);
    if (walk->freezing)
        group_freeze(&job->group, false);
    walk->freezing = walk->in_pass = false;
    walk->why = WALK_NONE;
}

void walk_begin(struct root_job *job, enum walk_why why)
{
    struct walk *walk = &job->walk;
    int64_t now = mono_ms(mono_now());
    if (job->group.job_fd < 0 || (why == WALK_SWEEP && walk->why != WALK_NONE))
        return;
    walk_stop(job);
    walk->why = why;
    walk->passes = 0;
    walk->used_ns = 0;
    job->walked &= why != WALK_ORDER;
    walk->due_ms = now;
    walk->limit_ms = now + (why == WALK_ORDER ? ORDER_LIMIT_MS : SWEEP_LIMIT_MS);
}

static void say(struct root_job *job, int result)
{
    const struct sched_count *count = &job->walk.pass.count;
    if (result == -ETIME && job->walk.why == WALK_ORDER)
        log_warning("job=%s: %zu threads kept changing while they got their rank; the scan of each second goes on "
                    "with it",
                    job->name, count->threads);
    else if (result < 0 && result != -ETIME && job->walk.why == WALK_ORDER)
        log_warning("job=%s: cannot walk its group: %s", job->name, strerror(-result));
    else if (count->refused > 0 && !job->refusal_logged) {
        log_warning("job=%s: the kernel refused rank or CPUs for %zu of its threads", job->name, count->refused);
        job->refusal_logged = true;
    }
}

static bool should_freeze(const struct walk *walk)
{
    return walk->why == WALK_ORDER && !walk->freezing &&
           (walk->passes >= FREEZE_AFTER_PASSES ||
            (walk->passes >= 3 && walk->used_ns >= (int64_t)FREEZE_AFTER_US * 1000));
}

/* known: how many its threads are, by which they were ranked. */
static void pass_done(struct root_job *job, int result, bool known)
{
    struct walk *walk = &job->walk;
    const struct sched_count *count = &walk->pass.count;
    int64_t now = mono_ms(mono_now());
    bool clean = count->changed == 0 && (count->vanished == 0 || walk->why != WALK_ORDER);
    walk->in_pass = false;
    walk->passes++;
    if (walk->freezing)
        clean = known;
    if (result == 0 && !clean && now >= walk->limit_ms)
        result = -ETIME;
    if (result < 0 || clean) {
        say(job, result);
        job->renice = false;
        job->walked |= walk->why == WALK_ORDER;
        walk_stop(job);
        return;
    }
    walk->due_ms = now + SETTLE_MS;
}

/* Where that is needed, the group stands still. */
static bool may_pass(struct root_job *job)
{
    struct walk *walk = &job->walk;
    int64_t now = mono_ms(mono_now());
    if (should_freeze(walk) && group_freeze(&job->group, true) == 0) {
        walk->freezing = true;
        walk->thaw_ms = now + FROZEN_MS;
    }
    if (!walk->freezing || group_frozen(&job->group))
        return true;
    if (now >= walk->thaw_ms)
        pass_done(job, -ETIME, true);
    else
        walk->due_ms = now + SETTLE_MS;
    return false;
}

/* As a job is that is being opened: nobody is there to be walked, which is said faster than who is. Not of one that
 * ends: whoever reads events_fd takes the wake-up that tells of its end. */
static bool is_empty(const struct root_job *job)
{
    return (job->state == JOB_OPENING || job->state == JOB_OPEN) && group_is_empty(&job->group);
}

static void step(struct root *root, struct root_job *job)
{
    struct walk *walk = &job->walk;
    struct sched_target target = ranks_target(root, job);
    int result = 0;
    bool known;
    if (!walk->in_pass) {
        if (walk->why == WALK_SWEEP && walk->passes == 0) /* reads all of the group, and here that is paid for */
            ranks_prune_helpers(job);
        if (!walk->freezing && is_empty(job)) {
            walk->pass.count = (struct sched_count){0};
            pass_done(job, 0, true);
            return;
        }
        if (!may_pass(job))
            return;
        result = sched_pass_begin(&walk->pass, &job->group);
        walk->in_pass = true;
    }
    if (result == 0)
        result = sched_pass_step(&walk->pass, &job->group, &target);
    if (result == 1)
        return;
    known = target.crowded == job->crowded;
    if (!known) {
        job->crowded = target.crowded;
        ranks_tell(root, job);
    }
    pass_done(job, result, known);
}

/* Where all jobs are short, nobody needs protection from the orders that each of them brings. */
static bool orders_are_free(const struct root *root, int64_t now)
{
    for (size_t i = 0; i < root->job_count; i++) {
        if (root->jobs[i]->state == JOB_OPEN && now - root->jobs[i]->since_ms >= SHORT_MS)
            return false;
    }
    return true;
}

/* free: orders_are_free(). */
static bool is_paid(const struct root *root, const struct root_job *job, int64_t now, bool free)
{
    return job->walk.freezing || (free && job->walk.why == WALK_ORDER) || paid_ms(root, job) <= now;
}

static unsigned row_of(const struct root_job *job)
{
    return job->level < LEVELS ? job->level : LEVELS - 1;
}

/* CPUs of jobs of each level whose order waits for budget: who is below them there would get a rank above theirs. */
static void find_unpaid(const struct root *root, int64_t now, bool free, cpu_set_t unpaid[LEVELS])
{
    memset(unpaid, 0, LEVELS * sizeof(unpaid[0]));
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        cpu_set_t *cpus = &unpaid[row_of(job)];
        if (job->walk.why == WALK_ORDER && has_level(job) && !is_paid(root, job, now, free))
            CPU_OR(cpus, cpus, cpus_of(root, job));
    }
}

/* But one that is frozen has begun when nobody was, and must not stand still for longer than its walk takes. */
static bool stands_behind(const struct root *root, const struct root_job *job, const cpu_set_t unpaid[LEVELS])
{
    cpu_set_t both;
    if (job->walk.why != WALK_ORDER || job->walk.freezing || !has_level(job))
        return false;
    for (unsigned level = 0; level < row_of(job); level++) {
        CPU_AND(&both, &unpaid[level], cpus_of(root, job));
        if (CPU_COUNT(&both) > 0)
            return true;
    }
    return false;
}

/* Orders first: others wait for them. At the top first who has cost less. */
static bool comes_first(const struct root_job *a, const struct root_job *b)
{
    if ((a->walk.why == WALK_ORDER) != (b->walk.why == WALK_ORDER))
        return a->walk.why == WALK_ORDER;
    return a->level != b->level ? a->level < b->level : a->top_part.left_ns > b->top_part.left_ns;
}

static struct root_job *next_due(const struct root *root, int64_t now)
{
    struct root_job *first = NULL;
    cpu_set_t unpaid[LEVELS];
    const bool free = orders_are_free(root, now);
    find_unpaid(root, now, free, unpaid);
    for (size_t i = 0; i < root->job_count; i++) {
        struct root_job *job = root->jobs[i];
        if (job->walk.why != WALK_NONE && job->walk.due_ms <= now && is_paid(root, job, now, free) &&
            !stands_behind(root, job, unpaid) && (!first || comes_first(job, first)))
            first = job;
    }
    return first;
}

void walks_run(struct root *root)
{
    int64_t now = mono_ms(mono_now()), end = now + TURN_MS;
    struct root_job *job;
    walks_fill(root, now);
    while (now < end && (job = next_due(root, now))) {
        enum payer payer = payer_of(root, job);
        int64_t before = budget_own_ns();
        step(root, job);
        job->walk.used_ns += budget_own_ns() - before;
        walks_charge(root, job, payer, before);
        now = mono_ms(mono_now());
    }
}

bool walks_above(const struct root *root, const struct root_job *job)
{
    cpu_set_t both;
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *other = root->jobs[i];
        if (other == job || other->walk.why != WALK_ORDER)
            continue;
        CPU_AND(&both, cpus_of(root, other), cpus_of(root, job));
        if (!has_level(job) || !has_level(other) || (other->level < job->level && CPU_COUNT(&both) > 0))
            return true;
    }
    return false;
}

bool walks_of_order(const struct root *root)
{
    for (size_t i = 0; i < root->job_count; i++) {
        if (root->jobs[i]->walk.why == WALK_ORDER)
            return true;
    }
    return false;
}

int64_t walks_next(const struct root *root)
{
    int64_t next = INT64_MAX, now = mono_ms(mono_now());
    cpu_set_t unpaid[LEVELS];
    const bool free = orders_are_free(root, now);
    find_unpaid(root, now, free, unpaid);
    for (size_t i = 0; i < root->job_count; i++) {
        const struct root_job *job = root->jobs[i];
        int64_t due = job->walk.due_ms, paid = paid_ms(root, job);
        if (job->walk.why == WALK_NONE || stands_behind(root, job, unpaid))
            continue;
        next = earlier(next, due > paid || is_paid(root, job, now, free) ? due : paid);
    }
    return next;
}
