/* core_fixture.h - short ways to step a core and to look at what it did; for the unit tests of the core. */
#ifndef TESTS_UNIT_ELMER_CORE_CORE_FIXTURE_H
#define TESTS_UNIT_ELMER_CORE_CORE_FIXTURE_H

#include "elmer/core/core.h"

struct fixture {
    struct core *core;
    struct actions actions; /* of the last step */
    int64_t now_ms;
    int result; /* of the last step */
};

/* v1, D = 3, hosts ws1.. of these CPUs, up if told so. The allocators of a cube: in a cube. */
void fixture_init(struct fixture *f, enum core_allocator allocator, int levels, const int *ncpus, int nhosts, bool up);
void fixture_fini(struct fixture *f);
/* Sends the event, checks the invariants and keeps the result. */
int fixture_step(struct fixture *f, struct event event);
/* The job's id, or 0 when it was refused. */
uint64_t fixture_submit(struct fixture *f, uint32_t nprocs, const int *hosts, int nhosts, bool each);
/* One processor, of this user; checked: the invariants, too, which takes long in a large queue. The job's id. */
uint64_t fixture_submit_as(struct fixture *f, uint32_t uid, bool checked);
int fixture_up(struct fixture *f, int host, int ncpus, uint64_t generation, const struct core_holding *holdings, int n);
int fixture_client(struct fixture *f, enum event_type type, uint64_t job, uint32_t uid,
                   bool admin); /* returns the answer */
int fixture_host(struct fixture *f, enum event_type type, uint64_t job, int host);
int fixture_exited(struct fixture *f, uint64_t job, int host, uint32_t rank, int status, int signal);
int fixture_report(struct fixture *f, int host, double busy, double jobs, int64_t interval_ms);
/* All its hosts open, and it is launched. */
void fixture_run(struct fixture *f, uint64_t job);
/* Its hosts report it empty. */
void fixture_empty(struct fixture *f, uint64_t job);
int fixture_count(const struct fixture *f, enum action_type type);
const struct action *fixture_find(const struct fixture *f, enum action_type type,
                                  int host); /* the first; host -1: any */
enum job_state fixture_state(struct fixture *f, uint64_t job);

#endif
