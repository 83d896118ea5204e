/* patience.h - calls that are made again for a reason that passes: elmer is away, or cannot answer now. */
#ifndef CLIENT_PATIENCE_H
#define CLIENT_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libelmer/elmer.h"

/* Whether a call has failed for such a reason, which is said once. */
bool patience_passes(int result, const struct elmer_error *error);
/* Before it is made again: a pause, if it has taken no time, but not beyond until_ms (mono_now()). */
void patience_pace(int64_t began_ms, int64_t until_ms);
/* elmer_query() of these jobs, again and again for such a reason until then; the last result. */
int patience_query(struct elmer *elmer, const uint64_t *ids, size_t nids, int64_t until_ms, struct elmer_jobs **jobs,
                   struct elmer_error *error);

#endif
