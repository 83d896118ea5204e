/* orders.c - what the engine has decided about hosts, as messages to them. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "elmer/hosts/internal.h"

static void send_order(const struct action *action, void *data)
{
    struct hosts *hosts = data;
    struct arena memory = {0};
    struct wire_message message = {.type = WIRE_order};
    struct wire_order_entry *entries = arena_array(&memory, (size_t)action->nentries, sizeof(*entries));
    for (int i = 0; i < action->nentries; i++) {
        const struct order_entry *from = &action->entries[i];
        uint64_t *cpus = arena_array(&memory, (size_t)from->ncpus, sizeof(*cpus));
        for (int j = 0; j < from->ncpus; j++)
            cpus[j] = (uint64_t)from->cpus[j];
        entries[i] = (struct wire_order_entry){.job = from->job,
                                               .attempt = from->attempt,
                                               .level = (uint64_t)from->level,
                                               .lowest = from->lowest,
                                               .cpus = {cpus, (size_t)from->ncpus}};
    }
    message.u.order.generation = action->generation;
    message.u.order.entries.items = entries;
    message.u.order.entries.count = (size_t)action->nentries;
    hosts_send(hosts, action->host, &message);
    arena_fini(&memory);
}

static void send_end(const struct action *action, void *data)
{
    struct hosts *hosts = data;
    struct wire_message message = {.type = WIRE_end,
                                   .u.end = {.job = action->job,
                                             .attempt = action->attempt,
                                             .grace_ms = (uint64_t)hosts->settings->kill_grace_ms}};
    hosts_send(hosts, action->host, &message);
}

static void refuse_open(struct hosts *hosts, int host, const struct core_job *state, const char *cannot, int since)
{
    char text[400];
    snprintf(text, sizeof(text), "%s: its rsd speaks version %d.%u and cannot %s, which came with %d.%d: upgrade it",
             settings_of(hosts->hosts[host])->name, WIRE_MAJOR, hosts_minor(hosts, host), cannot, WIRE_MAJOR, since);
    struct event event = {.type = EVENT_OPEN_FAILED, .host = host, .job = state->id, .attempt = state->attempt};
    event.u.failed.reason = REASON_START_FAILED;
    event.u.failed.text = text;
    engine_event(hosts->room.engine, &event);
}

static bool is_older(const struct hosts *hosts, int host, unsigned minor)
{
    return hosts->hosts[host]->peer && hosts_minor(hosts, host) < minor;
}

/* A limit of wall-clock time alone is kept here. */
static bool needs_limits(const struct wire_submit *submit)
{
    return submit->cpu_limit_ms || submit->warning_signal;
}

/* Its rsd was replaced by an older one under a job that it had opened. */
void hosts_warn_of_limits(const struct host *host, const struct wire_host_hello *hello)
{
    const struct hosts *hosts = host->hosts;
    struct engine *engine = hosts->room.engine;
    if (!is_older(hosts, host->index, WIRE_LIMIT_MINOR))
        return;
    for (size_t i = 0; i < hello->holdings.count; i++) {
        uint64_t id = hello->holdings.items[i].job;
        const struct engine_job *job = engine_job(engine, id);
        const struct core_job *state = job ? core_job(engine_core(engine), id) : NULL;
        if (state && state->state == JOB_RUNNING && state->attempt == hello->holdings.items[i].attempt &&
            needs_limits(job_submit(job)))
            log_warning("host=%s job=%" PRIu64 " has --cpu-time or --signal, for which its rsd is too old (version "
                        "%d.%u): there it is not signalled, and what it uses does not count; upgrade rsd",
                        settings_of(host)->name, id, WIRE_MAJOR, hosts_minor(hosts, host->index));
    }
}

/* Of a task, that of its array with its number behind it, and what shows its line: see lib/ticket/ticket.h. */
static const char *ticket_of(const struct engine_job *job, struct arena *memory)
{
    const char *ticket = job_submit(job)->ticket, *proof = jobs_line_proof(job, memory);
    return job->array && *ticket
               ? arena_format(memory, "%s/%" PRIu32 "%s%s", ticket, job->task + 1, *proof ? "/" : "", proof)
               : ticket;
}

static void send_open(int host, const struct engine_job *job, const struct core_job *state, uint64_t generation,
                      void *data)
{
    struct hosts *hosts = data;
    if (state->lease_ms && is_older(hosts, host, WIRE_LEASE_MINOR)) { /* it has come back with another rsd */
        refuse_open(hosts, host, state, "hold the lease of a job with --requeue", WIRE_LEASE_MINOR);
        return;
    }
    if (job->array && is_older(hosts, host, WIRE_ARRAY_MINOR)) {
        refuse_open(hosts, host, state, "start a task of an array", WIRE_ARRAY_MINOR);
        return;
    }
    if (job->line && is_older(hosts, host, WIRE_LINES_MINOR)) {
        refuse_open(hosts, host, state, "start a task of an array with lines", WIRE_LINES_MINOR);
        return;
    }
    if (job_submit(job)->memory_bytes && is_older(hosts, host, WIRE_MEMORY_MINOR)) {
        refuse_open(hosts, host, state, "do its part for -m", WIRE_MEMORY_MINOR);
        return;
    }
    if (*job_submit(job)->terminal && is_older(hosts, host, WIRE_TERMINAL_MINOR)) {
        refuse_open(hosts, host, state, "give a job's command a terminal", WIRE_TERMINAL_MINOR);
        return;
    }
    if (needs_limits(job_submit(job)) && is_older(hosts, host, WIRE_LIMIT_MINOR)) {
        refuse_open(hosts, host, state, "do its part for --cpu-time and --signal", WIRE_LIMIT_MINOR);
        return;
    }
    struct arena memory = {0};
    struct wire_message message = {.type = WIRE_open};
    uint64_t *cpus = arena_array(&memory, state->nprocs, sizeof(*cpus));
    size_t ncpus = 0;
    for (uint32_t i = 0; i < state->nprocs; i++)
        if (state->processors[i].host == host)
            cpus[ncpus++] = (uint64_t)state->processors[i].cpu;
    message.u.open.job = job->id;
    message.u.open.attempt = state->attempt;
    message.u.open.generation = generation;
    message.u.open.uid = job->uid;
    message.u.open.user = job->user;
    message.u.open.cpus = (struct wire_uints){cpus, ncpus};
    launcher_tell_host(launcher_of(job_submit(job)), &message.u.open);
    message.u.open.lease_ms = (uint64_t)state->lease_ms;
    message.u.open.submit_host = job_submit(job)->submit_host;
    message.u.open.ticket = ticket_of(job, &memory);
    message.u.open.memory_bytes = job_submit(job)->memory_bytes;
    hosts_send(hosts, host, &message);
    arena_fini(&memory);
}

void hosts_acknowledge(struct hosts *hosts, int host, uint64_t job, uint32_t attempt, uint32_t process)
{
    struct wire_message message = {.type = WIRE_taken, .u.taken = {.job = job, .attempt = attempt, .process = process}};
    hosts_send(hosts, host, &message);
}

static void acknowledge(int host, uint64_t job, uint32_t attempt, uint32_t rank, void *data)
{
    hosts_acknowledge(data, host, job, attempt, rank);
}

static void send_signal(int host, uint64_t job, uint32_t attempt, int number, void *data)
{
    struct wire_message message = {.type = WIRE_signal,
                                   .u.signal = {.job = job, .attempt = attempt, .number = (uint64_t)number}};
    hosts_send(data, host, &message);
}

void hosts_take_orders(struct hosts *hosts)
{
    static const struct engine_hosts orders = {send_order,  send_end,      send_open,
                                               acknowledge, hosts_on_gone, send_signal};
    engine_connect_hosts(hosts->room.engine, &orders, hosts);
}
