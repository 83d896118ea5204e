/* pace.h - so often at once, then once in a while: what a user can make a supervisor do costs the jobs above. Pure. */
#ifndef RSD_SUP_PACE_H
#define RSD_SUP_PACE_H

#include <stdint.h>

struct pace_limit {
    int burst, period_ms;
};
struct pace {
    int64_t paid_ms; /* until then all that was done is paid for */
};

/* 0: it may be done now; else how long to wait. */
int64_t pace_wait_ms(const struct pace *pace, const struct pace_limit *limit, int64_t now_ms);
/* It is done. */
void pace_take(struct pace *pace, const struct pace_limit *limit, int64_t now_ms);
/* That has taken so much CPU time: where it is much, it is done more seldom, so that in the long run it takes no more
 * than 1/PACE_SHARE of a CPU. */
enum { PACE_SHARE = 400 };
void pace_charge(struct pace *pace, const struct pace_limit *limit, int64_t used_ns);

#endif
