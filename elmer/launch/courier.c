/* courier.c - couriers of jobs: on each host at most one, which starts processes for the job's own (rsd/courier).
 *
 * A process of the job asks where the courier of a host is. NONE: it is started, as any process of the job, ASKED; the
 * first line that it prints is the port that it listens at: READY, and all who wait are told. What fails (it cannot be
 * started, prints something else, ends) is told to who waits, and the next who asks has another one started, with the
 * next number, because a number is started once. To start one is the work of daemons above all jobs, and the user can
 * make it fail or call it gone as often as he likes: so after STARTS_AT_ONCE one is started in START_EVERY_MS, and who
 * asks earlier waits for that: PUT_OFF. elmer forgets this in a restart and begins with the first number again: the
 * host says what it said then. So a courier may be long dead, which only who cannot reach it knows; he asks again and
 * names the port that is gone.
 *
 * The terminal of a job (rsd/courier/holder.c) is told of in the same way: what holds it is the first process of the
 * command, which is started with the job, once, and prints its port too. After a restart elmer asks for that start
 * again, and the host says what it said then. Nothing is asked for when the command has ended, also while the launch
 * goes on (HELD).
 *
 * Invariants: only the host of a courier is heard about it, and of its last number only. Who waits is answered once, by
 * WAIT_MS after the start at the latest. Their ends mean nothing to the job, and are acknowledged at once. */
#include "config.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elmer/launch/launcher.h"
#include "lib/base/container.h"
#include "lib/base/log.h"
#include "lib/base/moves.h"
#include "lib/base/str.h"
#include "lib/job/variables.h"
#include "lib/wire/table.h"

enum { WAIT_MS = 10000, WAITING_MAX = 4096, GENERATIONS = 1000, STARTS_AT_ONCE = 5, START_EVERY_MS = 1000 };
enum courier_state { COURIER_NONE, COURIER_PUT_OFF, COURIER_ASKED, COURIER_READY };

struct courier {
    struct launch *launch;
    int place;
    bool terminal; /* it is what holds the job's terminal */
    enum courier_state state;
    uint32_t generation;
    uint16_t port, gone; /* gone: nobody listens there any more */
    int64_t taken_ms;    /* until then is taken by those that were started, START_EVERY_MS each */
    struct deadline deadline;
    uint64_t *waiting; /* numbers of requests */
    size_t nwaiting, room;
};

static const struct moves_row states[] = {
    [COURIER_NONE] = {"none", MOVE_TO(COURIER_ASKED) | MOVE_TO(COURIER_PUT_OFF)},
    [COURIER_PUT_OFF] = {"put off", MOVE_TO(COURIER_ASKED) | MOVE_TO(COURIER_NONE)},
    [COURIER_ASKED] = {"asked", MOVE_TO(COURIER_READY) | MOVE_TO(COURIER_NONE)},
    [COURIER_READY] = {"ready", MOVE_TO(COURIER_NONE)},
};

static void move(struct courier *c, enum courier_state state)
{
    MOVES_CHECK("courier", states, c->state, state);
    c->state = state;
}

/* ---- who waits ---- */

static void answer_one(const struct courier *c, uint64_t number, const char *failure)
{
    const struct launches *launches = c->launch->launches;
    struct launches_reached reached = {.place = c->launch->hosts[c->place],
                                       .attempt = c->launch->attempt,
                                       .address = launch_address(c->launch, c->place),
                                       .port = c->port,
                                       .failure = failure};
    launches->on_reached(number, &reached, launches->on_reached_data);
}

/* failure NULL: it is ready. */
static void answer_all(struct courier *c, const char *failure)
{
    size_t count = c->nwaiting;
    deadline_clear(c->launch->launches->room.deadlines, &c->deadline);
    c->nwaiting = 0;
    for (size_t i = 0; i < count; i++)
        answer_one(c, c->waiting[i], failure);
}

static bool wait_for(struct courier *c, uint64_t number)
{
    if (c->nwaiting == WAITING_MAX)
        return false;
    if (c->nwaiting == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        uint64_t *more = arena_array(&c->launch->memory, room, sizeof(*more));
        if (c->nwaiting > 0)
            memcpy(more, c->waiting, c->nwaiting * sizeof(*more));
        c->waiting = more;
        c->room = room;
    }
    c->waiting[c->nwaiting++] = number;
    return true;
}

/* ---- its life ---- */

static void start(struct courier *c)
{
    static const char *argv[] = {JOB_COURIER};
    struct launch *l = c->launch;
    struct arena memory = {0};
    if (c->terminal) {
        launch_rank(l, 0);
        return;
    }
    struct launch_process p = {.number =
                                   (uint32_t)JOB_COURIERS + c->generation * (uint32_t)l->nhosts + (uint32_t)c->place,
                               .role = ROLE_COMMAND,
                               .place = c->place,
                               .cpu = -1,
                               .argv = {argv, 1},
                               .output = "",
                               .errors = "",
                               .capture = true};
    launch_start(l, &p, &memory);
    arena_fini(&memory);
}

static void ask(struct courier *c)
{
    const int64_t now = engine_now_ms();
    move(c, COURIER_ASKED);
    c->taken_ms = (c->taken_ms > now ? c->taken_ms : now) + START_EVERY_MS;
    deadline_set(c->launch->launches->room.deadlines, &c->deadline, now + WAIT_MS);
    start(c);
}

/* At once, or when its turn has come. For a terminal nothing is started: its host says again what it has said. */
static void ask_in_turn(struct courier *c)
{
    const int64_t turn_ms = c->taken_ms - (int64_t)(STARTS_AT_ONCE - 1) * START_EVERY_MS;
    if (c->terminal || turn_ms <= engine_now_ms()) {
        ask(c);
        return;
    }
    move(c, COURIER_PUT_OFF);
    deadline_set(c->launch->launches->room.deadlines, &c->deadline, turn_ms);
}

static bool runs(const struct launch *l)
{
    return l && (l->state == LAUNCH_COMMAND || l->state == LAUNCH_LAUNCHED);
}

static void on_deadline(struct deadline *deadline)
{
    struct courier *c = CONTAINER_OF(deadline, struct courier, deadline);
    if (c->state == COURIER_PUT_OFF && runs(c->launch)) {
        ask(c);
    } else if (c->state == COURIER_PUT_OFF) {
        move(c, COURIER_NONE);
        answer_all(c, "the job is ending");
    } else {
        if (c->terminal && c->state == COURIER_ASKED)
            move(c, COURIER_NONE); /* the next who asks has the host asked again */
        answer_all(c, "the host has not started it in time: is it behind a job that spins, or cut off?");
    }
}

/* The next who asks gets another. */
static void forget(struct courier *c)
{
    move(c, COURIER_NONE);
    c->generation++;
    c->port = 0;
}

static void fail(struct courier *c, const char *why)
{
    char text[1000];
    forget(c);
    answer_all(c, str_printable(text, sizeof(text), why, strlen(why)));
}

static void on_line(struct courier *c, const char *line)
{
    uint64_t port;
    if (c->state != COURIER_ASKED)
        return;
    if (!str_to_u64(line, &port) || port == 0 || port > UINT16_MAX) {
        fail(c, c->terminal && *line ? line : "it has said something else than where it listens");
    } else if (port == c->gone) { /* what the host said before elmer was restarted, and is not true any more */
        forget(c);
        ask_in_turn(c);
    } else {
        c->port = (uint16_t)port;
        move(c, COURIER_READY);
        answer_all(c, NULL);
    }
}

static void on_exited(struct courier *c)
{
    if (c->state == COURIER_ASKED || c->state == COURIER_READY)
        fail(c, "it has ended");
}

/* ---- what hosts say ---- */

static struct courier *courier_of(struct launch *l, int host, uint64_t process)
{
    uint64_t number = process - JOB_COURIERS;
    int place = launch_place(l, host);
    if (!l->couriers || place < 0 || number % (uint64_t)l->nhosts != (uint64_t)place ||
        number / (uint64_t)l->nhosts != l->couriers[place].generation)
        return NULL;
    return &l->couriers[place];
}

bool couriers_message(struct launches *launches, int host, const struct wire_message *message)
{
    uint64_t job, attempt, process;
    if (!wire_table_uint(message, "process", &process) || process < JOB_COURIERS ||
        !wire_table_uint(message, "job", &job) || !wire_table_uint(message, "attempt", &attempt))
        return false;
    struct launch *l = map_get(&launches->by_job, job);
    struct courier *c = l && l->attempt == attempt ? courier_of(l, host, process) : NULL;
    if (message->type == WIRE_exited)
        hosts_acknowledge(launches->hosts, host, job, (uint32_t)attempt, (uint32_t)process);
    if (!c)
        return true;
    if (message->type == WIRE_line)
        on_line(c, message->u.line.line);
    else if (message->type == WIRE_start_failed && c->state == COURIER_ASKED)
        fail(c, message->u.start_failed.text);
    else if (message->type == WIRE_exited)
        on_exited(c);
    return true;
}

void couriers_host_up(struct launch *l, int place)
{
    for (int i = 0; runs(l) && l->couriers && i <= l->nhosts; i++)
        if (l->couriers[i].place == place && l->couriers[i].state == COURIER_ASKED)
            start(&l->couriers[i]);
}

void couriers_end(struct launch *l)
{
    for (int i = 0; l->couriers && i <= l->nhosts; i++)
        answer_all(&l->couriers[i], "the job is ending");
    l->couriers = NULL;
}

/* ---- who asks ---- */

/* Behind those of all places is what holds the terminal. */
static struct courier *courier_at(struct launch *l, int place)
{
    if (!l->couriers) {
        l->couriers = arena_array(&l->memory, (size_t)l->nhosts + 1, sizeof(*l->couriers));
        for (int i = 0; i <= l->nhosts; i++)
            l->couriers[i] = (struct courier){.launch = l, .place = i, .deadline.fire = on_deadline};
        l->couriers[l->nhosts].terminal = true;
        l->couriers[l->nhosts].place = launch_place(l, l->processors[0].host);
    }
    return &l->couriers[place];
}

static const char *answer_or_wait(struct courier *c, uint64_t number)
{
    if (c->state == COURIER_READY) {
        answer_one(c, number, NULL);
        return NULL;
    }
    if (!wait_for(c, number))
        return "too many processes wait for its courier";
    if (c->state == COURIER_NONE)
        ask_in_turn(c);
    else if (!c->deadline.slot)
        deadline_set(c->launch->launches->room.deadlines, &c->deadline, engine_now_ms() + WAIT_MS);
    return NULL;
}

const char *launches_reach(struct launches *launches, uint64_t job, int from, int host, uint16_t gone, uint64_t number)
{
    struct launch *l = map_get(&launches->by_job, job);
    int place = l ? launch_place(l, host) : -1;
    if (!runs(l))
        return "the job does not run now";
    if (place < 0)
        return "it is no host of this job";
    if (launch_place(l, from) < 0)
        return "only processes of this job may do that, and none is on the host of who asks";
    struct courier *c = courier_at(l, place);
    if (gone)
        c->gone = gone;
    if (c->state == COURIER_READY && c->port == gone)
        forget(c);
    if (c->generation >= GENERATIONS)
        return "its courier has ended too often: what ends it?";
    return answer_or_wait(c, number);
}

/* It may say it before somebody asks. */
void couriers_terminal_line(struct launch *l, const char *line)
{
    struct courier *c = courier_at(l, l->nhosts);
    if (c->state == COURIER_NONE)
        move(c, COURIER_ASKED);
    on_line(c, line);
}

void couriers_terminal_exited(struct launch *l)
{
    if (l->couriers)
        on_exited(&l->couriers[l->nhosts]);
}

const char *launches_reach_terminal(struct launches *launches, uint64_t job, uint64_t number)
{
    struct launch *l = map_get(&launches->by_job, job);
    return runs(l) ? answer_or_wait(courier_at(l, l->nhosts), number) : "the job does not run now";
}

void launches_connect(struct launches *launches, launches_on_reached on_reached, void *data)
{
    launches->on_reached = on_reached;
    launches->on_reached_data = data;
}
