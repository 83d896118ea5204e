/* order.c - the one table of ranks.
 *
 *   SCHED_FIFO 60        elmer, rsd, supervisors
 *              59        a new process between fork and exec
 *              55        what is dying after cgroup.kill
 *              52        helpers (daemon, agent) that are boosted: see boost.c
 *              50 - 3 L  helpers of level L
 *              49 - 3 L  tasks of level L: FIFO, or RR where the job has more threads than processors
 *   SCHED_OTHER -5       helpers ...
 *   SCHED_OTHER  0       ... and tasks of the job that is lowest on all of its processors here
 *
 * The lowest is outside the real-time classes with its helpers too: what runs in them adds up, and at 95 % of a CPU the
 * kernel throttles them all, the first job as well (a later job that flooded its daemon cost it 4.7 %). So helpers are
 * above their own tasks and below the tasks of the level above: a later job's daemon cannot steal from an earlier job.
 * 16 levels end at 4. Where RT is refused (mode idle) the classes below SCHED_OTHER take its place: level 0 is
 * untouched, the lowest is SCHED_IDLE, those between are nice.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/wire.h"
#include "rsd/root/order.h"

enum { TOP_HELPER = 50, BAND = 3, NICE_FIRST = 10, NICE_STEP = 3, NICE_MAX = 19, NICE_HELPER = -5 };

static struct order_ranks ranks_rt(unsigned level, bool lowest, bool crowded, bool boosted)
{
    int helper = TOP_HELPER - BAND * (int)level;
    struct order_ranks ranks = {
        .task = {crowded ? SCHED_RR : SCHED_FIFO, helper - 1},
        .helper = {SCHED_FIFO, boosted ? ORDER_BOOST : helper},
    };
    if (lowest) {
        ranks.task = (struct order_rank){SCHED_OTHER, 0};
        if (!boosted)
            ranks.helper = (struct order_rank){SCHED_OTHER, NICE_HELPER};
    }
    return ranks;
}

static struct order_ranks ranks_idle(unsigned level, bool lowest)
{
    int nice = NICE_FIRST + NICE_STEP * (int)level;
    struct order_ranks ranks = {.task = {SCHED_OTHER, 0}, .helper = {SCHED_OTHER, 0}};
    if (level == 0)
        return ranks;
    if (nice > NICE_MAX)
        nice = NICE_MAX;
    ranks.task.priority = nice;
    ranks.helper.priority = nice - 1;
    if (lowest)
        ranks.task = (struct order_rank){SCHED_IDLE, 0};
    return ranks;
}

struct order_ranks order_ranks(enum order_mode mode, unsigned level, bool lowest, bool crowded, bool boosted)
{
    struct order_ranks none = {.task = {SCHED_OTHER, 0}, .helper = {SCHED_OTHER, 0}};
    if (level >= ORDER_LEVELS)
        level = ORDER_LEVELS - 1;
    switch (mode) {
    case ORDER_MODE_RT:
        return ranks_rt(level, lowest, crowded, boosted);
    case ORDER_MODE_IDLE:
        return ranks_idle(level, lowest);
    case ORDER_MODE_NONE:
    case ORDER_MODE_COUNT:
        break;
    }
    return none;
}

unsigned order_weight(enum order_mode mode, unsigned level, bool lowest)
{
    static const unsigned idle[] = {10000, 500, 25}; /* below the controller nice values count within a job only */
    switch (mode) {
    case ORDER_MODE_RT:
        return lowest && level > 0 ? 1 : 100;
    case ORDER_MODE_IDLE:
        return level == 0 || (!lowest && level < sizeof(idle) / sizeof(idle[0])) ? idle[level] : 1;
    case ORDER_MODE_NONE:
    case ORDER_MODE_COUNT:
        break;
    }
    return 100;
}

int order_session_nice(struct order_rank task)
{
    if (task.policy == SCHED_IDLE)
        return NICE_MAX;
    return task.policy == SCHED_OTHER ? task.priority : 0;
}

bool order_is_raised(struct order_rank rank)
{
    return rank.policy == SCHED_FIFO || rank.policy == SCHED_RR || (rank.policy == SCHED_OTHER && rank.priority < 0);
}

const char *order_mode_name(enum order_mode mode)
{
    static const char *const names[ORDER_MODE_COUNT] = {"rt", "idle", "none"};
    return mode < ORDER_MODE_COUNT ? names[mode] : "?";
}

static void items_free(struct order_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(items[i].cpus);
    free(items);
}

static int item_copy(struct order_item *item, const struct wire_order_entry *entry)
{
    *item = (struct order_item){.job = entry->job,
                                .attempt = (uint32_t)entry->attempt,
                                .level = (unsigned)entry->level,
                                .lowest = entry->lowest,
                                .ncpus = entry->cpus.count};
    item->cpus = calloc(entry->cpus.count + 1, sizeof(*item->cpus));
    if (!item->cpus)
        return -ENOMEM;
    if (entry->cpus.count > 0)
        memcpy(item->cpus, entry->cpus.items, entry->cpus.count * sizeof(*item->cpus));
    return 0;
}

/* elmer sends the list sorted; that the top comes first must not depend on it. Few items: insertion keeps equals in
 * place. */
static void items_sort(struct order_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct order_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].level > item.level; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

int order_replace(struct order *order, const struct wire_order *message)
{
    struct order_item *items;
    if (message->generation <= order->generation)
        return 0;
    items = calloc(message->entries.count + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < message->entries.count; i++) {
        if (item_copy(&items[i], &message->entries.items[i]) < 0) {
            items_free(items, i);
            return -ENOMEM;
        }
    }
    items_sort(items, message->entries.count);
    items_free(order->items, order->count);
    order->items = items;
    order->count = message->entries.count;
    order->generation = message->generation;
    return 1;
}

const struct order_item *order_find(const struct order *order, uint64_t job, uint32_t attempt)
{
    for (size_t i = 0; i < order->count; i++) {
        if (order->items[i].job == job && order->items[i].attempt == attempt)
            return &order->items[i];
    }
    return NULL;
}

void order_fini(struct order *order)
{
    items_free(order->items, order->count);
    *order = (struct order){0};
}
