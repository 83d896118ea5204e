/* agent.c - the agent of a job's virtual machine runs as the user: what it sends is a user's word. It speaks of no job;
 * the supervisor puts the job's number on. */
#include "config.h"

#include <string.h>

#include "libelmer/base/log.h"
#include "rsd/sup/sup.h"

static void tell_ready(struct sup *sup)
{
    struct wire_message message = {.type = WIRE_pvm_ready};
    message.u.pvm_ready.job = sup->job;
    message.u.pvm_ready.attempt = sup->attempt;
    sup_tell(sup, &message);
}

static void tell_failed(struct sup *sup, const char *reason)
{
    struct wire_message message = {.type = WIRE_pvm_failed};
    message.u.pvm_failed.job = sup->job;
    message.u.pvm_failed.attempt = sup->attempt;
    message.u.pvm_failed.reason = reason;
    sup_tell(sup, &message);
}

static void tell_spawn(struct sup *sup, const struct wire_agent_spawn *spawn)
{
    struct wire_message message = {.type = WIRE_pvm_spawn};
    message.u.pvm_spawn.job = sup->job;
    message.u.pvm_spawn.attempt = sup->attempt;
    message.u.pvm_spawn.request = spawn->request;
    message.u.pvm_spawn.host = spawn->host;
    message.u.pvm_spawn.command = spawn->command;
    sup_tell(sup, &message);
}

static bool agent_said(struct sup *sup, struct process *process, const struct wire_message *message)
{
    switch ((int)message->type) {
    case WIRE_agent_spawn:
        if (++process->spawns > SUP_MAX_SPAWNS)
            return false;
        tell_spawn(sup, &message->u.agent_spawn);
        return true;
    case WIRE_agent_ready:
        process->pvm_ready = true;
        tell_ready(sup);
        return true;
    case WIRE_agent_failed:
        tell_failed(sup, message->u.agent_failed.reason);
        return true;
    default:
        return false;
    }
}

void agent_read(struct sup *sup, struct process *process)
{
    struct err err = ERR_INIT;
    struct wire_message message;
    int filled = channel_fill(&process->agent, &err), got = 0;
    bool fine = true;
    while (fine && (got = channel_next(&process->agent, &message, &err)) > 0) {
        fine = agent_said(sup, process, &message);
        wire_message_fini(&message);
    }
    if (filled >= 0 && got >= 0 && fine)
        return;
    if (filled >= 0) { /* not just its end, which its exit tells */
        log_warning("job=%llu: its agent is out of order: %s", (unsigned long long)sup->job, err.text);
        tell_failed(sup, "the agent of the job's virtual machine sent what it may not: was it changed?");
    }
    channel_fini(&process->agent);
    process->has_agent = false;
}

void agent_resend(struct sup *sup, struct process *process)
{
    if (process->pvm_ready)
        tell_ready(sup);
}

void agent_hear_root(struct sup *sup, const struct wire_message *message)
{
    struct wire_message out = {.type = message->type == WIRE_pvm_finish ? WIRE_agent_finish : WIRE_agent_spawned};
    if (message->type == WIRE_pvm_spawned) {
        out.u.agent_spawned.request = message->u.pvm_spawned.request;
        out.u.agent_spawned.line = message->u.pvm_spawned.line;
    }
    for (size_t i = 0; i < sup->count; i++) {
        struct process *process = sup->processes[i];
        if (process->has_agent && channel_send(&process->agent, &out, NULL) < 0)
            log_warning("job=%llu: its agent does not take messages", (unsigned long long)sup->job);
    }
}
