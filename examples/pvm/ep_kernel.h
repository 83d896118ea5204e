/* The arithmetic of the NAS kernel EP ("embarrassingly parallel"): pairs of Gaussian deviates by the acceptance-
 * rejection method, from the generator x' = 5^13 x mod 2^46 (Bailey et al., The NAS Parallel Benchmarks, 1991).
 * The work is cut into batches of 2^EP_MK pairs; each can be computed alone, since the generator can jump ahead. */
#ifndef EXAMPLES_EP_KERNEL_H
#define EXAMPLES_EP_KERNEL_H

#include <stdint.h>

enum { EP_MK = 16, EP_RINGS = 10 };

struct ep_sums {
    double x, y;             /* sums of the deviates */
    int64_t rings[EP_RINGS]; /* pairs by the square ring that they fall into */
};

/* Compute batch number `batch`, counted from 0. */
void ep_batch(int64_t batch, struct ep_sums *sums);

#endif
