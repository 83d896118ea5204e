/* usage.h - how busy the processors are, and how much of that is Elmer's jobs. */
#ifndef RSD_USAGE_H
#define RSD_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/wire/wire.h"

struct usage_job;
struct usage_ticks {
    uint64_t busy, total;
    bool seen;
};

struct usage {
    const char *proc_stat; /* not owned */
    char *jobs_group;      /* below it JOB.ATTEMPT/job/cpu.stat; "" or NULL: none */
    uint64_t *cpus;
    size_t ncpus;
    struct mono begin;         /* of the interval; ns 0: not begun */
    struct usage_ticks *ticks; /* [ncpus] at its beginning */
    double *busy_us;           /* [ncpus] scratch: how long each was busy */
    double *spun_us;           /* [ncpus] scratch: of that, in waits at full speed */
    struct usage_job *jobs;
    size_t njobs, capacity;
};

void usage_init(struct usage *usage, const char *proc_stat);
void usage_fini(struct usage *usage);
/* The processors that reports are about, in this order, and the directory of the jobs' groups. 0 or -ENOMEM. */
int usage_set_host(struct usage *usage, const uint64_t *cpus, size_t ncpus, const char *jobs_group);
/* A job and its processors here. fresh: its group has just been asked for, nothing is used yet; else what it has used
 * so far does not count. */
void usage_add_job(struct usage *usage, uint64_t job, uint32_t attempt, const uint64_t *cpus, size_t ncpus, bool fresh);
/* Other processors, by an order. A job that is not known is none of ours yet, or not any more: orders name one also
 * after its end here, as long as it is on other hosts. */
void usage_place_job(struct usage *usage, uint64_t job, uint32_t attempt, const uint64_t *cpus, size_t ncpus);
/* All jobs that are here: others are forgotten, and new ones have begun before. */
void usage_hold(struct usage *usage, const struct wire_holding *held, size_t count);
/* It has ended, having used cpu_seconds in all (negative: not known). */
void usage_end_job(struct usage *usage, uint64_t job, uint32_t attempt, double cpu_seconds);
/* How its processes wait: what they have spun is not load, and who polls is told with what it has used. */
void usage_waits(struct usage *usage, const struct wire_waits *waits);
/* What each job has used so far, and who in it polls, as of the last sample; the first most of them. Returns their
 * number. Texts belong to the jobs. */
size_t usage_used(const struct usage *usage, struct wire_used *used, size_t most);
/* Begin an interval now. */
int usage_begin(struct usage *usage, struct err *err);
/* End it, fill in the shares 0..1 of each processor, and begin the next. 0; -EAGAIN: it has no length yet; -errno with
 * a sentence. */
int usage_sample(struct usage *usage, uint64_t *interval_ms, double *busy, double *jobs, struct err *err);

#endif
