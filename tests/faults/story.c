/* story.c - see story.h. What there is to play is in story_plans.c. */
#include "config.h"

#include "tests/faults/story.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libelmer/elmer.h"
#include "tests/faults/story_plans.h"

enum { PATIENCE_MS = 20000, STORY_MS = 40000, CLEAN_MS = 5000 };

/* ---- the user ---- */

struct user {
    struct story *story;
    struct elmer *elmer;
    int64_t begin_ms;
};

/* For whoever reads the log of a failed point. */
static void trace(const struct user *user, const char *what, enum story_job job)
{
    printf("# %5" PRId64 " ms: %s %s\n", world_now_ms() - user->begin_ms, what, story_plans[job].name);
    fflush(stdout);
}

static _Noreturn void give_up(struct user *user, const char *what, const struct elmer_error *error)
{
    snprintf(user->story->problem, sizeof(user->story->problem), "%s: %.300s", what, error ? error->text : "too late");
    _exit(1);
}

static void submit(struct user *user, enum story_job job)
{
    const char *command[] = {"/bin/sh", "-c", story_plans[job].script, NULL};
    const char *environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct elmer_submission submission = {.nprocs = story_plans[job].nprocs,
                                          .each = story_plans[job].each,
                                          .keep_never = story_plans[job].keep_never,
                                          .requeue = story_plans[job].requeue,
                                          .limit_requeue = story_plans[job].limit_requeue,
                                          .time_limit_ms = story_plans[job].time_limit_ms,
                                          .cpu_limit_ms = story_plans[job].cpu_limit_ms,
                                          .memory_bytes = story_plans[job].memory_bytes,
                                          .command = command,
                                          .environment = environment,
                                          .name = story_plans[job].name,
                                          .dir = WORLD "/work",
                                          .output = "/dev/null",
                                          .token = story_plans[job].name,
                                          .tasks = story_plans[job].tasks,
                                          .lines = story_plans[job].lines,
                                          .umask = 022};
    struct elmer_submitted *submitted;
    const int64_t deadline = world_now_ms() + PATIENCE_MS;
    int result;
    struct elmer_error error = {{0}};
    const char *after[3] = {NULL};
    char texts[2][40];
    for (int i = 0; i < 2 && story_plans[job].after[i].kind; i++) {
        snprintf(texts[i], sizeof(texts[i]), "%s:%" PRIu64, story_plans[job].after[i].kind,
                 user->story->jobs[story_plans[job].after[i].job].id + story_plans[job].after[i].task);
        after[i] = texts[i];
    }
    submission.after = after;
    while ((result = elmer_submit(user->elmer, &submission, PATIENCE_MS, &submitted, &error)) == ELMER_UNAVAILABLE &&
           world_now_ms() < deadline)
        world_pause(); /* libelmer waits 8 s for who signs, and an rsd that cannot begin tries again after 5 s */
    if (result != ELMER_OK)
        give_up(user, story_plans[job].name, &error);
    user->story->jobs[job].id = submitted->job;
    trace(user, "submitted", job);
    elmer_submitted_free(submitted);
}

static void take(struct outcome *outcome, const struct elmer_job *job)
{
    snprintf(outcome->state, sizeof(outcome->state), "%s", job->state);
    snprintf(outcome->reason, sizeof(outcome->reason), "%s", job->reason_code);
    snprintf(outcome->text, sizeof(outcome->text), "%.199s", job->reason);
    outcome->exit_status = job->exit_status;
    outcome->signal = job->signal;
    outcome->tasks_ok = job->tasks_ok;
    outcome->tasks_failed = job->tasks_failed;
    outcome->time_limit_ms = job->time_limit_ms;
    outcome->cpu_limit_ms = job->cpu_limit_ms;
    outcome->memory_bytes = job->memory_bytes;
    outcome->cpu_ms = 0;
    for (size_t i = 0; i < job->nusage; i++)
        outcome->cpu_ms += 1000 * job->usage[i].cpu_seconds;
}

/* Until it has ended, or is in this state. */
static void await(struct user *user, enum story_job job, const char *state)
{
    int64_t deadline = world_now_ms() + PATIENCE_MS;
    struct outcome *outcome = &user->story->jobs[job];
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    for (bool ended = false; !ended;) {
        int result = state ? elmer_query(user->elmer, false, false, &outcome->id, 1, PATIENCE_MS, &jobs, &error)
                           : elmer_wait(user->elmer, outcome->id, PATIENCE_MS, &jobs, &error);
        if (result != ELMER_OK)
            give_up(user, story_plans[job].name, &error);
        if (jobs->count != 1)
            give_up(user, "an accepted job is not known", NULL);
        take(outcome, &jobs->items[0]);
        ended = elmer_job_ended(&jobs->items[0]) || (state && strcmp(state, jobs->items[0].state) == 0);
        elmer_jobs_free(jobs);
        if (!ended && world_now_ms() > deadline)
            give_up(user, story_plans[job].name, NULL);
        if (!ended)
            world_pause();
    }
    trace(user, outcome->state, job);
}

/* Asked again after a lost answer the job is no longer in the state for it: that is as good. */
static void tell(struct user *user, const char *what, enum story_job job,
                 int (*call)(struct elmer *, uint64_t, int, struct elmer_error *, struct elmer_error *))
{
    struct elmer_error error = {{0}};
    int result = call(user->elmer, user->story->jobs[job].id, PATIENCE_MS, NULL, &error);
    if (result != ELMER_OK && result != ELMER_WRONG_STATE)
        give_up(user, story_plans[job].name, &error);
    trace(user, what, job);
}

/* The same for tasks of an array. */
static void tell_tasks(struct user *user, const char *what, enum story_job job, const char *tasks,
                       int (*call)(struct elmer *, uint64_t, const char *, int, struct elmer_error *,
                                   struct elmer_error *))
{
    struct elmer_error error = {{0}};
    int result = call(user->elmer, user->story->jobs[job].id, tasks, PATIENCE_MS, NULL, &error);
    if (result != ELMER_OK && result != ELMER_WRONG_STATE)
        give_up(user, story_plans[job].name, &error);
    trace(user, what, job);
}

/* It waits, and nobody but the user changes that. task: as in struct plan. */
static void expect_waiting(struct user *user, enum story_job job, unsigned task, const char *state)
{
    const uint64_t id = user->story->jobs[job].id + task;
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    if (elmer_query(user->elmer, false, false, &id, 1, PATIENCE_MS, &jobs, &error) != ELMER_OK)
        give_up(user, story_plans[job].name, &error);
    if (jobs->count != 1 || strcmp(jobs->items[0].state, state) != 0) {
        snprintf(error.text, sizeof(error.text), "%s, not %s", jobs->count ? jobs->items[0].state : "unknown", state);
        give_up(user, story_plans[job].name, &error);
    }
    elmer_jobs_free(jobs);
    trace(user, state, job);
}

/* Nobody has released it, and there is a processor for it. */
static void release_held(struct user *user)
{
    expect_waiting(user, JOB_HELD, 0, "held");
    tell(user, "releases", JOB_HELD, elmer_release);
    await(user, JOB_HELD, NULL);
}

/* The other tasks have run, so there was a processor for this one, too. */
static void release_part(struct user *user)
{
    for (unsigned task = 1; task <= 3; task += 2) {
        struct elmer_error error = {{0}};
        struct elmer_jobs *jobs;
        if (elmer_wait(user->elmer, user->story->jobs[JOB_PARTS].id + task, PATIENCE_MS, &jobs, &error) != ELMER_OK)
            give_up(user, "a task", &error);
        if (jobs->count != 1 || !elmer_job_ended(&jobs->items[0]))
            give_up(user, "a task", NULL);
        elmer_jobs_free(jobs);
    }
    expect_waiting(user, JOB_PARTS, 2, "held");
    tell_tasks(user, "releases a task of", JOB_PARTS, "1", elmer_release_tasks);
    await(user, JOB_PARTS, NULL);
}

static void let_administrator(struct user *user)
{
    int64_t deadline = world_now_ms() + PATIENCE_MS;
    user->story->turn++;
    while (user->story->turn % 2 == 1 && world_now_ms() < deadline)
        world_pause();
}

static _Noreturn void user_run(struct story *story)
{
    struct elmer_options options = {.socket = ELMER_RSD_RUNDIR "/rsd.sock", .patience_ms = PATIENCE_MS};
    struct user user = {.story = story, .begin_ms = world_now_ms()};
    if (setgroups(0, NULL) < 0 || setresgid(WORLD_USER, WORLD_USER, WORLD_USER) < 0 ||
        setresuid(WORLD_USER, WORLD_USER, WORLD_USER) < 0 || elmer_open(&options, &user.elmer, NULL) != ELMER_OK)
        give_up(&user, "begin", NULL);
    submit(&user, JOB_GANG);
    submit(&user, JOB_STATUS);
    submit(&user, JOB_ENDLESS);
    submit(&user, JOB_LIMITED);
    submit(&user, JOB_AGAIN);
    submit(&user, JOB_LATE);
    submit(&user, JOB_AFTER);
    submit(&user, JOB_THEN);
    submit(&user, JOB_NEVER);
    submit(&user, JOB_TASKS);
    submit(&user, JOB_LINES);
    submit(&user, JOB_ANY);
    submit(&user, JOB_INDEX);
    submit(&user, JOB_KEPT);
    submit(&user, JOB_PARTS);
    tell_tasks(&user, "holds a task of", JOB_PARTS, "1", elmer_hold_tasks);
    submit(&user, JOB_HELD);
    tell(&user, "holds", JOB_HELD, elmer_hold);
    tell_tasks(&user, "cancels a task of", JOB_TASKS, "3", elmer_cancel_tasks);
    tell(&user, "puts before all others", JOB_HELD, elmer_top);
    await(&user, JOB_GANG, NULL);
    await(&user, JOB_STATUS, NULL);
    await(&user, JOB_ENDLESS, "running");
    await(&user, JOB_LIMITED, "running");
    await(&user, JOB_AGAIN, "running");
    let_administrator(&user);
    release_held(&user);
    submit(&user, JOB_COMPUTES);
    tell(&user, "puts before all others", JOB_COMPUTES, elmer_top);
    await(&user, JOB_LIMITED, NULL);
    await(&user, JOB_AGAIN, NULL);
    await(&user, JOB_COMPUTES, NULL);
    tell(&user, "cancels", JOB_LATE, elmer_cancel);
    await(&user, JOB_AFTER, NULL);
    await(&user, JOB_LATE, NULL);
    tell(&user, "ends", JOB_ENDLESS, elmer_kill);
    await(&user, JOB_ENDLESS, NULL);
    await(&user, JOB_THEN, NULL);
    await(&user, JOB_NEVER, NULL);
    await(&user, JOB_TASKS, NULL);
    await(&user, JOB_LINES, NULL);
    await(&user, JOB_ANY, NULL);
    await(&user, JOB_INDEX, NULL);
    release_part(&user);
    expect_waiting(&user, JOB_KEPT, 0, "queued");
    tell(&user, "cancels", JOB_KEPT, elmer_cancel);
    await(&user, JOB_KEPT, NULL);
    _exit(0);
}

/* ---- the administrator ---- */

static void restart(struct world *world)
{
    world_stop_elmer(world, SIGTERM);
    world_start_elmer(world);
    world_stop_rsd(world, 0, SIGTERM);
    world_start_rsd(world, 0);
}

static bool watch(struct world *world, struct story *story)
{
    int64_t deadline = world_now_ms() + STORY_MS;
    while (world->user) {
        if (world_now_ms() > deadline)
            return err_set(&world->err, -1, "the story does not end"), false;
        if (!world_tend(world))
            return false;
        if (story->turn % 2 == 1) {
            restart(world);
            story->turn++;
        }
        world_pause();
    }
    if (world->user_status != 0)
        err_set(&world->err, -1, "%s", story->problem[0] ? story->problem : "the user's program failed");
    return world->user_status == 0;
}

static void count_markers(struct story *story)
{
    char line[100], name[100];
    unsigned rank;
    FILE *file = fopen(WORLD_MARKERS, "re");
    while (file && fgets(line, sizeof(line), file))
        for (int i = 0; i < STORY_JOBS; i++)
            if (sscanf(line, "%99[a-z].%u", name, &rank) == 2 && strcmp(name, story_plans[i].name) == 0 &&
                rank < RANKS_MAX)
                story->jobs[i].runs[rank]++;
    if (file)
        fclose(file);
}

/* ---- what is on disk ---- */

static bool same_on_disk(struct world *world, const struct outcome *told, const struct elmer_job *job)
{
    struct outcome now = {0};
    take(&now, job);
    if (strcmp(now.state, told->state) == 0 && strcmp(now.reason, told->reason) == 0 &&
        now.exit_status == told->exit_status && now.signal == told->signal && now.tasks_ok == told->tasks_ok &&
        now.tasks_failed == told->tasks_failed && now.time_limit_ms == told->time_limit_ms &&
        now.cpu_limit_ms == told->cpu_limit_ms && now.memory_bytes == told->memory_bytes)
        return true;
    err_set(&world->err, -1, "job %" PRIu64 ": the user was told %s/%s/%d, after a kill elmer says %s/%s/%d", job->id,
            told->state, told->reason, told->exit_status, now.state, now.reason, now.exit_status);
    return false;
}

/* elmer dies once more, the machine too if the pass says so; it measures the start, too. */
static bool read_again(struct world *world, struct story *story)
{
    struct elmer_options options = {.socket = WORLD "/elmer/elmer.sock", .patience_ms = PATIENCE_MS};
    struct elmer_error error = {{0}};
    struct elmer_jobs *jobs;
    struct elmer *elmer;
    bool same = true;
    world->control->target = 0;
    world_stop_elmer(world, SIGUSR2);
    int64_t begin = world_now_ms();
    world_start_elmer(world);
    if (!world_answers(world, PATIENCE_MS))
        return err_set(&world->err, -1, "elmer does not answer after its last start"), false;
    world->answer_ms = world_now_ms() - begin;
    if (elmer_open(&options, &elmer, NULL) != ELMER_OK)
        return false;
    for (int i = 0; i < STORY_JOBS && same; i++) {
        if (elmer_query(elmer, false, false, &story->jobs[i].id, 1, PATIENCE_MS, &jobs, &error) != ELMER_OK)
            same = err_set(&world->err, -1, "%s", error.text) == 0;
        else if (jobs->count != 1)
            same = err_set(&world->err, -1, "job %" PRIu64 " (%s) is not in the store", story->jobs[i].id,
                           story_plans[i].name) == 0;
        else
            same = same_on_disk(world, &story->jobs[i], &jobs->items[0]);
        if (jobs)
            elmer_jobs_free(jobs);
        jobs = NULL;
    }
    elmer_close(elmer);
    return same;
}

struct story *story_create(void)
{
    void *page = mmap(NULL, sizeof(struct story), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

bool story_play(struct world *world, struct story *story)
{
    fflush(NULL);
    world->user = fork();
    if (world->user == 0)
        user_run(story);
    bool fine = world->user > 0 && watch(world, story) && world_is_clean(world, CLEAN_MS);
    count_markers(story);
    return fine && read_again(world, story);
}

/* ---- judging ---- */

/* Those of an array that have ended were counted, each once. */
static bool ran_once_or_not(const struct outcome *o)
{
    if (o->tasks_ok + o->tasks_failed > RANKS_MAX)
        return false;
    for (unsigned rank = 0; rank < RANKS_MAX; rank++)
        if (o->runs[rank] > 1)
            return false;
    return true;
}

/* An attempt that its limit has ended may not have come to its marker yet, on a busy machine. */
static bool ran_as_planned(const struct outcome *o, const struct plan *plan)
{
    unsigned again = 0;
    for (unsigned rank = 1; rank < RANKS_MAX; rank++)
        again += o->runs[rank];
    if (plan->time_limit_ms)
        return ran_once_or_not(o) && again == plan->ranks - 1;
    for (unsigned rank = 0; rank < RANKS_MAX; rank++)
        if (o->runs[rank] != (rank < plan->ranks))
            return false;
    return true;
}

static bool as_planned(const struct outcome *o, const struct plan *plan)
{
    if (!ran_as_planned(o, plan))
        return false;
    if (o->time_limit_ms != plan->time_limit_ms || o->cpu_limit_ms != plan->cpu_limit_ms ||
        o->memory_bytes != plan->memory_bytes)
        return false;
    if (plan->cpu_limit_ms && o->cpu_ms < (double)plan->cpu_limit_ms)
        return false;
    if (plan->tasks && (o->tasks_ok != plan->ranks || o->tasks_failed))
        return false;
    return o->id && strcmp(o->state, plan->state) == 0 && strcmp(o->reason, plan->reason) == 0 &&
           (plan->exit_status < 0 || o->exit_status == plan->exit_status);
}

static const char *describe(const struct story *story, int job, char *out, size_t size)
{
    const struct outcome *o = &story->jobs[job];
    snprintf(out, size, "%s (job %" PRIu64 "): %s, reason %s (%s), status %d, runs %u %u %u %u", story_plans[job].name,
             o->id, o->state, o->reason, o->text, o->exit_status, o->runs[0], o->runs[1], o->runs[2], o->runs[3]);
    return out;
}

const char *story_wrong(const struct story *story, enum kind died, char *out, size_t size)
{
    unsigned other = 0;
    for (int i = 0; i < STORY_JOBS; i++) {
        const struct outcome *o = &story->jobs[i];
        if (as_planned(o, &story_plans[i]))
            continue;
        bool ended = o->id && (strcmp(o->state, "done") == 0 || strcmp(o->state, "cancelled") == 0);
        bool excused = died == KIND_SUPERVISOR && ended && ran_once_or_not(o) && o->reason[0];
        if (died == KIND_ELMER && i == JOB_ENDLESS && ended && ran_once_or_not(o) && o->signal == SIGTERM)
            continue;
        bool follows = i == JOB_LATE || i == JOB_THEN || i == JOB_NEVER || i == JOB_ANY || i == JOB_INDEX ||
                       i == JOB_KEPT; /* from what became of another */
        if (!excused || (!follows && ++other > 1))
            return describe(story, i, out, size);
    }
    return NULL;
}

void story_count(const struct story *story, unsigned *jobs, unsigned *lost, unsigned *doubled)
{
    for (int i = 0; i < STORY_JOBS; i++) {
        const struct outcome *o = &story->jobs[i];
        *jobs += o->id != 0;
        *lost += o->id && strcmp(o->state, "done") != 0 && strcmp(o->state, "cancelled") != 0;
        *doubled += !ran_once_or_not(o);
    }
}
