/* launch.h - starting a job's processes once all its hosts have opened, and what follows from their reports. */
#ifndef ELMER_LAUNCH_LAUNCH_H
#define ELMER_LAUNCH_LAUNCH_H

#include "elmer/daemon.h"

struct launch;

/* ACTION_LAUNCH. */
void launch_begin(struct daemon *daemon, struct job *job);
/* A job that was running when elmer was restarted. */
void launch_restore(struct daemon *daemon, struct job *job);
/* The job is ending or has ended: nothing more is started, nothing waited for. */
void launch_end(struct daemon *daemon, struct job *job);
/* started start_failed line exited pvm_* of a host. */
void launch_message(struct daemon *daemon, int host, struct wire_message *message);
/* A host has nothing of the attempt any more: an exit that is still kept goes to the core before that does. */
void launch_emptied(struct daemon *daemon, uint64_t job, uint64_t attempt);
/* The host has linked again: what it has not confirmed is sent again. */
void launch_host_up(struct daemon *daemon, int host);

/* Free those that were ended; from the loop, not from within another function of these. */
void launch_sweep(struct daemon *daemon);

#endif
