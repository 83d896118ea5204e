/* moves.h - a machine's states as a table: what each is called and which may follow it; and the one way to check that.
 * A machine has at most 32 states. */
#ifndef LIB_BASE_MOVES_H
#define LIB_BASE_MOVES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct moves_row {
    const char *name; /* of the state */
    unsigned to;      /* MOVE_TO() of each that may follow it */
};

#define MOVE_TO(state) (1u << (state))

static inline bool moves_allow(const struct moves_row *rows, unsigned count, unsigned from, unsigned to)
{
    return from < count && to < count && (rows[from].to & MOVE_TO(to)) != 0;
}

/* A move that is not in the table is a bug of ours and ends the program as assert() does, in every build: with a line
 * that names both states, and abort(). */
static inline void moves_check(const char *machine, const struct moves_row *rows, unsigned count, unsigned from,
                               unsigned to)
{
    if (moves_allow(rows, count, from, to))
        return;
    fprintf(stderr, "%s: no move leads from %s (%u) to %s (%u): a bug\n", machine,
            from < count ? rows[from].name : "no state", from, to < count ? rows[to].name : "no state", to);
    abort();
}

/* rows: the table itself, not a pointer. */
#define MOVES_COUNT(rows)                    ((unsigned)(sizeof(rows) / sizeof(*(rows))))
#define MOVES_ALLOW(rows, from, to)          moves_allow(rows, MOVES_COUNT(rows), from, to)
#define MOVES_CHECK(machine, rows, from, to) moves_check(machine, rows, MOVES_COUNT(rows), from, to)

#endif
