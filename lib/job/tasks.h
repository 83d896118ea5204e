/* tasks.h - which tasks an array of jobs has: "1-1000%8", "0-99:3", "1,4,7-9". Numbers and ranges that grow, a step
 * behind a colon, and behind % how many run at a time. A task has the index that stands there, and an ordinal: the
 * first one is 0. */
#ifndef LIB_JOB_TASKS_H
#define LIB_JOB_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TASKS_MAX = 100000,
    TASKS_INDEX_MAX = 2000000000,
    TASKS_RANGES_MAX = 256,
    TASKS_TEXT_MAX = 1000,
    TASKS_WHY = 160
};
/* Room for the text of one range with its comma and NUL. */
enum { TASKS_RANGE_TEXT = 40 };

/* Where the tasks stand in what is sent to be signed (rsd/tickets/sign.c); no process ever has it. */
#define TASKS_VARIABLE "ELMER_ARRAY_TASKS"

struct tasks_range {
    uint32_t first, count, step; /* step 1 where count is 1 */
};

struct tasks {
    uint32_t count; /* of all ranges; at least 1 */
    uint32_t limit; /* at a time; 0: any number */
    uint32_t nranges;
    struct tasks_range ranges[TASKS_RANGES_MAX];
};

/* 0, or -1 with what is wrong in why. With a limit where `limited` says so. */
int tasks_parse(const char *text, bool limited, struct tasks *tasks, char why[TASKS_WHY]);
/* The index of an ordinal below count. */
uint32_t tasks_index(const struct tasks *tasks, uint32_t ordinal);
/* The ordinal of an index; -1: it is none of them. */
int64_t tasks_ordinal(const struct tasks *tasks, uint32_t index);
/* The indices of the ordinals from `from` up to, and without, `to`, as ranges with a comma between, behind what `used`
 * says is in text already. Returns the new length; nothing is written that does not fit whole, then "..". */
size_t tasks_text(const struct tasks *tasks, uint32_t from, uint32_t to, char *text, size_t used, size_t size);

#endif
