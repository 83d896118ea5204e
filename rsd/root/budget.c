#include "config.h"

#include <assert.h>
#include <time.h>

#include "lib/base/thread_time.h"
#include "rsd/root/budget.h"

void budget_init(struct cpu_budget *budget, int64_t full_us, int64_t per_second_us, int64_t debt_us, int64_t now_ms)
{
    assert(full_us > 0 && per_second_us > 0 && debt_us >= 0);
    *budget = (struct cpu_budget){full_us * 1000, full_us * 1000, per_second_us * 1000, debt_us * 1000, now_ms, 0};
}

static void keep_within(struct cpu_budget *budget)
{
    if (budget->left_ns > budget->full_ns)
        budget->left_ns = budget->full_ns;
    if (budget->left_ns < -budget->debt_ns)
        budget->left_ns = -budget->debt_ns;
}

void budget_resize(struct cpu_budget *budget, int64_t full_us, int64_t per_second_us, int64_t debt_us)
{
    assert(full_us > 0 && per_second_us > 0 && debt_us >= 0);
    budget->full_ns = full_us * 1000;
    budget->per_second_ns = per_second_us * 1000;
    budget->debt_ns = debt_us * 1000;
    keep_within(budget);
}

void budget_charge(struct cpu_budget *budget, int64_t spent_ns, int64_t now_ms)
{
    const int64_t passed = now_ms - budget->filled_ms, missing = budget->full_ns - budget->left_ns;
    assert(budget->per_second_ns > 0 && spent_ns >= 0);
    if (passed > 0) {
        const int64_t fills_ms = missing / budget->per_second_ns * 1000 + 1000; /* no overflow, however long it was */
        budget->left_ns += (passed < fills_ms ? passed : fills_ms) * budget->per_second_ns / 1000;
        budget->filled_ms = now_ms;
    }
    if (budget->left_ns > budget->full_ns)
        budget->left_ns = budget->full_ns;
    budget->left_ns -= spent_ns;
    budget->charged_ns += spent_ns;
    keep_within(budget);
}

int64_t budget_when(const struct cpu_budget *budget, int64_t least_ns)
{
    const int64_t missing = least_ns + 1 - budget->left_ns;
    return missing <= 0 ? budget->filled_ms : budget->filled_ms + missing * 1000 / budget->per_second_ns + 1;
}

int64_t budget_own_ns(void)
{
    return thread_time_ns();
}

int64_t budget_process_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}
