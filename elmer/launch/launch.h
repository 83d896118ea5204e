/* launch.h - starting a job's processes once all its hosts have opened, and what follows from their reports. The
 * contract of this room: it takes ACTION_LAUNCH from the engine, the messages about processes from the hosts, and gives
 * the engine events; a launch belongs to one attempt of a job and is nobody else's business. */
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

/* With the jobs that were running before a restart. */
struct launches *launches_create(const struct room *room, const struct launch_settings *settings, struct hosts *hosts);
void launches_destroy(struct launches *launches);

/* started start_failed line exited empty of a host, and what launchers have of their own. */
void launches_message(struct launches *launches, int host, struct wire_message *message);
/* The host has linked again: what it has not confirmed is sent again. */
void launches_host_up(struct launches *launches, int host);

#endif
