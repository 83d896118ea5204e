/* end.h - ekill and ecancel: the same for many ids, with another request. */
#ifndef CLIENT_END_H
#define CLIENT_END_H

#include "client/common.h"

typedef int (*end_call)(struct elmer *elmer, uint64_t job, int timeout_ms, struct elmer_error *text,
                        struct elmer_error *error);

typedef int (*end_tasks_call)(struct elmer *elmer, uint64_t array, const char *tasks, int timeout_ms,
                              struct elmer_error *text, struct elmer_error *error);

/* tasks_call NULL: tasks of arrays are handled by their ids. Parse the arguments, handle each id; the exit code of the
 * command: the greatest of its ids. */
int end_main(const struct command *command, end_call call, end_tasks_call tasks_call, int argc, char **argv);

#endif
