/* since.h - what --since says: a time that has passed. */
#ifndef CLIENT_SINCE_H
#define CLIENT_SINCE_H

#include <stdbool.h>
#include <stdint.h>

/* "2h30m" ago, or a moment of local time: "2026-11-24", "2026-11-24 08:00", "08:00", "today", "yesterday"; in
 * milliseconds since 1970. false: said what is wrong. */
bool since_parse(const char *text, int64_t *ms);

#endif
