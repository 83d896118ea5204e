/* clock.h - monotonic and wall time are different types and do not mix. */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H

#include <stdint.h>

struct mono {
    int64_t ns;
};
struct wall {
    int64_t ms;
}; /* Unix time */

struct mono mono_now(void);
struct wall wall_now(void);
/* Monotonic like mono_now(), of another zero: goes on while the machine sleeps. The same for all processes of a host.
 */
int64_t boot_ms(void);
static inline int64_t mono_ms(struct mono t)
{
    return t.ns / 1000000;
}
static inline int64_t mono_now_ms(void)
{
    return mono_ms(mono_now());
}
static inline int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}
/* RFC 3339 in UTC with milliseconds, e.g. 2026-01-31T12:00:00.123Z; size >= 25. */
void wall_format(struct wall t, char *text, unsigned size);

#endif
