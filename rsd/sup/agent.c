/* agent.c - the agent of a job's virtual machine runs as the user: what it sends is a user's word. It speaks of no job;
 * the supervisor puts the job's number on. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/thread_time.h"
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

static void tell_spawn(struct sup *sup, uint64_t request, const char *host, const char *command)
{
    struct wire_message message = {.type = WIRE_pvm_spawn};
    message.u.pvm_spawn.job = sup->job;
    message.u.pvm_spawn.attempt = sup->attempt;
    message.u.pvm_spawn.request = request;
    message.u.pvm_spawn.host = host;
    message.u.pvm_spawn.command = command;
    sup_tell(sup, &message);
}

/* Until it is answered: question or answer are lost with a link that is cut. Without memory they are told once. */
static void keep_spawn(struct process *process, const struct wire_agent_spawn *spawn)
{
    struct agent_asked *asked = reallocarray(process->asked, process->nasked + 1, sizeof(*asked));
    if (!asked)
        return;
    process->asked = asked;
    asked += process->nasked;
    *asked = (struct agent_asked){(uint32_t)spawn->request, strdup(spawn->host), strdup(spawn->command)};
    if (asked->host && asked->command) {
        process->nasked++;
        return;
    }
    free(asked->host);
    free(asked->command);
}

static void drop_spawn(struct process *process, uint64_t request)
{
    for (size_t i = 0; i < process->nasked; i++) {
        struct agent_asked *asked = &process->asked[i];
        if (asked->request != request)
            continue;
        free(asked->host);
        free(asked->command);
        *asked = process->asked[--process->nasked];
        return;
    }
}

void agent_forget(struct process *process)
{
    while (process->nasked > 0)
        drop_spawn(process, process->asked[0].request);
    free(process->asked);
    process->asked = NULL;
}

/* What may follow what: a request for each host, then ready; or failed, and nothing more. So a job with n hosts makes
 * at most n + 1 messages of it, however often it is said, and as many again when the link was cut. */
enum verdict { SAID, SAID_LAST, OUT_OF_ORDER };

static enum verdict agent_said(struct sup *sup, struct process *process, const struct wire_message *message)
{
    if (process->agent_ready)
        return OUT_OF_ORDER;
    switch ((int)message->type) {
    case WIRE_agent_spawn:
        if (process->may_spawn == 0)
            return OUT_OF_ORDER;
        process->may_spawn--;
        keep_spawn(process, &message->u.agent_spawn);
        tell_spawn(sup, message->u.agent_spawn.request, message->u.agent_spawn.host, message->u.agent_spawn.command);
        return SAID;
    case WIRE_agent_ready:
        process->agent_ready = true;
        tell_ready(sup);
        return SAID;
    case WIRE_agent_failed:
        tell_failed(sup, message->u.agent_failed.reason);
        return SAID_LAST;
    default:
        return OUT_OF_ORDER;
    }
}

/* One that sends its messages bit by bit makes us look no oftener than this. To read hundreds of bytes that were
 * written one by one takes 0.3 ms, so a look without a whole message counts as several. A look goes on while each read
 * makes messages whole, or a machine of hundreds of hosts would wait for the next look with each KiB; so much CPU time
 * and what one read takes is its bound. */
static const struct pace_limit agent_limit = {32, 100};
enum { PIECE_COUNTS = 8, LOOK_READS = 16, LOOK_NS = 300000 };
/* For the longest frame, with its header: what a child of the agent goes on to write is not read for ever. */
enum { DRAIN_LOOKS = SUP_AGENT_FRAME / SUP_AGENT_READ + 1 };

int64_t agent_wait_ms(const struct process *process, int64_t now)
{
    return process->has_agent ? pace_wait_ms(&process->agent_pace, &agent_limit, now) : 0;
}

/* Reads once. How many messages were whole then; -EPIPE: it says no more; -EPROTO: it may not say this. */
static int hear(struct sup *sup, struct process *process, struct err *err)
{
    struct wire_message message;
    enum verdict verdict = SAID;
    int filled = channel_fill(&process->agent, err), got = 0, heard = 0;
    while (verdict == SAID && (got = channel_next(&process->agent, &message, err)) > 0) {
        heard++;
        verdict = agent_said(sup, process, &message);
        if (verdict == OUT_OF_ORDER)
            err_set(err, -EPROTO, "%s was not to be said now", wire_type_name(message.type));
        wire_message_fini(&message);
    }
    if (verdict == OUT_OF_ORDER || got < 0 || filled == -EMSGSIZE)
        return -EPROTO;
    return filled < 0 || verdict == SAID_LAST ? -EPIPE : heard;
}

void agent_read(struct sup *sup, struct process *process)
{
    struct err err = ERR_INIT;
    const int64_t begin_ns = thread_time_ns();
    int heard, reads = 0, count = PIECE_COUNTS;
    assert(process->has_agent && process->role == ROLE_AGENT);
    do {
        heard = hear(sup, process, &err);
        if (heard > 0)
            count = 1;
    } while (heard > 0 && ++reads < LOOK_READS && thread_time_ns() - begin_ns < LOOK_NS);
    for (int i = 0; i < count; i++)
        pace_take(&process->agent_pace, &agent_limit, mono_ms(mono_now()));
    if (heard >= 0)
        return;
    if (heard == -EPROTO) { /* not its end, which its exit tells */
        log_warning("job=%llu: its agent is out of order: %s", (unsigned long long)sup->job, err.text);
        tell_failed(sup, "the agent of the job's virtual machine sent what it may not: was it changed?");
    }
    channel_fini(&process->agent);
    process->has_agent = false;
}

void agent_drain(struct sup *sup, struct process *process)
{
    int waiting = 0;
    for (int i = 0; i < DRAIN_LOOKS && process->has_agent; i++) {
        if (ioctl(process->agent.fd, FIONREAD, &waiting) < 0 || waiting == 0)
            break;
        agent_read(sup, process);
    }
    if (process->has_agent)
        channel_fini(&process->agent);
    process->has_agent = false;
}

void agent_resend(struct sup *sup, struct process *process)
{
    for (size_t i = 0; i < process->nasked; i++)
        tell_spawn(sup, process->asked[i].request, process->asked[i].host, process->asked[i].command);
    if (process->agent_ready)
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
        if (message->type == WIRE_pvm_spawned)
            drop_spawn(process, message->u.pvm_spawned.request);
        if (process->has_agent && channel_send(&process->agent, &out, NULL) < 0)
            log_warning("job=%llu: its agent does not take messages", (unsigned long long)sup->job);
    }
}
