/* deliveries.c - messages arrive: at a host's model, or as an event at the core. */
#include "tests/sim/world.h"

#include <stdlib.h>

enum { LATE_LAUNCHED_MS = 2000 };

static void start_processes(struct world *world, const struct message *message)
{
    const struct core_job *job = core_job(world->core, message->job);
    struct message launched = *message;
    struct event failed = {.type = EVENT_LAUNCH_FAILED, .job = message->job, .attempt = message->attempt, .host = -1};

    if (!job || job->attempt != message->attempt || job->state != JOB_STARTING)
        return;
    if (!world_chance(world, world->faults.launch_fails) && model_start(world, job)) {
        launched.kind = SHELL_LAUNCHED;
        world_post(world, &launched,
                   world->now_ms + world_delay(world) +
                       (world_chance(world, world->faults.late_launched) ? LATE_LAUNCHED_MS : 0));
        return;
    }
    failed.u.failed.reason = REASON_START_FAILED;
    failed.u.failed.text = "no such command";
    world_step(world, &failed);
}

static void step_report(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_REPORT, .host = message->host};

    event.u.report = (struct core_report){.begin_ms = message->begin_ms,
                                          .end_ms = message->end_ms,
                                          .busy = message->busy,
                                          .jobs = message->jobs,
                                          .ncpus = message->ncpus};
    world_step(world, &event);
}

static void step_message(struct world *world, const struct message *message, enum event_type type)
{
    struct event event = {.type = type, .job = message->job, .attempt = message->attempt, .host = message->host};

    if (type == EVENT_ORDERED)
        event.u.generation = message->generation;
    if (type == EVENT_OPEN_FAILED) {
        event.u.failed.reason = REASON_START_FAILED;
        event.u.failed.text = "no group";
    }
    if (type == EVENT_EXITED) {
        event.u.exited.rank = message->rank;
        event.u.exited.exit_status = message->status;
        event.u.exited.signal = message->signal;
    }
    world_step(world, &event);
}

static void give_up(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_HOST_DOWN, .host = message->host};

    event.u.down.silence_ms = world->now_ms - world->hosts[message->host].heard_ms;
    if (!world->hosts[message->host].connected && world->hosts[message->host].epoch == message->epoch)
        world_step(world, &event);
}

static void heard_again(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_HOST_HEARD, .host = message->host};

    if (world->hosts[message->host].connected && world->hosts[message->host].epoch == message->epoch)
        world_step(world, &event);
}

static void lost(struct world *world, const struct message *message)
{
    struct event event = {.type = EVENT_ABORT, .job = message->job, .attempt = message->attempt, .host = message->host};

    event.u.failed.reason = REASON_LOST;
    event.u.failed.text = "its lease ran out";
    world_step(world, &event);
}

/* The answer goes to a host that is up only, after it is noted that the host was heard. */
static void answer_contact(struct world *world, const struct message *message)
{
    struct message answer = *message;

    answer.kind = TO_HOST_CONTACT;
    if (core_host_up(core_host(world->core, message->host)))
        world_send(world, &answer);
}

static void idle_report(struct world *world, struct message *message)
{
    double nothing[SIM_CPUS] = {0};

    world_report(world, message->host, nothing, nothing, 2000);
    world_post(world, message, world->now_ms + 2000);
}

static void deliver(struct world *world, struct message *message)
{
    struct sim_host *host = message->host >= 0 ? &world->hosts[message->host] : NULL;

    if (message->kind <= TO_HOST_CONTACT && (!host->powered || host->ear != message->epoch))
        return;
    if (message->kind > TO_HOST_CONTACT && message->kind <= TO_CORE_REPORT) {
        if (!host->connected || host->epoch != message->epoch)
            return;
        host->heard_ms = world->now_ms;
    }
    switch (message->kind) {
    case TO_HOST_ORDER:
    case TO_HOST_OPEN:
    case TO_HOST_END:
    case TO_HOST_TAKEN:
    case TO_HOST_CONTACT:
    case HOST_PROCESS_ENDS:
    case HOST_EXIT_AGAIN:
    case HOST_GROUP_GONE:
    case HOST_CONTACT:
    case HOST_LEASE:
        model_deliver(world, message);
        break;
    case TO_CORE_LOST:
        lost(world, message);
        break;
    case TO_CORE_CONTACT:
        answer_contact(world, message);
        break;
    case TO_CORE_ORDERED:
        step_message(world, message, EVENT_ORDERED);
        break;
    case TO_CORE_OPENED:
        step_message(world, message, EVENT_OPENED);
        break;
    case TO_CORE_OPEN_FAILED:
        step_message(world, message, EVENT_OPEN_FAILED);
        break;
    case TO_CORE_EXITED:
        step_message(world, message, EVENT_EXITED);
        break;
    case TO_CORE_EMPTY:
        step_message(world, message, EVENT_EMPTY);
        break;
    case TO_CORE_REPORT:
        step_report(world, message);
        break;
    case SHELL_START:
        start_processes(world, message);
        break;
    case SHELL_LAUNCHED:
        step_message(world, message, EVENT_LAUNCHED);
        break;
    case SHELL_TICK:
        if (world->timer_ms == message->at_ms) {
            world->timer_ms = -1;
            step_message(world, message, EVENT_TICK);
        }
        break;
    case SHELL_GIVE_UP:
        give_up(world, message);
        break;
    case SHELL_HEARD:
        heard_again(world, message);
        break;
    case SHELL_COMMITTED:
        world_commit(world, message);
        break;
    case HOST_IDLE_REPORT:
        idle_report(world, message);
        break;
    }
}

void world_run_until(struct world *world, int64_t at_ms)
{
    while (world->nheap > 0 && world->heap[0].at_ms <= at_ms && !world_failed(world)) {
        struct message message = world_take(world);
        if (message.at_ms > world->now_ms)
            world->now_ms = message.at_ms;
        deliver(world, &message);
        free(message.order);
        world_free_row(message.row);
    }
    if (at_ms > world->now_ms)
        world->now_ms = at_ms;
}
