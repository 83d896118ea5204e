#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void fixture_init(struct fixture *f, enum core_allocator allocator, int levels, const int *ncpus, int nhosts, bool up)
{
    struct core_options options;
    char name[16];

    memset(f, 0, sizeof(*f));
    core_options_default(&options);
    options.allocator = allocator;
    options.levels = levels;
    options.topology = core_allocator_in_cube(allocator) ? TOPOLOGY_CUBE : TOPOLOGY_NONE;
    f->core = core_create(&options);
    assert_non_null(f->core);
    actions_init(&f->actions);
    f->now_ms = 100000;
    for (int h = 0; h < nhosts; h++) {
        snprintf(name, sizeof(name), "ws%d", h + 1);
        assert_int_equal(core_add_host(f->core, name), h);
    }
    for (int h = 0; h < nhosts && up; h++)
        assert_int_equal(fixture_up(f, h, ncpus[h], 0, NULL, 0), 0);
}

void fixture_fini(struct fixture *f)
{
    actions_fini(&f->actions);
    core_destroy(f->core);
}

int fixture_step(struct fixture *f, struct event event)
{
    char text[400] = "";

    actions_clear(&f->actions);
    event.now_ms = f->now_ms;
    f->result = core_step(f->core, &event, &f->actions);
    if (core_check(f->core, text, sizeof(text)) != 0)
        fail_msg("%s", text);
    return f->result;
}

uint64_t fixture_submit(struct fixture *f, uint32_t nprocs, const int *hosts, int nhosts, bool each)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    const struct action *answer;

    event.u.submit.uid = 2001;
    event.u.submit.nprocs = nprocs;
    event.u.submit.hosts = hosts;
    event.u.submit.nhosts = nhosts;
    event.u.submit.each = each;
    if (fixture_step(f, event) != 0)
        return 0;
    answer = fixture_find(f, ACTION_ANSWER, -1);
    assert_non_null(answer);
    return answer->answer == ANSWER_OK ? answer->job : 0;
}

uint64_t fixture_submit_as(struct fixture *f, uint32_t uid, bool checked)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1, .now_ms = f->now_ms};
    uint64_t id = core_next_id(f->core);

    event.u.submit.uid = uid;
    event.u.submit.nprocs = 1;
    if (checked)
        fixture_step(f, event);
    else
        assert_int_equal(core_step(f->core, &event, &f->actions), 0);
    actions_clear(&f->actions);
    return id;
}

int fixture_up(struct fixture *f, int host, int ncpus, uint64_t generation, const struct core_holding *holdings, int n)
{
    struct event event = {.type = EVENT_HOST_UP, .host = host};
    int cpus[CORE_MAX_CPUS];

    for (int i = 0; i < ncpus; i++)
        cpus[i] = i;
    event.u.up.cpus = cpus;
    event.u.up.ncpus = ncpus;
    event.u.up.generation = generation;
    event.u.up.holdings = holdings;
    event.u.up.nholdings = n;
    return fixture_step(f, event);
}

int fixture_client(struct fixture *f, enum event_type type, uint64_t job, uint32_t uid, bool admin)
{
    struct event event = {.type = type, .host = -1, .request = 7, .job = job};

    event.u.by.uid = uid;
    event.u.by.admin = admin;
    snprintf(event.u.by.text, sizeof(event.u.by.text), "by uid %u", uid);
    assert_int_equal(fixture_step(f, event), 0);
    assert_int_equal(fixture_count(f, ACTION_ANSWER), 1);
    assert_int_equal(fixture_find(f, ACTION_ANSWER, -1)->request, 7);
    return (int)fixture_find(f, ACTION_ANSWER, -1)->answer;
}

static uint32_t attempt_of(struct fixture *f, uint64_t job)
{
    const struct core_job *info = core_job(f->core, job);

    return info ? info->attempt : 1;
}

int fixture_host(struct fixture *f, enum event_type type, uint64_t job, int host)
{
    struct event event = {.type = type, .host = host, .job = job, .attempt = attempt_of(f, job)};

    return fixture_step(f, event);
}

int fixture_exited(struct fixture *f, uint64_t job, int host, uint32_t rank, int status, int signal)
{
    struct event event = {.type = EVENT_EXITED, .host = host, .job = job, .attempt = attempt_of(f, job)};

    event.u.exited.rank = rank;
    event.u.exited.exit_status = status;
    event.u.exited.signal = signal;
    return fixture_step(f, event);
}

int fixture_report(struct fixture *f, int host, double busy, double jobs, int64_t interval_ms)
{
    struct event event = {.type = EVENT_REPORT, .host = host};
    double busies[CORE_MAX_CPUS], shares[CORE_MAX_CPUS];

    for (int i = 0; i < CORE_MAX_CPUS; i++) {
        busies[i] = busy;
        shares[i] = jobs;
    }
    event.u.report.begin_ms = f->now_ms - interval_ms;
    event.u.report.end_ms = f->now_ms;
    event.u.report.busy = busies;
    event.u.report.jobs = shares;
    event.u.report.ncpus = core_host(f->core, host)->ncpus;
    return fixture_step(f, event);
}

/* Calls step for each host of the job. */
static void each_host(struct fixture *f, uint64_t job, enum event_type type)
{
    const struct core_job *info = core_job(f->core, job);
    uint32_t n = info->nprocs;
    int last = -1;

    for (uint32_t i = 0; i < n; i++) {
        int host = core_job(f->core, job)->processors[i].host;
        if (host == last)
            continue;
        last = host;
        assert_int_equal(fixture_host(f, type, job, host), 0);
    }
}

void fixture_run(struct fixture *f, uint64_t job)
{
    assert_int_equal(fixture_state(f, job), JOB_STARTING);
    each_host(f, job, EVENT_OPENED);
    assert_int_equal(fixture_count(f, ACTION_LAUNCH), 1);
    assert_int_equal(fixture_host(f, EVENT_LAUNCHED, job, -1), 0);
    assert_int_equal(fixture_state(f, job), JOB_RUNNING);
}

void fixture_empty(struct fixture *f, uint64_t job)
{
    assert_int_equal(fixture_state(f, job), JOB_ENDING);
    each_host(f, job, EVENT_EMPTY);
    assert_int_equal(fixture_state(f, job), JOB_DONE);
}

int fixture_count(const struct fixture *f, enum action_type type)
{
    int n = 0;

    for (size_t i = 0; i < f->actions.count; i++)
        n += f->actions.items[i].type == type;
    return n;
}

const struct action *fixture_find(const struct fixture *f, enum action_type type, int host)
{
    for (size_t i = 0; i < f->actions.count; i++)
        if (f->actions.items[i].type == type && (host < 0 || f->actions.items[i].host == host))
            return &f->actions.items[i];
    return NULL;
}

enum job_state fixture_state(struct fixture *f, uint64_t job)
{
    const struct core_job *info = core_job(f->core, job);

    assert_non_null(info);
    return info->state;
}
