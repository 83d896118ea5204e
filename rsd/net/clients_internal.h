/* clients_internal.h - what clients.c and clients_room.c share. */
#ifndef RSD_NET_CLIENTS_INTERNAL_H
#define RSD_NET_CLIENTS_INTERNAL_H

#include "lib/base/log.h"
#include "lib/net/link.h"
#include "rsd/net/clients.h"
#include "rsd/net/outstanding.h"

struct client {
    struct clients *all;
    struct quota *quota; /* NULL: root, who has no limits */
    struct client *next;
    struct link *link; /* NULL: gone */
    uint64_t id;
    uid_t uid;
    char user[256];
    uv_work_t lookup;
    bool looking, named;
    bool heard_of; /* by elmer, on the present link */
    bool full;     /* elmer was told: much waits for it */
    struct outstanding requests;
    struct wire_message *held[REQUESTS_MAX]; /* until the user has a name */
    unsigned nheld;
};

struct clients {
    uv_loop_t *loop;
    struct clients_callbacks callbacks;
    void *data;
    struct listener *listener;
    struct client *first;
    struct quotas *quotas;
    unsigned count;
    uint64_t next_id;
    struct log_limit limit;
    bool stopping;
};

/* An answer has been sent: if much waits for the client, elmer is told. */
void client_note_full(struct client *c);
/* Little waits for the client's link: if it was full, elmer is told. */
void client_note_room(struct client *c);
/* Less is kept for this user than before; NULL: for root. */
void clients_wake_user(struct clients *all, struct quota *quota);

#endif
