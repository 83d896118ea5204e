/* memory.c - the limit of a job's memory on this host: files of its leaf, where the controller memory is. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rsd/root/group.h"

/* Swap space would make the limit one of speed: the job would go on, and the disk with it, at the expense of others.
 * The group ends as a whole, because half a job only waits for its other half. */
int group_limit_memory(const struct cgroup *group, uint64_t bytes)
{
    char text[24];
    int result;
    snprintf(text, sizeof(text), "%" PRIu64, bytes);
    result = group_write(group->job_fd, "memory.max", text);
    if (result < 0)
        return result;
    (void)group_write(group->job_fd, "memory.swap.max", "0"); /* not there without swap accounting */
    (void)group_write(group->job_fd, "memory.oom.group", "1");
    return 0;
}

static uint64_t value_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    uint64_t value;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && sscanf(line + length, " %" SCNu64, &value) == 1)
            return value;
    }
    return 0;
}

static uint64_t number_in(const struct cgroup *group, const char *file)
{
    char text[64];
    uint64_t value;
    return group_read(group->job_fd, file, text, sizeof(text)) == 0 && sscanf(text, "%" SCNu64, &value) == 1 ? value
                                                                                                             : 0;
}

/* oom_kill alone also counts processes that were ended because the whole host had no memory left: then the group has
 * not reached its limit, and oom is 0. */
uint64_t group_memory_struck(const struct cgroup *group)
{
    char text[512];
    uint64_t limit, peak;
    if (group->job_fd < 0 || group_read(group->job_fd, "memory.events", text, sizeof(text)) < 0 ||
        value_of(text, "oom ") == 0 || value_of(text, "oom_kill ") == 0)
        return 0;
    limit = number_in(group, "memory.max");
    peak = number_in(group, "memory.peak");
    return limit == 0 ? 0 : peak > 0 ? peak : limit;
}
