/* members.c - a pid read from a group may belong to a stranger a moment later. So hold a handful of processes by their
 * directories in /proc, look again who is in the group, and visit those that are: what is held and still a member has
 * been one all the time. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rsd/root/group.h"
#include "rsd/root/members.h"

enum { BATCH = 256 };

static int hold(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int visit_batch(int leaf_fd, const pid_t *pids, size_t count, member_fn *visit, void *data, size_t *gone)
{
    struct group_pids now = {0};
    int fds[BATCH], result;
    for (size_t i = 0; i < count; i++)
        fds[i] = hold(pids[i]);
    result = group_pids(leaf_fd, &now);
    group_pids_sort(&now);
    for (size_t i = 0; i < count; i++) {
        if (result == 0 && fds[i] >= 0 && group_pids_have(&now, pids[i]))
            visit(fds[i], pids[i], data);
        else
            ++*gone;
        if (fds[i] >= 0)
            close(fds[i]);
    }
    group_pids_fini(&now);
    return result;
}

int members_each(int leaf_fd, member_fn *visit, void *data, size_t *gone)
{
    struct group_pids pids = {0};
    int result = group_pids(leaf_fd, &pids);
    *gone = 0;
    for (size_t i = 0; result == 0 && i < pids.count; i += BATCH)
        result =
            visit_batch(leaf_fd, pids.items + i, pids.count - i < BATCH ? pids.count - i : BATCH, visit, data, gone);
    group_pids_fini(&pids);
    return result;
}
