/* record.h - all that is kept of a job, as plain data: what the store writes and reads, and what the views of users are
 * made of. */
#ifndef ELMER_STORE_RECORD_H
#define ELMER_STORE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "elmer/core/core.h"
#include "lib/memory/mem.h"
#include "lib/wire/wire.h"

#define RECORD_UNKNOWN_HOST "?" /* among those that are lost: was taken out of the configuration */

struct record_processor {
    const char *host;
    int cpu;
};

struct record_usage {
    const char *host;
    uint32_t attempt;
    double cpu_seconds;
    int64_t memory_peak_bytes; /* -1: not known */
};

struct record {
    struct arena memory; /* of everything below, except submission */
    uint64_t id;
    /* the submission: never changes */
    uint32_t uid;
    const char *user, *token;
    int64_t submitted_ms;             /* Unix time, as all below; -1: not yet */
    const struct wire_submit *submit; /* NULL in one that goes to the store */
    struct wire_message submission;   /* owned, of one that was read */
    const char *json;                 /* the same for the store; NULL: has been written before */
    /* facts and decisions */
    enum job_state state;
    enum reason reason;
    const char *text;
    uint32_t attempt;
    uint64_t allocation;
    int level; /* CORE_NO_LEVEL */
    const struct record_processor *processors;
    uint32_t nprocessors;
    const char *const *hosts; /* those that it may use; nhosts 0: all */
    uint32_t nhosts;
    bool launched;
    int64_t lease_ms;        /* of the attempt; 0: none */
    const char *const *lost; /* hosts that may still have it, also such as are no longer in the configuration */
    uint32_t nlost;
    int exit_status, signal;
    uint32_t exits, failed_rank;
    const uint8_t *exited; /* as in struct core_job; NULL */
    size_t exited_size;
    int64_t started_ms, ended_ms;
    int64_t level_ms[CORE_MAX_LEVELS];       /* up to ... */
    int64_t accounted_ms, accounted_mono_ms; /* ... then: Unix time, and the monotonic clock of ... */
    int64_t boot;                            /* ... this boot; 0: not known */
    bool dropped;                            /* its submission was refused: nothing of it stays in the store */
    const struct record_usage *usage;
    size_t nusage;
    int64_t lost_ms;           /* as in struct core_job; not stored, as all below */
    uint32_t ahead;            /* of queued ones */
    bool refused;              /* it is next, and the allocator refuses it ... */
    struct core_survey survey; /* ... as these processors take no job now */
};

struct record *record_create(void);
void record_destroy(struct record *record);
/* The distinct hosts of its cluster in rank order. */
struct wire_strs record_cluster_hosts(const struct record *record, struct arena *memory);
static inline bool record_ended(const struct record *record)
{
    return record->state == JOB_DONE || record->state == JOB_CANCELLED;
}

#endif
