/* each.c - the command runs on each of the job's processors, and is bound to it. */
#include "config.h"

#include "elmer/launch/launchers/launchers.h"
#include "elmer/launch/paths.h"

static int cpu(const struct launch *l, uint32_t rank)
{
    return l->processors[rank].cpu;
}

static const char *output(const struct launch *l)
{
    (void)l;
    return PATH_DEFAULT_EACH;
}

const struct launcher launcher_each = {
    .name = "each",
    .failed = REASON_START_FAILED,
    .begin = launch_command,
    .cpu = cpu,
    .output = output,
};
