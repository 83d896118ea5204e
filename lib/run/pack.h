/* pack.h - what is to be started, as bytes. */
#ifndef LIB_RUN_PACK_H
#define LIB_RUN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RUN_RANKS_MAX = 4096, RUN_NO_CPU = 0xffff };

struct run_rank {
    uint32_t rank;
    uint32_t cpu; /* the how-manieth of the job's processors there it may use; RUN_NO_CPU: all of them */
};
struct run_strings {
    const char **items; /* [count], and NULL */
    size_t count;
};
struct run_start {
    bool pty;                             /* a terminal of its own; of one process */
    bool shell;                           /* argv[0] is a line for the user's shell; none: a shell to type into */
    bool home;                            /* where there is no such directory: the user's */
    bool input;                           /* the first rank here gets standard input */
    bool mpi;                             /* ranks of MPICH: each gets a descriptor for RUN_PMI */
    uint32_t umask, rows, columns, total; /* total: processes on all hosts */
    const char *dir;
    struct run_strings argv, environment;
    const struct run_rank *ranks;
    size_t nranks;
};

/* malloc'd; NULL: no memory. */
uint8_t *run_start_pack(const struct run_start *start, size_t *size);
/* What is in the bytes, which it points into; *memory is freed after use. False: they are no such thing. */
bool run_start_unpack(const uint8_t *bytes, size_t size, struct run_start *start, void **memory);

#endif
