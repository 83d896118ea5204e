/* jobs.c - what a host that is up says of its jobs, as events. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elmer/hosts/internal.h"
#include "lib/base/str.h"
#include "lib/base/bytes.h"

static bool has_part(const struct host *host, const struct wire_opened *opened)
{
    const struct core_job *job = core_job(engine_core(host->hosts->room.engine), opened->job);
    for (uint32_t i = 0; job && job->processors && job->attempt == opened->attempt && i < job->nprocs; i++)
        if (job->processors[i].host == host->index)
            return true;
    return false;
}

static void on_opened(struct host *host, const struct wire_opened *opened)
{
    const struct core_host *core = core_host(engine_core(host->hosts->room.engine), host->index);
    if (core->leftovers >= CORE_MAX_LEFTOVERS && !has_part(host, opened)) {
        rate_too_many_jobs(host);
        return;
    }
    struct event event = {
        .type = EVENT_OPENED, .host = host->index, .job = opened->job, .attempt = (uint32_t)opened->attempt};
    engine_event(host->hosts->room.engine, &event);
}

static void on_failed(struct host *host, enum event_type type, uint64_t job, uint64_t attempt, enum reason reason,
                      const char *text)
{
    char printable[900];
    char *full =
        mem_format("%s: %s", settings_of(host)->name, str_printable(printable, sizeof(printable), text, strlen(text)));
    struct event event = {.type = type, .host = host->index, .job = job, .attempt = (uint32_t)attempt};
    event.u.failed.reason = reason;
    event.u.failed.text = full;
    engine_event(host->hosts->room.engine, &event);
    free(full);
}

static void send_forget(const struct engine_wait *wait)
{
    struct wire_message message = {.type = WIRE_forget, .u.forget = {.job = wait->job, .attempt = wait->attempt}};
    hosts_send(wait->owner, wait->host, &message);
}

static void on_empty(struct host *host, struct wire_message *message)
{
    struct hosts *hosts = host->hosts;
    const struct wire_empty *empty = &message->u.empty;
    struct engine_wait forget = {.run = send_forget,
                                 .owner = hosts,
                                 .urgency = ENGINE_LINGER,
                                 .host = host->index,
                                 .job = empty->job,
                                 .attempt = (uint32_t)empty->attempt};
    hosts->callbacks.on_process(host->index, message, hosts->data);
    if (engine_emptied(hosts->room.engine, host->index, empty->job, (uint32_t)empty->attempt, empty->cpu_seconds,
                       empty->memory_peak_bytes))
        engine_after_commit(hosts->room.engine, &forget);
}

/* It is told again with the ends of its processes, so also to an elmer that was restarted in between. */
static void on_struck(struct host *host, const struct wire_memory_struck *struck)
{
    const struct core_job *job = core_job(engine_core(host->hosts->room.engine), struck->job);
    uint64_t there = 0;
    char text[200], limit[BYTES_TEXT], each[BYTES_TEXT], used[BYTES_TEXT];
    for (uint32_t i = 0; job && job->processors && i < job->nprocs; i++)
        there += job->processors[i].host == host->index;
    if (!there || !job->memory_bytes)
        return;
    if (struck->bytes < MEMORY_MIN_BYTES) /* a kernel of before 5.19 does not say */
        snprintf(used, sizeof(used), "more");
    else
        bytes_text(used, struck->bytes);
    snprintf(text, sizeof(text), "its processes there used %s, and %s was asked for (%" PRIu64 " processor%s, %s each)",
             used, bytes_text(limit, there * job->memory_bytes), there, there > 1 ? "s" : "",
             bytes_text(each, job->memory_bytes));
    on_failed(host, EVENT_ABORT, struck->job, struck->attempt, REASON_MEMORY_LIMIT, text);
}

void hosts_on_job(struct host *host, struct wire_message *message)
{
    switch ((int)message->type) {
    case WIRE_opened:
        on_opened(host, &message->u.opened);
        break;
    case WIRE_open_failed:
        on_failed(host, EVENT_OPEN_FAILED, message->u.open_failed.job, message->u.open_failed.attempt,
                  REASON_START_FAILED, message->u.open_failed.text);
        break;
    case WIRE_lost:
        on_failed(host, EVENT_ABORT, message->u.lost.job, message->u.lost.attempt, REASON_LOST, message->u.lost.text);
        break;
    case WIRE_memory_struck:
        on_struck(host, &message->u.memory_struck);
        break;
    case WIRE_empty:
        on_empty(host, message);
        break;
    default:
        host->hosts->callbacks.on_process(host->index, message, host->hosts->data);
        break;
    }
}
