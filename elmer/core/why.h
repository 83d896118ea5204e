/* why.h - why a host takes nothing of a job now. */
#ifndef ELMER_CORE_WHY_H
#define ELMER_CORE_WHY_H

#include <stdbool.h>
#include <stdint.h>

struct core;

/* The first rule that a host fails, in this order. */
enum core_bar {
    CORE_BAR_NONE,        /* it would take some of it */
    CORE_BAR_NOT_ALLOWED, /* the job may not use it: --hosts, or it lacks what the job needs */
    CORE_BAR_DOWN,        /* given up, or never heard of */
    CORE_BAR_AWAITED,     /* not heard of since a restart */
    CORE_BAR_SILENT,
    CORE_BAR_CLOSED, /* came up so */
    CORE_BAR_DRAINED,
    CORE_BAR_LEFTOVERS,  /* groups of past jobs are not empty yet */
    CORE_BAR_MEMORY,     /* less is left than the job asks for one processor */
    CORE_BAR_FULL,       /* of its processors most have no level left ... */
    CORE_BAR_UNMEASURED, /* ... or no report that counts yet */
    CORE_BAR_BUSY,       /* ... or are busier than the threshold */
    CORE_BAR_COUNT
};
const char *core_bar_name(enum core_bar bar); /* "full"; of CORE_BAR_NONE "ok" */

struct core_host_why {
    enum core_bar bar;
    uint32_t cpus;                                  /* that jobs may use there */
    uint32_t usable, full, busy, unmeasured;        /* of these, as the allocator says */
    uint32_t beyond;                                /* would take it, but for memory or per_host */
    uint64_t memory_bytes, left_bytes, asked_bytes; /* of the host; that nobody has asked for; for each processor */
    uint32_t per_host;
    uint32_t foreign;                 /* of those that are too busy: without jobs, by what is not Elmer's */
    double busy_share, foreign_share; /* of the busiest of them, with jobs and without */
    double threshold;
    int levels;
};

/* Whether the job waits; then why says what this host means for it. */
bool core_why(const struct core *core, uint64_t job, int host, struct core_host_why *why);

#endif
