/* budget.h - CPU time above all jobs that is left to spend: a bucket that fills steadily. */
#ifndef RSD_BUDGET_H
#define RSD_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Over any second no more is spent than what fits in and what flows in, and what one step overdraws. */
struct cpu_budget {
    int64_t left_ns, full_ns, per_second_ns, debt_ns, filled_ms;
    int64_t charged_ns; /* ever */
};

/* Full. */
void budget_init(struct cpu_budget *budget, int64_t full_us, int64_t per_second_us, int64_t debt_us, int64_t now_ms);
/* Other bounds from now on, after budget_charge(): what is left, or owed, is cut to them. */
void budget_resize(struct cpu_budget *budget, int64_t full_us, int64_t per_second_us, int64_t debt_us);
/* Charge what was spent (0: only let it fill). It may go below zero: then that is paid first, up to debt_us. */
void budget_charge(struct cpu_budget *budget, int64_t spent_ns, int64_t now_ms);
/* When more than least_ns is there, as of the last charge; at once: a time that is not later than that. */
int64_t budget_when(const struct cpu_budget *budget, int64_t least_ns);
/* What the calling thread has used. */
int64_t budget_own_ns(void);
/* What all threads of a process have used; 0: it is gone. */
int64_t budget_process_ns(pid_t pid);

#endif
