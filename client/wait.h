/* wait.h - esubmit -w and ewait: stay until jobs have ended. */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "libelmer/elmer.h"

/* From now on an interruption (INT, TERM, HUP) says that the job goes on and how to end it. */
void wait_catch_signals(uint64_t job);
/* Wait, also over lost connections. Returns the exit code of esubmit: the job's status, 128+signal, or EXIT_ELMER (said
 * why). */
int wait_for_job(struct elmer *elmer, uint64_t job);
/* The same for the first of several that ends, until that time (mono_now()); then -1. */
int wait_for_any(struct elmer *elmer, const uint64_t *ids, size_t nids, int64_t until_ms);
/* The exit code for a job that has ended; says what is not plain. */
int wait_status(const struct elmer_job *job);

#endif
