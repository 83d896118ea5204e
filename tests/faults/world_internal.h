/* world_internal.h - between the files of the world. */
#ifndef TESTS_FAULTS_WORLD_INTERNAL_H
#define TESTS_FAULTS_WORLD_INTERNAL_H

_Noreturn void world_must_fail(const char *what); /* ends the process with status 99, with errno */

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) < 0)                                                                                                \
            world_must_fail(#call);                                                                                    \
    } while (0)

/* A file, anew. What cannot be written is missed by whoever reads it. */
void world_write(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
