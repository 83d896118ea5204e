/* rest.h - a loop above all jobs that has much to do sleeps for a moment now and then. So jobs of its CPU go on, and
 * RLIMIT_RTTIME (LimitRTTIME= of the units), which counts until the next sleep, ends only what spins in one place:
 * users can keep a daemon busy for longer than that. */
#ifndef LIB_NET_REST_H
#define LIB_NET_REST_H

#include <uv.h>

struct rest {
    uv_check_t check;
    long switches;    /* times that this thread has slept, as the kernel counts them */
    int64_t since_ns; /* its CPU time then */
};

/* For as long as the loop runs, in its thread; it does not keep the loop alive. */
int rest_begin(struct rest *rest, uv_loop_t *loop);
void rest_end(struct rest *rest); /* before the loop is run for the last time */

#endif
