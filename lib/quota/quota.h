/* quota.h - what each user may do to a daemon: connections, requests in a second, bytes of a request, and bytes that
 * the daemon keeps for him: requests that it has not answered and answers that he has not read. Used by elmer, where a
 * user is one over all hosts, and by each rsd. */
#ifndef LIB_QUOTA_QUOTA_H
#define LIB_QUOTA_QUOTA_H

#include <stdint.h>

#include "lib/quota/bucket.h"
#include "lib/quota/budget.h"

enum {
    QUOTA_BYTES = 16 << 20,        /* that are kept for one user */
    QUOTA_CROWDED = 64,            /* connections of one user while few places are left */
    QUOTA_REQUEST_UNIT = 16 << 10, /* a larger request counts as several: it costs more to read */
    QUOTA_WORK_MS = 3000,          /* of CPU time at once for requests that are answered bit by bit ... */
    QUOTA_WORK_RATE_MS = 50,       /* ... and in each second */
    QUOTA_TEXT = 300
};

struct quota_limits {
    const char *daemon, *config;          /* for refusals: who says it, and where the limits are set; kept */
    int64_t connections, requests, burst; /* at a time; in a second; at once after a pause */
    int64_t request_bytes;                /* 0: any */
    size_t bytes_of_all;                  /* that are kept for all users together */
};

struct quota { /* of a user */
    struct quota *next;
    uint32_t uid;
    long connections;
    struct bucket requests, work;
    struct budget bytes;
    void *waiting; /* the owner's: who waits until there is room in bytes; zero at first */
    void *put_off; /* the same: who waits until there is work again */
};

struct quotas;
struct quotas *quotas_create(const struct quota_limits *limits); /* NULL: no memory */
/* From now on these; daemon, config and bytes_of_all stay. */
void quotas_limit(struct quotas *quotas, struct quota_limits limits);
void quotas_destroy(struct quotas *quotas);
/* Of so many users something is known. */
size_t quotas_count(const struct quotas *quotas);

/* The user's. It is freed by a later call of this when he has no connection, no bytes and is owed nothing: keep it
 * while it is connected or has bytes only. NULL: no memory. now_ms is monotonic. */
struct quota *quota_of(struct quotas *quotas, uint32_t uid, int64_t now_ms);

enum quota_verdict {
    QUOTA_FINE,
    QUOTA_REFUSE,
    QUOTA_CUT /* ... and end the connection: refusals have not helped */
};
/* One connection more, which quota_disconnect() gives back unless it was refused. crowded: the daemon has few places
 * left; then nobody gets many. If it is not fine, text says what and why. */
enum quota_verdict quota_connect(struct quotas *quotas, struct quota *quota, int64_t now_ms, bool crowded,
                                 char text[QUOTA_TEXT]);
void quota_disconnect(struct quota *quota);
/* A request of so many bytes. */
enum quota_verdict quota_request(struct quotas *quotas, struct quota *quota, int64_t now_ms, size_t bytes,
                                 char text[QUOTA_TEXT]);
/* So much CPU time has gone into an answer of which each part may wait, such as a list. */
void quota_worked(struct quota *quota, int64_t now_ms, double used_ms);
/* When the next part may be made, in ms from now; 0: at once. */
int64_t quota_work_wait(struct quota *quota, int64_t now_ms);
/* The request is kept until it has been answered: quota->bytes gets it back then. False: text says why not. */
bool quota_keep(struct quotas *quotas, struct quota *quota, size_t bytes, char text[QUOTA_TEXT]);

#endif
