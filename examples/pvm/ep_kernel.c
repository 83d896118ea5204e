#include "ep_kernel.h"

#include <math.h>
#include <string.h>

#define SEED         UINT64_C(271828183)
#define MULTIPLIER   UINT64_C(1220703125) /* 5^13 */
#define MODULUS_MASK ((UINT64_C(1) << 46) - 1)

/* Products may wrap at 2^64: only the low 46 bits count. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    return (a * b) & MODULUS_MASK;
}

static uint64_t power(uint64_t a, uint64_t n)
{
    uint64_t result = 1;
    for (; n; n >>= 1, a = multiply(a, a))
        if (n & 1)
            result = multiply(result, a);
    return result;
}

/* The next number, as a coordinate in (-1, 1). */
static double next_coordinate(uint64_t *x)
{
    *x = multiply(*x, MULTIPLIER);
    return 2.0 * ((double)*x * 0x1p-46) - 1.0;
}

void ep_batch(int64_t batch, struct ep_sums *sums)
{
    const int64_t pairs = INT64_C(1) << EP_MK;
    uint64_t x = multiply(SEED, power(MULTIPLIER, (uint64_t)batch * 2 * (uint64_t)pairs));

    memset(sums, 0, sizeof(*sums));
    for (int64_t i = 0; i < pairs; i++) {
        double u = next_coordinate(&x);
        double v = next_coordinate(&x);
        double t = u * u + v * v;
        if (t > 1.0)
            continue;
        double scale = sqrt(-2.0 * log(t) / t);
        double gx = u * scale, gy = v * scale;
        int ring = (int)fmax(fabs(gx), fabs(gy));
        if (ring < EP_RINGS) /* beyond ten standard deviations: never in practice */
            sums->rings[ring]++;
        sums->x += gx;
        sums->y += gy;
    }
}
