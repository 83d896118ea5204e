/* gaps.c - how long the kernel kept a CPU from real time, seen by a bystander.
 *
 * gaps CPU
 * Wakes every few milliseconds at a rank above all else there, and counts by how much it is late: in the gaps of the
 * throttle, or while a fair server has its turn. These are not always as long as they are set: gaps of 50 ms have
 * lasted 113 on a virtual machine. Prints the microseconds so far for each line that it gets; ends with its input.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STEP_NS = 4000000, LATE_NS = 2000000, RANK = 98 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Has anybody asked? false: nobody will any more. */
static bool asked(bool *now)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char line;
    *now = poll(&in, 1, 0) > 0;
    return !*now || read(STDIN_FILENO, &line, 1) == 1;
}

int main(int argc, char **argv)
{
    const struct sched_param param = {.sched_priority = RANK};
    int64_t kept_ns = 0, next;
    cpu_set_t cpu;
    bool now;

    if (argc != 2) {
        fputs("usage: gaps CPU\n", stderr);
        return 2;
    }
    CPU_ZERO(&cpu);
    CPU_SET((size_t)atoi(argv[1]), &cpu);
    if (sched_setaffinity(0, sizeof(cpu), &cpu) != 0 || sched_setscheduler(0, SCHED_FIFO, &param) != 0) {
        perror("gaps");
        return 1;
    }
    next = now_ns();
    while (asked(&now)) {
        if (now) {
            printf("%" PRId64 "\n", kept_ns / 1000);
            (void)fflush(stdout);
        }
        next += STEP_NS;
        const struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        const int64_t late_ns = now_ns() - next;
        if (late_ns >= LATE_NS) {
            kept_ns += late_ns;
            next += late_ns;
        }
    }
    return 0;
}
