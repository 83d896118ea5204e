#include "config.h"

#include "client/patience.h"

#include <poll.h>

#include "client/common.h"
#include "lib/base/clock.h"

enum { PAUSE_MS = 500 };

bool patience_passes(int result, const struct elmer_error *error)
{
    if (result == ELMER_UNAVAILABLE)
        say_unavailable(error->text);
    return result == ELMER_UNREACHABLE || result == ELMER_UNAVAILABLE; /* libelmer has said the first one */
}

/* An answer long before its time would make the rounds a busy loop. */
void patience_pace(int64_t began_ms, int64_t until_ms)
{
    int64_t now = mono_now_ms(), pause_ms = until_ms - now < PAUSE_MS ? until_ms - now : PAUSE_MS;

    if (now - began_ms < PAUSE_MS && pause_ms > 0)
        poll(NULL, 0, (int)pause_ms);
}

int patience_query(struct elmer *elmer, const uint64_t *ids, size_t nids, int64_t until_ms, struct elmer_jobs **jobs,
                   struct elmer_error *error)
{
    int result = ELMER_UNREACHABLE;

    for (int64_t began = mono_now_ms(); began < until_ms; began = mono_now_ms()) {
        int timeout_ms = (int)(until_ms - began < ANSWER_MS ? until_ms - began : ANSWER_MS);

        result = elmer_query(elmer, false, false, ids, nids, timeout_ms, jobs, error);
        if (!patience_passes(result, error))
            return result;
        patience_pace(began, until_ms);
    }
    return result;
}
