/* random.h - streams of random numbers. Each purpose has one of its own, so that two simulations with the same seed see
 * the same jobs, whatever they do with them. */
#ifndef ESIM_RANDOM_H
#define ESIM_RANDOM_H

#include <math.h>
#include <stdint.h>

struct stream {
    uint64_t state;
};

static inline uint64_t stream_next(struct stream *stream) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = stream->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void stream_init(struct stream *stream, uint64_t seed, uint64_t purpose)
{
    struct stream mix = {.state = seed * 1000003 + purpose};

    stream->state = stream_next(&mix);
}

/* Of run 0, 1, .. with a seed: those of neighbouring seeds have none in common. Run 0 has the seed itself. */
static inline uint64_t stream_seed(uint64_t seed, uint64_t run)
{
    struct stream mix = {.state = seed};

    mix.state = stream_next(&mix) + run;
    return run > 0 ? stream_next(&mix) : seed;
}

static inline double stream_unit(struct stream *stream) /* above 0, at most 1 */
{
    return ((double)(stream_next(stream) >> 11) + 1) / 9007199254740992.0;
}

static inline uint32_t stream_between(struct stream *stream, uint32_t low, uint32_t high)
{
    return low + (uint32_t)((stream_unit(stream) - 1e-17) * (high - low + 1.0)) % (high - low + 1);
}

static inline double stream_exponential(struct stream *stream, double mean)
{
    return -mean * log(stream_unit(stream));
}

#endif
