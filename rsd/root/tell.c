/* tell.c - messages that the root half sends. */
#include "config.h"

#include <signal.h>
#include <string.h>

#include "lib/base/log.h"
#include "rsd/root/controllers.h"
#include "rsd/root/cpus.h"
#include "rsd/root/internal.h"

/* A network half that does not take its messages is of no use: systemd starts both again, or as a unit it begins anew
 * when its link is closed. One that is away asks for all of it when it is back. */
void tell(struct root *root, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (root->stop || !join_net_there(root))
        return;
    if (channel_send(&root->net, message, &err) < 0) {
        log_error("cannot send %s to the network half: %s", wire_type_name(message->type), err.text);
        if (root->net.dead && !root->net_is_unit) { /* of a unit: its link ends in the next turn */
            root->stop = true;
            root->status = 1;
        }
    }
}

void tell_ordered(struct root *root, uint64_t id)
{
    struct wire_message message = {.type = WIRE_ordered, .id = id};
    message.u.ordered.generation = root->applied;
    tell(root, &message);
}

void tell_simple(struct root *root, enum wire_type type, const struct root_job *job, uint64_t id)
{
    struct wire_message message = {.type = type, .id = id};
    message.u.opened.job = job->id;
    message.u.opened.attempt = job->attempt;
    tell(root, &message);
}

void tell_open_failed(struct root *root, uint64_t job, uint32_t attempt, uint64_t id, const char *text)
{
    struct wire_message message = {.type = WIRE_open_failed, .id = id};
    message.u.open_failed.job = job;
    message.u.open_failed.attempt = attempt;
    message.u.open_failed.text = text;
    tell(root, &message);
}

void tell_start_failed(struct root *root, const struct wire_message *start, const char *text)
{
    struct wire_message message = {.type = WIRE_start_failed, .id = start->id};
    message.u.start_failed.job = start->u.start.job;
    message.u.start_failed.attempt = start->u.start.attempt;
    message.u.start_failed.process = start->u.start.process;
    message.u.start_failed.text = text;
    tell(root, &message);
}

static void tell_struck(struct root *root, const struct root_job *job)
{
    struct wire_message message = {.type = WIRE_memory_struck};
    message.u.memory_struck.job = job->id;
    message.u.memory_struck.attempt = job->attempt;
    message.u.memory_struck.bytes = job->struck_bytes;
    tell(root, &message);
}

void tell_exited(struct root *root, const struct root_job *job, const struct job_process *process)
{
    struct wire_message message = {.type = WIRE_exited};
    if (process->signal == SIGKILL && job->struck_bytes > 0)
        tell_struck(root, job); /* first: why, then that */
    message.u.exited.job = job->id;
    message.u.exited.attempt = job->attempt;
    message.u.exited.process = process->number;
    message.u.exited.role = role_name(process->role);
    message.u.exited.exit_status = process->exit_status;
    message.u.exited.signal = process->signal;
    tell(root, &message);
}

void tell_lost(struct root *root, const struct root_job *job)
{
    struct wire_message message = {.type = WIRE_lost};
    message.u.lost.job = job->id;
    message.u.lost.attempt = job->attempt;
    message.u.lost.text = job->lost;
    tell(root, &message);
}

void tell_empty(struct root *root, uint64_t job, uint32_t attempt, uint64_t id, double cpu_seconds,
                int64_t memory_peak_bytes)
{
    struct wire_message message = {.type = WIRE_empty, .id = id};
    message.u.empty.job = job;
    message.u.empty.attempt = attempt;
    message.u.empty.cpu_seconds = cpu_seconds;
    message.u.empty.memory_peak_bytes = memory_peak_bytes;
    tell(root, &message);
}

void tell_state(struct root *root, uint64_t id)
{
    struct wire_message message = {.type = WIRE_root_state, .id = id};
    struct wire_root_state *state = &message.u.root_state;
    static struct wire_holding holdings[MAX_JOBS + MAX_TOMBSTONES + 1];
    uint64_t cpus[CPU_SETSIZE];
    const char *lacks[MAX_LACKS];
    for (size_t i = 0; i < root->job_count && i < sizeof(holdings) / sizeof(holdings[0]); i++) {
        const struct root_job *job = root->jobs[i];
        if (job->discard)
            continue;
        holdings[state->holdings.count++] = (struct wire_holding){.job = job->id, .attempt = job->attempt};
    }
    state->holdings.items = holdings;
    state->cpus.items = cpus;
    state->cpus.count = cpus_to_list(&root->cpus, cpus);
    state->generation = root->order.generation;
    state->mode = order_mode_name(root->mode);
    state->mode_reason = root->mode_reason;
    state->jobs_group = root->groups;
    state->limits_memory = root->controllers & CONTROLLER_MEMORY;
    state->lacks = (struct wire_strs){lacks, place_lacks(root, lacks)};
    tell(root, &message);
}

void tell_held(struct root_job *job, bool held)
{
    job->supervisor.held = held;
    if (!held && job->connected)
        (void)channel_flush(&job->supervisor);
}

void tell_supervisor(struct root_job *job, const struct wire_message *message)
{
    struct err err = ERR_INIT;
    if (!job->connected)
        return;
    if (channel_send(&job->supervisor, message, &err) <
        0) /* if it is dead, the loop sees that and calls the job lost */
        log_error("job=%s: cannot send %s to its supervisor: %s", job->name, wire_type_name(message->type), err.text);
}
