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
/* The host has linked again: what it has not confirmed is sent again. */
void launches_host_up(struct launches *launches, int host);

#endif
