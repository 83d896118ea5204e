/* since.h - what --since says: a time that has passed. */
#ifndef CLIENT_SINCE_H
#define CLIENT_SINCE_H

#include <stdbool.h>
#include <stdint.h>

/* In milliseconds since 1970; see lib/base/moment.h. false: said what is wrong. */
bool since_parse(const char *text, int64_t *ms);

#endif
