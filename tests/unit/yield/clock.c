/* clock.c - a clock as on machines where it is no counter of the processor: to read it is a system call, and these take
 * microseconds, as where a virtual machine's are emulated. It is loaded beside the library. */
#include "config.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READ_NS = 1500 };

static int64_t read_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    (void)syscall(SYS_clock_gettime, clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void last(void)
{
    int64_t begin = read_ns(CLOCK_MONOTONIC);
    while (read_ns(CLOCK_MONOTONIC) - begin < READ_NS) {
    }
}

pid_t getppid(void)
{
    last();
    return (pid_t)syscall(SYS_getppid);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int64_t now;
    last();
    now = read_ns(clock);
    *time = (struct timespec){now / 1000000000, now % 1000000000};
    return 0;
}
