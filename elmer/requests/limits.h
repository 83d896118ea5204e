/* limits.h - what one user may do to elmer, over all hosts: connections, requests in a second, bytes of a request. The
 * limits on jobs are in submit.c (in the queue) and in the core (running). */
#ifndef ELMER_REQUESTS_LIMITS_H
#define ELMER_REQUESTS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elmer/requests/requests.h"

struct limits;
struct limits *limits_create(const struct requests_settings *settings);
void limits_destroy(struct limits *limits);

enum limits_verdict {
    LIMITS_FINE,
    LIMITS_REFUSE,
    LIMITS_CUT /* ... and end the connection: refusals have not helped */
};

enum { LIMITS_TEXT = 300 };
/* One connection more, which limits_disconnect() gives back unless it was refused. crowded: elmer has few places left;
 * then nobody gets many. Otherwise text says what and why. */
enum limits_verdict limits_connect(struct limits *limits, uint32_t uid, bool crowded, char *text);
void limits_disconnect(struct limits *limits, uint32_t uid);
/* A request of so many bytes. */
enum limits_verdict limits_request(struct limits *limits, uint32_t uid, size_t bytes, char *text);

#endif
