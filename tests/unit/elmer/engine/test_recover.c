/* test_recover.c - what an engine takes back from its store, its timers, and its end, also after half a beginning. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

/* ---- records ---- */

static bool each; /* of those that are made next */

static struct record *found(uint64_t id, uint64_t nprocs, bool requeue)
{
    static const char *command[] = {"/bin/true"};
    char token[30];
    snprintf(token, sizeof(token), "t%d", (int)id);
    struct wire_submit submit = {.nprocs = nprocs,
                                 .each = each,
                                 .requeue = requeue,
                                 .name = "x",
                                 .dir = "/d",
                                 .token = token,
                                 .command = {command, 1}};
    struct record *record = fake_store_record(id, 5, &submit);
    record->state = JOB_QUEUED;
    record->reason = REASON_WAITING;
    record->submitted_ms = 1000 + (int64_t)id;
    assert_true(fake_store.njobs < FAKE_STORE_MAX);
    fake_store.jobs[fake_store.njobs++] = record;
    if (id >= fake_store.next_job)
        fake_store.next_job = id + 1;
    return record;
}

/* On CPU 0 of these hosts, at level 0. */
static struct record *found_running(uint64_t id, const char *first, const char *second, bool requeue)
{
    struct record *r = found(id, second ? 2 : 1, requeue);
    struct record_processor *processors = arena_array(&r->memory, 2, sizeof(*processors));
    processors[0] = (struct record_processor){first, 0};
    processors[1] = (struct record_processor){second, 0};
    r->state = JOB_RUNNING;
    r->reason = REASON_NONE;
    r->attempt = 1;
    r->allocation = id;
    r->level = 0;
    r->processors = processors;
    r->nprocessors = second ? 2 : 1;
    r->exited = arena_alloc(&r->memory, 1);
    r->exited_size = 1;
    r->launched = true;
    r->lease_ms = requeue ? 120000 : 0;
    r->started_ms = 2000;
    r->boot = fake_store.boot;
    r->accounted_mono_ms = fake_now_ms() - 700;
    r->accounted_ms = FAKE_WALL_MS - 900;
    r->level_ms[0] = 50;
    fake_store.next_allocation = id + 1;
    return r;
}

static void create(void)
{
    if (bed_create())
        fail_msg("%s", bed.err.text);
}

static const struct core_job *state_of(uint64_t id)
{
    return core_job(engine_core(bed.engine), id);
}

/* ---- what comes back ---- */

static void test_queued(void **state)
{
    (void)state;
    struct record *held = found(3, 2, false);
    held->state = JOB_HELD;
    held->reason = REASON_HELD;
    found(4, 1, false);
    fake_store.next_job = 9;
    create();
    assert_int_equal(bed_state(3), JOB_HELD);
    assert_int_equal(bed_state(4), JOB_QUEUED);
    assert_int_equal(core_next_id(engine_core(bed.engine)), 9);
    const struct engine_job *job = engine_job(bed.engine, 3);
    assert_string_equal(job->user, "alice");
    assert_int_equal(job->submitted_ms, 1003);
    assert_string_equal(job_submit(job)->command.items[0], "/bin/true");
    assert_true(engine_job_accepted(bed.engine, job));
    assert_ptr_equal(jobs_by_token(engine_jobs(bed.engine), 5, "t3"), job);
    assert_int_equal(fake_store.nputs, 0);
    engine_begin(bed.engine);
    bed_event(EVENT_RELEASE, 0, 3, 0, 0);
    assert_null(fake_store_last(3)->json); /* its submission is there */
}

static void test_running(void **state)
{
    (void)state;
    struct record *r = found_running(1, "ws1", NULL, false);
    struct record_usage *usage = arena_array(&r->memory, 2, sizeof(*usage));
    usage[0] = (struct record_usage){"ws1", 1, 7, 70};
    usage[1] = (struct record_usage){"gone", 1, 8, 80};
    r->usage = usage;
    r->nusage = 2;
    create();
    assert_int_equal(bed_state(1), JOB_RUNNING);
    assert_int_equal(engine_job(bed.engine, 1)->started_ms, 2000);
    assert_int_equal(engine_job(bed.engine, 1)->nusage, 1); /* of hosts that there are */
    assert_int_equal(core_host(engine_core(bed.engine), 0)->state, CORE_HOST_AWAITED);
    assert_int_not_equal(core_host(engine_core(bed.engine), 1)->state, CORE_HOST_AWAITED);
    engine_begin(bed.engine);
    struct core_holding holding = {1, 1};
    bed_up(0, 1, &holding, 1);
    assert_int_equal(bed_state(1), JOB_RUNNING);
    bed_forget_log();
    bed_exited(1, 0);
    assert_true(bed_told("end ws1 1.1"));
}

/* Its level was the same while elmer was away: exact within one start of the machine, else by the wall clock, and one
 * that was set back takes nothing away. */
static void test_absence(void **state)
{
    (void)state;
    found_running(1, "ws1", NULL, false);
    found_running(2, "ws2", NULL, false)->boot = fake_store.boot - 1;
    struct record *r = found_running(3, "ws3", NULL, false);
    r->boot = fake_store.boot - 1;
    r->accounted_ms = FAKE_WALL_MS + 5000;
    create();
    assert_int_equal(state_of(1)->level_ms[0], 50 + 700);
    assert_int_equal(state_of(2)->level_ms[0], 50 + 900);
    assert_int_equal(state_of(3)->level_ms[0], 50);
}

/* ---- a host is not in the configuration any more ---- */

/* In a cube each host has its place, and there is none for one more. */
static void in_a_cube(void)
{
    bed.settings.core.topology = TOPOLOGY_CUBE;
    bed.settings.core.allocator = ALLOCATOR_CUBE_AFL;
    bed.settings.core.levels = 1;
}

static void test_host_gone(void **state)
{
    (void)state;
    in_a_cube();
    found_running(1, "gone", NULL, false);
    found_running(2, "ws1", "gone", false);
    create();
    assert_null(engine_job(bed.engine, 1));
    assert_null(state_of(1));
    assert_null(state_of(2));
    for (uint64_t id = 1; id <= 2; id++) {
        const struct record *r = fake_store_last(id);
        assert_int_equal(r->state, JOB_DONE);
        assert_int_equal(r->reason, REASON_HOST_LOST);
        assert_non_null(strstr(r->text, "gone"));
        assert_int_equal(r->ended_ms, FAKE_WALL_MS);
        assert_int_equal(r->level, CORE_NO_LEVEL);
    }
    assert_int_equal(fake_store.nputs, 2);
}

/* Of an array of three: one has ended well, this one has its cluster, one waits in it or not. */
static void found_array(bool waits)
{
    struct record *array = found(1, 1, false), *task;
    array->ntasks = 3;
    array->next_task = waits ? 2 : 3;
    array->tasks_ok = waits ? 1 : 2;
    array->state = waits ? JOB_QUEUED : JOB_STARTED;
    array->reason = waits ? REASON_WAITING : REASON_NONE;
    array->place = 4;
    task = found_running(3, "gone", NULL, false);
    task->array = 1;
    task->task = 2;
    task->place = 2;
    fake_store.next_job = 5;
}

/* Its row says how many have failed as soon as the task's says that it has: elmer may be killed again at once. */
static void test_task_gone(void **state)
{
    for (int waits = 0; waits < 2; waits++) {
        bed_teardown(state);
        bed_setup(state);
        in_a_cube();
        found_array(waits > 0);
        create();
        assert_null(state_of(3));
        assert_int_equal(fake_store_last(3)->state, JOB_DONE);
        assert_non_null(fake_store_last(3)->json);
        assert_int_equal(fake_store_last(1)->tasks_failed, 1);
        assert_int_equal(fake_store_last(1)->tasks_ok, waits > 0 ? 1 : 2);
        assert_int_equal(fake_store_last(1)->failed_rank, 1);
        assert_int_equal(fake_store.nputs, 2);
        assert_int_equal(fake_store.held, 2); /* in one transaction */
        assert_false(fake_store.holding);
    }
    engine_begin(bed.engine);
    assert_int_equal(bed_state(1), JOB_QUEUED);
}

/* What was started again at its loss goes back into the queue: all of its hosts may still have the attempt. */
static void test_host_gone_requeue(void **state)
{
    (void)state;
    in_a_cube();
    found_running(1, "ws1", "gone", true);
    struct record *last = found_running(2, "gone", NULL, true); /* as often as it may */
    last->attempt = CORE_MAX_ATTEMPTS;
    struct record *ending = found_running(3, "gone", NULL, true); /* was ending by itself */
    ending->state = JOB_ENDING;
    ending->reason = REASON_EXITED;
    struct record *ending_lost = found_running(4, "gone", NULL, true);
    ending_lost->state = JOB_ENDING;
    ending_lost->reason = REASON_HOST_LOST;
    struct record *no_lease = found_running(5, "gone", NULL, true); /* an rsd that could not hold one */
    no_lease->lease_ms = 0;
    create();
    assert_int_equal(bed_state(1), JOB_QUEUED);
    assert_int_equal(state_of(1)->nlost, 2);
    assert_int_equal(state_of(1)->lost[0], 0);
    assert_int_equal(state_of(1)->lost[1], -1);
    assert_true(state_of(1)->lost_ms > 0);
    const struct record *r = fake_store_last(1);
    assert_int_equal(r->state, JOB_QUEUED);
    assert_int_equal(r->nlost, 2);
    assert_string_equal(r->lost[1], RECORD_UNKNOWN_HOST);
    assert_int_equal(bed_state(4), JOB_QUEUED);
    for (uint64_t id = 2; id <= 5; id++) {
        if (id == 4)
            continue;
        assert_null(state_of(id));
        assert_int_equal(fake_store_last(id)->state, JOB_DONE);
        assert_non_null(fake_store_last(id)->json); /* without its environment */
        assert_string_not_equal(fake_store_last(id)->environment_sha256, "");
    }
}

/* A --hosts list and lost hosts may name such as are not there any more. */
static void test_names(void **state)
{
    (void)state;
    struct record *r = found(1, 1, true);
    const char **hosts = arena_array(&r->memory, 2, sizeof(*hosts));
    hosts[0] = "ws2";
    hosts[1] = "gone";
    r->hosts = hosts;
    r->nhosts = 2;
    r->lost = hosts;
    r->nlost = 2;
    r->attempt = 1;
    r->lease_ms = 120000;
    create();
    assert_int_equal(state_of(1)->nhosts, 1);
    assert_int_equal(state_of(1)->hosts[0], 1);
    assert_int_equal(state_of(1)->nlost, 2);
    assert_int_equal(state_of(1)->lost[0], 1);
    assert_int_equal(state_of(1)->lost[1], -1);
}

/* ---- hosts ---- */

static void test_hosts(void **state)
{
    (void)state;
    struct host_row up = {.name = "ws1", .row = {.up = true, .ncpus = 2}};
    struct host_row drained = {.name = "ws2", .row = {.drained = true}};
    struct host_row gone = {.name = "gone", .row = {.up = true, .ncpus = 2}};
    fake_store.hosts[0] = up;
    fake_store.hosts[1] = drained;
    fake_store.hosts[2] = gone;
    fake_store.nhosts = 3;
    create();
    assert_int_equal(core_host(engine_core(bed.engine), 0)->state, CORE_HOST_AWAITED);
    assert_true(core_host(engine_core(bed.engine), 1)->drained);
    assert_int_equal(engine_host_count(bed.engine), 3);
    assert_string_equal(engine_host_name(bed.engine, 1), "ws2");
    engine_begin(bed.engine);
    bed_event(EVENT_UNDRAIN, 4, 0, 0, 1);
    const struct fake_put *put = &fake_store.puts[fake_store.nputs - 1];
    assert_string_equal(put->host.name, "ws2");
    assert_false(put->host.row.drained);
    assert_false(bed_told("answer"));
    fake_store_commit();
    assert_true(bed_told("answer 4 ok"));
}

/* What was set counts more than what is configured; what this elmer does not know is left alone. */
static void test_settings(void **state)
{
    (void)state;
    fake_store.settings[0] = (struct setting_row){"allocator", "pack"};
    fake_store.settings[1] = (struct setting_row){"policy", "of-tomorrow"};
    fake_store.settings[2] = (struct setting_row){"levels", "9"};
    fake_store.nsettings = 3;
    create();
    const struct core *core = engine_core(bed.engine);
    assert_int_equal(core_setting_value(core, SETTING_ALLOCATOR), ALLOCATOR_PACK);
    assert_int_equal(core_setting_stored(core, SETTING_ALLOCATOR), ALLOCATOR_PACK);
    assert_int_equal(core_setting_value(core, SETTING_POLICY), POLICY_FCFS);
    assert_int_equal(core_setting_stored(core, SETTING_POLICY), SETTING_UNSET);
    engine_begin(bed.engine);
    assert_int_equal(fake_store.nputs, 0);
    struct event event = {.type = EVENT_SET, .request = 4, .host = -1, .u.set.value = SETTING_UNSET};
    for (int i = 0; i < 2; i++) { /* both are taken out of the store, as the warning advises of the other */
        event.u.set.setting = i == 0 ? SETTING_ALLOCATOR : SETTING_POLICY;
        engine_event(bed.engine, &event);
        assert_string_equal(fake_store.puts[i].setting.name, core_setting_name(event.u.set.setting));
        assert_string_equal(fake_store.puts[i].setting.value, "");
    }
    assert_false(bed_told("answer"));
    fake_store_commit();
    assert_true(bed_told("answer 4 ok"));
    event.u.set.setting = SETTING_ALLOCATOR;
    event.u.set.value = ALLOCATOR_SPREAD;
    engine_event(bed.engine, &event);
    assert_string_equal(fake_store.puts[2].setting.value, "spread");
}

/* Of two processes one has exited, and the other was about to when elmer ended: the first host was told END, and the
 * second, which knows why, has not linked yet. Until that is on disk the first must not forget that it had the job. */
static void test_may_not_forget(void **state)
{
    (void)state;
    each = true;
    struct record *r = found_running(1, "ws1", "ws2", false);
    each = false;
    uint8_t *exited = arena_alloc(&r->memory, 1);
    *exited = 1;
    r->exited = exited;
    r->exits = 1;
    r->exit_status = 0;
    create();
    engine_begin(bed.engine);
    struct core_holding holding = {1, 1};
    bed_up(0, 1, &holding, 1);
    assert_false(engine_emptied(bed.engine, 0, 1, 1, 1, 50));
    assert_int_equal(bed_state(1), JOB_RUNNING);
    assert_int_equal(fake_store_last(1)->nusage, 1); /* the usage is written all the same */
    bed_up(1, 1, &holding, 1);
    struct event event = {.type = EVENT_EXITED, .job = 1, .attempt = 1, .host = 1, .u.exited = {.rank = 1}};
    engine_event(bed.engine, &event);
    assert_int_equal(bed_state(1), JOB_ENDING);
    assert_true(engine_emptied(bed.engine, 0, 1, 1, 5, 50));
}

/* ---- timers ---- */

static void test_begin(void **state)
{
    (void)state;
    fake_store.hosts[0] = (struct host_row){.name = "ws1", .row = {.up = true, .ncpus = 1}};
    fake_store.nhosts = 1;
    create();
    assert_int_equal(fake_time_next(), -1); /* before all rooms are connected nothing happens */
    assert_int_equal(fake_store.checks, 0);
    engine_begin(bed.engine);
    assert_int_equal(fake_store.checks, 1);
    assert_int_equal(fake_store.trims, 1);
    assert_int_equal(fake_store.limits.jobs, 50);
    assert_int_equal(fake_store.limits.age_ms, 1000);
    fake_time_pass(60000);
    assert_int_equal(fake_store.trims, 2);
    fake_time_pass(59999);
    assert_int_equal(fake_store.trims, 2);
    fake_time_pass(1);
    assert_int_equal(fake_store.trims, 3);
}

/* The core's timer: a host that does not confirm is asked again. */
static void test_tick(void **state)
{
    (void)state;
    bed_begin(1);
    bed_submit(1, 1, false);
    fake_store_commit();
    assert_true(bed_told("open ws1 1.1"));
    bed_forget_log();
    fake_time_pass(bed.settings.core.resend_ms - 1);
    assert_false(bed_told("open"));
    fake_time_pass(bed.settings.core.resend_ms);
    assert_true(bed_told("open ws1 1.1"));
}

/* ---- begin and end that fail ---- */

static void cannot(int code, const char *words)
{
    assert_int_equal(bed_create(), code);
    assert_non_null(strstr(bed.err.text, words));
}

static void test_host_twice(void **state)
{
    (void)state;
    bed.names[1] = "ws1";
    cannot(-EINVAL, "ws1");
}

static void test_core_options(void **state)
{
    (void)state;
    bed.settings.core.levels = 0;
    cannot(-EINVAL, "options");
}

static void test_open_fails(void **state)
{
    (void)state;
    fake_store.open_code = -EBUSY;
    cannot(-EBUSY, "/store cannot be opened");
}

static void test_load_hosts_fails(void **state)
{
    (void)state;
    found(1, 1, false);
    fake_store.load_hosts_code = -EIO;
    cannot(-EIO, "hosts");
}

static void test_load_fails(void **state)
{
    (void)state;
    found(1, 1, false);
    found(2, 1, false);
    fake_store.load_code = -EIO; /* after some were read */
    cannot(-EIO, "jobs");
}

/* Says what to do; and those behind it are freed. */
static void test_does_not_fit(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= CORE_MAX_LEVELS + 1; id++)
        found_running(id, "ws1", NULL, false); /* each on a level of its own */
    found(30, 1, false);
    found(31, 1, false);
    assert_int_equal(bed_create(), -EINVAL);
    assert_non_null(strstr(bed.err.text, "job 17 (running)"));
    assert_non_null(strstr(bed.err.text, "contradicts itself"));
    assert_int_equal(fake_store.nputs, 0);
}

static void test_destroy_nothing(void **state)
{
    (void)state;
    engine_close(NULL);
    engine_destroy(NULL);
}

/* What waits for the commit is dropped with the engine. */
static void test_close(void **state)
{
    (void)state;
    bed_begin(1);
    bed_submit(1, 1, false);
    bed_forget_log();
    bed_destroy();
    bed_expect("");
}

static void test_damage(void **state)
{
    (void)state;
    bed_begin(1);
    fake_store.callbacks->on_damage("page 5", fake_store.data);
    assert_string_equal(bed.damage, "page 5");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_queued),     TEST(test_running),           TEST(test_absence),         TEST(test_host_gone),
        TEST(test_task_gone),  TEST(test_host_gone_requeue), TEST(test_names),           TEST(test_hosts),
        TEST(test_settings),   TEST(test_may_not_forget),    TEST(test_begin),           TEST(test_tick),
        TEST(test_host_twice), TEST(test_core_options),      TEST(test_open_fails),      TEST(test_load_hosts_fails),
        TEST(test_load_fails), TEST(test_does_not_fit),      TEST(test_destroy_nothing), TEST(test_close),
        TEST(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
