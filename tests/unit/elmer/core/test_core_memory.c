/* test_core_memory.c - memory runs out at each place in turn. A step then either changes nothing, or stands and tells
 * the rest of its actions later; in the end everything has happened once, as if memory had been there.
 */
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- the allocator fails from the fail_at-th call on, fail_for times ---- */

static long calls, fail_at, fail_for;
static bool armed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

static bool fails(void)
{
    if (!armed)
        return false;
    calls++;
    return calls >= fail_at && calls < fail_at + fail_for;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return fails() ? NULL : __real_strndup(text, n);
}

/* ---- a story with everything in it ---- */

struct story {
    struct core *core;
    int64_t now_ms;
    long short_steps; /* refused for want of memory */
    int counts[ACTION_TYPE_COUNT];
    int launches[64], answers;
    uint64_t persisted; /* bit per job that has been told of */
};

/* Everything that a shell can see, as a number. */
static uint64_t digest(struct story *story)
{
    uint64_t sum = 14695981039346656037u, cursor = 0;
    const struct core_job *job;
    const struct core_host *host;

#define MIX(value) (sum = (sum ^ (uint64_t)(value)) * 1099511628211u)
    while ((job = core_next_job(story->core, &cursor)) != NULL) {
        MIX(job->id);
        MIX(job->state);
        MIX(job->attempt);
        MIX(job->allocation);
        MIX(job->level);
        MIX(job->reason);
        MIX(job->exits);
        MIX(job->nlost);
        for (uint32_t i = 0; job->processors != NULL && i < job->nprocs; i++)
            MIX(job->processors[i].host * 1000 + job->processors[i].cpu);
    }
    for (int h = 0; (host = core_host(story->core, h)) != NULL; h++) {
        MIX(core_host_up(host) + 2 * host->drained);
        MIX(host->leftovers);
        MIX(host->ncpus);
        MIX(host->applied);
    }
    return sum;
}

static void count(struct story *story, const struct actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct action *action = &actions->items[i];
        story->counts[action->type]++;
        if (action->type == ACTION_LAUNCH)
            assert_int_equal(++story->launches[action->job], 1);
        if (action->type == ACTION_PERSIST)
            story->persisted |= (uint64_t)1 << action->job;
        if (action->type == ACTION_ANSWER)
            assert_true((story->persisted & (uint64_t)1 << action->job) != 0); /* never before its row */
    }
}

static void step(struct story *story, struct event event)
{
    struct actions actions;
    uint64_t before = digest(story);
    char text[300];
    int result;

    event.now_ms = story->now_ms;
    actions_init(&actions);
    armed = true;
    result = core_step(story->core, &event, &actions);
    armed = false;
    if (result != 0) {
        assert_int_equal(result, -ENOMEM);
        assert_int_equal(actions.count, 0);
        assert_int_equal(digest(story), before);
        story->short_steps++;
        fail_for = 0; /* memory is back: the shell tries again */
        assert_int_equal(core_step(story->core, &event, &actions), 0);
    }
    count(story, &actions);
    if (calls >= fail_at && fail_for > 0) { /* it was short, but the step stands: the next one tells the rest */
        fail_for = 0;
        actions_clear(&actions);
        event = (struct event){.type = EVENT_TICK, .now_ms = story->now_ms};
        assert_int_equal(core_step(story->core, &event, &actions), 0);
        count(story, &actions);
    }
    if (core_check(story->core, text, sizeof(text)) != 0)
        fail_msg("call %ld: %s", fail_at, text);
    actions_fini(&actions);
    story->now_ms += 10;
}

static void up(struct story *story, int host, int ncpus, const struct core_holding *holdings, int n)
{
    static const int cpus[] = {0, 1, 2, 3};
    struct event event = {.type = EVENT_HOST_UP, .host = host};

    event.u.up.cpus = cpus;
    event.u.up.ncpus = ncpus;
    event.u.up.holdings = holdings;
    event.u.up.nholdings = n;
    step(story, event);
}

static void submit(struct story *story, uint32_t nprocs, const int *hosts, int nhosts)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};

    event.u.submit.nprocs = nprocs;
    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = nhosts;
    event.u.submit.each = nprocs > 2;
    event.u.submit.requeue = nprocs > 2;
    step(story, event);
}

static void about(struct story *story, enum event_type type, uint64_t job, int host)
{
    struct event event = {.type = type, .job = job, .attempt = 1, .host = host};

    if (type == EVENT_ABORT) {
        event.u.failed.reason = REASON_HELPER_FAILED;
        event.u.failed.text = "a pvmd died";
    }
    step(story, event);
}

static void by(struct story *story, enum event_type type, uint64_t job)
{
    struct event event = {.type = type, .job = job, .host = -1, .request = 2, .u.by.admin = true};

    step(story, event);
}

static void tell(struct story *story)
{
    static const int both[] = {0, 1};
    const struct core_holding old[] = {{55, 1}, {56, 1}};

    up(story, 0, 2, NULL, 0);
    up(story, 1, 3, old, 2);
    submit(story, 3, NULL, 0); /* 1: ws1 has two, ws2 is not free yet */
    step(story, (struct event){.type = EVENT_EMPTY, .host = 1, .job = 55, .attempt = 1});
    step(story, (struct event){.type = EVENT_EMPTY, .host = 1, .job = 56, .attempt = 1});
    submit(story, 5, both, 2); /* 2 */
    for (uint64_t job = 1; job <= 2; job++)
        for (int h = 0; h < 2; h++)
            about(story, EVENT_OPENED, job, h);
    about(story, EVENT_LAUNCHED, 1, -1);
    about(story, EVENT_LAUNCHED, 2, -1);
    submit(story, 1, both, 1); /* 3 */
    by(story, EVENT_HOLD, 3);
    by(story, EVENT_RELEASE, 3);
    for (int i = 0; i < 40; i++) /* 4.. fill the tables of the core */
        submit(story, 5, i % 2 == 0 ? both : NULL, 2 * (i % 2 == 0));
    for (uint64_t job = 10; job < 20; job++)
        by(story, EVENT_CANCEL, job);
    about(story, EVENT_OPENED, 99, 0); /* never heard of it: a leftover */
    story->now_ms += 60000;
    step(story, (struct event){.type = EVENT_TICK}); /* start timeouts, and everything again */
    about(story, EVENT_ABORT, 2, -1);
    about(story, EVENT_EMPTY, 2, 0);
    about(story, EVENT_EMPTY, 2, 1);
    step(story, (struct event){.type = EVENT_HOST_DOWN, .host = 0});
    up(story, 0, 4, old, 1);
    about(story, EVENT_EMPTY, 1, 1);
    about(story, EVENT_EMPTY, 55, 0);
}

static void begin(struct story *story)
{
    struct core_options options;

    memset(story, 0, sizeof(*story));
    core_options_default(&options);
    options.allocator = ALLOCATOR_V1;
    story->core = core_create(&options);
    assert_non_null(story->core);
    assert_int_equal(core_add_host(story->core, "ws1"), 0);
    assert_int_equal(core_add_host(story->core, "ws2"), 1);
    story->now_ms = 1000;
    calls = 0;
}

static void test_each_call_fails(void **state)
{
    struct story whole, broken;
    long n, short_steps = 0;
    uint64_t expected;

    (void)state;
    fail_at = 1000000;
    begin(&whole);
    tell(&whole);
    expected = digest(&whole);
    n = calls;
    assert_in_range(n, 100, 10000);
    for (long times = 1; times <= 4; times += 3)
        for (fail_at = 1; fail_at <= n; fail_at++) {
            fail_for = times;
            begin(&broken);
            tell(&broken);
            short_steps += broken.short_steps;
            if (digest(&broken) != expected)
                fail_msg("call %ld failed: the story ends otherwise", fail_at);
            assert_int_equal(broken.counts[ACTION_LAUNCH], whole.counts[ACTION_LAUNCH]);
            assert_int_equal(broken.counts[ACTION_ANSWER], whole.counts[ACTION_ANSWER]);
            assert_int_equal(broken.counts[ACTION_TAKEN], whole.counts[ACTION_TAKEN]);
            assert_true(broken.counts[ACTION_PERSIST] >= whole.counts[ACTION_PERSIST]);
            assert_int_equal(broken.persisted, whole.persisted);
            core_destroy(broken.core);
        }
    print_message("%ld places, %ld steps refused\n", n, short_steps);
    assert_true(short_steps > 50);
    core_destroy(whole.core);
}

static void test_create_fails(void **state)
{
    struct core_options options;
    struct core *core;

    (void)state;
    core_options_default(&options);
    calls = 0;
    fail_at = fail_for = 1;
    armed = true;
    core = core_create(&options);
    armed = false;
    assert_null(core);
    core = core_create(&options);
    for (long i = 1; i <= 3; i++) {
        calls = 0;
        fail_at = i;
        fail_for = armed = 1;
        assert_int_equal(core_add_host(core, "ws1"), -ENOMEM);
        armed = false;
        assert_null(core_host(core, 0));
    }
    assert_int_equal(core_add_host(core, "ws1"), 0);
    core_destroy(core);
}

static void test_restore_fails(void **state)
{
    struct story story;
    struct core *core;
    struct core_options options;
    const struct core_job *job;
    struct event tick = {.type = EVENT_TICK, .now_ms = 2000};
    struct actions actions;
    bool done = false;

    (void)state;
    actions_init(&actions);
    fail_at = 1000000;
    begin(&story);
    up(&story, 0, 2, NULL, 0);
    up(&story, 1, 3, NULL, 0);
    submit(&story, 5, NULL, 0);
    job = core_job(story.core, 1);
    assert_int_equal(job->state, JOB_STARTING);
    core_options_default(&options);
    for (long i = 1; !done; i++) {
        char text[300];
        core = core_create(&options);
        core_add_host(core, "ws1");
        core_add_host(core, "ws2");
        calls = 0;
        fail_at = i;
        fail_for = armed = 1;
        done = core_restore_job(core, job, 2000) == 0;
        armed = false;
        assert_true(done == (core_job(core, 1) != NULL));
        if (!done) /* and then it works */
            assert_int_equal(core_restore_job(core, job, 2000), 0);
        assert_int_equal(core_step(core, &tick, &actions), 0);
        actions_clear(&actions);
        if (core_check(core, text, sizeof(text)) != 0)
            fail_msg("%s", text);
        core_destroy(core);
        assert_in_range(i, 1, 30);
    }
    actions_fini(&actions);
    core_destroy(story.core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_create_fails),
        cmocka_unit_test(test_restore_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
