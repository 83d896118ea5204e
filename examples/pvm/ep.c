/* ep - the NAS kernel EP on PVM, balancing itself.
 *
 * The master spawns P tasks and sleeps in pvm_recv. Every task first gets a small grant of batches, and the time that
 * it takes tells how fast it works; from then on each finished grant is answered by a new one, in proportion to the
 * speed just seen and never more than half of the fair share of what is left. So a task on a shared or slow processor
 * gets less from the start, one that turns slow later holds up little, and there are only some tens of messages.
 *
 * The sums of every batch come back separately and are added in the order of the batches: the result is the same to
 * the last bit, whoever computed what. Verified against the reference values of the NAS benchmarks; for a size
 * without one, only that each batch was done once and that the number of Gaussian pairs is plausible.
 */
#include "common.h"
#include "ep_kernel.h"

#include <math.h>
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum tag { TAG_GRANT = 1, TAG_RESULT };
enum { M_MIN = EP_MK, M_MAX = 40, GRANT_MAX = 4096 /* batches: bounds the message */ };

/* A run of batches for a task; none left: the task is to end. */
struct grant {
    int64_t first, count;
};

static const struct reference {
    char name;
    int m;
    double x, y;
    int64_t pairs; /* 0: not known */
} references[] = {
    {'S', 24, -3.247834652034740e3, -6.958407078382297e3, 13176389},
    {'W', 25, -2.863319731645753e3, -6.320053679109499e3, 0},
    {'A', 28, -4.295875165629892e3, -1.580732573678431e4, 0},
    {'B', 30, 4.033815542441498e4, -2.660669192809235e4, 0},
};
enum { NREFERENCES = sizeof(references) / sizeof(*references) };

/* A task as the master sees it. */
struct worker {
    int tid;
    double speed; /* batches per second in the last grant; 0 before the first has come back */
    double granted_at;
    struct grant grant;
    int64_t done;
};

struct run {
    int m;
    int tasks;
    int64_t batches, next, done;
    double *x, *y; /* by batch */
    char *seen;
    int64_t rings[EP_RINGS];
    struct worker worker[EXAMPLE_TASKS_MAX];
};

/* ---- the task ---- */

static int task(void)
{
    int parent = example_check(pvm_parent(), "pvm_parent");
    example_check(pvm_notify(PvmTaskExit, EXAMPLE_TAG_GONE, 1, &parent), "pvm_notify");
    for (;;) {
        struct grant grant;
        int from, bytes;
        int tag = example_receive(&from, &bytes);
        if (tag == EXAMPLE_TAG_GONE)
            example_die("the master ended too early");
        if (tag != TAG_GRANT || bytes != (int)sizeof(grant) || pvm_upkbyte((char *)&grant, sizeof(grant), 1) < 0)
            example_die("message %d of %d bytes from t%x instead of a grant", tag, bytes, (unsigned)from);
        if (grant.count == 0)
            break;
        pvm_initsend(PvmDataRaw);
        pvm_pkbyte((char *)&grant, sizeof(grant), 1);
        for (int64_t i = 0; i < grant.count; i++) {
            struct ep_sums sums;
            ep_batch(grant.first + i, &sums);
            example_check(pvm_pkbyte((char *)&sums, sizeof(sums), 1), "pvm_pkbyte");
        }
        example_check(pvm_send(parent, TAG_RESULT), "pvm_send");
    }
    pvm_exit();
    return 0;
}

/* ---- the master ---- */

/* The speed of all tasks together; one that has not answered yet counts as the mean of the others. */
static double speed_of_all(const struct run *run)
{
    double sum = 0;
    int known = 0;
    for (int i = 0; i < run->tasks; i++) {
        if (run->worker[i].speed > 0) {
            sum += run->worker[i].speed;
            known++;
        }
    }
    return known ? sum * run->tasks / known : 0;
}

/* Grant work to w: first a little, to measure; then half of its fair share of what is left, at least one batch. */
static void grant_work(struct run *run, struct worker *w)
{
    int64_t left = run->batches - run->next;
    int64_t count;
    if (w->speed > 0)
        count = (int64_t)((double)left * 0.5 * w->speed / speed_of_all(run));
    else
        count = run->batches / run->tasks / 32;
    count = count < 1 ? 1 : count;
    count = count > GRANT_MAX ? GRANT_MAX : count;
    count = count > left ? left : count;
    w->grant = (struct grant){.first = run->next, .count = count};
    w->granted_at = example_now();
    run->next += count;
    pvm_initsend(PvmDataRaw);
    pvm_pkbyte((char *)&w->grant, sizeof(w->grant), 1);
    example_check(pvm_send(w->tid, TAG_GRANT), "pvm_send");
}

static struct worker *find_worker(struct run *run, int tid)
{
    for (int i = 0; i < run->tasks; i++)
        if (run->worker[i].tid == tid)
            return &run->worker[i];
    return NULL;
}

/* Take in the sums of one grant and measure the speed of its worker. */
static void accept_result(struct run *run, struct worker *w, int bytes)
{
    struct grant grant;
    example_check(pvm_upkbyte((char *)&grant, sizeof(grant), 1), "pvm_upkbyte");
    if (grant.first != w->grant.first || grant.count != w->grant.count ||
        bytes != (int)(sizeof(grant) + (size_t)grant.count * sizeof(struct ep_sums)))
        example_die("t%x has sent the result of other batches than it was given", (unsigned)w->tid);
    for (int64_t b = grant.first; b < grant.first + grant.count; b++) {
        struct ep_sums sums;
        example_check(pvm_upkbyte((char *)&sums, sizeof(sums), 1), "pvm_upkbyte");
        if (run->seen[b])
            example_die("batch %lld has come twice", (long long)b);
        run->seen[b] = 1;
        run->x[b] = sums.x;
        run->y[b] = sums.y;
        for (int i = 0; i < EP_RINGS; i++)
            run->rings[i] += sums.rings[i];
    }
    w->speed = (double)grant.count / fmax(example_now() - w->granted_at, 1e-6);
    w->done += grant.count;
    run->done += grant.count;
}

static void compute(struct run *run)
{
    static int tids[EXAMPLE_TASKS_MAX];
    example_spawn(run->tasks, tids);
    for (int i = 0; i < run->tasks; i++)
        run->worker[i].tid = tids[i];
    for (int i = 0; i < run->tasks; i++)
        grant_work(run, &run->worker[i]);
    /* A grant without batches ends its task, so with fewer batches than tasks some end before the others. */
    while (run->done < run->batches) {
        int from, bytes;
        int tag = example_receive(&from, &bytes);
        if (tag == EXAMPLE_TAG_GONE) {
            example_check(pvm_upkint(&from, 1, 1), "pvm_upkint");
            struct worker *gone = find_worker(run, from);
            if (gone && gone->grant.count == 0)
                continue;
            example_die("task t%x ended with its work undone", (unsigned)from);
        }
        struct worker *w = find_worker(run, from);
        if (tag != TAG_RESULT || !w)
            example_die("message %d from t%x instead of a result", tag, (unsigned)from);
        accept_result(run, w, bytes);
        grant_work(run, w);
    }
    example_release();
}

static int close_enough(double value, double reference)
{
    return fabs((value - reference) / reference) <= 1e-8;
}

/* Within six standard deviations of pi/4 of all pairs? */
static int plausible(int64_t gaussian, int64_t pairs)
{
    double p = atan(1), n = (double)pairs;
    return fabs((double)gaussian - n * p) <= 6 * sqrt(n * p * (1 - p));
}

static const struct reference *reference_of(int m)
{
    for (int i = 0; i < NREFERENCES; i++)
        if (references[i].m == m)
            return &references[i];
    return NULL;
}

/* Add up, compare, print the line. Returns the exit status. */
static int judge(const struct run *run, double elapsed)
{
    double x = 0, y = 0;
    int64_t gaussian = 0;
    for (int64_t b = 0; b < run->batches; b++) {
        x += run->x[b];
        y += run->y[b];
    }
    for (int i = 0; i < EP_RINGS; i++)
        gaussian += run->rings[i];
    const struct reference *r = reference_of(run->m);
    int good = plausible(gaussian, run->batches << EP_MK);
    if (r)
        good = good && close_enough(x, r->x) && close_enough(y, r->y) && (!r->pairs || r->pairs == gaussian);
    const char *verdict = !good ? "NOT verified" : r ? "verified" : "plausible (no reference for this size)";
    printf("ep: %s class=%c m=%d tasks=%d pairs=%lld x=%.15e y=%.15e batches=", verdict, r ? r->name : '-', run->m,
           run->tasks, (long long)gaussian, x, y);
    for (int i = 0; i < run->tasks; i++)
        printf("%s%lld", i ? ":" : "", (long long)run->worker[i].done);
    printf(" elapsed=%.3f\n", elapsed);
    return good && fflush(stdout) == 0 ? 0 : 1;
}

static int master(int m, int tasks)
{
    static struct run run;
    double begin = example_now();
    run = (struct run){.m = m, .tasks = tasks, .batches = INT64_C(1) << (m - EP_MK)};
    run.x = calloc((size_t)run.batches, sizeof(*run.x));
    run.y = calloc((size_t)run.batches, sizeof(*run.y));
    run.seen = calloc((size_t)run.batches, 1);
    if (!run.x || !run.y || !run.seen)
        example_die("no memory for %lld batches", (long long)run.batches);
    compute(&run);
    pvm_exit();
    int status = judge(&run, example_now() - begin);
    free(run.x);
    free(run.y);
    free(run.seen);
    return status;
}

static void usage(void)
{
    fputs("usage: ep [-P tasks] [-c S|W|A|B | -m M]\n"
          "  2^M pairs; class S (default) is M=24, W 25, A 28, B 30; -P is 2 unless ELMER_NPROCS says otherwise\n",
          stderr);
    exit(2);
}

static int class_size(const char *name)
{
    for (int i = 0; i < NREFERENCES; i++)
        if (name[0] == references[i].name && name[1] == '\0')
            return references[i].m;
    usage();
    return 0;
}

int main(int argc, char **argv)
{
    int m = references[0].m;
    if (argc == 2 && strcmp(argv[1], EXAMPLE_TASK) == 0) {
        example_name("ep task");
        example_enrol();
        return task();
    }
    example_name("ep");
    const char *nprocs = getenv("ELMER_NPROCS");
    int tasks = nprocs ? (int)example_integer('P', nprocs, 1, EXAMPLE_TASKS_MAX) : 2;
    for (int c; (c = getopt(argc, argv, "P:c:m:")) != -1;) {
        switch (c) {
        case 'P':
            tasks = (int)example_integer('P', optarg, 1, EXAMPLE_TASKS_MAX);
            break;
        case 'c':
            m = class_size(optarg);
            break;
        case 'm':
            m = (int)example_integer('m', optarg, M_MIN, M_MAX);
            break;
        default:
            usage();
        }
    }
    if (optind != argc)
        usage();
    example_enrol();
    return master(m, tasks);
}
