/* sweep.c - end each daemon at each of its steps, one after the other.
 *
 * The story is played once undisturbed, and the shim lists the steps of each kind of process. Then it is played again
 * for each step: the process is killed there and started again, and the outcome must be the same. A second and a third
 * pass take the machine's disk along: of what elmer had not synchronised nothing, or something, is left. Where there
 * is not enough time for all, steps are taken evenly from each (kind, pass).
 *
 * sweep [-j WORKERS] [-t SECONDS] [-l DIR] [-s SEED]: all that the time allows (0: all).
 * sweep -p KIND:STEP:PASS: one, with its log.
 * sweep -k: leave out one sync of the store after the other.
 * sweep -b [-i]: elmer only, until the first failure, for the mutants; with -i no sync works.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/story.h"

enum { POINTS_MAX = 12000, SYNCS_MAX = 1000, WORLD_SECONDS = 60, PASSES = 3, LATE_STEPS = 5 };

static const char *const pass_names[PASSES] = {"killed", "power cut", "power cut, some writes kept"};

struct point {
    enum kind kind;
    unsigned target;
    enum unsynced unsynced;
    int sync_ignored;
    /* outcome */
    bool done, reached, passed;
    unsigned jobs, lost, doubled, dropped;
    int64_t answer_ms;
    struct call at;
    char text[500];
};

struct sweep {
    unsigned counts[KIND_COUNT], ncalls;
    atomic_uint next, stop;
    unsigned npoints, seed;
    unsigned nsyncs, sync_steps[SYNCS_MAX]; /* which steps of elmer make the store safe */
    struct point points[POINTS_MAX];
};

static struct sweep *sweep;
static const char *logs = "/tmp";
static unsigned seconds;
static int64_t begin_ms;
static bool brief, each_sync;
static int sync_ignored = SYNC_IGNORE_NONE;

/* ---- in the world ---- */

/* The steps of the undisturbed story, into its log; and which of elmer's are syncs of the store. */
static void list_calls(const struct control *control)
{
    unsigned step = 0;
    for (unsigned i = 0; i < sweep->ncalls && i < CALLS_MAX; i++) {
        const struct call *call = &control->calls[i];
        step += call->kind == KIND_ELMER;
        printf("%s %d %s %s\n", kind_name(call->kind), call->pid, call->name, call->what);
        if (call->kind == KIND_ELMER && strstr(call->name, "sync") && sweep->nsyncs < SYNCS_MAX)
            sweep->sync_steps[sweep->nsyncs++] = step;
    }
}

static int play(struct world *world, void *data)
{
    struct point *point = data;
    struct story *story = story_create();
    char text[400];
    world->control->unsynced = point->unsynced;
    world->control->seed = sweep->seed + point->target;
    world->control->sync_ignored = point->sync_ignored;
    world->control->kind = (int)point->kind;
    world->control->target = point->target;
    /* every other time on a small disk, where the log of the store is put into the store and cut again and again */
    bool disk =
        point->target % 2 == 0 || mount("small", WORLD "/store", "tmpfs", 0, "size=512k,mode=0700,uid=1,gid=1") == 0;
    if (story && disk)
        world_with_tickets(world);
    world->settings = "levels = 1\nreport_interval = 100ms\n"; /* by which hosts say what a job has computed */
    bool fine = story && disk && world_start(world) && story_play(world, story);
    point->reached = world->control->fired;
    point->at = world->control->fired_at;
    point->dropped = world->control->dropped;
    point->answer_ms = world->answer_ms;
    story_count(story, &point->jobs, &point->lost, &point->doubled);
    if (!fine)
        snprintf(point->text, sizeof(point->text), "%.490s", world->err.text);
    else if (story_wrong(story, point->reached ? point->kind : KIND_NONE, text, sizeof(text)))
        snprintf(point->text, sizeof(point->text), "%.490s", text);
    else
        point->passed = true;
    if (!point->passed) {
        printf("# %s\n", point->text);
        world_show_logs();
    }
    if (!point->target) {
        memcpy(sweep->counts, world->control->counts, sizeof(sweep->counts));
        sweep->ncalls = world->control->ncalls;
        list_calls(world->control);
    }
    return point->passed ? 0 : 1;
}

static void run_point(struct point *point)
{
    char log[400];
    snprintf(log, sizeof(log), "%s/%s-%u-%d.log", logs, point->target ? kind_name(point->kind) : "undisturbed",
             point->target, (int)point->unsynced);
    int status = world_run(play, point, log, WORLD_SECONDS);
    point->done = true;
    if (status > 1) {
        point->passed = false;
        snprintf(point->text, sizeof(point->text), "the world ended with %d", status);
    }
    if (point->passed && point->target)
        unlink(log);
    if (!point->passed && !brief) {
        printf("# FAILED at %s step %u (%s %s), %s: %s; see %s\n", kind_name(point->kind), point->target,
               point->at.name, point->at.what, pass_names[point->unsynced], point->text, log);
        fflush(stdout);
    }
}

/* ---- all of them ---- */

static void add(enum kind kind, unsigned target, enum unsynced unsynced)
{
    if (sweep->npoints < POINTS_MAX)
        sweep->points[sweep->npoints++] =
            (struct point){.kind = kind, .target = target, .unsynced = unsynced, .sync_ignored = sync_ignored};
}

/* In bit-reversed order, so that wherever the time ends, the steps that were taken lie evenly. */
static unsigned scattered(unsigned i, unsigned bits)
{
    unsigned out = 0;
    for (unsigned b = 0; b < bits; b++)
        out |= ((i >> b) & 1) << (bits - 1 - b);
    return out;
}

static void plan(void)
{
    unsigned bits = 1, most = 0;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        most = sweep->counts[kind] > most ? sweep->counts[kind] : most;
    while ((1u << bits) < most + LATE_STEPS)
        bits++;
    for (unsigned i = 0; i < 1u << bits; i++) {
        unsigned target = scattered(i, bits) + 1;
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            if (target > sweep->counts[kind] + LATE_STEPS ||
                (brief && kind != KIND_ELMER)) /* restarts make a few more */
                continue;
            for (int pass = 0; pass < (kind == KIND_ELMER ? PASSES : 1); pass++)
                add((enum kind)kind, target, (enum unsynced)pass);
        }
    }
}

static bool out_of_time(void)
{
    return seconds && world_now_ms() - begin_ms > 1000 * (int64_t)seconds;
}

static void work(void)
{
    for (unsigned i; !sweep->stop && !out_of_time() && (i = atomic_fetch_add(&sweep->next, 1)) < sweep->npoints;) {
        run_point(&sweep->points[i]);
        if (brief && !each_sync && !sweep->points[i].passed)
            sweep->stop = 1;
    }
}

static void work_all(unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            work();
            exit(0);
        }
    }
    while (wait(NULL) > 0 || errno == EINTR) {
    }
}

/* ---- figures ---- */

struct figures {
    unsigned planned, run, reached, failed, jobs, lost, doubled, leftover, dropped;
};

static struct figures count(int kind, int pass)
{
    struct figures f = {0};
    for (unsigned i = 0; i < sweep->npoints; i++) {
        const struct point *p = &sweep->points[i];
        if ((int)p->kind != kind || (int)p->unsynced != pass)
            continue;
        f.planned++;
        f.run += p->done;
        f.reached += p->reached;
        f.failed += p->done && !p->passed;
        f.jobs += p->jobs;
        f.lost += p->lost;
        f.doubled += p->doubled;
        f.dropped += p->dropped;
        f.leftover += strncmp(p->text, "leftovers", 9) == 0;
    }
    return f;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void show_answers(void)
{
    static int64_t times[POINTS_MAX];
    size_t n = 0;
    for (unsigned i = 0; i < sweep->npoints; i++)
        if (sweep->points[i].answer_ms >= 0 && sweep->points[i].done)
            times[n++] = sweep->points[i].answer_ms;
    if (n == 0)
        return;
    qsort(times, n, sizeof(times[0]), compare);
    printf("# elmer's first answer after a start: %" PRId64 " ms in the median, %" PRId64 " ms at most, of %zu\n",
           times[n / 2], times[n - 1], n);
}

static int show(void)
{
    int number = 0, bad = 0;
    printf("1..%d\n", KIND_COUNT + PASSES - 1);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (int pass = 0; pass < (kind == KIND_ELMER ? PASSES : 1); pass++) {
            struct figures f = count(kind, pass);
            bool fine = f.failed == 0 && f.reached > 0;
            bad += !fine;
            printf("# %s, %s: %u steps, %u tried, %u killed; %u jobs, %u lost, %u doubled, %u leftover; %u writes "
                   "undone\n",
                   kind_name((unsigned)kind), pass_names[pass], f.planned, f.run, f.reached, f.jobs, f.lost, f.doubled,
                   f.leftover, f.dropped);
            printf("%sok %d - %s %s: every accepted job ran once and its result is recorded\n", fine ? "" : "not ",
                   ++number, kind_name((unsigned)kind), pass_names[pass]);
        }
    show_answers();
    return bad;
}

/* ---- without one sync ---- */

/* The sync is left out, and the power goes just before the next one: all that it should have made safe is gone. Not
 * each of them is missed: some only write down what the hosts would say again. */
static int without_each_sync(unsigned workers)
{
    unsigned missed = 0, reached = 0;
    for (unsigned i = 0; i + 1 < sweep->nsyncs; i++) {
        sync_ignored = (int)i + 1;
        add(KIND_ELMER, sweep->sync_steps[i + 1], UNSYNCED_GONE);
    }
    brief = true;
    work_all(workers);
    for (unsigned i = 0; i < sweep->npoints; i++) {
        const struct point *point = &sweep->points[i];
        reached += point->reached;
        missed += point->reached && !point->passed;
        if (point->reached && !point->passed)
            printf("# sync %d is missed: %.300s\n", point->sync_ignored, point->text);
    }
    printf(
        "# %u syncs, %u left out with a power cut before the next, %u missed\n1..1\n%sok 1 - a sync that is left out "
        "is missed\n",
        sweep->nsyncs, reached, missed, missed > 0 ? "" : "not ");
    return missed > 0 ? 0 : 1;
}

/* ---- main ---- */

static int one(const char *text)
{
    struct point *point = &sweep->points[0];
    char name[20];
    int pass = 0;
    if (sscanf(text, "%19[a-z-]:%u:%d", name, &point->target, &pass) < 2 || pass < 0 || pass >= PASSES)
        return 2;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (strcmp(name, kind_name((unsigned)kind)) == 0)
            point->kind = (enum kind)kind;
    point->unsynced = (enum unsynced)pass;
    point->sync_ignored = SYNC_IGNORE_NONE;
    run_point(point);
    printf("%s at %s %s: %s\n", point->reached ? "killed" : "not reached", point->at.name, point->at.what,
           point->passed ? "fine" : point->text);
    return point->passed ? 0 : 1;
}

static int undisturbed(void)
{
    static struct point reference;
    struct point *shared = &sweep->points[POINTS_MAX - 1];
    *shared = (struct point){.kind = KIND_NONE, .sync_ignored = SYNC_IGNORE_NONE};
    run_point(shared);
    reference = *shared;
    *shared = (struct point){0};
    if (!brief)
        for (unsigned kind = 0; kind < KIND_COUNT; kind++)
            printf("# %s: %u steps\n", kind_name(kind), sweep->counts[kind]);
    return reference.passed ? 0 : 1;
}

int main(int argc, char **argv)
{
    unsigned workers = 3;
    const char *single = NULL;
    sweep = mmap(NULL, sizeof(*sweep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sweep == MAP_FAILED)
        return 99;
    sweep->seed = 1;
    for (int option; (option = getopt(argc, argv, "j:t:l:s:p:bik")) != -1;)
        switch (option) {
        case 'j':
            workers = (unsigned)atoi(optarg);
            break;
        case 't':
            seconds = (unsigned)atoi(optarg);
            break;
        case 'l':
            logs = optarg;
            break;
        case 's':
            sweep->seed = (unsigned)atoi(optarg);
            break;
        case 'p':
            single = optarg;
            break;
        case 'b':
            brief = true;
            break;
        case 'i':
            sync_ignored = SYNC_IGNORE_ALL;
            break;
        case 'k':
            each_sync = true;
            break;
        default:
            return 2;
        }
    int possible = world_possible();
    if (possible != 0)
        return possible;
    begin_ms = world_now_ms();
    if (single)
        return one(single);
    if (undisturbed() != 0) {
        printf("Bail out! the story does not come out right undisturbed\n");
        return 1;
    }
    if (each_sync)
        return without_each_sync(workers);
    plan();
    work_all(workers);
    if (brief) {
        for (unsigned i = 0; i < sweep->npoints; i++)
            if (sweep->points[i].done && !sweep->points[i].passed)
                printf("# %s step %u, %s: %s\n", kind_name(sweep->points[i].kind), sweep->points[i].target,
                       pass_names[sweep->points[i].unsynced], sweep->points[i].text);
        return sweep->stop ? 1 : 0;
    }
    return show() > 0 ? 1 : 0;
}
