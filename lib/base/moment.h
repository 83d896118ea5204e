/* moment.h - times as people write them. */
#ifndef LIB_BASE_MOMENT_H
#define LIB_BASE_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"

/* "2h30m": whole numbers with d, h, m or s, from the largest unit down, each once, from 1 s to 366 days. In seconds; 0:
 * it is no such time. */
uint64_t moment_span_s(const char *text);
/* Of local time "2026-11-24", "2026-11-24 08:00", "2026-11-24 08:00:00" or with T for the space; "08:00" or "08:00:00",
 * of today; "today" and "yesterday", at midnight. "@1795509600.5": seconds since 1970. "2h30m": so long before now. */
bool moment_parse(const char *text, struct wall now, struct wall *moment);
#define MOMENT_FORMS                                                                                                   \
    "a time ago like 2h30m, or a moment like 2026-11-24, \"2026-11-24 08:00\", 08:00, today, yesterday or @ and "      \
    "seconds since 1970"

#endif
