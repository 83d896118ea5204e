/* workload.h - generated workloads: those of Turner 1995, chapter 4, and plain numbers of processors. */
#ifndef ESIM_WORKLOAD_H
#define ESIM_WORKLOAD_H

#include "esim/job.h"

enum shape { SHAPE_CONSTANT, SHAPE_SQUARE, SHAPE_RECT, SHAPE_INTERVALS, SHAPE_PROCS };

struct workload {
    enum shape shape;
    uint32_t low[2], high[2]; /* of a side; with SHAPE_INTERVALS of the first and of the second interval */
    double probability;       /* of the first */
    bool constant_arrivals, constant_service;
    double mean_service_s;
    double load;           /* mean service time / mean time between arrivals; 0: a queue that is never empty */
    double share;          /* of each processor */
    uint64_t memory_bytes; /* that each asks for, for each processor */
    uint64_t jobs;         /* 0: without end */
    uint64_t seed;
};

void workload_default(struct workload *workload);
/* "constant", "square [1,16]", "rect [1,32]", "P[1,8]=0.3 P[17,32]=0.7", "procs [1,8]". False: it is none of these. */
bool workload_parse(struct workload *workload, const char *text);
struct source *workload_source(const struct workload *workload);

#endif
