/* snapshot.h - a copy of a store of elmer, which may be in use: the store itself is only read, and nothing is made
 * beside it. */
#ifndef ESIM_SNAPSHOT_H
#define ESIM_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

struct snapshot {
    char *dir, *path; /* of the copy; its log is beside it */
};

/* As it was at one moment, with all that was committed until then. False: fault says why. */
bool snapshot_take(struct snapshot *snapshot, const char *path, char *fault, size_t size);
void snapshot_drop(struct snapshot *snapshot);

#endif
