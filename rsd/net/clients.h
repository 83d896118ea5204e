/* clients.h - programs of local users: their requests go to elmer as relay, with the user that the kernel names. */
#ifndef RSD_CLIENTS_H
#define RSD_CLIENTS_H

#include <uv.h>

#include "lib/base/err.h"
#include "lib/quota/quota.h"
#include "lib/wire/wire.h"

struct clients_callbacks {
    /* Send to elmer: 0, -ENOTCONN: no link now, other: this message cannot be sent. */
    int (*send)(const struct wire_message *message, void *data);
    /* Why there is no link. */
    const char *(*why)(void *data);
    /* The minor version of that link: a relayed message is encoded for it. -ENOTCONN: no link now. */
    int (*minor)(void *data);
};

struct clients;
/* Of each user but root: those of them that rsd.conf sets. */
struct clients_limits {
    long connections, requests, burst;
};
/* listen_fd is taken over. */
int clients_create(uv_loop_t *loop, int listen_fd, const struct clients_limits *limits,
                   const struct clients_callbacks *callbacks, void *data, struct clients **clients, struct err *err);
void clients_stop(struct clients *clients);
/* After the loop has ended. */
void clients_free(struct clients *clients);
/* elmer's answer. */
void clients_relayed(struct clients *clients, const struct wire_relayed *relayed);
/* The link to elmer is gone: whoever waits for an answer is told, and may ask again. */
void clients_offline(struct clients *clients);
/* As many descriptors as the connections to one socket may take, as far as that is allowed. */
void clients_want_files(void);

#endif
