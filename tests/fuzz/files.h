/* files.h - files in memory. Linked with
 * -Wl,--wrap=fopen,--wrap=open,--wrap=openat,--wrap=read,--wrap=pread,--wrap=close: the paths that were put are found
 * there, below /fuzz and /proc nothing else is, and every other path is the real one. */
#ifndef ELMER_TESTS_FUZZ_FILES_H
#define ELMER_TESTS_FUZZ_FILES_H

#include <stddef.h>
#include <stdint.h>

/* Not copied: both stay valid until files_clear(). */
void files_put(const char *path, const uint8_t *data, size_t size);
/* Also closes what the program under test has left open; returns how many that were. */
int files_clear(void);

#endif
