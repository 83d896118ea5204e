/* log_repeats.c - lines that one peer causes for years. */
#include "config.h"

#include "lib/base/log.h"

#include <stddef.h>

/* FNV-1a: it need not withstand anybody, who hides a line of his own at most. */
static uint64_t add_to_hash(uint64_t hash, const char *text)
{
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return (hash ^ 0xff) * UINT64_C(1099511628211);
}

int log_repeats_allowed(struct log_repeats *repeats, const char *about, const char *text)
{
    uint64_t hash = add_to_hash(add_to_hash(UINT64_C(14695981039346656037), about), text);
    size_t at = 0, oldest = 0;

    while (at < LOG_REPEATS && (repeats->items[at].hash != hash || !repeats->items[at].limit.count)) {
        if (repeats->items[at].limit.window_start_ms < repeats->items[oldest].limit.window_start_ms)
            oldest = at;
        at++;
    }
    if (at == LOG_REPEATS) {
        at = oldest;
        repeats->items[at].hash = hash;
        repeats->items[at].limit = (struct log_limit){0};
    }
    return log_allowed(&repeats->items[at].limit, LOG_REPEATS_MAX, LOG_REPEATS_MS);
}
