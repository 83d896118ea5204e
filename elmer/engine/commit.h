/* commit.h - what must not be done before the store has everything that was put before it. */
#ifndef ELMER_ENGINE_COMMIT_H
#define ELMER_ENGINE_COMMIT_H

#include "elmer/daemon.h"

enum wait_kind {
    WAIT_ANSWER,
    WAIT_OPEN,
    WAIT_LAUNCH,
    WAIT_TAKEN,
    WAIT_SUBMITTED,
    WAIT_FORGET,
    WAIT_SETTLED,
    WAIT_CERTIFICATE,
    WAIT_REMOVED
};

struct deferred {
    struct deferred *next;
    uint64_t number; /* of the last write before it */
    enum wait_kind kind;
    enum answer answer;
    uint64_t request, job, generation;
    uint32_t attempt, rank;
    int host;
    uint64_t *cpus; /* OPEN, as the next */
    size_t ncpus;
    int64_t lease_ms;
};

/* Carry it out, now or when the store is that far; it is copied. */
void later_put(struct daemon *daemon, const struct deferred *wait);
void later_fini(struct daemon *daemon);
/* The callbacks of the store; data is the daemon. */
void later_commit(uint64_t number, void *data);
void later_store_failure(const char *text, void *data);

#endif
