/* escape.h - what is typed at eattach and meant for itself: behind the begin of a line ~. leaves, ~? says so, ~~ is ~.
 */
#ifndef CLIENT_ESCAPE_H
#define CLIENT_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum escape_do { ESCAPE_NOTHING, ESCAPE_LEAVE, ESCAPE_HELP };
struct escape {
    bool in_line, tilde; /* something stands in the line already; a ~ at its begin waits for what follows */
};

/* One byte that was typed. Adds to out (2 bytes) what goes on to the terminal, and to *size how many these are. */
enum escape_do escape_take(struct escape *escape, uint8_t byte, uint8_t *out, size_t *size);

#endif
