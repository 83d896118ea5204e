/* agreement.h - a small workload, and what becomes of it in the cluster of tests/sim. */
#ifndef TESTS_UNIT_ESIM_AGREEMENT_H
#define TESTS_UNIT_ESIM_AGREEMENT_H

#include "elmer/core/core.h"
#include "esim/job.h"

enum { AGREEMENT_JOBS = 12, AGREEMENT_HOSTS = 5, REPORT_UNITS = 10, SETTLE_UNITS = 10, FRESH_UNITS = 30 };

struct agreement_case { /* times are units */
    struct core_options core;
    int nhosts, ncpus;
    bool by_itself, reports;
    uint32_t period; /* in which jobs compute first and then wait; 0: both all the time */
    double speeds[AGREEMENT_HOSTS];
    struct sim_job jobs[AGREEMENT_JOBS];
};

struct outcome {
    int64_t start, end; /* -1: it did not */
    uint64_t place;     /* of its processors, see sim_job.place */
};

/* False: text says what is wrong. */
bool agreement_play(const struct agreement_case *of, struct outcome *outcomes, char *text, size_t size);

#endif
