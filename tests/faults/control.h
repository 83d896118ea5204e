/* control.h - the page of memory by which a test and the shim in the daemons speak to each other. */
#ifndef TESTS_FAULTS_CONTROL_H
#define TESTS_FAULTS_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In the environment of a daemon that the shim is loaded into: the file that holds a struct control. */
#define CONTROL_VARIABLE "ELMER_FAULTS"
/* ... of one whose calls are not counted. */
#define UNWATCHED_VARIABLE "ELMER_FAULTS_UNWATCHED"

/* Which process a call belongs to. KIND_NONE: not counted (the child between fork and exec, a job). */
enum kind { KIND_ELMER, KIND_RSD_ROOT, KIND_RSD_NET, KIND_SPAWN, KIND_TICKETS, KIND_SUPERVISOR, KIND_COUNT, KIND_NONE };

/* What happens to what was written to the store and not synchronised, when elmer is killed. */
enum unsynced {
    UNSYNCED_KEPT, /* the process dies, the machine goes on */
    UNSYNCED_GONE, /* a power cut: nothing of it has reached the disk */
    UNSYNCED_SOME  /* a power cut: the seed chooses what has */
};

enum { CALLS_MAX = 8192, SYNC_IGNORE_NONE = -1, SYNC_IGNORE_ALL = -2 };

struct call {
    uint8_t kind;
    char name[11];
    char what[52]; /* the file, or how many bytes to what */
    int32_t pid;
};

struct control {
    char store[100]; /* directory whose files count as the store */

    /* the kill: before the target-th call of kind */
    atomic_int kind;
    atomic_uint target; /* 0: never */
    atomic_uint fired;
    struct call fired_at;
    atomic_int unsynced; /* enum unsynced */
    atomic_uint seed;

    /* other faults */
    atomic_int store_error;     /* errno of every write to the store; 0: none */
    atomic_int sync_ignored;    /* number of the sync of the store, from 1, that does nothing; SYNC_IGNORE_* */
    atomic_int clock_step_s;    /* the wall clock of all daemons is off by this */
    atomic_uint memory_kind;    /* allocations of this kind of process */
    atomic_ulong memory_limit;  /* ... of so many bytes and more fail; 0: none */
    atomic_uint memory_refused; /* how many have */

    /* what was seen */
    atomic_uint counts[KIND_COUNT];
    atomic_uint syncs;   /* of the store */
    atomic_uint dropped; /* writes that a kill has undone */
    atomic_uint ncalls;
    struct call calls[CALLS_MAX];
};

static inline const char *kind_name(unsigned kind)
{
    static const char *const names[] = {"elmer", "rsd-root", "rsd-net", "spawn", "tickets", "supervisor"};
    return kind < KIND_COUNT ? names[kind] : "?";
}

#endif
