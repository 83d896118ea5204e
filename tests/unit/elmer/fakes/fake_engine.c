#include "config.h"

#include <setjmp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/unit/elmer/fakes/fake_engine.h"
#include "tests/unit/elmer/fakes/fake_time.h"

struct fake_engine fake_engine;
static struct deadlines deadlines;

void fake_engine_begin(void)
{
    fake_time_begin();
    deadlines_init(&deadlines, NULL);
    fake_engine = (struct fake_engine){.next_id = 1, .may_forget = true};
    fake_engine.room = (struct room){(uv_loop_t *)&fake_engine, &deadlines, (struct engine *)&fake_engine};
}

static void free_job(struct fake_job *job)
{
    wire_message_fini(&job->job.submission);
    free(job->job.user);
    free(job);
}

void fake_engine_end(void)
{
    fake_no_event();
    assert_int_equal(fake_time_next(), -1); /* no deadline is left armed */
    for (size_t i = 0; i < fake_engine.njobs; i++)
        free_job(fake_engine.jobs[i]);
    deadlines_fini(&deadlines);
}

/* ---- hosts and jobs ---- */

int fake_engine_add_host(const char *name)
{
    assert_true(fake_engine.nhosts < FAKE_HOSTS);
    fake_engine.hosts[fake_engine.nhosts] = (struct core_host){.name = name};
    return fake_engine.nhosts++;
}

/* As a client would send it: no text of a decoded message is NULL. */
static void decode_submission(struct wire_message *submission)
{
    const struct wire_message message = {.type = WIRE_submit, .u.submit = {.nprocs = 1, .name = "x", .dir = "/d"}};
    struct err err = ERR_INIT;
    char *json;
    size_t size;
    assert_int_equal(wire_encode(&message, WIRE_MINOR, &json, &size, &err), 0);
    assert_int_equal(wire_decode(json, size, WIRE_MINOR, submission, &err), 0);
    free(json);
}

struct fake_job *fake_engine_add_job(uint64_t id, uint32_t uid, enum job_state state)
{
    struct fake_job *job = mem_zalloc(sizeof(*job));
    assert_true(fake_engine.njobs < FAKE_JOBS);
    assert_true(!fake_engine.njobs || fake_engine.jobs[fake_engine.njobs - 1]->state.id < id);
    job->state = (struct core_job){.id = id,
                                   .uid = uid,
                                   .nprocs = 1,
                                   .state = state,
                                   .text = "",
                                   .level = CORE_NO_LEVEL,
                                   .exit_status = -1,
                                   .failed_rank = UINT32_MAX};
    job->job = (struct engine_job){
        .id = id, .uid = uid, .user = mem_strdup("alice"), .submitted_ms = 1, .started_ms = -1, .ended_ms = -1};
    decode_submission(&job->job.submission);
    job->accepted = true;
    fake_engine.jobs[fake_engine.njobs++] = job;
    if (id >= fake_engine.next_id)
        fake_engine.next_id = id + 1;
    return job;
}

struct fake_job *fake_engine_find(uint64_t id)
{
    for (size_t i = 0; i < fake_engine.njobs; i++)
        if (fake_engine.jobs[i]->state.id == id)
            return fake_engine.jobs[i];
    return NULL;
}

void fake_engine_drop_job(uint64_t id)
{
    for (size_t i = 0; i < fake_engine.njobs; i++) {
        if (fake_engine.jobs[i]->state.id != id)
            continue;
        free_job(fake_engine.jobs[i]);
        fake_engine.njobs--;
        memmove(&fake_engine.jobs[i], &fake_engine.jobs[i + 1], (fake_engine.njobs - i) * sizeof(*fake_engine.jobs));
        return;
    }
    fail_msg("there is no job %d", (int)id);
}

/* ---- core.h, to look ---- */

int core_host_by_name(const struct core *core, const char *name)
{
    (void)core;
    for (int i = 0; i < fake_engine.nhosts; i++)
        if (strcmp(fake_engine.hosts[i].name, name) == 0)
            return i;
    return -1;
}

int core_member_by_name(const struct core *core, const char *name)
{
    int host = core_host_by_name(core, name);
    return host >= 0 && fake_engine.hosts[host].retired ? -1 : host;
}

/* Here retired hosts have nothing. */
bool core_host_gone(const struct core *core, int host)
{
    (void)core;
    return fake_engine.hosts[host].retired;
}

const struct core_host *core_host(const struct core *core, int host)
{
    (void)core;
    assert_true(host >= 0);
    return host < fake_engine.nhosts ? &fake_engine.hosts[host] : NULL;
}

const struct core_job *core_job(const struct core *core, uint64_t id)
{
    (void)core;
    struct fake_job *job = fake_engine_find(id);
    return job ? &job->state : NULL;
}

const struct core_job *core_array_of(const struct core *core, uint64_t id)
{
    (void)core;
    for (size_t i = 0; i < fake_engine.njobs; i++) {
        const struct core_job *job = &fake_engine.jobs[i]->state;
        if (id > job->id && id - job->id <= job->ntasks)
            return job;
    }
    return NULL;
}

void core_top_splits(const struct core *core, uint64_t id, const struct core_range *ranges, int count,
                     void (*each)(void *data, uint64_t array, uint64_t tasks), void *data)
{
    (void)core;
    (void)ranges;
    (void)count;
    if (fake_engine.splits > 0)
        each(data, id, fake_engine.splits);
}

uint32_t core_next_task(const struct core_job *array, uint32_t from)
{
    return core_range_next(array->gone, array->ngone, array->next_task, from);
}

const struct core_job *core_next_job(const struct core *core, uint64_t *cursor)
{
    (void)core;
    for (size_t i = 0; i < fake_engine.njobs; i++) {
        if (fake_engine.jobs[i]->state.id <= *cursor)
            continue;
        *cursor = fake_engine.jobs[i]->state.id;
        return &fake_engine.jobs[i]->state;
    }
    return NULL;
}

void core_reach(const struct core *core, const int *hosts, int nhosts, uint32_t needs, const struct core_demand *demand,
                struct core_reach *reach)
{
    (void)core;
    (void)hosts;
    (void)nhosts;
    (void)needs;
    (void)demand;
    *reach = fake_engine.reach;
}

void core_memory(const struct core *core, int host, uint64_t *memory_bytes, uint64_t *promised_bytes)
{
    (void)core;
    *memory_bytes = fake_engine.memory_bytes;
    *promised_bytes = host > 0 ? fake_engine.memory_bytes / 2 : 0;
}

uint32_t core_cube_for(const struct core *core, uint32_t nprocs, uint32_t mesh_rows)
{
    (void)core;
    return mesh_rows > 0 && nprocs % mesh_rows != 0 ? 0 : fake_engine.cube;
}

uint64_t core_next_id(const struct core *core)
{
    (void)core;
    return fake_engine.next_id;
}

struct core_user core_user(const struct core *core, uint32_t uid)
{
    (void)core;
    (void)uid;
    return (struct core_user){.queued = fake_engine.queued};
}

const char *job_state_name(enum job_state state)
{
    static const char *const names[JOB_STATE_COUNT] = {"queued", "held", "starting", "running",
                                                       "ending", "done", "cancelled"};
    return names[state];
}

const char *reason_name(enum reason reason)
{
    return reason == REASON_NONE ? "" : reason == REASON_WAITING ? "waiting" : "another-reason";
}

const char *core_allocator_name(enum core_allocator allocator)
{
    (void)allocator;
    return "an-allocator";
}

/* ---- events ---- */

static void write_down(const struct event *event)
{
    assert_true(fake_engine.nevents < FAKE_EVENTS);
    struct fake_event *copy = &fake_engine.events[fake_engine.nevents++];
    *copy = (struct fake_event){.event = *event};
    if (event->type != EVENT_OPEN_FAILED && event->type != EVENT_LAUNCH_FAILED && event->type != EVENT_ABORT)
        return;
    snprintf(copy->text, sizeof(copy->text), "%s", event->u.failed.text);
}

/* What the core makes of what it is told of a host. */
static void follow_host(const struct event *event)
{
    if (event->host < 0) /* it is about no host */
        return;
    struct core_host *host = &fake_engine.hosts[event->host];
    if (event->type == EVENT_HOST_UP) {
        host->state = CORE_HOST_UP;
        host->known = true;
        host->offers = event->u.up.offers;
    } else if (event->type == EVENT_HOST_SILENT && host->state == CORE_HOST_UP) {
        host->state = CORE_HOST_SILENT;
    } else if (event->type == EVENT_HOST_HEARD && host->state == CORE_HOST_SILENT) {
        host->state = CORE_HOST_UP;
    } else if (event->type == EVENT_HOST_DOWN) {
        host->state = CORE_HOST_DOWN;
    }
}

void engine_event(struct engine *engine, struct event *event)
{
    assert_ptr_equal(engine, &fake_engine);
    event->now_ms = fake_now_ms();
    if (fake_engine.on_event)
        fake_engine.on_event(event);
    write_down(event);
    follow_host(event);
}

void engine_decide(struct engine *engine, struct event *event, const struct decision *decision)
{
    fake_engine.decision = *decision;
    engine_event(engine, event);
}

void engine_note(struct engine *engine, const struct decision *decision)
{
    assert_ptr_equal(engine, &fake_engine);
    fake_engine.decision = *decision;
}

const struct host_drain *engine_drain(const struct engine *engine, int host)
{
    assert_ptr_equal(engine, &fake_engine);
    return fake_engine.hosts[host].drained && *fake_engine.drains[host].by ? &fake_engine.drains[host] : NULL;
}

const struct event *fake_event(enum event_type type)
{
    if (!fake_engine.nevents)
        fail_msg("no event, and %d was to come", (int)type);
    fake_engine.last = fake_engine.events[0];
    fake_engine.nevents--;
    memmove(fake_engine.events, fake_engine.events + 1, fake_engine.nevents * sizeof(*fake_engine.events));
    assert_int_equal(fake_engine.last.event.type, type);
    if (*fake_engine.last.text)
        fake_engine.last.event.u.failed.text = fake_engine.last.text;
    return &fake_engine.last.event;
}

void fake_no_event(void)
{
    if (fake_engine.nevents)
        fail_msg("an event of type %d", (int)fake_engine.events[0].event.type);
}

const struct engine_job *engine_submit(struct engine *engine, struct event *event, const char *user,
                                       struct wire_message *submission)
{
    snprintf(fake_engine.user, sizeof(fake_engine.user), "%s", user);
    engine_event(engine, event);
    if (fake_engine.refuse) {
        wire_message_fini(submission); /* it was taken over all the same */
        submission->memory = NULL;
        return NULL;
    }
    struct fake_job *job = fake_engine_add_job(fake_engine.next_id, event->u.submit.uid, JOB_QUEUED);
    job->accepted = false;
    wire_message_fini(&job->job.submission);
    job->job.submission = *submission;
    submission->memory = NULL;
    snprintf(job->job.name, sizeof(job->job.name), "%s", job_submit(&job->job)->name);
    job->job.submission.u.submit.name = job->job.name;
    return &job->job;
}

bool engine_rehearse(struct engine *engine, struct event *event, const char *user, struct wire_message *submission,
                     struct engine_rehearsal *rehearsal)
{
    (void)engine, (void)event, (void)user, (void)submission;
    *rehearsal = (struct engine_rehearsal){0};
    fake_time_skip(fake_engine.rehearsal_ms);
    return false;
}

void engine_rehearsal_fini(struct engine_rehearsal *rehearsal)
{
    (void)rehearsal;
}

void engine_used(struct engine *engine, int host, uint64_t job, uint32_t attempt, double cpu_seconds, const char *polls)
{
    (void)engine, (void)host, (void)job, (void)attempt, (void)cpu_seconds, (void)polls;
}

bool engine_emptied(struct engine *engine, int host, uint64_t job, uint32_t attempt, double cpu_seconds,
                    int64_t memory_peak_bytes)
{
    struct event event = {.type = EVENT_EMPTY, .host = host, .job = job, .attempt = attempt};
    (void)cpu_seconds;
    (void)memory_peak_bytes;
    engine_event(engine, &event);
    return fake_engine.may_forget;
}

int64_t engine_now_ms(void)
{
    return mono_ms(mono_now());
}

/* ---- after the commit ---- */

void engine_after_commit(struct engine *engine, const struct engine_wait *wait)
{
    assert_ptr_equal(engine, &fake_engine);
    if (!fake_engine.held) {
        wait->run(wait);
        return;
    }
    assert_true(fake_engine.nwaits < FAKE_WAITS);
    fake_engine.waits[fake_engine.nwaits++] = *wait;
}

void fake_engine_commit(void)
{
    size_t count = fake_engine.nwaits;
    struct engine_wait waits[FAKE_WAITS];
    memcpy(waits, fake_engine.waits, count * sizeof(*waits));
    fake_engine.nwaits = 0;
    for (size_t i = 0; i < fake_engine.njobs; i++)
        fake_engine.jobs[i]->accepted = true;
    for (size_t i = 0; i < count; i++)
        waits[i].run(&waits[i]);
}

uint64_t engine_put_certificate(struct engine *engine, const struct certificate *certificate)
{
    assert_ptr_equal(engine, &fake_engine);
    assert_true(fake_engine.ncertificates < FAKE_WAITS);
    fake_engine.certificates[fake_engine.ncertificates++] = *certificate;
    return fake_engine.ncertificates;
}

/* ---- connecting and looking ---- */

void engine_connect_hosts(struct engine *engine, const struct engine_hosts *hosts, void *data)
{
    (void)engine;
    fake_engine.orders = *hosts;
    fake_engine.orders_data = data;
}

void engine_connect_requests(struct engine *engine, const struct engine_requests *requests, void *data)
{
    (void)engine;
    fake_engine.requests = *requests;
    fake_engine.requests_data = data;
}

const struct core *engine_core(const struct engine *engine)
{
    return (const struct core *)engine;
}

const struct jobs *engine_jobs(const struct engine *engine)
{
    return (const struct jobs *)engine;
}

struct store *engine_store(struct engine *engine)
{
    return (struct store *)engine;
}

const char *engine_host_name(const struct engine *engine, int host)
{
    (void)engine;
    assert_true(host >= 0 && host < fake_engine.nhosts);
    return fake_engine.hosts[host].name;
}

int engine_host_count(const struct engine *engine)
{
    (void)engine;
    return fake_engine.nhosts;
}

const char *engine_store_failure(const struct engine *engine)
{
    (void)engine;
    return fake_engine.failure;
}

const char *jobs_line_proof(const struct engine_job *task, struct arena *memory)
{
    return task->line && task->of ? arena_format(memory, "proof%" PRIu32, task->task) : "";
}

const struct engine_job *engine_job(const struct engine *engine, uint64_t id)
{
    (void)engine;
    struct fake_job *job = fake_engine_find(id);
    return job ? &job->job : NULL;
}

bool engine_job_accepted(const struct engine *engine, const struct engine_job *job)
{
    (void)engine;
    return fake_engine_find(job->id)->accepted;
}

bool engine_job_settled(const struct engine *engine, const struct engine_job *job)
{
    (void)engine;
    return fake_engine_find(job->id)->settled;
}

void engine_watch(struct engine *engine, uint64_t job)
{
    (void)engine;
    fake_engine_find(job)->job.watchers++;
    fake_engine.watchers++;
}

void engine_unwatch(struct engine *engine, uint64_t job)
{
    (void)engine;
    assert_true(fake_engine_find(job)->job.watchers > 0);
    fake_engine_find(job)->job.watchers--;
    fake_engine.watchers--;
}
