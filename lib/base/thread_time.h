/* thread_time.h - CPU time of the calling thread. */
#ifndef LIB_BASE_THREAD_TIME_H
#define LIB_BASE_THREAD_TIME_H

#include <stdint.h>

int64_t thread_time_ns(void);

#endif
