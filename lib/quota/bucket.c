#include "config.h"

#include "lib/quota/bucket.h"

#include <assert.h>

static enum bucket_state state_of(double missing, double burst)
{
    if (missing <= burst)
        return BUCKET_ENOUGH;
    return missing < 2 * burst ? BUCKET_EMPTY : BUCKET_OVERDRAWN;
}

static void refill(struct bucket *bucket, int64_t now_ms, double rate)
{
    assert(rate >= 0 && bucket->missing >= 0);
    bucket->missing -= rate * (double)(now_ms - bucket->at_ms) / 1000;
    if (bucket->missing < 0)
        bucket->missing = 0;
    bucket->at_ms = now_ms;
}

enum bucket_state bucket_take(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost)
{
    refill(bucket, now_ms, rate);
    bucket->missing += cost;
    if (bucket->missing > 2 * burst)
        bucket->missing = 2 * burst;
    return state_of(bucket->missing, burst);
}

bool bucket_take_if(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost)
{
    refill(bucket, now_ms, rate);
    if (bucket->missing + cost > burst)
        return false;
    bucket->missing += cost;
    return true;
}

enum bucket_state bucket_check(struct bucket *bucket, int64_t now_ms, double rate, double burst, double cost)
{
    refill(bucket, now_ms, rate);
    return state_of(bucket->missing + cost, burst);
}
