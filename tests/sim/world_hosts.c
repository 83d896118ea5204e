/* world_hosts.c - what happens to hosts: links come and go, rsd and machines are restarted, processes end. */
#include "tests/sim/world.h"

#include <assert.h>
#include <stdio.h>

#include <string.h>

/* What it says must be on disk: all but that a job is to end which has exited, as its hosts know, or is killed. */
bool world_waits_for_commit(const struct world *world, const struct message *message)
{
    const struct core_job *job;

    if (message->kind != TO_HOST_END)
        return message->kind == TO_HOST_OPEN || message->kind == TO_HOST_TAKEN;
    job = core_job(world->core, message->job);
    return job && job->attempt == message->attempt && job->state == JOB_ENDING && job->reason != REASON_EXITED &&
           job->reason != REASON_KILLED;
}

void world_connect(struct world *world, int index)
{
    struct sim_host *host = &world->hosts[index];
    struct core_holding holdings[SIM_GROUPS];
    struct event event = {.type = EVENT_HOST_UP, .host = index};
    struct message contact = {.kind = TO_CORE_CONTACT, .host = index};

    if (!host->powered)
        host->boot++;
    host->powered = true;
    host->connected = true;
    host->heard_ms = world->now_ms;
    host->nopens = 0; /* what came over another link is not obeyed any more */
    host->ear = ++host->epoch;
    for (int i = 0; i < host->ngroups; i++)
        holdings[i] = (struct core_holding){.job = host->groups[i].job, .attempt = host->groups[i].attempt};
    event.u.up.cpus = host->cpus;
    event.u.up.ncpus = host->ncpus;
    event.u.up.generation = host->order.generation;
    event.u.up.holdings = holdings;
    event.u.up.nholdings = host->ngroups;
    event.u.up.rebooted = host->known_boot != 0 && host->known_boot != host->boot;
    event.u.up.closed = host->misfit;
    event.u.up.no_lease = host->old;
    event.u.up.memory_bytes = host->memory_bytes;
    world->coverage->reboots += event.u.up.rebooted;
    host->known_boot = host->boot;
    world_step(world, &event);
    contact.said_ms = world->now_ms;
    world_send(world, &contact);
}

void world_cut(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = SHELL_GIVE_UP, .host = index};
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};
    bool noticed = host->connected && !world_chance(world, 300); /* else it is back before anybody sees */

    host->connected = false;
    host->nopens = 0;
    message.epoch = host->ear = ++host->epoch;
    if (noticed || give_up_after_ms >= 0)
        world_step(world, &silent);
    if (give_up_after_ms >= 0)
        world_post(world, &message, world->now_ms + give_up_after_ms);
}

void world_cut_half(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = SHELL_GIVE_UP, .host = index};
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};

    host->connected = false; /* its ear stays */
    message.epoch = ++host->epoch;
    world->coverage->half_open++;
    world_step(world, &silent);
    world_post(world, &message, world->now_ms + give_up_after_ms);
}

void world_suspect(struct world *world, int index, int64_t heard_after_ms)
{
    struct event silent = {.type = EVENT_HOST_SILENT, .host = index};
    struct message heard = {.kind = SHELL_HEARD, .host = index, .epoch = world->hosts[index].epoch};

    world_step(world, &silent);
    world_post(world, &heard, world->now_ms + heard_after_ms);
}

/* Groups run on under their supervisors; what it had not yet done is forgotten. */
void world_restart_rsd(struct world *world, int index)
{
    world_cut(world, index, -1);
    world->hosts[index].nended = 0;
    world->coverage->rsd_restarts++;
    world_connect(world, index);
}

void world_power_off(struct world *world, int index, int64_t give_up_after_ms)
{
    struct sim_host *host = &world->hosts[index];

    world_cut(world, index, give_up_after_ms);
    host->powered = false;
    host->ngroups = host->nended = 0;
    host->contact_ms = INT32_MIN; /* never */
    memset(&host->order, 0, sizeof(host->order));
}

void world_report(struct world *world, int index, const double *busy, const double *jobs, int64_t interval_ms)
{
    struct sim_host *host = &world->hosts[index];
    struct message message = {.kind = TO_CORE_REPORT, .host = index, .ncpus = host->ncpus};

    message.begin_ms = world->now_ms - interval_ms;
    message.end_ms = world->now_ms;
    for (int i = 0; i < host->ncpus; i++) {
        message.busy[i] = busy[i];
        message.jobs[i] = jobs[i];
    }
    world_send(world, &message);
}

void world_start_idle_reports(struct world *world)
{
    for (int h = 0; h < world->nhosts; h++) {
        struct message message = {.kind = HOST_IDLE_REPORT, .host = h};
        world_post(world, &message, world->now_ms + 1 + h);
    }
}

void world_end_process(struct world *world, uint64_t job, uint32_t rank, int status, int signal)
{
    const struct core_job *info = core_job(world->core, job);
    struct message message = {.kind = HOST_PROCESS_ENDS, .job = job, .rank = rank, .status = status, .signal = signal};

    if (!info || !info->processors || rank >= info->nprocs)
        return;
    message.attempt = info->attempt;
    message.host = info->processors[rank].host;
    world_post(world, &message, world->now_ms);
}

static void make_host(struct world *world, const char *name, int ncpus, int first_cpu)
{
    struct sim_host *host = &world->hosts[world->nhosts];

    assert(world->nhosts < SIM_HOSTS && ncpus <= SIM_CPUS && first_cpu + ncpus <= 32);
    snprintf(host->name, sizeof(host->name), "%s", name);
    host->ncpus = ncpus;
    for (int i = 0; i < ncpus; i++)
        host->cpus[i] = first_cpu + i;
    host->listed = true;
    model_init(world, world->nhosts++);
}

void world_make_host(struct world *world, const char *name, int ncpus)
{
    make_host(world, name, ncpus, 0);
}

void world_add_host(struct world *world, const char *name, int ncpus, int first_cpu)
{
    if (core_add_host(world->core, name) != world->nhosts)
        world_fail(world, "core_add_host(%s) failed", name);
    make_host(world, name, ncpus, first_cpu);
}
