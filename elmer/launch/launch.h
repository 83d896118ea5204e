/* launch.h - starting a job's processes once all its hosts have opened, and what follows from their reports. The
 * contract of this room: it takes ACTION_LAUNCH from the engine, the messages about processes from the hosts, and gives
 * the engine events. A launch belongs to one attempt of a job and to this room; it ends with the attempt. Nothing here
 * returns an error: what cannot be started is an event that ends the job, with a text for its owner. */
#ifndef ELMER_LAUNCH_LAUNCH_H
#define ELMER_LAUNCH_LAUNCH_H

#include "elmer/engine/engine.h"
#include "elmer/hosts/hosts.h"
#include "elmer/launch/paths.h"

struct launches;

/* It must outlive the room. */
struct launch_settings {
    const char *jobs_dir;   /* where the rsds make the jobs' directories */
    const char *queue_host; /* the name of the host that elmer runs on */
};

/* With the jobs that were running before a restart. hosts must outlive it. */
struct launches *launches_create(const struct room *room, const struct launch_settings *settings, struct hosts *hosts);
void launches_destroy(struct launches *launches); /* after the loop has ended; NULL: nothing */

/* started start_failed line exited empty of a host, and what launchers have of their own. It stays the caller's; what
 * is of no job here, or of another attempt, is ignored. */
void launches_message(struct launches *launches, int host, struct wire_message *message);
/* ---- couriers, which start processes for those of the job: courier.c ---- */

struct launches_reached {
    int place; /* the host */
    uint32_t attempt;
    const char *address; /* as its peers see it; "": not known */
    uint16_t port;
    const char *failure; /* NULL: it is there; else why it is not */
};
typedef void (*launches_on_reached)(uint64_t number, const struct launches_reached *reached, void *data);
/* Where to tell what has been asked for. Before anything is. */
void launches_connect(struct launches *launches, launches_on_reached on_reached, void *data);
/* Where the courier of a running job on that host listens; if there is none it is started. from: the host of who asks,
 * which must be one of the job's, too. gone: not there any more, 0: nothing is known. NULL: on_reached comes with the
 * number, once, perhaps at once; else why it does not. */
const char *launches_reach(struct launches *launches, uint64_t job, int from, int host, uint16_t gone, uint64_t number);

/* The same for what holds the terminal of a job that has one. */
const char *launches_reach_terminal(struct launches *launches, uint64_t job, uint64_t number);

/* The host has linked again: what it has not confirmed is sent again. */
void launches_host_up(struct launches *launches, int host);

#endif
