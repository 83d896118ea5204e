/* history_bed.c - see history_bed.h. */
#include "config.h"

#include "tests/unit/esim/history_bed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char fault[500];

void put(struct bed *bed, const struct of *of)
{
    static const struct record_processor processors[] = {{"ws1", 0}, {"ws1", 1}, {"ws2", 0}, {"ws2", 1}};
    struct record *r = record_create();
    struct wire_message message = {.type = WIRE_submit,
                                   .u.submit = {.nprocs = of->nprocs, .name = "x", .dir = "/d", .token = "t"}};
    struct record_usage *usage = arena_array(&r->memory, 2, sizeof(*usage));
    struct err err = ERR_INIT;
    const char **only = arena_array(&r->memory, 1, sizeof(*only));
    static const char *const command[] = {"/bin/x"};
    char token[30], *json;

    snprintf(token, sizeof(token), "t%u", (unsigned)of->id);
    message.u.submit.token = token;
    message.u.submit.command.items = (const char **)command;
    message.u.submit.command.count = 1;
    message.u.submit.after.items = (const char **)&of->after;
    message.u.submit.after.count = of->after != NULL;
    assert_int_equal(record_json(&message, &json, &r->json_minor, &err), 0);
    r->json = arena_strdup(&r->memory, json);
    free(json);
    r->id = of->id;
    r->uid = of->user[0] == 'a' ? 1001 : 1002;
    r->user = of->user;
    r->token = arena_strdup(&r->memory, token);
    r->submitted_ms = (int64_t)(of->submitted * 1000);
    r->started_ms = of->started < 0 ? -1 : (int64_t)(of->started * 1000);
    r->ended_ms = of->ended < 0 ? -1 : (int64_t)(of->ended * 1000);
    r->state = of->state;
    r->reason = of->reason;
    r->text = "";
    r->ntasks = of->ntasks;
    r->task_limit = of->ntasks > 0 ? 2 : 0;
    r->array = of->array;
    r->exit_status = 0;
    r->level = CORE_NO_LEVEL;
    if (of->started >= 0) {
        r->attempt = 1;
        r->allocation = of->id;
        r->processors = of->only && strcmp(of->only, "ws2") == 0 ? processors + 2 : processors;
        r->nprocessors = of->nprocs;
        r->level_ms[0] = r->ended_ms - r->started_ms + (int64_t)(of->start * 1000);
        usage[0] = (struct record_usage){"ws1", 1, of->cpu_s / 2, -1};
        usage[1] = (struct record_usage){"ws2", 1, of->cpu_s / 2, -1};
        r->usage = usage;
        r->nusage = 2;
    }
    only[0] = of->only;
    r->hosts = of->only ? only : NULL;
    r->nhosts = of->only != NULL;
    store_put(bed->store, r);
}

struct history *must_read(const char *path, int64_t since_ms, int64_t until_ms)
{
    struct history *h = history_read(path, since_ms, until_ms, fault, sizeof(fault));

    if (!h)
        fail_msg("%s", fault);
    return h;
}

struct history *history_of(struct bed *bed, const struct of *jobs, size_t count, int ncpus)
{
    struct host_row host = {.name = "ws1", .row = {.up = true, .ncpus = ncpus}};

    for (size_t i = 0; i < count; i++)
        put(bed, &jobs[i]);
    await(bed, store_put_host(bed->store, &host));
    return must_read(bed->path, INT64_MIN, INT64_MAX);
}

void expect_near(double value, double expected, double most)
{
    if (!(fabs(value - expected) <= most))
        fail_msg("%g is not within %g of %g", value, most, expected);
}
