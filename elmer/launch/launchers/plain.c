/* plain.c - the command runs once, on the job's first processor, and may use all that the job has on that host. */
#include "config.h"

#include "elmer/launch/launchers/launchers.h"
#include "elmer/launch/paths.h"

static int cpu(const struct launch *l, uint32_t rank)
{
    (void)l;
    (void)rank;
    return -1;
}

static const char *output(const struct launch *l)
{
    (void)l;
    return PATH_DEFAULT;
}

const struct launcher launcher_plain = {
    .name = "plain",
    .failed = REASON_START_FAILED,
    .begin = launch_command,
    .cpu = cpu,
    .output = output,
};
