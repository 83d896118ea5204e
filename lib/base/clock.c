#include "config.h"

#include "lib/base/clock.h"

#include <stdio.h>
#include <time.h>

struct mono mono_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct mono){.ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
}

struct wall wall_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (struct wall){.ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
}

int64_t boot_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void wall_format(struct wall t, char *text, unsigned size)
{
    int64_t ms = t.ms % 1000;
    int64_t seconds = t.ms / 1000;
    struct tm tm;
    time_t unix_time;

    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    unix_time = (time_t)seconds;
    /* RFC 3339 has four digits for the year. */
    if (!gmtime_r(&unix_time, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
        (void)snprintf(text, size, "0000-00-00T00:00:00.000Z");
        return;
    }
    (void)snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                   tm.tm_hour, tm.tm_min, tm.tm_sec, (int)ms);
}
