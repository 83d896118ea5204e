/* alloc.h - the contract of the allocators: which processors a job gets, or that it gets none now.
 *
 * An allocator is a row of alloc.def and a file of this folder. It is pure: what it says follows from the view, the
 * request and the random state that it is given, and it keeps nothing. So it may be asked at any time, also only to
 * see what it would say, and it can be exchanged between two decisions. What the allocators of a cube need of the past,
 * its lists, is part of the view and kept by the core.
 */
#ifndef ELMER_CORE_ALLOC_ALLOC_H
#define ELMER_CORE_ALLOC_ALLOC_H

#include "elmer/core/core.h"

struct cube;

struct alloc_processor {
    bool present;         /* one of the host's cpus now */
    uint8_t next_level;   /* that a new job would get: 1 + level of the last one, 0 without jobs */
    uint8_t jobs;         /* that have a level on it */
    int starting;         /* of these, not yet launched */
    int64_t changed_ms;   /* last launch, end or level change on it */
    double busy, foreign; /* shares of the last report, 0..1; foreign: what is not of Elmer's jobs */
};

struct alloc_host {
    int index; /* as in events and actions */
    int ncpus;
    uint16_t at_level[CORE_MAX_LEVELS + 1];   /* how many of the cpus have this next_level */
    const int *cpus;                          /* [ncpus] */
    const struct alloc_processor *processors; /* by CPU number */
    bool reported;                            /* since it came up; else busy and foreign say nothing */
    int64_t report_begin_ms, report_end_ms;
    uint64_t memory_bytes, promised_bytes; /* as core_memory() says them */
};

/* The hosts that may take a job now (up, heard, undrained, open, without leftovers) and that the job may use, in the
 * order of the configuration. Only pointers are gathered for a decision: what is behind them is the state itself. */
struct alloc_view {
    const struct core_options *options;
    int64_t now_ms;
    const struct alloc_host *const *hosts;
    int nhosts;
    int *notes;        /* [nhosts] of any content, for the allocator */
    struct cube *cube; /* the hosts as nodes, with the meshes in it; NULL: no topology */
};

struct alloc_request {
    uint32_t nprocs;    /* > 0 */
    uint32_t mesh_rows; /* with a cube: they divide nprocs */
    struct core_demand demand;
};

enum alloc_verdict { ALLOC_FREE, ALLOC_FULL, ALLOC_BUSY, ALLOC_UNMEASURED };

struct allocator {
    /* Fills processors[nprocs], increasing by host and cpu (by_rank: in any order of hosts), each present, of a host of
     * the view, and with a next_level below options->levels; of a host alloc_room() at most; returns 0. Or refuses:
     * returns how many processors of verdict ALLOC_FREE must come at least (so 1 or more) before the answer can be
     * another one. Draws from *random only what it needs. */
    uint32_t (*choose)(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                       struct core_processor *processors);
    /* How a present processor is seen. It is told to users whose job is refused, and a report after which enough more
     * are ALLOC_FREE has the head of the queue looked at again. May use of the view only options and now_ms. */
    enum alloc_verdict (*judge)(const struct alloc_view *view, const struct alloc_host *host, int cpu);
    bool reports_admit; /* a report may change a verdict; if not, reports cost nothing */
    bool by_rank;       /* needs a cube; the order of the processors is that of the ranks in the mesh */
};

#define ALLOCATOR(constant, name, word) extern const struct allocator alloc_##name;
#include "elmer/core/alloc/alloc.def"
#undef ALLOCATOR

const struct allocator *alloc_by_number(enum core_allocator number);

/* ---- for allocators (common.c) ---- */

/* Uniform below n > 0. */
uint64_t alloc_random_below(uint64_t *random, uint64_t n);
/* Whether the next one of `there` is drawn, of which `wanted` are; both count down. */
bool alloc_draw(uint64_t *random, int *there, int *wanted);
bool room_is_asked(const struct core_demand *demand); /* room.c: or alloc_room() is all of a host's processors */
/* How many processors of the host the request may have, at most as many as there are; 0 of no host of the view. */
int alloc_room(const struct alloc_request *request, const struct alloc_host *host);
/* How many processors of the host have a next_level below this one. */
int alloc_below(const struct alloc_host *host, int level);
/* Free if a level is left there. */
enum alloc_verdict alloc_judge_level(const struct alloc_view *view, const struct alloc_host *host, int cpu);
/* A choose: at the first level at which so many processors of verdict ALLOC_FREE would give a new job that level or a
 * better one, nprocs of them at random; each set is equally likely (Turner 1995, 6.3). Where a host has more of them
 * than the request may have of it, so many are drawn first, and only these count. */
uint32_t alloc_at_best_level(const struct alloc_view *view, const struct alloc_request *request, uint64_t *random,
                             enum alloc_verdict (*judge)(const struct alloc_view *view, const struct alloc_host *host,
                                                         int cpu),
                             struct core_processor *processors);

#endif
