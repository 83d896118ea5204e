/* report.c - see report.h. */
#include "config.h"

#include "rsd/net/report.h"

#include <errno.h>
#include <stdlib.h>

#include "rsd/net/facts.h"

enum { USED_MAX = 4096 };

void report_order(struct usage *usage, const struct wire_order *order)
{
    for (size_t i = 0; i < order->entries.count; i++) {
        const struct wire_order_entry *entry = &order->entries.items[i];

        usage_place_job(usage, entry->job, (uint32_t)entry->attempt, entry->cpus.items, entry->cpus.count);
    }
}

void report_send(struct usage *usage, struct uplink *uplink, struct log_limit *limit)
{
    size_t count = usage->ncpus;
    struct wire_message report = {.type = WIRE_report};
    struct wire_used *used = calloc(USED_MAX, sizeof(*used));
    struct err err = ERR_INIT;
    double *busy = calloc(2 * count + 1, sizeof(*busy));
    int result;

    uplink_heard(uplink, &report.u.report.heard,
                 &report.u.report.since_heard_ms); /* before: rather too old than too new */
    result = busy && used ? usage_sample(usage, &report.u.report.interval_ms, busy, busy + count, &err) : -ENOMEM;

    report.u.report.used.items = used;
    report.u.report.used.count = result == 0 ? usage_used(usage, used, USED_MAX) : 0;
    report.u.report.busy = (struct wire_doubles){busy, count};
    report.u.report.jobs = (struct wire_doubles){busy + count, count};
    facts_memory("/proc/meminfo", &report.u.report.memory_bytes, &report.u.report.memory_free_bytes);
    if (result == 0)
        (void)uplink_send(uplink, &report);
    else if (result != -EAGAIN && log_allowed(limit, 10, 60000))
        log_warning("no report of the utilisation: %s", err.text);
    free(busy);
    free(used);
}
