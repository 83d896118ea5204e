/* usage.c - what a host says that a job has used, judged before it is kept: only a host of that attempt can know, and
 * processors cannot compute for longer than the attempt has been there. */
#include "config.h"

#include <inttypes.h>

#include "elmer/engine/internal.h"
#include "lib/base/log.h"

/* For clocks that run unevenly, and for what the kernel rounds. */
#define UNEVEN   1.01
#define ROUND_MS 1000

enum { LOG_BURST = 30, LOG_WINDOW_MS = 10000 };

static int64_t elapsed_ms(const struct core_job *state)
{
    bool there = job_state_has_cluster(state->state);
    int64_t ms = there ? engine_now_ms() - state->level_until_ms : 0;
    for (int i = 0; i < CORE_MAX_LEVELS; i++)
        ms += state->level_ms[i];
    return ms;
}

/* A job may have computed beside its own processors where nothing but its mask keeps it on them. */
static int cpus_of(const struct core_host *host, const struct core_job *state, int index)
{
    int own = 0;
    for (uint32_t i = 0; state->processors && i < state->nprocs; i++)
        own += state->processors[i].host == index;
    return host->ncpus > own ? host->ncpus : own;
}

bool usage_judge(struct engine *engine, int index, const struct core_job *state, double *cpu_seconds,
                 int64_t *memory_peak_bytes)
{
    const struct core_host *host = core_host(engine->core, index);
    if (*cpu_seconds < 0 || !core_had_part(engine->core, state->id, index))
        return false;
    int cpus = cpus_of(host, state, index);
    double most = ((double)elapsed_ms(state) * UNEVEN + ROUND_MS) / 1000 * cpus;
    if (*cpu_seconds > most) {
        if (log_allowed(&engine->limit, LOG_BURST, LOG_WINDOW_MS))
            log_warning("host=%s job=%" PRIu64 " says %.0f s of CPU time, and its %d processors have had %.0f s since "
                        "the job got them: that is what is kept",
                        host->name, state->id, *cpu_seconds, cpus, most);
        *cpu_seconds = most;
    }
    if (*memory_peak_bytes < 0)
        *memory_peak_bytes = -1;
    return true;
}
