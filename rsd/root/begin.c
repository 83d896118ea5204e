/* begin.c - what takes root at rsd's start, but for putting it down (hand_over.c): place for the groups, directories,
 * the mode, rt_reserve. In rsd itself; or in elmer-rsd-begin, which becomes elmer-spawn (rsd/begin/main.c) and tells
 * rsd what it has found. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "rsd/root/internal.h"
#include "rsd/root/probe.h"
#include "rsd/root/reserve.h"
#include "rsd/root/watcher.h"

/* Where it cannot be, rsd goes on without it and says so; also where nothing is kept and nobody wants it. */
static void keep_reserve(struct root *root)
{
    const struct rsd_config *config = root->config;
    struct reserve_kernel kernel = reserve_this_kernel();
    struct reserve wanted = {config->rt_reserve, config->rt_reserve_ms};
    char dir[200];
    snprintf(dir, sizeof(dir), "%s/sup", config->rundir);
    if (reserve_keep(&kernel, dir, wanted, root->reserve_refused, sizeof(root->reserve_refused)) == 0 &&
        wanted.percent > 0)
        log_info("rt_reserve: %u %% of each processor's time is kept from what is in real time", config->rt_reserve);
    if (wanted.percent == 0 && root->mode == ORDER_MODE_RT && reserve_is_off(&kernel))
        snprintf(root->reserve_refused, sizeof(root->reserve_refused),
                 "no time of the processors for what is not in real time (sched_rt_runtime_us is -1): while jobs spin, "
                 "commands, logins and threads of the kernel wait; set rt_reserve in rsd.conf, or 950000 there");
}

int begin_as_root(struct root *root, struct err *err)
{
    const struct rsd_config *config = root->config;
    int refusal, result = tmp_open(root, err);
    if (result < 0)
        return result;
    refusal = place_open(root, err);
    if (refusal < 0)
        return refusal;
    result = probe_mode(config->mode, refusal, &root->mode, root->mode_reason, sizeof(root->mode_reason), err);
    if (result < 0)
        return result;
    if (config->user_slice[0])
        snprintf(root->users, sizeof(root->users), "%s", config->user_slice);
    else if (!watcher_find_users(root->groups, root->users, sizeof(root->users)))
        root->users[0] = 0;
    keep_reserve(root);
    return 0;
}

/* Also what is done to rsd's unit alone, and not to that of elmer-spawn, may keep it from ranking. */
static int see_mode(struct root *root, const struct rsd_facts *facts, struct err *err)
{
    int result;
    root->mode = facts->mode;
    snprintf(root->mode_reason, sizeof(root->mode_reason), "%s", facts->mode_reason);
    if (facts->mode != ORDER_MODE_RT)
        return 0;
    result = sched_rank(0, (struct order_rank){SCHED_FIFO, ORDER_DAEMON}, false);
    return probe_mode(root->config->mode, result < 0 ? -result : 0, &root->mode, root->mode_reason,
                      sizeof(root->mode_reason), err);
}

int begin_take(struct root *root, const struct rsd_facts *facts, struct err *err)
{
    root->groups_fd = facts->groups_fd;
    root->tmp_fd = facts->tmp_fd;
    root->spawn_fd = facts->line;
    root->spawn_pid = facts->spawn_pid;
    root->spawn_is_unit = true;
    root->reached = facts->reached;
    root->reached_count = facts->reached_count;
    root->controllers = facts->controllers;
    root->tmp_waits = facts->tmp_waits;
    snprintf(root->reserve_refused, sizeof(root->reserve_refused), "%s", facts->reserve_refused);
    snprintf(root->groups, sizeof(root->groups), "%s", facts->groups);
    snprintf(root->users, sizeof(root->users), "%s", facts->users);
    return see_mode(root, facts, err);
}

/* ---- for elmer-rsd-begin ---- */

int rsd_begin(const struct rsd_config *config, struct rsd_facts *facts, struct err *err)
{
    static struct root root;
    int result;
    root = (struct root){.config = config, .groups_fd = -1, .tmp_fd = -1};
    result = begin_as_root(&root, err);
    if (result == 0)
        result = hand_over_files(&root, err);
    *facts = (struct rsd_facts){.mode = root.mode,
                                .controllers = root.controllers,
                                .tmp_waits = root.tmp_waits,
                                .spawn_pid = getpid(),
                                .groups_fd = root.groups_fd,
                                .tmp_fd = root.tmp_fd,
                                .line = -1};
    snprintf(facts->mode_reason, sizeof(facts->mode_reason), "%s", root.mode_reason);
    snprintf(facts->reserve_refused, sizeof(facts->reserve_refused), "%s", root.reserve_refused);
    snprintf(facts->groups, sizeof(facts->groups), "%s", root.groups);
    snprintf(facts->users, sizeof(facts->users), "%s", root.users);
    if (result < 0 && root.groups_fd >= 0)
        close(root.groups_fd);
    if (result < 0 && root.tmp_fd >= 0)
        close(root.tmp_fd);
    return result;
}
