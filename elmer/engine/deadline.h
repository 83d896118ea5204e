/* deadline.h - many deadlines on one timer of the loop. */
#ifndef ELMER_ENGINE_DEADLINE_H
#define ELMER_ENGINE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct deadline {
    int64_t at_ms;                           /* monotonic */
    size_t slot;                             /* in the heap, from 1; 0: not armed */
    void (*fire)(struct deadline *deadline); /* disarmed before it is called; may free its owner or arm again */
};

struct deadlines {
    uv_timer_t timer;
    struct deadline **heap;
    size_t count, capacity;
    int64_t ran_ms; /* the last time that any were fired, or put off */
    /* Called before any is fired when the first one is late by so much, because the process did not run: nothing that
     * has come meanwhile has been read. They fire after the next turn of the loop, which reads it. May be NULL. */
    void (*stalled)(struct deadlines *deadlines, int64_t late_ms);
};
enum { DEADLINE_LATE_MS = 500 };

void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop);
/* Forgets all of them; the timer's handle is closed by the next turns of the loop. */
void deadlines_fini(struct deadlines *deadlines);
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at_ms); /* also moves an armed one */
void deadline_clear(struct deadlines *deadlines, struct deadline *deadline); /* nothing when it is not armed */

#endif
