/* daemon.h - where the parts of elmer meet: the dispatcher owns the core, feeds it one event after the other and
 * carries out its actions.
 *
 * hosts.c and launch.c turn what happened into an event or ask for one of the services below, clients.c hands requests
 * up to requests.c; what belongs to two of them meets in daemon.c. */
#ifndef ELMER_DAEMON_H
#define ELMER_DAEMON_H

#include <uv.h>

#include "elmer/core/core.h"
#include "elmer/engine/deadline.h"
#include "elmer/engine/jobs.h"
#include "elmer/store/record.h"
#include "elmer/settings.h"
#include "elmer/store/store.h"
#include "lib/base/err.h"
#include "lib/wire/wire.h"

struct daemon {
    uv_loop_t *loop;
    const struct settings *settings;
    struct core *core;
    struct store *store;
    struct deadlines deadlines;
    struct jobs jobs;
    struct hosts *hosts;
    struct clients *clients;
    struct requests *requests;
    struct users *users;
    struct certificates *certificates;
    struct joins *joins;
    struct renewals *renewals;
    char *store_failure; /* why the store cannot be written; NULL: it can */
    /* daemon.c's own */
    struct pending_event *events, **last_event;
    uint64_t last_put; /* number of the last write */
    bool stepping;
    struct deferred *deferred, **last_deferred;
    struct deadline tick, tidy, trim;
    struct deadline beat;         /* each second: so a stall is noticed within one */
    struct launch *dead_launches; /* launch.c's */
    struct notify *notify;
    uv_signal_t terminate, interrupt;
    bool stopping;
    struct err *fatal; /* daemon_run()'s: why it ended by itself */
    int fatal_code;
};

/* Run until SIGTERM or SIGINT. 0, or negative with the text of err when it could not start or go on (-EUCLEAN: the
 * store is damaged). */
int daemon_run(const struct settings *settings, struct err *err);

int64_t daemon_now_ms(void);
/* Feed the core; now_ms is filled in. While a step is being carried out the event waits for its end (then pointers in
 * it, except failed.text, are not allowed). Returns what core_step() returned, 0 when it waits. */
int daemon_event(struct daemon *daemon, struct event *event);
/* Those that have waited; nothing while a step is being carried out. */
void daemon_run_events(struct daemon *daemon);
/* Write the job's row as it is now. Returns the number of the write. */
uint64_t daemon_persist(struct daemon *daemon, struct job *job);
/* Call when all that has been put to the store is on disk, after what already waits: at once if it is. */
enum later {
    LATER_SUBMITTED /* request */,
    LATER_FORGET /* host, job, attempt */,
    LATER_CERTIFICATE /* request: of join.c */,
    LATER_REMOVED /* request */,
    LATER_COUNT
};
void daemon_later(struct daemon *daemon, enum later what, uint64_t request, int host, uint64_t job, uint32_t attempt);

/* Free what is no longer needed, in a later turn of the loop. */
void daemon_tidy_soon(struct daemon *daemon);
/* Its submission is on disk. */
bool daemon_job_accepted(const struct daemon *daemon, const struct job *job);
/* The job's last state is on disk. */
bool daemon_job_settled(const struct daemon *daemon, const struct job *job);
/* All that is known of a job that is in memory, to be shown; belongs to the caller. */
struct record *daemon_record(struct daemon *daemon, struct job *job);

#endif
