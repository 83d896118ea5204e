/* decide.c - what persons decide: a line, a row, and of a host who has drained it. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elmer/engine/internal.h"
#include "lib/base/clock.h"

/* Between double quotes, which it has none of then. */
static void quote(const char *text, char *quoted, size_t size)
{
    snprintf(quoted, size, "%s", text);
    for (char *c = quoted; *c; c++)
        if (*c == '"')
            *c = '\'';
}

int decision_line(const struct decision *d, char *line, size_t size)
{
    char about[DECISION_USER + 40] = "", text[DECISION_TEXT], why[DECISION_TEXT + 20] = "";
    if (d->job)
        snprintf(about, sizeof(about), "job=%" PRIu64 " user=%s ", d->job, d->user);
    else if (*d->host)
        snprintf(about, sizeof(about), "host=%s ", d->host);
    quote(d->text, text, sizeof(text));
    if (*text)
        snprintf(why, sizeof(why), " %s=\"%s\"", d->job || *d->host ? "reason" : "to", text);
    if (d->job)
        return snprintf(line, size, "%s%s by=%s host=%s%s", about, d->what, d->by, d->from, why);
    return snprintf(line, size, "%s%s by=%s%s from=%s", about, d->what, d->by, why, d->from);
}

void engine_keep(struct engine *engine, const struct decision *decision)
{
    struct decision d = *decision;
    d.at_ms = wall_now().ms;
    engine->last_put = store_put_decision(engine->store, &d);
}

void engine_note(struct engine *engine, const struct decision *decision)
{
    char line[2000];
    decision_line(decision, line, sizeof(line));
    log_notice("%s", line);
    engine_keep(engine, decision);
}

void decide_restore(struct engine *engine, int host, const struct host_drain *drain)
{
    size_t place = (size_t)host, before = engine->ndrains;
    if (place >= before) {
        engine->drains = mem_grow(engine->drains, &engine->drains_room, place + 1, sizeof(*engine->drains));
        memset(&engine->drains[before], 0, (place + 1 - before) * sizeof(*engine->drains));
        engine->ndrains = place + 1;
    }
    engine->drains[place] = *drain;
}

void decide_keep(struct engine *engine, const struct host_row *row)
{
    if (!row->row.drained)
        return;
    engine->past = mem_grow(engine->past, &engine->past_room, engine->npast + 1, sizeof(*engine->past));
    engine->past[engine->npast++] = *row;
}

bool decide_meet(struct engine *engine, const char *name)
{
    for (size_t i = 0; i < engine->npast; i++) {
        if (strcmp(engine->past[i].name, name) != 0)
            continue;
        decide_restore(engine, core_host_count(engine->core), &engine->past[i].drain);
        engine->past[i] = engine->past[--engine->npast];
        return true;
    }
    return false;
}

/* Also one that was drained already: for another reason now. */
static void note_drain(struct engine *engine, int host, const struct decision *d)
{
    struct host_drain drain = {.at_ms = wall_now().ms};
    memcpy(drain.by, d->by, sizeof(drain.by));
    memcpy(drain.text, d->text, sizeof(drain.text));
    decide_restore(engine, host, &drain);
    engine_persist_host(engine, host);
}

void decide_taken(struct engine *engine)
{
    const struct decision *d = engine->decision;
    int host = *d->host ? core_member_by_name(engine->core, d->host) : -1;
    engine_note(engine, d);
    if (host >= 0 && core_host(engine->core, host)->drained)
        note_drain(engine, host, d);
}

const struct host_drain *engine_drain(const struct engine *engine, int host)
{
    assert(host >= 0);
    if ((size_t)host >= engine->ndrains || !core_host(engine->core, host)->drained)
        return NULL;
    const struct host_drain *drain = &engine->drains[host];
    return *drain->by ? drain : NULL;
}
