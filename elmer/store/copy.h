/* copy.h - the store in a backup, and back. For a process beside elmer, which has the store open or not. Both block. */
#ifndef ELMER_STORE_COPY_H
#define ELMER_STORE_COPY_H

#include <stdint.h>

#include "lib/base/err.h"

/* Copy the store as it is at one moment into a file that is not there yet (VACUUM INTO: without what was removed).
 * elmer may write meanwhile. A file that is not complete is removed. */
int store_copy(const char *path, const char *to, struct err *err);
/* Make a copy the store of a cluster that goes on, at now_ms: it is sound, and its ids go on where nobody was given
 * one. made_ms: when it was copied. It is brought to the schema of this version. -EPROTO: of a newer one. */
int store_restored(const char *path, int64_t made_ms, int64_t now_ms, uint64_t *next_job, struct err *err);

#endif
