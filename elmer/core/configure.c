/* configure.c - the configuration changes while jobs run: options, and which hosts there are.
 *
 * A change is an event like any other, so it is decided in one step, and what it makes possible happens in that step.
 * Nothing that has been decided is taken back. A job keeps its processors and its level: one that is deeper than there
 * are levels now stays until it ends or moves up, and until then its processor takes nobody. A host that is no longer
 * one of the cluster is retired: its jobs run on, and when the last has ended it is gone; its index stays its, because
 * jobs are about indices, and a host of this name that is added later gets it again. Hosts of a cube have their
 * addresses by their order, so there none comes or goes.
 */
#include "elmer/core/internal.h"

#include <errno.h>

bool options_valid(const struct core_options *options)
{
    return options->levels >= 1 && options->levels <= CORE_MAX_LEVELS &&
           (unsigned)options->allocator < ALLOCATOR_COUNT && (unsigned)options->policy < POLICY_COUNT &&
           (options->topology == TOPOLOGY_CUBE
                ? options->levels == 1
                : options->topology == TOPOLOGY_NONE && !core_allocator_in_cube(options->allocator)) &&
           options->threshold > 0 && options->threshold < 1 && options->fresh_ms > 0 && options->settle_ms >= 0 &&
           options->start_timeout_ms > 0 && options->resend_ms > 0 && options->lease_ms > 0 && options->gather_ms >= 0;
}

/* ---- options ---- */

/* Deadlines stand in lists in their order, and keep it. */
static void shift_deadlines(struct core *core, int64_t start_ms, int64_t resend_ms)
{
    LIST_FOR_EACH (node, &core->starting)
        LIST_ITEM(node, struct job, in_start)->deadline_ms += start_ms;
    LIST_FOR_EACH (node, &core->waiting)
        LIST_ITEM(node, struct host, in_waiting)->check_ms += resend_ms;
}

int configure(struct core *core, const struct event *event)
{
    const struct core_options *next = &event->u.configure;
    const struct core_options before = core->options;

    if (!options_valid(next) || next->topology != before.topology)
        return -EINVAL;
    core->options.levels = next->levels;
    core->options.threshold = next->threshold;
    core->options.fresh_ms = next->fresh_ms;
    core->options.settle_ms = next->settle_ms;
    core->options.start_timeout_ms = next->start_timeout_ms;
    core->options.resend_ms = next->resend_ms;
    core->options.user_running = next->user_running;
    core->options.lease_ms = next->lease_ms;
    core->options.gather_ms = next->gather_ms;
    if (core->levels_used < next->levels)
        core->levels_used = next->levels;
    shift_deadlines(core, next->start_timeout_ms - before.start_timeout_ms, next->resend_ms - before.resend_ms);
    setting_new_defaults(core, next);
    queue_changed_supply(core); /* whoever waits may be eligible now, or not any more, and have room */
    return 0;
}

/* ---- hosts ---- */

void configure_watch(struct core *core, struct host *host)
{
    if (host->info.retired && !node_linked(&host->in_retiring))
        list_append(&core->retiring, &host->in_retiring);
}

static void set_retired(struct core *core, struct host *host, bool retired)
{
    host_take_out(core, host);
    host->info.retired = retired;
    host_put_in(core, host);
    list_remove(&host->in_retiring);
    configure_watch(core, host);
}

void configure_joined(struct core *core, struct host *host, bool joined)
{
    host_take_out(core, host);
    host->info.joined = joined;
    host_put_in(core, host);
}

int configure_add(struct core *core, const struct event *event)
{
    const char *name = event->u.add.name;
    int ncpus = event->u.add.ncpus, index = name ? core_host_by_name(core, name) : -1;
    struct host *host;

    if (ncpus < 0 || ncpus > CORE_MAX_CPUS || core->options.topology == TOPOLOGY_CUBE)
        return -EINVAL;
    if (index < 0) {
        index = core_add_host(core, name);
        if (index < 0)
            return index;
        core->hosts[index]->info.drained = event->u.add.drained; /* nothing of it is counted yet */
    }
    host = core->hosts[index];
    if (host->info.retired)
        set_retired(core, host, false);
    configure_joined(core, host, event->u.add.joined);
    if (ncpus > 0 && !host->info.known && host->configured_cpus == 0)
        core_expect_cpus(core, index, ncpus);
    queue_changed_supply(core);
    return 0;
}

int configure_retire(struct core *core, const struct event *event)
{
    if (core->options.topology == TOPOLOGY_CUBE)
        return -EINVAL;
    if (!core->hosts[event->host]->info.retired)
        set_retired(core, core->hosts[event->host], true);
    notice_look(core, core->hosts[event->host]);
    queue_changed_supply(core);
    return 0;
}

void core_restore_retired(struct core *core, int host)
{
    set_retired(core, core->hosts[host], true);
}

static bool is_gone(const struct host *host)
{
    return host->info.retired && list_empty(&host->parts) && host->info.leftovers == 0;
}

int core_member_by_name(const struct core *core, const char *name)
{
    int index = core_host_by_name(core, name);

    return index >= 0 && core->hosts[index]->info.retired ? -1 : index;
}

bool core_host_gone(const struct core *core, int host)
{
    return is_gone(core->hosts[host]);
}
