/* clocks.c - what processes of a rig have had of a processor. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "tests/root/rig.h"

int64_t rig_now_ms(void)
{
    return mono_ms(mono_now());
}

static double schedstat_ms(pid_t pid, int which) /* 0: on a processor, 1: waiting for one */
{
    char path[64];
    unsigned long long ns[2] = {0, 0};
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        (void)!fscanf(file, "%llu %llu", &ns[0], &ns[1]);
        fclose(file);
    }
    return (double)ns[which] / 1e6;
}

double rig_thread_ms(pid_t pid)
{
    return schedstat_ms(pid, 0);
}

double rig_waited_ms(pid_t pid)
{
    return schedstat_ms(pid, 1);
}

double rig_stolen_ms(void)
{
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/stat", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks), 1);
    fclose(file);
    return (double)ticks * 1000 / (double)sysconf(_SC_CLK_TCK);
}
