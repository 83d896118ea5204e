/* fake_deadlines.c - in place of elmer/engine/deadline.c: no timer, no loop; a test says when time passes. */
#include "config.h"

#include <assert.h>

#include "elmer/engine/deadline.h"
#include "tests/unit/elmer/fakes/fake_time.h"

enum { ARMED_MAX = 4096 };

static struct deadline *armed[ARMED_MAX];
static size_t narmed;

void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop)
{
    (void)loop;
    *deadlines = (struct deadlines){0};
    narmed = 0;
}

void deadlines_fini(struct deadlines *deadlines)
{
    (void)deadlines;
    while (narmed)
        armed[--narmed]->slot = 0;
}

/* The last goes first among those of one time: none may depend on their order. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at_ms)
{
    (void)deadlines;
    assert(deadline->fire);
    deadline->at_ms = at_ms;
    if (deadline->slot)
        return;
    assert(narmed < ARMED_MAX);
    armed[narmed++] = deadline;
    deadline->slot = narmed;
}

void deadline_clear(struct deadlines *deadlines, struct deadline *deadline)
{
    (void)deadlines;
    if (!deadline->slot)
        return;
    assert(armed[deadline->slot - 1] == deadline);
    struct deadline *last = armed[--narmed];
    armed[deadline->slot - 1] = last;
    last->slot = deadline->slot;
    deadline->slot = 0;
}

static struct deadline *first(void)
{
    struct deadline *first = NULL;
    for (size_t i = narmed; i-- > 0;)
        if (!first || armed[i]->at_ms < first->at_ms)
            first = armed[i];
    return first;
}

int64_t fake_time_next(void)
{
    return narmed ? first()->at_ms : -1;
}

/* Those that arm themselves again for now wait for the next turn, as in deadline.c. */
void fake_time_fire(void)
{
    struct deadline *due;
    for (size_t bound = narmed; bound && (due = first()) && due->at_ms <= fake_now_ms(); bound--) {
        deadline_clear(NULL, due);
        due->fire(due);
    }
}

void fake_time_pass(int64_t ms)
{
    int64_t end_ms = fake_now_ms() + ms;
    for (int64_t next; (next = fake_time_next()) >= 0 && next <= end_ms;) {
        if (next > fake_now_ms())
            fake_time_skip(next - fake_now_ms());
        fake_time_fire();
    }
    fake_time_skip(end_ms - fake_now_ms());
}
