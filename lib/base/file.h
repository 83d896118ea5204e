/* file.h - small files that are there whole or not at all. */
#ifndef LIB_BASE_FILE_H
#define LIB_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Open the directory, not through a link; with mode not 0 make it if it is not there. It must belong to us. Returns the
 * descriptor or -errno. */
int file_dir(const char *path, mode_t mode, struct err *err);
/* Write beside, fsync, rename, fsync the directory. */
int file_write(int dir, const char *name, const char *text, mode_t mode, struct err *err);
/* Its halves: a whole file, on disk, under a name that nobody reads yet; and its move. 0 or -errno. */
int file_write_new(int dir, const char *name, const char *text, mode_t mode);
int file_move(int dir, const char *from, const char *to);
/* The whole file, malloc'd: at most max bytes, no NUL, no device or pipe. -ENOENT and so on, with text. */
int file_read(int dir, const char *name, size_t max, char **text, struct err *err);
/* All that the descriptor gives, whatever it is: *text is malloc'd, with a NUL behind its *size bytes. Of more than max
 * there is one more than that, by which the caller sees it. 0 or -errno; then *text is NULL. */
int file_read_fd(int fd, size_t max, char **text, size_t *size);
/* For a program, before it opens anything: a standard file that is closed must not become what is opened next, with our
 * output in it. Nothing can be written there: what nobody can read is an error. */
void file_fill_standard(void);

#endif
