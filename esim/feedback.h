/* feedback.h - the jobs of a trace in the order of their submission. Those that name another one, which precedes them,
 * are submitted when that one has ended and their think time is over: so users who wait for their results submit later
 * on a slower machine. */
#ifndef ESIM_FEEDBACK_H
#define ESIM_FEEDBACK_H

#include "esim/swf.h"

/* The jobs of swf, which is the new source's then. path: the same trace, which is read once before. follow: those that
 * name another one wait for it; else all come at their own times. */
struct source *feedback_source(struct swf *swf, const char *path, bool follow);
struct feedback_counts {
    uint64_t following; /* another one */
    uint64_t nameless;  /* name one that is not in the trace before them, and come at their own time */
    uint64_t moved;     /* are in the trace behind one that was submitted later */
};
struct feedback_counts feedback_counts(const struct source *source);

#endif
