/* shift_clock.c - preloaded into processes: their wall clock is off. With -DSHIFT=N by N seconds; with -DFILE_NAME=".."
 * by those that stand in that file, a number of 64 bits, which may change at any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef SHIFT
#define SHIFT 0
#endif
#ifndef FILE_NAME
#define FILE_NAME ""
#endif

int clock_gettime(clockid_t clock, struct timespec *time);
int gettimeofday(struct timeval *restrict now, void *restrict zone);
time_t time(time_t *out);

static int64_t shift(void)
{
    static const volatile int64_t *file;

    if (!*FILE_NAME)
        return SHIFT;
    if (!file) {
        int fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
        void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*file), PROT_READ, MAP_SHARED, fd, 0);

        if (fd >= 0)
            close(fd);
        if (map == MAP_FAILED)
            return 0;
        file = map;
    }
    return *file;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    static int (*real)(clockid_t, struct timespec *);
    int result;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, ts);
    if (clock == CLOCK_REALTIME)
        ts->tv_sec += shift();
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
