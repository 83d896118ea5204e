#include "config.h"

#include "rsd/courier/life.h"

#include <assert.h>

#include "lib/base/moves.h"
#include "lib/job/terminal.h"

static const struct moves_row states[] = {
    [LIFE_WAITS] = {"waits", MOVE_TO(LIFE_RUNS) | MOVE_TO(LIFE_OVER)},
    [LIFE_RUNS] = {"runs", MOVE_TO(LIFE_HUNG) | MOVE_TO(LIFE_LAST)},
    [LIFE_HUNG] = {"hung", MOVE_TO(LIFE_LAST)},
    [LIFE_LAST] = {"last", MOVE_TO(LIFE_OVER)},
    [LIFE_OVER] = {"over", 0},
};

static void move(struct life *life, enum life_state state, int64_t deadline_ms)
{
    MOVES_CHECK("terminal", states, life->state, state);
    life->state = state;
    life->deadline_ms = deadline_ms;
}

enum life_do life_begin(struct life *life, bool keep, int64_t now)
{
    *life = (struct life){.state = LIFE_WAITS, .keep = keep, .deadline_ms = now + TERMINAL_GRACE_MS};
    if (!keep)
        return LIFE_NOTHING;
    move(life, LIFE_RUNS, INT64_MAX);
    return LIFE_START;
}

enum life_do life_looked(struct life *life, int64_t now)
{
    life->shown = true;
    if (life->state == LIFE_WAITS) {
        move(life, LIFE_RUNS, INT64_MAX);
        return LIFE_START;
    }
    if (life->state == LIFE_RUNS || life->stopped)
        life->deadline_ms = INT64_MAX;
    if (life->state == LIFE_LAST)
        life->deadline_ms = now + LIFE_LAST_MS;
    return LIFE_NOTHING;
}

static enum life_do hang_up(struct life *life, int64_t kill_ms)
{
    move(life, LIFE_HUNG, kill_ms);
    return LIFE_HANG_UP;
}

enum life_do life_lost(struct life *life, int64_t now)
{
    life->shown = false;
    if (life->state == LIFE_RUNS || life->stopped)
        life->deadline_ms = life->keep ? INT64_MAX : now + TERMINAL_GRACE_MS;
    life->returns = life->state == LIFE_LAST;
    if (life->returns)
        life->deadline_ms = now + (life->keep ? LIFE_LAST_MS : TERMINAL_GRACE_MS);
    return LIFE_NOTHING;
}

enum life_do life_left(struct life *life, int64_t now)
{
    life->shown = false;
    if (life->state == LIFE_RUNS && !life->keep)
        return hang_up(life, now + LIFE_HANG_MS);
    if (life->stopped && !life->keep)
        life->deadline_ms = now + LIFE_HANG_MS;
    if (life->state == LIFE_LAST)
        life->deadline_ms = now;
    return LIFE_NOTHING;
}

/* KILL comes from the supervisor, when the grace that the administrator gives is over. Or nobody wants an end: TERM is
 * a signal that the user may send as well. */
enum life_do life_stop(struct life *life)
{
    if (life->state == LIFE_RUNS) {
        life->stopped = true;
        return hang_up(life, life->shown || life->keep ? INT64_MAX : life->deadline_ms);
    }
    if (life->state == LIFE_WAITS)
        move(life, LIFE_OVER, INT64_MAX);
    return LIFE_NOTHING;
}

/* Who has lost his connection may be on his way back, until his time is over. */
void life_exited(struct life *life, int64_t now)
{
    life->returns = !life->shown && life->state == LIFE_RUNS && life->deadline_ms != INT64_MAX;
    life->stopped = false;
    move(life, LIFE_LAST, life->returns ? life->deadline_ms : now + LIFE_LAST_MS);
}

void life_taken(struct life *life, int64_t now)
{
    if (life->state == LIFE_LAST && life->shown)
        life->deadline_ms = now + LIFE_LAST_MS;
}

void life_told(struct life *life)
{
    assert(life->state == LIFE_LAST);
    move(life, LIFE_OVER, INT64_MAX);
}

void life_starved(struct life *life, int64_t ms)
{
    if (life->state != LIFE_HUNG && life->deadline_ms != INT64_MAX)
        life->deadline_ms += ms;
}

enum life_do life_time(struct life *life, int64_t now)
{
    assert(now >= life->deadline_ms);
    switch (life->state) {
    case LIFE_WAITS:
    case LIFE_LAST:
        move(life, LIFE_OVER, INT64_MAX);
        return LIFE_NOTHING;
    case LIFE_RUNS:
        return hang_up(life, now + LIFE_HANG_MS);
    case LIFE_HUNG:
        life->deadline_ms = INT64_MAX;
        return LIFE_KILL;
    case LIFE_OVER:
        break;
    }
    life->deadline_ms = INT64_MAX;
    return LIFE_NOTHING;
}
