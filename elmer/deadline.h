/* deadline.h - many deadlines on one timer of the loop. */
#ifndef ELMER_DAEMON_DEADLINE_H
#define ELMER_DAEMON_DEADLINE_H

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
};

void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop);
/* Forgets all of them; the timer's handle is closed by the next turns of the loop. */
void deadlines_fini(struct deadlines *deadlines);
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at_ms); /* also moves an armed one */
void deadline_clear(struct deadlines *deadlines, struct deadline *deadline); /* nothing when it is not armed */

#endif
