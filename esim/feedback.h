/* feedback.h - jobs of a trace that name another one, which precedes them: they are submitted when that one has ended,
 * and their think time is over. So users who wait for their results submit later on a slower machine. */
#ifndef ESIM_FEEDBACK_H
#define ESIM_FEEDBACK_H

#include "esim/swf.h"

/* The jobs of swf, which is the new source's then. path: the same trace, which is read once before. */
struct source *feedback_source(struct swf *swf, const char *path);
/* So many follow another one; so many name one that is not in the trace before them, and come at their own time. */
void feedback_counts(const struct source *source, uint64_t *following, uint64_t *nameless);

#endif
