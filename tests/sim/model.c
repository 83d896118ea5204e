/* model.c - a workstation as the core sees it: applies orders, opens groups only under an order that holds the job,
 * runs processes that end some day, repeats exits until they are taken, and ends groups within a second.
 */
#include "tests/sim/world.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_AGAIN_MS = 700, GRACE_MS = 1000, CONTACT_MS = 400, LEASE_MS = 50 };

struct sim_group *model_group(struct sim_host *host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < host->ngroups; i++)
        if (host->groups[i].job == job && host->groups[i].attempt == attempt)
            return &host->groups[i];
    return NULL;
}

static void say(struct world *world, int host, enum message_kind kind, uint64_t job, uint32_t attempt)
{
    struct message message = {.kind = kind, .host = host, .job = job, .attempt = attempt};

    message.generation = world->hosts[host].order.generation;
    world_send(world, &message);
}

static const struct sim_entry *entry_of(const struct sim_host *host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < host->order.n; i++)
        if (host->order.entries[i].job == job && host->order.entries[i].attempt == attempt)
            return &host->order.entries[i];
    return NULL;
}

static bool has_ended(const struct sim_host *host, uint64_t job, uint32_t attempt)
{
    for (int i = 0; i < host->nended && i < SIM_GROUPS; i++)
        if (host->ended[i].job == job && host->ended[i].attempt == attempt)
            return true;
    return false;
}

static void note_ended(struct sim_host *host, uint64_t job, uint32_t attempt)
{
    if (!has_ended(host, job, attempt))
        host->ended[host->nended++ % SIM_GROUPS] = (struct core_holding){.job = job, .attempt = attempt};
}

/* ---- the lease ---- */

/* By its own clock, counted from when it said what was answered; so early that the end is over by then. */
static bool lease_over(const struct world *world, const struct sim_host *host, int64_t lease_ms)
{
    return (world->now_ms - host->contact_ms) * host->rate >= (lease_ms - GRACE_MS) * 1000;
}

static void end_lapsed(struct world *world, int index, struct sim_group *group)
{
    struct message gone = {.kind = HOST_GROUP_GONE, .host = index, .job = group->job, .attempt = group->attempt};

    world->coverage->lapses++;
    if (world->on_lapse)
        world->on_lapse(world, index, group);
    note_ended(&world->hosts[index], group->job, group->attempt);
    group->lapsed = group->ending = true;
    world_post(world, &gone, world->now_ms + 1 + (int64_t)world_random(world, GRACE_MS - LEASE_MS));
}

/* Whatever the rest of the host does: this is the supervisors' part. */
static void watch_leases(struct world *world, struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];

    for (int i = 0; i < host->ngroups; i++) {
        struct sim_group *group = &host->groups[i];
        if (group->lease_ms > 0 && !group->lapsed && lease_over(world, host, group->lease_ms))
            end_lapsed(world, message->host, group);
    }
    world_post(world, message, world->now_ms + LEASE_MS);
}

static void make_contact(struct world *world, struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct message contact = {.kind = TO_CORE_CONTACT, .host = message->host, .said_ms = world->now_ms};

    if (host->connected) {
        world_send(world, &contact);
        for (int i = 0; i < host->ngroups; i++)
            if (host->groups[i].lapsed)
                say(world, message->host, TO_CORE_LOST, host->groups[i].job, host->groups[i].attempt);
    }
    world_post(world, message, world->now_ms + CONTACT_MS);
}

static void take_contact(struct sim_host *host, const struct message *message)
{
    if (message->said_ms > host->contact_ms)
        host->contact_ms = message->said_ms;
}

void model_init(struct world *world, int index)
{
    struct message contact = {.kind = HOST_CONTACT, .host = index}, lease = {.kind = HOST_LEASE, .host = index};

    world->hosts[index].rate = 1000;
    world->hosts[index].contact_ms = INT32_MIN; /* never */
    world_post(world, &contact, world->now_ms + CONTACT_MS);
    world_post(world, &lease, world->now_ms + LEASE_MS);
}

/* ---- orders and opens ---- */

/* A job that was ended, or that an order that is new enough no longer has, is past, and nothing is made. */
static void open_group(struct world *world, int index, uint64_t job, uint32_t attempt, int64_t lease_ms)
{
    struct sim_host *host = &world->hosts[index];
    const struct sim_group *group = model_group(host, job, attempt);

    if (host->deaf || (lease_ms > 0 && lease_over(world, host, lease_ms)))
        return; /* it is sent again */
    if (!group && (!entry_of(host, job, attempt) || has_ended(host, job, attempt))) {
        say(world, index, TO_CORE_EMPTY, job, attempt);
        return;
    }
    if (!group && world_chance(world, world->faults.open_fails)) {
        say(world, index, TO_CORE_OPEN_FAILED, job, attempt);
        return;
    }
    if (!group) {
        if (host->ngroups == SIM_GROUPS) {
            world_fail(world, "%s has too many groups", host->name);
            return;
        }
        judge_group(world, index, job, attempt);
        host->groups[host->ngroups++] = (struct sim_group){.job = job, .attempt = attempt, .lease_ms = lease_ms};
    } else if (group->ending) {
        return;
    }
    say(world, index, TO_CORE_OPENED, job, attempt);
}

static void handle_open(struct world *world, const struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    int64_t lease_ms = host->old ? 0 : message->lease_ms;

    if (host->order.generation >= message->generation)
        open_group(world, message->host, message->job, message->attempt, lease_ms);
    else if (host->nopens < SIM_GROUPS)
        host->opens[host->nopens++] = (struct sim_open){message->job, message->attempt, message->generation, lease_ms};
}

static void handle_order(struct world *world, const struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct sim_open waiting[SIM_GROUPS];
    int n = host->nopens;

    if (message->order->generation > host->order.generation) {
        host->order.generation = message->order->generation;
        host->order.n = message->order->n;
        memcpy(host->order.entries, message->order->entries,
               (size_t)message->order->n * sizeof(message->order->entries[0]));
    }
    say(world, message->host, TO_CORE_ORDERED, 0, 0);
    memcpy(waiting, host->opens, (size_t)n * sizeof(waiting[0]));
    host->nopens = 0;
    for (int i = 0; i < n; i++) {
        if (waiting[i].generation <= host->order.generation)
            open_group(world, message->host, waiting[i].job, waiting[i].attempt, waiting[i].lease_ms);
        else
            host->opens[host->nopens++] = waiting[i];
    }
}

/* ---- processes ---- */

static void say_exit(struct world *world, int host, const struct sim_group *group, const struct sim_rank *rank)
{
    struct message message = {.kind = TO_CORE_EXITED,
                              .host = host,
                              .job = group->job,
                              .attempt = group->attempt,
                              .rank = rank->rank,
                              .status = rank->status,
                              .signal = rank->signal};

    world_send(world, &message);
}

static struct sim_rank *rank_of(struct sim_group *group, uint32_t rank)
{
    for (int i = 0; group && i < group->nranks; i++)
        if (group->ranks[i].rank == rank)
            return &group->ranks[i];
    return NULL;
}

static void exit_again(struct world *world, const struct message *message)
{
    struct sim_group *group = model_group(&world->hosts[message->host], message->job, message->attempt);
    struct sim_rank *rank = rank_of(group, message->rank);
    struct message again = *message;

    if (!rank || rank->taken || group->lapsed)
        return;
    say_exit(world, message->host, group, rank);
    again.kind = HOST_EXIT_AGAIN;
    world_post(world, &again, world->now_ms + EXIT_AGAIN_MS);
}

static void process_ends(struct world *world, const struct message *message)
{
    struct sim_rank *rank =
        rank_of(model_group(&world->hosts[message->host], message->job, message->attempt), message->rank);

    if (!rank || rank->exited)
        return;
    if (world->frozen) {
        struct message later = *message;
        world_post(world, &later, world->now_ms + 5000);
        return;
    }
    rank->exited = true;
    rank->status = message->status;
    rank->signal = message->signal;
    exit_again(world, message);
}

static void start_process(struct world *world, int host, struct sim_group *group, uint32_t rank)
{
    struct message ends = {
        .kind = HOST_PROCESS_ENDS, .host = host, .job = group->job, .attempt = group->attempt, .rank = rank};

    if (rank_of(group, rank))
        return; /* started before: nothing starts twice */
    judge_start(world, group->job, group->attempt, rank);
    group->ranks[group->nranks++] = (struct sim_rank){.rank = rank};
    if (world->run_ms == 0)
        return;
    if (world_chance(world, 200)) {
        ends.status = world_chance(world, 500) ? (int)world_random(world, 4) : -1;
        ends.signal = ends.status < 0 ? 11 : 0;
    }
    world_post(world, &ends, world->now_ms + 1 + (int64_t)world_random(world, (uint32_t)world->run_ms));
}

bool model_start(struct world *world, const struct core_job *job)
{
    uint32_t ranks = job->each ? job->nprocs : 1;

    for (uint32_t i = 0; i < ranks; i++) {
        struct sim_host *host = &world->hosts[job->processors[i].host];
        struct sim_group *group = model_group(host, job->id, job->attempt);
        if ((job->exited[i / 8] & 1u << (i % 8)) != 0)
            continue; /* known from before a restart */
        if (!host->connected || !group || group->ending)
            return false;
        start_process(world, job->processors[i].host, group, i);
    }
    return true;
}

/* ---- ends ---- */

/* Nobody asks: the host says so until it is heard, over a link, or by what it holds at the next hello. */
static void say_surely(struct world *world, int host, enum message_kind kind, uint64_t job, uint32_t attempt)
{
    struct message message = {
        .kind = kind, .host = host, .epoch = world->hosts[host].epoch, .job = job, .attempt = attempt};

    if (world->hosts[host].connected)
        world_post(world, &message, world->now_ms + 1);
}

/* Whoever saw it end knows that it was: an OPEN that is still on its way must not make it again. */
static void remove_group(struct sim_host *host, struct sim_group *group)
{
    note_ended(host, group->job, group->attempt);
    *group = host->groups[--host->ngroups];
}

static void group_gone(struct world *world, const struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct sim_group *group = model_group(host, message->job, message->attempt);

    struct message later = *message;

    if (!group)
        return;
    if (host->stubborn) {
        world_post(world, &later, world->now_ms + GRACE_MS);
        return;
    }
    for (int i = 0; i < group->nranks; i++) {
        struct sim_rank *rank = &group->ranks[i];
        if (rank->exited)
            continue;
        *rank = (struct sim_rank){.rank = rank->rank, .exited = true, .status = -1, .signal = 9};
        if (!group->lapsed)
            say_exit(world, message->host, group, rank);
    }
    if (group->lapsed)
        say_surely(world, message->host, TO_CORE_EMPTY, message->job, message->attempt);
    else
        say(world, message->host, TO_CORE_EMPTY, message->job, message->attempt); /* it was asked, and is asked again */
    remove_group(host, group);
}

static void handle_end(struct world *world, const struct message *message)
{
    struct sim_host *host = &world->hosts[message->host];
    struct sim_group *group = model_group(host, message->job, message->attempt);
    struct message gone = *message;

    for (int i = 0; i < host->nopens; i++)
        if (host->opens[i].job == message->job && host->opens[i].attempt == message->attempt)
            host->opens[i--] = host->opens[--host->nopens];
    note_ended(host, message->job, message->attempt);
    if (!group) {
        say(world, message->host, TO_CORE_EMPTY, message->job, message->attempt);
        return;
    }
    if (group->ending)
        return; /* EMPTY comes */
    group->ending = true;
    gone.kind = HOST_GROUP_GONE;
    world_post(world, &gone,
               world->now_ms + 1 + (world->faults.delay_ms > 1 ? (int64_t)world_random(world, GRACE_MS) : 0));
}

/* The supervisor was killed. */
void world_lose_group(struct world *world, int index, int group)
{
    struct sim_host *host = &world->hosts[index];

    say_surely(world, index, TO_CORE_EMPTY, host->groups[group].job, host->groups[group].attempt);
    remove_group(host, &host->groups[group]);
}

static void handle_taken(struct world *world, const struct message *message)
{
    struct sim_rank *rank =
        rank_of(model_group(&world->hosts[message->host], message->job, message->attempt), message->rank);

    if (rank && rank->exited)
        rank->taken = true;
}

void model_deliver(struct world *world, const struct message *message)
{
    struct message again = *message;

    switch ((int)message->kind) {
    case TO_HOST_CONTACT:
        take_contact(&world->hosts[message->host], message);
        break;
    case HOST_CONTACT:
        make_contact(world, &again);
        break;
    case HOST_LEASE:
        watch_leases(world, &again);
        break;
    case TO_HOST_ORDER:
        handle_order(world, message);
        break;
    case TO_HOST_OPEN:
        handle_open(world, message);
        break;
    case TO_HOST_END:
        handle_end(world, message);
        break;
    case TO_HOST_TAKEN:
        handle_taken(world, message);
        break;
    case HOST_PROCESS_ENDS:
        process_ends(world, message);
        break;
    case HOST_EXIT_AGAIN:
        exit_again(world, message);
        break;
    case HOST_GROUP_GONE:
        group_gone(world, message);
        break;
    default:
        world_fail(world, "a host got message %d", (int)message->kind);
        break;
    }
}
