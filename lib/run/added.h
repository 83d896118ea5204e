/* added.h - what Elmer has added to the environment of a job's process on its host (ELMER_ADDED: NAME=VALUE, separated
 * by blanks; rsd/sup/threads.c): on another host it is another value, so it is left out of what goes there. */
#ifndef LIB_RUN_ADDED_H
#define LIB_RUN_ADDED_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_ADDED "ELMER_ADDED"
/* The interface of its host, which Elmer has set too, and the same value again: both go along to another host, where
 * who starts the process can tell it from what the user wants and puts that host's own in. */
#define RUN_DEVICES       "UCX_NET_DEVICES"
#define RUN_ADDED_DEVICES "ELMER_ADDED_DEVICES"

/* The entry (NAME=VALUE) is one of them as it stands, or ELMER_ADDED itself. added: its value, NULL: nothing was. */
bool run_added_is(const char *added, const char *entry);
/* The next name of the list: its length, and *at is behind it; 0: there is none. */
size_t run_added_next(const char **at, const char **name);

#endif
