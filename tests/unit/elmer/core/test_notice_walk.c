/* test_notice_walk.c - random walks of jobs and notices: hosts that are cut, lose power, are drained or taken out, and
 * cores that are restarted. After each step the core's invariants hold; no process of a job runs twice at a time; and
 * when all is well again everybody has ended, each notice told once or cancelled with its reason. */
#include "elmer/core/core.h"
#include "tests/unit/elmer/core/core_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WALKS = 1500, STEPS = 150, HOSTS = 3, CPUS = 2, MAX_JOBS = 200, MAX_PENDING = 400, QUIET = 3000 };

struct model {
    struct fixture f;
    uint64_t random;
    struct core_holding held[HOSTS][MAX_JOBS]; /* what each host has */
    int nheld[HOSTS];
    struct event pending[MAX_PENDING]; /* what hosts and the shell are about to say */
    int npending;
    bool up[HOSTS], retired[HOSTS];
    uint64_t notices;
};

static unsigned draw(struct model *m, unsigned n)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(m->random >> 33) % n;
}

/* ---- hosts ---- */

static int find_held(const struct model *m, int host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < m->nheld[host]; i++)
        if (m->held[host][i].job == job && m->held[host][i].attempt == attempt)
            return i;
    return -1;
}

static void drop_held(struct model *m, int host, uint64_t job, uint32_t attempt)
{
    int at = find_held(m, host, job, attempt);

    if (at >= 0)
        m->held[host][at] = m->held[host][--m->nheld[host]];
}

static void add_pending(struct model *m, enum event_type type, const struct action *action)
{
    if (m->npending < MAX_PENDING)
        m->pending[m->npending++] =
            (struct event){.type = type, .host = action->host, .job = action->job, .attempt = action->attempt};
}

static void open_one(struct model *m, const struct action *action)
{
    struct core_holding *held = m->held[action->host];

    for (int h = 0; h < HOSTS && core_job(m->f.core, action->job)->notice; h++)
        for (int i = 0; i < m->nheld[h]; i++)
            if (m->held[h][i].job == action->job && m->held[h][i].attempt != action->attempt)
                fail_msg("notice %llu has two attempts at a time", (unsigned long long)action->job);
    if (find_held(m, action->host, action->job, action->attempt) < 0)
        held[m->nheld[action->host]++] = (struct core_holding){action->job, action->attempt};
    add_pending(m, EVENT_OPENED, action);
}

static void obey(struct model *m)
{
    for (size_t i = 0; i < m->f.actions.count; i++) {
        const struct action *action = &m->f.actions.items[i];

        if (action->type == ACTION_OPEN && m->up[action->host]) {
            open_one(m, action);
        } else if (action->type == ACTION_END && m->up[action->host]) {
            drop_held(m, action->host, action->job, action->attempt);
            add_pending(m, EVENT_EMPTY, action);
        } else if (action->type == ACTION_LAUNCH) {
            add_pending(m, EVENT_LAUNCHED, action);
        }
    }
}

static void step(struct model *m, struct event event)
{
    m->f.now_ms += 10;
    assert_int_equal(fixture_step(&m->f, event), 0);
    obey(m);
}

/* What it was about to say is lost with its link. */
static void set_down(struct model *m, int host, bool power)
{
    int kept = 0;

    for (int i = 0; i < m->npending; i++)
        if (m->pending[i].host != host)
            m->pending[kept++] = m->pending[i];
    m->npending = kept;
    if (power)
        m->nheld[host] = 0;
    m->up[host] = false;
    step(m, (struct event){.type = EVENT_HOST_DOWN, .host = host});
}

static void set_up(struct model *m, int host)
{
    struct core_holding held[MAX_JOBS];

    memcpy(held, m->held[host], sizeof(held));
    m->up[host] = true;
    m->f.now_ms += 10;
    assert_int_equal(fixture_up(&m->f, host, CPUS, core_host(m->f.core, host)->generation, held, m->nheld[host]), 0);
    obey(m);
}

/* ---- what happens ---- */

static void submit(struct model *m)
{
    struct event event = {.type = EVENT_SUBMIT, .host = -1, .request = 1};
    uint64_t next = core_next_id(m->f.core);
    struct core_after after = {.job = next > 1 ? 1 + draw(m, (unsigned)next - 1) : 0,
                               .kind = (enum after_kind)draw(m, AFTER_KIND_COUNT)};
    int host = (int)draw(m, HOSTS);
    bool notice = draw(m, 2) == 0 && next > 1;

    if (next >= MAX_JOBS || (notice && m->retired[host]))
        return;
    event.u.submit.uid = 2001 + draw(m, 2);
    event.u.submit.nprocs = notice ? 1 : 1 + draw(m, 3);
    event.u.submit.notice = notice;
    event.u.submit.requeue = notice || draw(m, 2) == 0;
    if (notice) {
        event.u.submit.hosts = &host;
        event.u.submit.nhosts = 1;
        event.u.submit.after = &after;
        event.u.submit.nafter = 1;
        after.end = CORE_END_FORGOTTEN;
    }
    step(m, event);
    m->notices += notice;
}

static void say_one(struct model *m)
{
    int at;

    if (m->npending == 0)
        return;
    at = (int)draw(m, (unsigned)m->npending);
    struct event event = m->pending[at];
    m->pending[at] = m->pending[--m->npending];
    step(m, event);
}

static void exit_one(struct model *m, int host)
{
    struct event event = {.type = EVENT_EXITED, .host = host};

    if (!m->up[host] || m->nheld[host] == 0)
        return;
    struct core_holding held = m->held[host][draw(m, (unsigned)m->nheld[host])];
    event.job = held.job;
    event.attempt = held.attempt;
    event.u.exited.exit_status = draw(m, 3) == 0;
    step(m, event);
}

static void client(struct model *m)
{
    static const enum event_type types[] = {EVENT_CANCEL, EVENT_KILL, EVENT_HOLD, EVENT_RELEASE, EVENT_TOP};
    struct event event = {.type = types[draw(m, 5)], .host = -1, .request = 2};

    event.job = 1 + draw(m, (unsigned)core_next_id(m->f.core));
    event.u.by.admin = true;
    step(m, event);
}

static void host_event(struct model *m)
{
    int host = (int)draw(m, HOSTS);

    switch (draw(m, 6)) {
    case 0:
        set_down(m, host, draw(m, 2) == 0);
        break;
    case 1:
    case 2:
        set_up(m, host);
        break;
    case 3:
        step(m, (struct event){.type = draw(m, 2) == 0 ? EVENT_DRAIN : EVENT_UNDRAIN, .host = host});
        break;
    case 4:
        step(m, (struct event){.type = EVENT_HOST_SILENT, .host = host});
        break;
    default:
        step(m, (struct event){.type = EVENT_HOST_HEARD, .host = host});
    }
}

static void retire(struct model *m)
{
    int host = (int)draw(m, HOSTS);

    if (draw(m, 8) != 0 || host == 0)
        return;
    step(m, (struct event){.type = EVENT_HOST_RETIRE, .host = host});
    m->retired[host] = true;
}

/* All that is there goes into another core, as the store would have it; a copy says nothing else than the original. */
static void restart(struct model *m)
{
    struct fixture old = m->f;
    struct core_options options;
    uint64_t cursor = 0;
    const struct core_job *saved, *order[MAX_JOBS] = {NULL};
    int count = 0;
    char name[16];

    core_options_default(&options);
    options.allocator = ALLOCATOR_V1;
    m->f.core = core_create(&options);
    actions_init(&m->f.actions);
    for (int h = 0; h < HOSTS; h++) {
        snprintf(name, sizeof(name), "ws%d", h + 1);
        assert_int_equal(core_add_host(m->f.core, name), h);
        if (m->retired[h])
            core_restore_retired(m->f.core, h);
        assert_int_equal(core_restore_host(m->f.core, h, &core_host(old.core, h)->row, m->f.now_ms), 0);
        m->up[h] = false;
    }
    while ((saved = core_next_job(old.core, &cursor)))
        if (saved->state != JOB_DONE && saved->state != JOB_CANCELLED)
            order[count++] = saved;
    for (int pass = 0; pass < 2; pass++) /* with a cluster first, in the order of allocation */
        for (uint64_t done = 0, next; pass == 0; done = next) {
            saved = NULL;
            for (int i = 0; i < count; i++)
                if (order[i]->processors && order[i]->allocation > done &&
                    (!saved || order[i]->allocation < saved->allocation))
                    saved = order[i];
            if (!saved)
                break;
            next = saved->allocation;
            assert_int_equal(core_restore_job(m->f.core, saved, m->f.now_ms), 0);
        }
    for (int i = 0; i < count; i++)
        if (!order[i]->processors)
            assert_int_equal(core_restore_job(m->f.core, order[i], m->f.now_ms), 0);
    core_set_next(m->f.core, core_next_id(old.core), 0);
    fixture_fini(&old);
    m->npending = 0;
    step(m, (struct event){.type = EVENT_TICK, .host = -1});
}

static void act(struct model *m)
{
    unsigned what = draw(m, 20);

    if (what < 4)
        submit(m);
    else if (what < 11)
        say_one(m);
    else if (what < 14)
        exit_one(m, (int)draw(m, HOSTS));
    else if (what == 14)
        client(m);
    else if (what < 17)
        host_event(m);
    else if (what == 17)
        retire(m);
    else if (what == 18 && draw(m, 4) == 0)
        restart(m);
    else
        step(m, (struct event){.type = EVENT_TICK, .host = -1});
}

/* ---- the end of it ---- */

static bool all_ended(struct model *m)
{
    uint64_t cursor = 0;
    const struct core_job *job;

    while ((job = core_next_job(m->f.core, &cursor)))
        if (job->state != JOB_DONE && job->state != JOB_CANCELLED)
            return false;
    return true;
}

static void settle(struct model *m)
{
    uint64_t cursor = 0;
    const struct core_job *job;

    for (int h = 0; h < HOSTS; h++) {
        step(m, (struct event){.type = EVENT_UNDRAIN, .host = h});
        set_up(m, h);
    }
    for (int i = 0; i < QUIET && !all_ended(m); i++) {
        uint64_t id = 1 + (uint64_t)i % core_next_id(m->f.core);

        for (int h = 0; h < HOSTS; h++)
            exit_one(m, h);
        while (m->npending > 0)
            say_one(m);
        m->f.now_ms += 1000;
        if (core_job(m->f.core, id) && core_job(m->f.core, id)->state == JOB_HELD)
            fixture_client(&m->f, EVENT_RELEASE, id, 0, true);
        obey(m);
        if (core_job(m->f.core, id) && !core_job(m->f.core, id)->notice && i > QUIET / 2) { /* asks for too many now */
            fixture_client(&m->f, EVENT_CANCEL, id, 0, true);
            obey(m);
        }
        step(m, (struct event){.type = EVENT_TICK, .host = -1});
    }
    while ((job = core_next_job(m->f.core, &cursor)))
        if (job->state != JOB_DONE && job->state != JOB_CANCELLED)
            fail_msg("%s %llu is %s (%s), attempt %u", job->notice ? "notice" : "job", (unsigned long long)job->id,
                     job_state_name(job->state), reason_name(job->reason), job->attempt);
}

static void walk(uint64_t seed, uint64_t *notices)
{
    static struct model m;

    memset(&m, 0, sizeof(m));
    m.random = seed * 0x9e3779b97f4a7c15u + 1;
    fixture_init(&m.f, ALLOCATOR_V1, 3, (int[]){CPUS, CPUS, CPUS}, HOSTS, true);
    for (int h = 0; h < HOSTS; h++)
        m.up[h] = true;
    for (int i = 0; i < STEPS; i++)
        act(&m);
    settle(&m);
    *notices += m.notices;
    fixture_fini(&m.f);
}

static void test_walks(void **state)
{
    uint64_t notices = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= WALKS; seed++)
        walk(seed, &notices);
    assert_true(notices > WALKS * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
