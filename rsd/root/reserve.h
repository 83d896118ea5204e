/* reserve.h - rt_reserve: what of each processor's time the kernel keeps for what is not in real time, and in pieces of
 * which size. */
#ifndef RSD_RESERVE_H
#define RSD_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the kernel is asked and told; other places in tests. */
struct reserve_kernel {
    const char *sysctl;  /* directory of sched_rt_runtime_us and sched_rt_period_us */
    const char *sched;   /* of fair_server/cpuN/{runtime,period}, in debugfs */
    const char *mounts;  /* file that lists what is mounted */
    const char *release; /* of the kernel: since 6.12 there has to be a fair server */
    /* NULL, or who reads and writes its numbers for us (also a new one, then what is there): 0 or -errno. */
    int (*number)(void *data, const char *path, int64_t *value, bool set);
    void *data;
};
/* The kernel that runs. What it points to is static. */
struct reserve_kernel reserve_this_kernel(void);

/* What rsd.conf says: percent of each period; 0 percent: leave the kernel as it is, 0 ms: leave the period. */
struct reserve {
    unsigned percent, period_ms;
};

/* Put back what an earlier rsd may have left, then keep what is wanted. What was there before is noted in
 * DIR/reserve first. All or nothing: 0, or a negative errno with a sentence in why, and nothing is changed. */
int reserve_keep(const struct reserve_kernel *kernel, const char *rundir, struct reserve wanted, char *why,
                 size_t size);
/* Put back what the note says, and remove it. A value that somebody else has changed meanwhile is left alone. 0, also
 * without a note, or a negative errno of what could not be written and stays in the note; it is in the log. */
int reserve_put_back(const struct reserve_kernel *kernel, const char *rundir);
/* The kernel keeps nothing: the throttle is off (sched_rt_runtime_us is -1), and there is no fair server. */
bool reserve_is_off(const struct reserve_kernel *kernel);

#endif
