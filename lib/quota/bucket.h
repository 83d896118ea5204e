/* bucket.h - how often something may happen: a token bucket. */
#ifndef LIB_QUOTA_BUCKET_H
#define LIB_QUOTA_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct bucket { /* zero-initialised is full */
    double missing;
    int64_t at_ms;
};

enum bucket_state {
    BUCKET_ENOUGH,
    BUCKET_EMPTY,    /* refuse it */
    BUCKET_OVERDRAWN /* so much was refused that it is better not to listen any more */
};

/* Take cost, also when it is not there: refusing costs something too. rate per second come back, up to burst; no more
 * than a burst is owed. now_ms is monotonic. */
enum bucket_state bucket_take(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost);
/* Take cost if it is there, else nothing. */
bool bucket_take_if(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost);
/* What taking cost would find now, without taking it. */
enum bucket_state bucket_check(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost);

#endif
