/* scratch.h - directories of a test, which are gone when its program ends, also after a failure. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include <stdbool.h>
#include <sys/types.h>

/* As mkdtemp(3): dir ends with XXXXXX. NULL: errno. At most 64 in a program, then they are left to the test. */
char *scratch_dir(char *dir);
/* A file of the directory, anew. */
bool scratch_put(const char *dir, const char *name, const char *text);
bool scratch_mkdir(const char *dir, const char *name);
/* What a process has written into such a file of itself; 0: nothing yet. */
pid_t scratch_pid(const char *dir, const char *name);

#endif
