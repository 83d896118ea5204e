/* after.h - what a job waits for, and what is known of it. */
#ifndef ELMER_CORE_AFTER_H
#define ELMER_CORE_AFTER_H

#include "lib/job/after.h"

/* How a job has ended, as far as others may wait for it. */
enum core_end {
    CORE_END_FORGOTTEN, /* it has, and nobody knows any more how */
    CORE_END_WELL,      /* by itself, with status 0 */
    CORE_END_BADLY,     /* in any other way, after its processes had been started */
    CORE_END_UNSTARTED  /* ... and they never were */
};

enum core_verdict {
    CORE_OPEN,
    CORE_MET,
    CORE_NEVER /* it cannot happen any more */
};

/* What a job waits for. */
struct core_after {
    uint64_t job; /* there was this one before it */
    enum after_kind kind;
    enum core_end end;         /* in: of one that the core does not know, which has ended */
    enum core_verdict verdict; /* final where it is not OPEN; in: what another core has decided, or OPEN */
};

#endif
