#include "config.h"

#include "elmer/engine/deadline.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/memory/mem.h"
#include "lib/base/clock.h"

static void place(struct deadlines *d, size_t slot, struct deadline *deadline)
{
    d->heap[slot] = deadline;
    deadline->slot = slot;
}

static void settle(struct deadlines *d, size_t slot)
{
    assert(slot >= 1 && slot <= d->count);
    struct deadline *moved = d->heap[slot];
    while (slot > 1 && d->heap[slot / 2]->at_ms > moved->at_ms) {
        place(d, slot, d->heap[slot / 2]);
        slot /= 2;
    }
    for (size_t child; (child = slot * 2) <= d->count; slot = child) {
        if (child < d->count && d->heap[child + 1]->at_ms < d->heap[child]->at_ms)
            child++;
        if (d->heap[child]->at_ms >= moved->at_ms)
            break;
        place(d, slot, d->heap[child]);
    }
    place(d, slot, moved);
}

static void on_timer(uv_timer_t *timer);

static void rearm(struct deadlines *d)
{
    if (!d->count) {
        uv_timer_stop(&d->timer);
        return;
    }
    uv_update_time(d->timer.loop);
    int64_t in = d->heap[1]->at_ms - mono_ms(mono_now());
    uv_timer_start(&d->timer, on_timer, in > 0 ? (uint64_t)in : 0, 0);
}

/* How much later than it should this runs. */
static int64_t lateness(const struct deadlines *d, int64_t now)
{
    int64_t due = d->count ? d->heap[1]->at_ms : now;
    return now - (due > d->ran_ms ? due : d->ran_ms);
}

/* Timers come before sockets: let those be read first. Once for each stall. */
static bool put_off(struct deadlines *d)
{
    int64_t now = mono_ms(mono_now()), late = lateness(d, now);
    d->ran_ms = now;
    if (late < DEADLINE_LATE_MS || !d->stalled)
        return false;
    d->stalled(d, late);
    uv_update_time(d->timer.loop);
    uv_timer_start(&d->timer, on_timer, 1, 0); /* not 0, which would be in this turn */
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    struct deadlines *d = timer->data;
    if (put_off(d))
        return;
    /* Those that arm themselves again for now wait for the next turn, so that none can hold the loop. */
    int64_t now = mono_ms(mono_now());
    for (size_t bound = d->count; bound && d->count && d->heap[1]->at_ms <= now; bound--) {
        struct deadline *due = d->heap[1];
        deadline_clear(d, due);
        due->fire(due);
    }
    rearm(d);
}

void deadlines_init(struct deadlines *d, uv_loop_t *loop)
{
    *d = (struct deadlines){0};
    uv_timer_init(loop, &d->timer);
    d->timer.data = d;
}

void deadlines_fini(struct deadlines *d)
{
    for (size_t i = 1; i <= d->count; i++)
        d->heap[i]->slot = 0;
    d->count = 0;
    free(d->heap);
    d->heap = NULL;
    d->capacity = 0;
    uv_close((uv_handle_t *)&d->timer, NULL);
}

void deadline_set(struct deadlines *d, struct deadline *deadline, int64_t at_ms)
{
    assert(deadline->fire);
    deadline->at_ms = at_ms;
    if (!deadline->slot) {
        d->heap = mem_grow(d->heap, &d->capacity, d->count + 2, sizeof(struct deadline *));
        place(d, ++d->count, deadline);
    }
    settle(d, deadline->slot);
    if (deadline->slot == 1)
        rearm(d);
}

void deadline_clear(struct deadlines *d, struct deadline *deadline)
{
    size_t slot = deadline->slot;
    if (!slot)
        return;
    assert(d->heap[slot] == deadline);
    deadline->slot = 0;
    struct deadline *last = d->heap[d->count--];
    if (last != deadline) {
        place(d, slot, last);
        settle(d, slot);
    }
    if (slot == 1)
        rearm(d);
}
