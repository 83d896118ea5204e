/* history_bed.h - a store with jobs that have run, and what esim reads of it. */
#ifndef TESTS_UNIT_ESIM_HISTORY_BED_H
#define TESTS_UNIT_ESIM_HISTORY_BED_H

#include "esim/history.h"
#include "tests/unit/elmer/store/store_bed.h"

extern char fault[500];

struct of { /* a job; times are seconds */
    uint64_t id;
    const char *user;
    double submitted, started, ended; /* -1: not */
    uint32_t nprocs;                  /* of ws1, then of ws2, each with two */
    double cpu_s;
    enum job_state state;
    enum reason reason;
    const char *only; /* host; NULL: all */
    double start;     /* it had its processors so long before it started */
    const char *after;
    uint32_t ntasks; /* an array */
    uint64_t array;  /* of which it is a task */
};

void put(struct bed *bed, const struct of *of); /* an array has a limit of 2 tasks at a time */
struct history *must_read(const char *path, int64_t since_ms, int64_t until_ms);
/* The same of these jobs, all of it, with one host, ws1. */
struct history *history_of(struct bed *bed, const struct of *jobs, size_t count, int ncpus);
void expect_near(double value, double expected, double most);

#endif
