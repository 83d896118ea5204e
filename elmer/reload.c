/* reload.c - from new files to rooms that know them.
 *
 * The files are read into settings of their own. An error: what runs stays as it is, and the lines say what is wrong.
 * Else the keys are compared one by one, and each difference is a line -> those that may change while elmer runs are
 * taken over -> hosts that are new get a place, at the end, because a host's index stays its -> the rooms get their
 * parts and make room -> the core hears of hosts that come and go, and of its options. From the first step on all of it
 * is done: nothing in it can fail. What has changed is kept as a decision, too. */
#include "config.h"

#include "elmer/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/engine/engine.h"
#include "elmer/hosts/hosts.h"
#include "elmer/membership/membership.h"
#include "elmer/requests/requests.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/memory/mem.h"

struct reload {
    const struct reload_rooms *rooms;
    unsigned live, restart;
    bool told; /* what is wrong */
};

static void on_problem(const char *text, void *data)
{
    ((struct reload *)data)->told = true;
    log_error("reload: %s", text);
}

static void on_fault(const char *text, void *data)
{
    (void)data;
    log_warning("reload: elmer does without a value of its configuration: %s", text);
}

/* Beside the line, for eadmin log. Who has edited the files, and had them read, the signal does not say. */
static void keep(const struct reload_rooms *rooms, const char *what, const char *host, const char *text)
{
    struct decision decision = {.by = "(reload)", .uid = DECISION_NOBODY, .admin = true};
    str_printable(decision.text, sizeof(decision.text), text, strlen(text));
    snprintf(decision.what, sizeof(decision.what), "%s", what);
    snprintf(decision.host, sizeof(decision.host), "%s", host);
    snprintf(decision.from, sizeof(decision.from), "%s", rooms->settings->name);
    engine_keep(rooms->engine, &decision);
}

static void on_changed(const struct settings_change *change, void *data)
{
    struct reload *reload = data;
    const char *of = *change->host ? " of host " : "";
    char *text =
        mem_format("%s%s = %s, was %s", change->live ? "" : "needs a restart: ", change->name, change->is, change->was);
    keep(reload->rooms, "configured", change->host, text);
    free(text);
    if (change->live) {
        reload->live++;
        log_notice("reload: %s%s%s = %s, was %s", change->name, of, change->host, change->is, change->was);
    } else {
        reload->restart++;
        log_warning("reload: %s%s%s = %s, was %s: needs a restart, and counts after \"systemctl restart elmer\"",
                    change->name, of, change->host, change->is, change->was);
    }
}

/* ---- hosts ---- */

static void add_host(const struct reload_rooms *rooms, const struct host_settings *host, bool joined)
{
    struct event event = {.type = EVENT_HOST_ADD, .host = -1};
    event.u.add.name = host->name;
    event.u.add.ncpus = host->cpus ? host->ncpus : 0;
    event.u.add.joined = joined;
    engine_event(rooms->engine, &event);
}

static void make_room(const struct reload_rooms *rooms, bool relink)
{
    membership_configured(rooms->membership);
    requests_configured(rooms->requests);
    hosts_configured(rooms->hosts, relink);
}

void reload_add_joined(const struct reload_rooms *rooms, const char *name)
{
    if (!settings_host(rooms->settings, name))
        settings_new_host(rooms->settings, name);
    rooms->share(rooms->data);
    add_host(rooms, settings_host(rooms->settings, name), true);
    make_room(rooms, false);
}

void reload_meet_stored(struct settings *settings, const struct engine *engine)
{
    for (int i = (int)settings->nhosts; i < engine_host_count(engine); i++)
        settings_new_host(settings, engine_host_name(engine, i));
}

/* New ones come in the order in which they have got their places. */
static void change_hosts(const struct reload_rooms *rooms, const struct settings *next)
{
    const struct settings *s = rooms->settings;
    for (size_t i = 0; i < s->nhosts; i++) {
        int index = core_host_by_name(engine_core(rooms->engine), s->hosts[i].name);
        const struct core_host *host = index >= 0 ? core_host(engine_core(rooms->engine), index) : NULL;
        bool named = settings_host(next, s->hosts[i].name);
        if (named && (!host || host->retired || host->joined)) {
            log_notice("host=%s is a host of the cluster now", s->hosts[i].name);
            keep(rooms, "added", s->hosts[i].name, "");
            add_host(rooms, &s->hosts[i], false);
        } else if (!named && host && !host->retired && !host->joined) {
            struct event event = {.type = EVENT_HOST_RETIRE, .host = index};
            log_notice("host=%s is no host of the cluster any more: it gets no new jobs, and is removed when those "
                       "that it has have ended",
                       s->hosts[i].name);
            keep(rooms, "taken-out", s->hosts[i].name, "of the configuration: removed when its jobs have ended");
            engine_event(rooms->engine, &event);
        }
    }
}

/* ---- the whole ---- */

static void take_over(const struct reload_rooms *rooms, struct settings *next, struct reload *counts)
{
    struct settings *s = rooms->settings;
    int64_t report_ms = s->report_ms, heartbeat_ms = s->heartbeat_ms;
    bool cube = s->core.topology == TOPOLOGY_CUBE || next->core.topology == TOPOLOGY_CUBE;
    struct event event = {.type = EVENT_CONFIGURE, .host = -1};
    settings_adopt(s, next, on_changed, counts);
    if (!cube)
        settings_take_hosts(s, next);
    rooms->share(rooms->data);
    if (!cube)
        change_hosts(rooms, next);
    event.u.configure = s->core;
    engine_event(rooms->engine, &event);
    engine_limit_history(rooms->engine, s->history_jobs, s->history_age_ms);
    make_room(rooms, s->report_ms != report_ms || s->heartbeat_ms != heartbeat_ms);
}

void reload(const struct reload_rooms *rooms, char *text, size_t size)
{
    struct settings next = {0};
    struct reload counts = {.rooms = rooms};
    const struct ini_watch watch = {.problem = on_problem, .fault = on_fault, .data = &counts};
    struct err err = ERR_INIT;
    if (settings_load_watched(&next, rooms->settings->path, rooms->settings->required, &watch, &err)) {
        if (!counts.told)
            on_problem(err.text, &counts);
        log_error("reload: refused, nothing has changed: correct the files, and reload again");
        snprintf(text, size, ", THE LAST RELOAD WAS REFUSED");
    } else {
        take_over(rooms, &next, &counts);
        log_notice("reload: %u changed, %u need a restart", counts.live, counts.restart);
        snprintf(text, size, ", reloaded: %u changed", counts.live);
        if (counts.restart)
            snprintf(text, size, ", reloaded: %u changed, %u NEED A RESTART", counts.live, counts.restart);
    }
    settings_fini(&next);
}
