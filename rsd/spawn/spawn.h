/* spawn.h - what the files of elmer-spawn share. */
#ifndef RSD_SPAWN_SPAWN_H
#define RSD_SPAWN_SPAWN_H

#include "rsd/root/spawn.h"

/* birth.c: what a child of elmer-spawn does, to the exec of another program as another user. channel and listener: the
 * supervisor's. */
_Noreturn void birth_supervisor(const struct spawn_plan *plan, const struct spawn_request *request, int groups_fd,
                                int tmp_fd, int channel, int listener);
_Noreturn void birth_escapes(const struct spawn_plan *plan, pid_t parent);
/* The job's name, as of its group and its directory. */
void spawn_name(const struct spawn_request *request, char *name, size_t size);

/* signal.c */
int signal_all(int groups_fd, const struct spawn_request *request);

#endif
