/* test_after.c - jobs that wait for others: each kind with each end, chains, what is cancelled and when, a restart. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

enum { CHAIN = 10000, SLICE = 200 };

static const int sixteen[] = {16}, one[] = {1};

/* Without core_check(), which goes through all jobs. */
static void step(struct fixture *f, struct event event)
{
    actions_clear(&f->actions);
    event.now_ms = f->now_ms;
    assert_int_equal(core_step(f->core, &event, &f->actions), 0);
}

static uint64_t submit(struct fixture *f, const struct core_after *after, int n, bool keep, bool checked)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = 1;
    event.u.submit.after = after;
    event.u.submit.nafter = n;
    event.u.submit.keep_never = keep;
    if (checked)
        assert_int_equal(fixture_step(f, event), 0);
    else
        step(f, event);
    return id;
}

static uint64_t submit_after(struct fixture *f, enum after_kind kind, uint64_t job)
{
    return submit(f, &(struct core_after){.job = job, .kind = kind}, 1, false, true);
}

static void end(struct fixture *f, uint64_t job, int status)
{
    fixture_run(f, job);
    fixture_exited(f, job, 0, 0, status, 0);
    fixture_empty(f, job);
}

/* ---- each kind ---- */

enum way { WELL, FAILED, KILLED, NOT_STARTED, CANCELLED, WAYS };

static void go(struct fixture *f, enum way way, uint64_t job)
{
    struct event event = {.type = EVENT_OPEN_FAILED, .host = 0, .job = job, .attempt = 1};

    if (way == WELL || way == FAILED) {
        end(f, job, way == WELL ? 0 : 3);
        return;
    }
    if (way == CANCELLED) {
        assert_int_equal(fixture_client(f, EVENT_CANCEL, job, 2001, false), ANSWER_OK);
        return;
    }
    if (way == KILLED) {
        fixture_run(f, job);
        assert_int_equal(fixture_client(f, EVENT_KILL, job, 2001, false), ANSWER_OK);
        fixture_exited(f, job, 0, 0, 0, 0); /* whatever it says of it */
    } else {
        event.u.failed.reason = REASON_START_FAILED;
        assert_int_equal(fixture_step(f, event), 0);
    }
    fixture_empty(f, job);
}

static const bool happens[WAYS][AFTER_KIND_COUNT] = {
    [WELL] = {[AFTER_OK] = true, [AFTER_ANY] = true, [AFTER_START] = true},
    [FAILED] = {[AFTER_FAIL] = true, [AFTER_ANY] = true, [AFTER_START] = true},
    [KILLED] = {[AFTER_FAIL] = true, [AFTER_ANY] = true, [AFTER_START] = true},
    [NOT_STARTED] = {[AFTER_FAIL] = true, [AFTER_ANY] = true},
    [CANCELLED] = {[AFTER_FAIL] = true, [AFTER_ANY] = true},
};

static void expect(struct fixture *f, uint64_t job, bool runs, bool keep)
{
    const struct core_job *info = core_job(f->core, job);

    if (runs) {
        assert_int_equal(info->state, JOB_STARTING);
        assert_int_equal(info->after[0].verdict, CORE_MET);
        return;
    }
    assert_int_equal(info->state, keep ? JOB_QUEUED : JOB_CANCELLED);
    assert_int_equal(info->reason, REASON_NEVER);
    assert_int_equal(info->after[0].verdict, CORE_NEVER);
    if (!keep)
        assert_non_null(strstr(info->text, "it can never run: "));
}

/* Submitted before, while it runs, and when it has ended: it is the same. */
static void test_each_kind_with_each_end(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        for (int kind = 0; kind < AFTER_KIND_COUNT; kind++)
            for (int late = 0; late < 4; late++) {
                struct fixture f;
                struct core_after after = {.kind = (enum after_kind)kind};
                bool keep = late % 2 == 1;
                uint64_t blocker = 0, job;
                fixture_init(&f, ALLOCATOR_V1, 3, sixteen, 1, true);
                if (way == CANCELLED) /* it must wait for something */
                    blocker = fixture_submit(&f, 1, NULL, 0, false);
                after.job =
                    way == CANCELLED ? submit_after(&f, AFTER_ANY, blocker) : fixture_submit(&f, 1, NULL, 0, false);
                job = late < 2 ? submit(&f, &after, 1, keep, true) : 0;
                if (late < 2)
                    assert_int_equal(core_job(f.core, job)->reason, REASON_AFTER);
                go(&f, (enum way)way, after.job);
                if (late >= 2)
                    job = submit(&f, &after, 1, keep, true);
                expect(&f, job, happens[way][kind], keep);
                fixture_fini(&f);
            }
}

/* start: neither when it has its processors nor when they are opened; but by its exit, if that is heard first. */
static void test_started_when_it_runs(void **state)
{
    struct fixture f;
    uint64_t first, job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, sixteen, 1, true);
    first = fixture_submit(&f, 1, NULL, 0, false);
    job = submit_after(&f, AFTER_START, first);
    fixture_host(&f, EVENT_OPENED, first, 0);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    fixture_exited(&f, first, 0, 0, 0, 0);
    assert_int_equal(fixture_state(&f, first), JOB_ENDING);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

/* What the core does not know any more the shell says; of what it knows it decides itself. */
static void test_told_by_the_shell(void **state)
{
    static const bool happened[][AFTER_KIND_COUNT] = {
        [CORE_END_FORGOTTEN] = {[AFTER_ANY] = true},
        [CORE_END_WELL] = {[AFTER_OK] = true, [AFTER_ANY] = true, [AFTER_START] = true},
        [CORE_END_BADLY] = {[AFTER_FAIL] = true, [AFTER_ANY] = true, [AFTER_START] = true},
        [CORE_END_UNSTARTED] = {[AFTER_FAIL] = true, [AFTER_ANY] = true},
    };
    struct fixture f;
    uint64_t first;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 16, sixteen, 1, true);
    first = fixture_submit(&f, 1, NULL, 0, false);
    for (int e = CORE_END_FORGOTTEN; e <= CORE_END_UNSTARTED; e++) {
        struct core_after known = {.job = first, .kind = AFTER_ANY, .end = (enum core_end)e};
        assert_int_equal(fixture_state(&f, submit(&f, &known, 1, false, true)), JOB_QUEUED);
    }
    end(&f, first, 0);
    core_forget(f.core, first);
    for (int e = CORE_END_FORGOTTEN; e <= CORE_END_UNSTARTED; e++)
        for (int kind = 0; kind < AFTER_KIND_COUNT; kind++) {
            struct core_after after = {.job = first, .kind = (enum after_kind)kind, .end = (enum core_end)e};
            expect(&f, submit(&f, &after, 1, false, true), happened[e][kind], false);
        }
    fixture_fini(&f);
}

static void test_refuses_what_no_shell_may_say(void **state)
{
    struct fixture f;
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    struct core_after after = {.job = 1};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, sixteen, 1, true);
    event.u.submit.nprocs = 1;
    event.u.submit.after = &after;
    event.u.submit.nafter = 1;
    assert_int_equal(fixture_step(&f, event), -EINVAL); /* there is no job 1, it would be this one */
    assert_int_equal(core_next_id(f.core), 1);
    fixture_submit(&f, 1, NULL, 0, false);
    after.job = 0;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    after.job = 1;
    after.kind = AFTER_KIND_COUNT;
    assert_int_equal(fixture_step(&f, event), -EINVAL);
    fixture_fini(&f);
}

/* ---- several ---- */

static void test_all_of_them(void **state)
{
    struct fixture f;
    uint64_t a, b, job;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, sixteen, 1, true);
    a = fixture_submit(&f, 1, NULL, 0, false);
    b = fixture_submit(&f, 1, NULL, 0, false);
    job = submit(&f, (struct core_after[]){{.job = a, .kind = AFTER_OK}, {.job = b, .kind = AFTER_FAIL}, {.job = a}}, 3,
                 false, true);
    end(&f, a, 0);
    assert_int_equal(fixture_state(&f, job), JOB_QUEUED);
    assert_int_equal(core_job(f.core, job)->after[0].verdict, CORE_MET);
    assert_int_equal(core_job(f.core, job)->after[1].verdict, CORE_OPEN);
    core_forget(f.core, a);
    end(&f, b, 1);
    assert_int_equal(fixture_state(&f, job), JOB_STARTING);
    fixture_fini(&f);
}

/* Who waits may be held, released, cancelled and forgotten; whom it waits for does not mind. */
static void test_who_waits_goes(void **state)
{
    struct fixture f;
    uint64_t a, held, gone;

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 3, sixteen, 1, true);
    a = fixture_submit(&f, 1, NULL, 0, false);
    held = submit_after(&f, AFTER_OK, a);
    gone = submit_after(&f, AFTER_OK, a);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, held, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_client(&f, EVENT_CANCEL, gone, 2001, false), ANSWER_OK);
    core_forget(f.core, gone);
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, held, 2001, false), ANSWER_OK);
    assert_int_equal(core_job(f.core, held)->reason, REASON_AFTER);
    assert_int_equal(fixture_client(&f, EVENT_HOLD, held, 2001, false), ANSWER_OK);
    end(&f, a, 0);
    assert_int_equal(fixture_state(&f, held), JOB_HELD);
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, held, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, held), JOB_STARTING);
    fixture_fini(&f);
}

/* ---- chains ---- */

static int64_t cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void host_step(struct fixture *f, enum event_type type, uint64_t job, int host)
{
    step(f, (struct event){.type = type, .host = host, .job = job, .attempt = 1});
}

/* A chain of n on one processor, each run to its end when its turn comes. Returns microseconds of CPU time. */
static int64_t run_chain(int n)
{
    struct fixture f;
    int64_t begin;

    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    begin = cpu_us();
    submit(&f, NULL, 0, false, false);
    for (uint64_t id = 2; id <= (uint64_t)n; id++)
        submit(&f, &(struct core_after){.job = id - 1}, 1, false, false);
    for (uint64_t id = 1; id <= (uint64_t)n; id++) {
        assert_int_equal(fixture_state(&f, id), JOB_STARTING);
        host_step(&f, EVENT_OPENED, id, 0);
        host_step(&f, EVENT_LAUNCHED, id, -1);
        host_step(&f, EVENT_EXITED, id, 0);
        host_step(&f, EVENT_EMPTY, id, 0);
        assert_int_equal(fixture_state(&f, id), JOB_DONE);
    }
    begin = cpu_us() - begin;
    fixture_fini(&f);
    return begin;
}

/* The first one fails: all others are cancelled, a slice in each step, and a tick is asked for until it is over. */
static int64_t cancel_chain(int n)
{
    struct fixture f;
    int64_t begin;
    int cancelled = 0, steps = 0;

    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    submit(&f, NULL, 0, false, false);
    for (uint64_t id = 2; id <= (uint64_t)n; id++)
        submit(&f, &(struct core_after){.job = id - 1}, 1, false, false);
    host_step(&f, EVENT_OPENED, 1, 0);
    host_step(&f, EVENT_LAUNCHED, 1, -1);
    begin = cpu_us();
    assert_int_equal(fixture_client(&f, EVENT_KILL, 1, 2001, false), ANSWER_OK);
    host_step(&f, EVENT_EMPTY, 1, 0);
    for (;; steps++) {
        int now = fixture_count(&f, ACTION_PERSIST) - (steps == 0);
        assert_in_range(now, 0, SLICE);
        cancelled += now;
        if (cancelled == n - 1)
            break;
        assert_int_equal(now, SLICE);
        assert_int_equal(fixture_find(&f, ACTION_TIMER, -1)->at_ms, f.now_ms);
        step(&f, (struct event){.type = EVENT_TICK, .host = -1});
    }
    begin = cpu_us() - begin;
    assert_int_equal(steps, (n - 2) / SLICE);
    assert_int_equal(fixture_state(&f, (uint64_t)n), JOB_CANCELLED);
    assert_int_equal(core_user(f.core, 2001).queued, 0);
    fixture_step(&f, (struct event){.type = EVENT_TICK, .host = -1}); /* with all checks */
    fixture_fini(&f);
    return begin;
}

static struct event by_owner(enum event_type type, uint64_t job)
{
    struct event event = {.type = type, .host = -1, .job = job};

    event.u.by.uid = 2001;
    return event;
}

/* All wait for one, which ends; or each for its own, which end from the last to the first, with everybody in front
 * asleep. */
static int64_t wake(int n, bool backwards)
{
    struct fixture f;
    int64_t begin;

    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, false); /* it has never been up: all stay */
    for (int i = 0; i < (backwards ? n : 1); i++) {
        submit(&f, NULL, 0, false, false);
        step(&f, by_owner(EVENT_HOLD, (uint64_t)i + 1));
    }
    for (int i = 0; i < n; i++)
        submit(&f, &(struct core_after){.job = backwards ? (uint64_t)i + 1 : 1, .kind = AFTER_FAIL}, 1, false, false);
    begin = cpu_us();
    for (int i = backwards ? n : 1; i > 0; i--)
        step(&f, by_owner(EVENT_CANCEL, (uint64_t)i));
    begin = cpu_us() - begin;
    assert_int_equal(core_job(f.core, core_next_id(f.core) - 1)->after[0].verdict, CORE_MET);
    assert_int_equal(core_job(f.core, core_next_id(f.core) - (uint64_t)n)->after[0].verdict, CORE_MET);
    fixture_fini(&f);
    return begin;
}

static int64_t least(int64_t (*measure)(int n, int how), int n, int how)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < 3; i++) {
        int64_t us = measure(n, how);
        best = us < best ? us : best;
    }
    return best;
}

static int64_t run_chain_of(int n, int how)
{
    return how == 0 ? run_chain(n) : how == 1 ? cancel_chain(n) : wake(n, how == 3);
}

/* Ten times as many cost about ten times as much; with a square it would be a hundred times. */
static void test_chains_cost_what_they_are_long(void **state)
{
    static const char *const names[] = {"run one after the other", "cancelled", "woken at once", "woken from behind"};

    (void)state;
    for (int how = 0; how < 4; how++) {
        int64_t few = least(run_chain_of, CHAIN / 10, how), many = least(run_chain_of, CHAIN, how);
        print_message("%d jobs %s: %lld us; %d: %lld us\n", CHAIN / 10, names[how], (long long)few, CHAIN,
                      (long long)many);
        assert_true(many < 30 * few + 20000);
    }
}

/* Between two slices: a copy goes on with those who are still to be cancelled. */
static void test_copied_in_the_middle(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    submit(&f, NULL, 0, false, false);
    for (uint64_t id = 2; id <= SLICE + 10; id++)
        submit(&f, &(struct core_after){.job = id - 1}, 1, false, false);
    host_step(&f, EVENT_OPENED, 1, 0);
    host_step(&f, EVENT_LAUNCHED, 1, -1);
    step(&f, by_owner(EVENT_KILL, 1));
    host_step(&f, EVENT_EMPTY, 1, 0);
    assert_int_equal(fixture_state(&f, SLICE + 1), JOB_CANCELLED);
    assert_int_equal(fixture_state(&f, SLICE + 2), JOB_QUEUED);
    struct core *copy = core_copy(f.core);
    core_destroy(f.core);
    f.core = copy;
    fixture_step(&f, (struct event){.type = EVENT_TICK, .host = -1});
    assert_int_equal(fixture_state(&f, SLICE + 10), JOB_CANCELLED);
    fixture_fini(&f);
}

/* ---- a restart ---- */

static int restore(struct core *core, struct fixture *f, uint64_t id)
{
    struct core_job saved = *core_job(f->core, id);

    return core_restore_job(core, &saved, f->now_ms);
}

static void test_restored(void **state)
{
    struct core_options options;
    struct fixture f, again = {.now_ms = 0};
    uint64_t runs, ended, jobs[6];

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    ended = fixture_submit(&f, 1, NULL, 0, false);
    runs = fixture_submit(&f, 1, NULL, 0, false);
    jobs[0] = submit_after(&f, AFTER_START, runs);
    jobs[1] = submit_after(&f, AFTER_FAIL, runs);
    jobs[2] = submit(&f, (struct core_after[]){{.job = ended}, {.job = runs}}, 2, false, true);
    jobs[3] = submit_after(&f, AFTER_ANY, jobs[1]);
    jobs[4] = submit(&f, &(struct core_after){.job = ended, .kind = AFTER_FAIL}, 1, true, true);
    end(&f, ended, 0);
    fixture_run(&f, runs);
    jobs[5] = submit_after(&f, AFTER_OK, jobs[4]);

    core_options_default(&options);
    options.allocator = ALLOCATOR_V1;
    options.levels = 1;
    again.core = core_create(&options);
    again.now_ms = f.now_ms;
    actions_init(&again.actions);
    assert_int_equal(core_add_host(again.core, "ws1"), 0);
    assert_int_equal(restore(again.core, &f, runs), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(restore(again.core, &f, jobs[i]), 0);
    fixture_step(&again, (struct event){.type = EVENT_TICK, .host = -1});
    for (int i = 0; i < 6; i++) {
        const struct core_job *before = core_job(f.core, jobs[i]), *now = core_job(again.core, jobs[i]);
        assert_int_equal(before->nafter, now->nafter);
        assert_int_equal(before->keep_never, now->keep_never);
        for (int k = 0; k < now->nafter; k++) /* also of `ended`, which this core has never known */
            assert_int_equal(before->after[k].verdict, now->after[k].verdict);
    }
    assert_int_equal(core_job(again.core, jobs[4])->reason, REASON_NEVER);
    fixture_fini(&again);
    fixture_fini(&f);
}

/* Its row was written before the other one ended: then the store says how. */
static void test_decided_after_a_restart(void **state)
{
    struct fixture f;
    struct core_after after = {.job = 7, .end = CORE_END_BADLY};
    struct core_job saved = {.id = 9, .nprocs = 1, .uid = 2001, .state = JOB_QUEUED, .after = &after, .nafter = 1};

    (void)state;
    fixture_init(&f, ALLOCATOR_V1, 1, one, 1, true);
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    saved.id = 10;
    saved.state = JOB_HELD;
    after.kind = AFTER_FAIL;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), 0);
    saved.id = 11;
    after.job = 11;
    assert_int_equal(core_restore_job(f.core, &saved, f.now_ms), -EINVAL);
    fixture_step(&f, (struct event){.type = EVENT_TICK, .host = -1});
    assert_int_equal(fixture_state(&f, 9), JOB_CANCELLED);
    assert_int_equal(core_job(f.core, 10)->after[0].verdict, CORE_MET);
    assert_int_equal(fixture_client(&f, EVENT_RELEASE, 10, 2001, false), ANSWER_OK);
    assert_int_equal(fixture_state(&f, 10), JOB_STARTING);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_with_each_end),
        cmocka_unit_test(test_started_when_it_runs),
        cmocka_unit_test(test_told_by_the_shell),
        cmocka_unit_test(test_refuses_what_no_shell_may_say),
        cmocka_unit_test(test_all_of_them),
        cmocka_unit_test(test_who_waits_goes),
        cmocka_unit_test(test_chains_cost_what_they_are_long),
        cmocka_unit_test(test_copied_in_the_middle),
        cmocka_unit_test(test_restored),
        cmocka_unit_test(test_decided_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
