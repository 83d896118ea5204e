/* queued_lines.h - the queued jobs of a message `lines`: one line each here, columns in the message.
 *
 * A long queue says the same names again and again, and as objects it would repeat every key for every job. So a
 * message has a column of numbers for each field, all of the same length; names, users and reasons are indexes into its
 * texts. */
#ifndef LIB_WIRE_QUEUED_LINES_H
#define LIB_WIRE_QUEUED_LINES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/wire.h"

enum { QUEUED_LINES_MAX = 256, QUEUED_COLUMNS = 8, QUEUED_TEXTS = 3, QUEUED_RECENT = 4 };

/* The usual reason, of a uint64_t ahead. In `jobs` elmer says it, of a line the reader. */
#define QUEUED_WAITS "waits: %" PRIu64 " ahead"

struct queued_line {
    uint64_t job, nprocs, ahead, submitted_ms;
    const char *name, *user, *reason; /* reason "", not held and some ahead: QUEUED_WAITS */
    bool held, hidden;                /* hidden: of another user, the name is "" */
};

/* A message that grows. */
struct queued_lines {
    uint64_t columns[QUEUED_COLUMNS][QUEUED_LINES_MAX];
    const char *texts[QUEUED_TEXTS * QUEUED_LINES_MAX];
    size_t count, ntexts;
    struct {
        size_t texts[QUEUED_RECENT], count; /* the last few, as indexes: neighbours mostly have the same */
    } recent[QUEUED_TEXTS];
};

/* As new. */
void queued_lines_clear(struct queued_lines *lines);
/* The texts must live until the message is sent. At most QUEUED_LINES_MAX. */
void queued_lines_add(struct queued_lines *lines, const struct queued_line *line);
/* Let the message point to them. */
void queued_lines_put(struct queued_lines *lines, struct wire_lines *message);

/* What came: are the columns of one length, and the indexes within the texts? Before the others. */
bool queued_lines_fit(const struct wire_lines *message);
size_t queued_lines_count(const struct wire_lines *message);
struct queued_line queued_lines_at(const struct wire_lines *message, size_t index);

#endif
