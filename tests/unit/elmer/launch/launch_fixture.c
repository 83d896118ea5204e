#include "config.h"

#include "tests/unit/elmer/launch/launch_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture f;

static const char *const names[HOSTS] = {"ws0", "ws1", "ws2"};

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    size_t used = strlen(f.log);
    va_list list;
    va_start(list, format);
    int length = vsnprintf(f.log + used, sizeof(f.log) - used, format, list);
    va_end(list);
    assert_true(length >= 0 && used + (size_t)length < sizeof(f.log));
}

/* ---- in place of elmer/engine ---- */

void engine_connect_launch(struct engine *engine, const struct engine_launch *launch, void *data)
{
    (void)engine;
    f.engine = launch;
    f.data = data;
}

int64_t engine_now_ms(void)
{
    return fake_now_ms();
}

const struct core *engine_core(const struct engine *engine)
{
    (void)engine;
    return NULL;
}

const struct core_job *core_job(const struct core *core, uint64_t id)
{
    (void)core;
    return f.known && id == f.state.id ? &f.state : NULL;
}

const struct core_job *core_next_job(const struct core *core, uint64_t *cursor)
{
    (void)core;
    return f.known && (*cursor)++ == 0 ? &f.state : NULL;
}

int core_host_by_name(const struct core *core, const char *name)
{
    (void)core;
    for (int i = 0; i < HOSTS; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *engine_host_name(const struct engine *engine, int host)
{
    (void)engine;
    return names[host];
}

const struct engine_job *engine_job(const struct engine *engine, uint64_t id)
{
    (void)engine;
    return f.known && id == f.job.id ? &f.job : NULL;
}

static struct engine_wait waits[4];
static size_t nwaits;

void engine_after_commit(struct engine *engine, const struct engine_wait *wait)
{
    (void)engine;
    if (f.held) {
        assert_true(nwaits < sizeof(waits) / sizeof(waits[0]));
        waits[nwaits++] = *wait;
    } else {
        wait->run(wait);
    }
}

void commit(void)
{
    f.held = false;
    for (size_t i = 0; i < nwaits; i++)
        waits[i].run(&waits[i]);
    nwaits = 0;
}

static void note_failure(const char *what, const struct event *event)
{
    const char *reason = event->u.failed.reason == REASON_HELPER_FAILED  ? "pvm-failed"
                         : event->u.failed.reason == REASON_START_FAILED ? "start-failed"
                                                                         : "?";
    note("%s %s: %s\n", what, reason, event->u.failed.text);
}

void engine_event(struct engine *engine, struct event *event)
{
    (void)engine;
    assert_int_equal(event->job, f.job.id);
    bool over = event->attempt == f.state.attempt;
    switch ((int)event->type) {
    case EVENT_LAUNCHED:
        note("LAUNCHED\n");
        f.state.state = JOB_RUNNING;
        over = false;
        break;
    case EVENT_LAUNCH_FAILED:
        note_failure("LAUNCH_FAILED", event);
        break;
    case EVENT_ABORT:
        note_failure("ABORT", event);
        break;
    case EVENT_EXITED:
        note("EXITED %s rank %" PRIu32 " status %d signal %d\n", names[event->host], event->u.exited.rank,
             event->u.exited.exit_status, event->u.exited.signal);
        over = over && ++f.exits == (f.state.each ? f.state.nprocs : 1);
        break;
    default:
        fail_msg("event %d", (int)event->type);
    }
    if (over)
        end();
}

/* ---- in place of elmer/hosts ---- */

unsigned hosts_minor(const struct hosts *hosts, int host)
{
    (void)hosts;
    return f.minor[host];
}

struct host_facts hosts_facts(const struct hosts *hosts, int host)
{
    (void)hosts;
    return f.facts[host];
}

const char *hosts_local_address(const struct hosts *hosts, int host)
{
    (void)hosts;
    return host ? f.local_address : "";
}

static void note_start(const char *host, const struct wire_start *s)
{
    note("%s: start %" PRIu64 " %s", host, s->process, s->role);
    for (size_t i = 0; i < s->argv.count; i++)
        note(" %s", s->argv.items[i]);
    note(" cpus");
    for (size_t i = 0; i < s->cpus.count; i++)
        note(" %" PRIu64, s->cpus.items[i]);
    if (*s->output)
        note(" > %s", s->output);
    if (strcmp(s->output, s->errors) != 0)
        note(" 2> %s", s->errors);
    note("%s\n", s->capture ? " captured" : "");
    assert_string_equal(s->dir, "/home/alice");
    assert_int_equal(s->umask, 18);
    *f.environment = 0;
    for (size_t i = 0; i < s->environment.count; i++) {
        size_t used = strlen(f.environment);
        snprintf(f.environment + used, sizeof(f.environment) - used, "%s\n", s->environment.items[i]);
    }
}

void hosts_acknowledge(struct hosts *hosts, int host, uint64_t job, uint32_t attempt, uint32_t process)
{
    (void)hosts;
    assert_int_equal(job, 7);
    assert_int_equal(attempt, f.state.attempt);
    if (f.linked[host])
        note("%s: taken %" PRIu32 "\n", names[host], process);
}

bool hosts_send(struct hosts *hosts, int host, const struct wire_message *m)
{
    (void)hosts;
    if (!f.linked[host])
        return false;
    switch ((int)m->type) {
    case WIRE_start:
        assert_int_equal(m->u.start.job, 7);
        assert_int_equal(m->u.start.attempt, f.state.attempt);
        note_start(names[host], &m->u.start);
        break;
    case WIRE_pvm_spawned:
        note("%s: pvm_spawned %" PRIu64 " %s\n", names[host], m->u.pvm_spawned.request, m->u.pvm_spawned.line);
        break;
    case WIRE_pvm_finish:
        note("%s: pvm_finish\n", names[host]);
        break;
    default:
        fail_msg("message %s", wire_type_name(m->type));
    }
    return true;
}

/* ---- a test ---- */

static void create(void)
{
    static const struct launch_settings settings = {.jobs_dir = "/tmp/jobs", .queue_host = "ws0"};
    static struct deadlines deadlines;
    deadlines_init(&deadlines, NULL);
    const struct room room = {.deadlines = &deadlines};
    f.launches = launches_create(&room, &settings, NULL);
}

int setup(void **state)
{
    (void)state;
    f = (struct fixture){.local_address = "10.0.0.100"};
    fake_time_begin();
    for (int i = 0; i < HOSTS; i++) {
        f.linked[i] = true;
        f.minor[i] = WIRE_MINOR;
        f.facts[i] = (struct host_facts){.name = names[i], .address = "", .launchers = UINT32_MAX};
    }
    create();
    return 0;
}

int teardown(void **state)
{
    (void)state;
    launches_destroy(f.launches);
    return *f.log ? -1 : 0; /* something has happened that nobody has looked at */
}

void make_job(const char *hosts, const char *const *environment, size_t count)
{
    static const char *command[] = {"sim", "-v"};
    int cpus[HOSTS] = {0};
    f.job = (struct engine_job){.id = 7, .uid = 2001, .user = (char *)"alice", .submission.type = WIRE_submit};
    f.job.submission.u.submit = (struct wire_submit){.nprocs = strlen(hosts),
                                                     .name = "sim",
                                                     .command = {command, 2},
                                                     .dir = "/home/alice",
                                                     .output = "",
                                                     .errors = "",
                                                     .submit_host = "ws2",
                                                     .umask = 18,
                                                     .terminal = "",
                                                     .environment = {(const char **)environment, count}};
    f.state = (struct core_job){
        .id = 7, .attempt = 1, .nprocs = (uint32_t)strlen(hosts), .state = JOB_STARTING, .processors = f.processors};
    for (size_t i = 0; hosts[i]; i++) {
        int host = hosts[i] - '0';
        f.processors[i] = (struct core_processor){.host = host, .cpu = cpus[host]++};
    }
    f.known = true;
}

void begin(void)
{
    f.state.each = f.job.submission.u.submit.each;
    f.state.exited = f.exited;
    f.engine->begin(&f.job, f.data);
}

void restart(void)
{
    launches_destroy(f.launches);
    f.state.each = f.job.submission.u.submit.each;
    f.state.exited = f.exited;
    f.state.state = JOB_RUNNING;
    create();
}

void end(void)
{
    f.state.state = JOB_ENDING;
    f.engine->end(&f.job, f.data);
}

void expect(const char *lines)
{
    if (strcmp(f.log, lines) != 0)
        fail_msg("expected:\n%sbut was:\n%s", lines, f.log);
    *f.log = 0;
}

const char *variable(const char *name)
{
    static char value[1000];
    size_t length = strlen(name);
    for (const char *line = f.environment; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
        return value;
    }
    return NULL;
}

/* ---- what hosts say ---- */

static void tell(int host, struct wire_message *message)
{
    launches_message(f.launches, host, message);
}

void say(int host, enum wire_type type, uint32_t process, const char *text)
{
    struct wire_message m = {.type = type};
    if (type == WIRE_started)
        m.u.started = (struct wire_started){.job = 7, .attempt = f.state.attempt, .process = process, .pid = 99};
    else if (type == WIRE_start_failed)
        m.u.start_failed =
            (struct wire_start_failed){.job = 7, .attempt = f.state.attempt, .process = process, .text = text};
    else if (type == WIRE_line)
        m.u.line = (struct wire_line){.job = 7, .attempt = f.state.attempt, .process = process, .line = text};
    else
        fail_msg("nothing to say");
    tell(host, &m);
}

void say_exited(int host, uint32_t process, const char *role, int status, int signal)
{
    struct wire_message m = {.type = WIRE_exited,
                             .u.exited = {.job = 7,
                                          .attempt = f.state.attempt,
                                          .process = process,
                                          .role = role,
                                          .exit_status = status,
                                          .signal = signal}};
    tell(host, &m);
}

void say_spawn(int host, uint32_t request, const char *name, const char *command)
{
    struct wire_message m = {
        .type = WIRE_pvm_spawn,
        .u.pvm_spawn = {.job = 7, .attempt = f.state.attempt, .request = request, .host = name, .command = command}};
    tell(host, &m);
}

void say_pvm(int host, enum wire_type type, const char *reason)
{
    struct wire_message m = {.type = type};
    if (type == WIRE_pvm_ready)
        m.u.pvm_ready = (struct wire_pvm_ready){.job = 7, .attempt = f.state.attempt};
    else
        m.u.pvm_failed = (struct wire_pvm_failed){.job = 7, .attempt = f.state.attempt, .reason = reason};
    tell(host, &m);
}

void say_empty(int host)
{
    struct wire_message m = {.type = WIRE_empty, .u.empty = {.job = 7, .attempt = f.state.attempt}};
    tell(host, &m);
}
