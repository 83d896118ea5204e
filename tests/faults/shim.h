/* shim.h - between the two files of the shim. */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/faults/control.h"

/* What would have been called without the shim. */
#define REAL(name)                                                                                                     \
    __extension__({                                                                                                    \
        static void *function;                                                                                         \
        if (!function)                                                                                                 \
            function = shim_real(#name);                                                                               \
        (__typeof__(&name))function;                                                                                   \
    })

void *shim_real(const char *name);

/* ---- the store (shim_store.c); each takes a lock of its own ---- */

/* The path is in the directory of the store. */
bool store_is_path(const struct control *control, const char *path);
/* The descriptor is a file of the store whose writes are followed (not -shm, not the lock). */
bool store_is_file(int fd);
/* Before open() of a path of the store: is it there? Afterwards: it is followed, and its name, if new, is not yet safe.
 */
bool store_exists(const char *path);
void store_opened(int fd, const char *path, bool existed);
/* Instead of the call: remember what it changes, and do it. */
ssize_t store_write(int fd, const void *data, size_t size, off_t offset);
int store_truncate(int fd, off_t size);
int store_unlink(const char *path);
/* After the sync of a file or of the directory: what was remembered of it is safe. */
void store_synced(int fd);
/* The power cut. */
void store_cut(struct control *control);

#endif
