#include "config.h"

#include "rsd/net/outstanding.h"

#include <assert.h>

bool outstanding_has(const struct outstanding *all, uint64_t id)
{
    for (unsigned i = 0; i < all->count; i++)
        if (all->items[i].id == id)
            return true;
    return false;
}

bool outstanding_add(struct outstanding *all, struct quotas *quotas, uint64_t id, size_t bytes, char text[QUOTA_TEXT])
{
    assert(all->count < REQUESTS_MAX);
    if (all->quota && !quota_keep(quotas, all->quota, bytes, text))
        return false;
    all->items[all->count].id = id;
    all->items[all->count++].bytes = bytes;
    return true;
}

void outstanding_remove(struct outstanding *all, uint64_t id)
{
    for (unsigned i = 0; i < all->count; i++) {
        if (all->items[i].id != id)
            continue;
        if (all->quota)
            budget_give(&all->quota->bytes, all->items[i].bytes);
        all->items[i] = all->items[--all->count];
        return;
    }
}
