/* snapshot.h - a copy of a store of elmer, which may be in use: the store itself is only read, and nothing is made
 * beside it. */
#ifndef ESIM_SNAPSHOT_H
#define ESIM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

enum { SNAPSHOT_FILES = 4 }; /* the store, its log, and what SQLite may make of these */

struct snapshot {
    char *dir, *path; /* of the copy; its log is beside it */
    char *files[SNAPSHOT_FILES];
};

/* As it was at one moment, with all that was committed until then. False: fault says why. One at a time; a signal that
 * ends the process until it is dropped leaves nothing of it. It stays where it is. */
bool snapshot_take(struct snapshot *snapshot, const char *path, char *fault, size_t size);
void snapshot_drop(struct snapshot *snapshot);
/* Before _exit(): nothing is left of one that is there. */
void snapshot_abandon(void);

#endif
