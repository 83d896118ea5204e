#include "config.h"

#include "rsd/sup/pace.h"

int64_t pace_wait_ms(const struct pace *pace, const struct pace_limit *limit, int64_t now_ms)
{
    int64_t wait = pace->paid_ms - now_ms - (int64_t)(limit->burst - 1) * limit->period_ms;
    return wait > 0 ? wait : 0;
}

void pace_take(struct pace *pace, const struct pace_limit *limit, int64_t now_ms)
{
    if (pace->paid_ms < now_ms)
        pace->paid_ms = now_ms;
    pace->paid_ms += limit->period_ms;
}

void pace_charge(struct pace *pace, const struct pace_limit *limit, int64_t used_ns)
{
    const int64_t due_ms = used_ns * PACE_SHARE / 1000000;
    if (due_ms > limit->period_ms)
        pace->paid_ms += due_ms - limit->period_ms;
}
