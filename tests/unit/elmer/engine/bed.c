#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "tests/unit/elmer/engine/bed.h"
#include "tests/unit/elmer/fakes/fake_store.h"
#include "tests/unit/elmer/fakes/fake_time.h"

struct bed bed;

/* ---- the rooms above ---- */

static void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
    char line[100];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    size_t used = strlen(bed.log);
    assert_true(used + strlen(line) + 3 < sizeof(bed.log));
    snprintf(bed.log + used, sizeof(bed.log) - used, "%s%s", used ? "; " : "", line);
    if (bed.on_note)
        bed.on_note(line);
}

static const char *name(int host)
{
    return engine_host_name(bed.engine, host);
}

static void on_order(const struct action *action, void *data)
{
    assert_ptr_equal(data, &bed);
    note("order %s", name(action->host));
}

static void on_end(const struct action *action, void *data)
{
    assert_ptr_equal(data, &bed);
    note("end %s %" PRIu64 ".%" PRIu32, name(action->host), action->job, action->attempt);
}

static void on_open(int host, const struct engine_job *job, const struct core_job *state, uint64_t generation,
                    void *data)
{
    assert_ptr_equal(data, &bed);
    assert_int_equal(job->id, state->id);
    assert_true(generation > 0);
    note("open %s %" PRIu64 ".%" PRIu32, name(host), job->id, state->attempt);
}

static void on_acknowledge(int host, uint64_t job, uint32_t attempt, uint32_t rank, void *data)
{
    assert_ptr_equal(data, &bed);
    note("ack %s %" PRIu64 ".%" PRIu32 " rank %" PRIu32, name(host), job, attempt, rank);
}

static void on_gone(int host, void *data)
{
    assert_ptr_equal(data, &bed);
    note("gone %s", name(host));
}

static void on_signal(int host, uint64_t job, uint32_t attempt, int number, void *data)
{
    assert_ptr_equal(data, &bed);
    note("signal %s %" PRIu64 ".%" PRIu32 " %d", name(host), job, attempt, number);
}

static void on_launch(const struct engine_job *job, void *data)
{
    assert_ptr_equal(data, &bed);
    note("launch %" PRIu64, job->id);
}

static void on_stop(const struct engine_job *job, void *data)
{
    assert_ptr_equal(data, &bed);
    note("stop %" PRIu64, job->id);
}

static void on_answered(uint64_t number, enum answer answer, uint64_t job, void *data)
{
    static const char *const words[ANSWER_COUNT] = {"ok",          "size",          "hosts",   "no such job",
                                                    "wrong state", "not permitted", "too many"};
    assert_ptr_equal(data, &bed);
    note("answer %" PRIu64 " %s %" PRIu64, number, words[answer], job);
}

static bool on_failed(uint64_t number, bool accepted, const char *text, void *data)
{
    assert_ptr_equal(data, &bed);
    assert_string_equal(text, engine_store_failure(bed.engine));
    note("failed %" PRIu64 "%s", number, accepted ? " accepted" : "");
    return bed.submission;
}

static void on_ended(const struct engine_job *job, void *data)
{
    assert_ptr_equal(data, &bed);
    assert_true(engine_job_settled(bed.engine, job));
    note("ended %" PRIu64, job->id);
}

static void on_damage(const char *text, void *data)
{
    assert_ptr_equal(data, &bed);
    snprintf(bed.damage, sizeof(bed.damage), "%s", text);
}

/* ---- its life ---- */

static const char *configured_host(int index, int *ncpus, void *data)
{
    assert_ptr_equal(data, &bed);
    *ncpus = 0;
    return bed.names[index];
}

int bed_setup(void **state)
{
    (void)state;
    log_open("test", LOG_LEVEL_ERROR);
    fake_time_begin();
    fake_store_begin();
    bed = (struct bed){.names = {"ws1", "ws2", "ws3"}, .err = ERR_INIT, .submission = true};
    bed.settings = (struct engine_settings){
        .store = "/store", .history_jobs = 50, .history_age_ms = 1000, .host = configured_host, .data = &bed};
    core_options_default(&bed.settings.core);
    bed.settings.core.allocator = ALLOCATOR_V1;
    bed.settings.core.seed = 1;
    deadlines_init(&bed.deadlines, NULL);
    return 0;
}

int bed_create(void)
{
    static const struct engine_hosts hosts = {on_order, on_end, on_open, on_acknowledge, on_gone, on_signal};
    static const struct engine_launch launch = {on_launch, on_stop};
    static const struct engine_requests requests = {on_answered, on_failed, on_ended};
    int result =
        engine_create((uv_loop_t *)&bed, &bed.deadlines, &bed.settings, on_damage, &bed, &bed.engine, &bed.err);
    if (result)
        return result;
    engine_connect_hosts(bed.engine, &hosts, &bed);
    engine_connect_launch(bed.engine, &launch, &bed);
    engine_connect_requests(bed.engine, &requests, &bed);
    return 0;
}

void bed_destroy(void)
{
    engine_close(bed.engine);
    assert_false(fake_store.open);
    assert_int_equal(fake_time_next(), -1); /* nothing of it is armed any more */
    engine_destroy(bed.engine);
    bed.engine = NULL;
}

int bed_teardown(void **state)
{
    (void)state;
    bed_destroy();
    deadlines_fini(&bed.deadlines);
    fake_store_end();
    return 0;
}

void bed_begin(int ncpus)
{
    bed.names[1] = NULL;
    assert_int_equal(bed_create(), 0);
    engine_begin(bed.engine);
    bed_up(0, ncpus, NULL, 0);
    fake_store_commit(); /* that it is up */
    bed_forget_log();
}

/* ---- what was told ---- */

void bed_forget_log(void)
{
    *bed.log = 0;
}

void bed_expect(const char *log)
{
    char told[sizeof(bed.log)];
    snprintf(told, sizeof(told), "%s", bed.log);
    bed_forget_log();
    assert_string_equal(told, log);
}

/* ---- events ---- */

void bed_up(int host, int ncpus, const struct core_holding *holdings, int nholdings)
{
    static const int cpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct event event = {.type = EVENT_HOST_UP,
                          .host = host,
                          .u.up = {.cpus = cpus, .ncpus = ncpus, .holdings = holdings, .nholdings = nholdings}};
    engine_event(bed.engine, &event);
}

const struct engine_job *bed_submit(uint64_t number, uint32_t nprocs, bool requeue)
{
    static const char *command[] = {"/bin/true"}, *environment[] = {"PASSWORD=sesame"};
    char token[30];
    struct wire_message message = {.type = WIRE_submit,
                                   .id = 77,
                                   .u.submit = {.nprocs = nprocs,
                                                .requeue = requeue,
                                                .time_limit_ms = bed.limits.time_limit_ms,
                                                .cpu_limit_ms = bed.limits.cpu_limit_ms,
                                                .limit_requeue = bed.limits.limit_requeue,
                                                .warning_signal = bed.limits.warning_signal,
                                                .warning_ms = bed.limits.warning_ms,
                                                .name = "x",
                                                .dir = "/d",
                                                .token = token,
                                                .ticket = "f00d",
                                                .command = {command, 1},
                                                .environment = {environment, 1}}};
    struct wire_message taken;
    struct event event = {
        .type = EVENT_SUBMIT,
        .request = number,
        .u.submit = {.uid = 5, .nprocs = nprocs, .requeue = requeue, .limit_requeue = bed.limits.limit_requeue}};
    char *json;
    size_t size;
    snprintf(token, sizeof(token), "t%" PRIu64, number);
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &bed.err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, &taken, &bed.err), 0);
    free(json);
    uint64_t id = core_next_id(engine_core(bed.engine));
    const struct engine_job *job = engine_submit(bed.engine, &event, "alice", &taken);
    assert_null(taken.memory); /* taken over */
    if (job)
        assert_int_equal(job->id, id);
    return job;
}

void bed_event(enum event_type type, uint64_t number, uint64_t job, uint32_t attempt, int host)
{
    struct event event = {.type = type, .request = number, .job = job, .attempt = attempt, .host = host};
    if (type == EVENT_CANCEL || type == EVENT_KILL || type == EVENT_HOLD || type == EVENT_RELEASE || type == EVENT_TOP)
        event.u.by.uid = 5;
    engine_event(bed.engine, &event);
}

void bed_exited(uint64_t job, int status)
{
    struct event event = {.type = EVENT_EXITED, .job = job, .attempt = 1, .u.exited = {.exit_status = status}};
    engine_event(bed.engine, &event);
}

const struct engine_job *bed_running(uint64_t number)
{
    const struct engine_job *job = bed_submit(number, 1, false);
    assert_non_null(job);
    bed_event(EVENT_OPENED, 0, job->id, 1, 0);
    bed_event(EVENT_LAUNCHED, 0, job->id, 1, 0);
    fake_store_commit();
    assert_int_equal(bed_state(job->id), JOB_RUNNING);
    bed_forget_log();
    return job;
}

enum job_state bed_state(uint64_t job)
{
    const struct core_job *state = core_job(engine_core(bed.engine), job);
    assert_non_null(state);
    return state->state;
}
