/* load.h - how jobs use their processors: who is how far, and when the next one ends. */
#ifndef ESIM_LOAD_H
#define ESIM_LOAD_H

#include "esim/world.h"

struct load;

struct load *load_create(const struct world_settings *settings);
void load_destroy(struct load *load);
/* Each period is two events: one of 10^12 s in periods of a second would never come to its end. */
bool load_endless(const struct load *load, const struct sim_job *job);
/* Its allocation is its rank on each processor. */
void load_start(struct load *load, const struct sim_job *job, const struct core_job *info, int64_t now_ms);
void load_end(struct load *load, uint64_t id, int64_t now_ms);
/* When something will change by itself; INT64_MAX: never. */
int64_t load_next(const struct load *load);
/* It is that time. A job that has done its work, or 0. */
uint64_t load_pass(struct load *load, int64_t now_ms);
/* Processor time until then: space: of processors that a job has, shared: that jobs compute. */
double load_used_ms(const struct load *load, int64_t now_ms);
/* The busy share of each processor of a host since it was asked last. */
void load_report(struct load *load, int host, int64_t now_ms, double *busy);
/* When last something of that has changed on it, as far as it is known since load_bring(). */
int64_t load_changed(const struct load *load, int host);
/* The hosts on which something has since the last call; valid until something changes. */
const int *load_take_changed(struct load *load, int *count);
void load_bring(struct load *load, int64_t now_ms);
/* As if all hosts had been asked. */
void load_drop(struct load *load, int64_t now_ms);

#endif
