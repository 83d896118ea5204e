/* shift_clock.c - preloaded into one process: its wall clock is SHIFT seconds off. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *time);
int gettimeofday(struct timeval *restrict now, void *restrict zone);
time_t time(time_t *out);

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    int result;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, ts);
    if (clock == CLOCK_REALTIME)
        ts->tv_sec += SHIFT;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    now->tv_sec = ts.tv_sec;
    now->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
