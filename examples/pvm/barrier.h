/* barrier.h - what the tasks of barrier send to each other, as bytes: all hosts are alike. */
#ifndef EXAMPLES_BARRIER_H
#define EXAMPLES_BARRIER_H

#include <stdint.h>

enum barrier_tag { TAG_ORDERS = 1, TAG_TOKEN, TAG_ANSWER, TAG_REPORT, TAG_RELEASE };

/* TAG_ORDERS: what the master tells a slave; a second one has the ids of all slaves, int[slaves]. */
struct orders {
    int index;
    int slaves;
    int64_t iterations; /* of this slave in each phase, or in each that is its turn */
    int64_t turns;      /* 1: in each phase one slave computes and the others wait for it */
    int64_t phases;
    int64_t token_bytes;
    int barrier_tid; /* slave 0 */
};

/* TAG_REPORT: of a slave to the master, when it has done all phases. */
struct report {
    int index;
    uint64_t state; /* of the generator after the last iteration */
    int64_t tokens; /* slave 0: good tokens received; others: good answers */
    double seconds; /* wall time from the first iteration to the last answer */
    double cpu_seconds;
    char host[65];
};

/* TAG_TOKEN, TAG_ANSWER: the head of one, filled up to token_bytes. */
struct token {
    int32_t index;
    int32_t reserved;
    int64_t phase;
};

#endif
