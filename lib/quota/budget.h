/* budget.h - bytes that may be kept for somebody. */
#ifndef LIB_QUOTA_BUDGET_H
#define LIB_QUOTA_BUDGET_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
    size_t used, max;
    struct budget *all; /* of everybody together; NULL: none */
};

/* Take so many bytes; false: there is not so much left, and nothing is taken. */
static inline bool budget_take(struct budget *budget, size_t bytes)
{
    if (bytes > budget->max || budget->used > budget->max - bytes || (budget->all && !budget_take(budget->all, bytes)))
        return false;
    budget->used += bytes;
    return true;
}

/* Bytes that were taken are there again. */
static inline void budget_give(struct budget *budget, size_t bytes)
{
    assert(bytes <= budget->used);
    budget->used -= bytes;
    if (budget->all)
        budget_give(budget->all, bytes);
}

/* More than half is used: what can wait had better wait. */
static inline bool budget_is_short(const struct budget *budget)
{
    return budget->used > budget->max / 2;
}

#endif
