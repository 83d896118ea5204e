/* place.c - where the jobs' groups are: opened when rsd starts, and again when it has gone. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/controllers.h"
#include "rsd/root/internal.h"
#include "rsd/root/probe.h"
#include "rsd/root/scope.h"

/* The controller cpu refuses real time below it on kernels with RT_GROUP_SCHED, so it comes last and on trial. Returns
 * as probe_rt(). */
static int hand_down(int fd, unsigned *controllers)
{
    unsigned lent;
    int refusal;
    *controllers = controllers_hand_down(fd, CONTROLLER_MEMORY | CONTROLLER_CPUSET);
    refusal = probe_rt(fd);
    if (refusal > 0 && (*controllers & CONTROLLER_CPU)) { /* an earlier rsd has left it, and another kernel */
        controllers_take_back(fd, CONTROLLER_CPU);
        refusal = probe_rt(fd);
        *controllers = controllers_hand_down(fd, 0);
        return refusal;
    }
    if (refusal < 0 || (*controllers & CONTROLLER_CPU))
        return refusal;
    lent = scope_lend(fd, CONTROLLER_CPU);
    *controllers = controllers_hand_down(fd, CONTROLLER_CPU);
    if (refusal == 0 && (*controllers & CONTROLLER_CPU) && probe_rt(fd) != 0) {
        controllers_take_back(fd, CONTROLLER_CPU);
        scope_lend_no_more(fd, lent);
        *controllers = controllers_hand_down(fd, 0);
    }
    return refusal;
}

int place_open(struct root *root, struct err *err)
{
    int refusal, fd = scope_open(root->config, root->groups, sizeof(root->groups), err);
    if (fd < 0)
        return fd;
    refusal = hand_down(fd, &root->controllers);
    if (refusal < 0) {
        close(fd);
        return err_set(err, refusal,
                       "no process can be born in a group below %s (%s): its cgroup.type, or that of a group above, is "
                       "not domain; remove that group when nothing is in it, or set another cgroup_root in rsd.conf",
                       root->groups, strerror(-refusal));
    }
    if (root->groups_fd >= 0)
        close(root->groups_fd);
    root->groups_fd = fd;
    return refusal;
}

size_t place_lacks(const struct root *root, const char *lacks[MAX_LACKS])
{
    size_t count = controllers_lacking(root->controllers, lacks);
    if (root->reserve_refused[0])
        lacks[count++] = root->reserve_refused;
    return count;
}

void place_say(const struct root *root, bool log)
{
    const char *lacks[MAX_LACKS];
    size_t count = place_lacks(root, lacks), used;
    char status[2048];
    used = (size_t)snprintf(status, sizeof(status), "%s%smode %s%s%s", root->uplink, root->uplink[0] ? "; " : "",
                            order_mode_name(root->mode), root->mode_reason[0] ? ": " : "", root->mode_reason);
    for (size_t i = 0; i < count; i++) {
        if (log)
            log_notice("%s", lacks[i]);
        if (used < sizeof(status))
            used += (size_t)snprintf(status + used, sizeof(status) - used, "; %s", lacks[i]);
    }
    sd_notifyf(0, "STATUS=%s", status);
}

/* The scope is alone in its slice; it is the slice that has sisters. */
int place_weight_dir(const struct root *root)
{
    static const char slice[] = "/elmer.slice/elmer-jobs.scope";
    int dir = openat(root->groups_fd, strstr(root->groups, slice) ? ".." : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -errno : dir;
}

int place_weigh(const struct root *root, unsigned weight)
{
    int result, dir = place_weight_dir(root);
    if (dir < 0)
        return dir;
    result = group_weigh_dir(dir, weight);
    close(dir);
    return result;
}
