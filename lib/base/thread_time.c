#include "config.h"

#include "lib/base/thread_time.h"

#include <time.h>

int64_t thread_time_ns(void)
{
    struct timespec used = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}
